"""What a party writes down about a run: traffic per link and phase, and (label holder only) the metrics.

Counts and names only; no payload is ever kept.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line reads this before it needs torch
    import torch

from vfgnn.errors import DataError
from vfgnn.writing import write_whole


def write_json(path: Path, content: object, *, for_others: bool = False) -> None:
    """A file that is whole or not there."""
    write_whole(path, json.dumps(content, indent=2) + "\n", for_others=for_others)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever a record lacks, or has of another kind, is refused with the name of its file."""
    try:
        yield
    except OSError as error:
        raise DataError("a record cannot be read", got=error.strerror, where=str(path)) from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        got = f"no {error}" if isinstance(error, KeyError) else "something of another kind"
        hint = "restore the file, or run again"
        raise DataError("a record is not as it was written", got=got, where=str(path), hint=hint) from None


def read_json(path: Path) -> Any:  # noqa: ANN401 (whoever asks knows what should be there, and looks in `reading`)
    """The content of a record."""
    with reading(path):
        return json.loads(path.read_text())


def read_lines(path: Path) -> list[Any]:
    """The content of a record that only grows; half a line at its end was cut by a kill."""
    with reading(path):
        return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def a_number(value: object) -> float:
    """Of a record."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return value


@dataclass
class LinkTraffic:
    """One direction of one link in one phase."""

    messages: int = 0
    bytes: int = 0
    waited_s: float = 0.0


@dataclass
class Traffic:
    """All that one party sent and received, by phase, peer and direction."""

    links: dict[tuple[str, str, str], LinkTraffic] = field(default_factory=lambda: defaultdict(LinkTraffic))

    def count(self, *, phase: str, sender: str, receiver: str, size: int, waited_s: float = 0.0) -> None:
        """Add one message."""
        link = self.links[phase, sender, receiver]
        link.messages += 1
        link.bytes += size
        link.waited_s += waited_s

    def totals(self, party: str) -> tuple[int, int]:
        """Payload bytes that `party` has sent and received so far."""
        links = list(self.links.items())  # at once: another thread may count meanwhile
        sent = sum(link.bytes for (_, sender, _), link in links if sender == party)
        return sent, sum(link.bytes for _, link in links) - sent

    def sent_by(self, party: str) -> dict[tuple[str, str, str], LinkTraffic]:
        """Its own share of it: so nothing is counted at both ends."""
        return {key: link for key, link in self.links.items() if key[1] == party}

    def waited_for(self, sender: str) -> float:
        """Seconds in which this party waited for messages of `sender`."""
        return sum(link.waited_s for (_, sent, _), link in self.links.items() if sent == sender)

    def bytes_in(self, *phases: str) -> int:
        """Payload bytes of all links in these phases."""
        return sum(link.bytes for (phase, _, _), link in self.links.items() if phase in phases)


@dataclass(frozen=True)
class EpochMetrics:
    """What only the label holder knows of an epoch."""

    epoch: int
    loss: float | None
    val_accuracy: float | None


@dataclass(frozen=True)
class Outcome:
    """What only the label holder knows at the end: the best epoch on validation, and the test accuracy there."""

    best_epoch: int
    val_accuracy: float
    test_accuracy: float
    history: tuple[EpochMetrics, ...]
    scores: dict[str, float] = field(default_factory=dict)  # of the test nodes: accuracy, f1, auc, average_precision


@dataclass(frozen=True)
class Result:
    """What a program leaves at the label holder; nobody else has one."""

    outcome: Outcome
    logits: "torch.Tensor | None" = field(default=None, repr=False)  # [nodes, classes]; None: the run was over before
