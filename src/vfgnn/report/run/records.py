"""A run folder, read for the page: every value checked before it is shown.

The folder may be another party's, so its files say what that party wants. A value that is no number where one belongs,
a name that is no party's, a text without end: each is a DataError with the file and the key, never with the value.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from vfgnn.errors import DataError
from vfgnn.explained import expected_of
from vfgnn.files import FederationFile
from vfgnn.message_log import Entry, read_entries
from vfgnn.sealed.sizes import SealedSizes
from vfgnn.shown import shown

SHOWN = 200  # characters of a key or of a finding
WHICH_ROWS = "which nodes train and validate"  # of both protocols: told so that all work on the same rows
Count = Annotated[int, Field(ge=0, lt=2**63)]
Word = Annotated[str, Field(max_length=200)]
Sentence = Annotated[str, Field(max_length=2000)]
Content = TypeVar("Content")


class Record(BaseModel):
    """Of a file that a party wrote: types are strict, and keys that the page does not show are left alone."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class LeakReading(Record):
    """What the reveals of h0 gave away of a holder's features."""

    revealed: Count
    rank: Count
    share: float


class Ended(Record):
    """At the label holder: what was reached."""

    scores: dict[Word, float] = {}


class Alone(Record):
    """At the label holder: what its own data gave by itself, or why there is no such model."""

    scores: dict[Word, float] = {}
    reason: Sentence = ""


class OpenedPart(Record):
    """What a sealed training opened."""

    to: Word
    what: Word
    rows: Count
    validation_rows: Count
    columns: Count
    scalars: Count
    trainings: Count
    allows: Annotated[list[Sentence], Field(max_length=20)]


class NoisedPart(Record):
    """One thing that was noised."""

    what: Word
    unit: Word
    mechanism: Sentence
    epsilon_per_release: float
    releases: dict[Word, Count]
    epsilon_total: float
    delta: float
    noise_multiplier: float | None = None
    adjacency: Word | None = None
    calibration: Word | None = None
    note: Sentence = ""


class Stated(Record):
    """What a holder's ledger came to."""

    guarantees: list[NoisedPart]
    not_covered: list[Sentence]


class About(Record):
    """run.json."""

    party: Word
    run: Word
    state: Word
    program: Word
    began: Word
    nodes: Count | None = None
    leak_meter: LeakReading | None = None
    privacy: Stated | None = None
    opened: OpenedPart | None = None
    rounds: Count | None = None
    outcome: Ended | None = None
    alone: Alone | None = None


class LinkRecord(Record):
    """One direction of one link in one phase, of traffic.json."""

    phase: Word
    sender: Word
    receiver: Word
    messages: Count
    bytes: Count
    waited_s: float


class Epoch(Record):
    """A line of metrics.jsonl."""

    epoch: Count
    loss: float | None
    val_accuracy: float | None


@dataclass(frozen=True)
class Kept:
    """One party's run folder."""

    folder: Path
    about: About
    file: FederationFile
    traffic: tuple[LinkRecord, ...]
    metrics: tuple[Epoch, ...]
    entries: tuple[Entry, ...] | None  # of its message log; None: there is none

    @property
    def party(self) -> str:
        """Whose it is."""
        return self.about.party

    @staticmethod
    def read(folder: Path) -> "Kept":
        """A run folder, or a DataError that says what is missing or cannot be."""
        if missing := [name for name in ("run.json", "federation.json") if not (folder / name).is_file()]:
            raise DataError("not a run folder", expected=" and ".join(missing), where=str(folder))
        about = _read(folder / "run.json", TypeAdapter(About))
        file = _read(folder / "federation.json", TypeAdapter(FederationFile))
        _refuse_strangers(file.parties, folder / "run.json", party=about.party)
        traffic, log = folder / "traffic.json", folder / "messages.jsonl"
        links = _read(traffic, TypeAdapter(list[LinkRecord])) if traffic.is_file() else []
        for link in links:
            _refuse_strangers(file.parties, traffic, sender=link.sender, receiver=link.receiver)
        entries = tuple(entries_of(log, file.parties)) if log.is_file() else None
        return Kept(folder, about, file, tuple(links), tuple(_lines(folder / "metrics.jsonl")), entries)


def listed(names: Sequence[str]) -> str:
    """In a sentence."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def over_one_node(file: FederationFile) -> FederationFile:
    """For the schedule of kinds and links, the same for any number of nodes; a file may claim 10^18 of them.

    A sealed one's is the same for any number of columns and classes too, in the same order.
    """
    document = file.document
    if file.agreement.sealed:
        sizes, few = SealedSizes(file.agreement, 1, 1), 2
        settings = file.settings.model_copy(
            update={"sealed": file.settings.sealed.model_copy(update={"order": sizes.order, "columns_at_once": 1})}
        )
        holders = [holder.model_copy(update={"features": min(holder.features, few)}) for holder in file.holders]
        document |= {
            "classes": min(file.classes, 1 + few),
            "settings": settings.model_dump(mode="json"),
            "holders": [holder.model_dump(mode="json") for holder in holders],
        }
    if file.alignment is None:
        return FederationFile.model_validate({**document, "nodes": 1})
    alignment = file.alignment.model_copy(update={"max_ids": 1})
    return FederationFile.model_validate({**document, "alignment": alignment})


def entries_of(log: Path, names: Collection[str]) -> Iterator[Entry]:
    """A message log between parties that there are."""
    for entry in read_entries(log):
        _refuse_strangers(names, f"{log}, line {entry.number}", sender=entry.sender, receiver=entry.receiver)
        yield entry


def _lines(metrics: Path) -> Iterator[Epoch]:
    """A kill may have cut the last line: it does not count."""
    if not metrics.is_file():
        return
    with _named(str(metrics)):
        whole = metrics.read_bytes().rpartition(b"\n")[0].splitlines()
    for number, line in enumerate(whole, start=1):
        with _named(f"{metrics}, line {number}"):
            yield Epoch.model_validate_json(line)


def _read(path: Path, kind: TypeAdapter[Content]) -> Content:
    with _named(str(path)):
        return kind.validate_json(path.read_bytes())


def _refuse_strangers(names: Collection[str], where: object, **found: str) -> None:
    for key, name in found.items():
        if name not in names:
            raise DataError(f"'{key}' is not a party", expected=" or ".join(names), where=str(where))


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Whatever is wrong with a file becomes a DataError with the key, and without the value."""
    try:
        yield
    except ValidationError as error:
        finding = error.errors(include_url=False, include_input=False)[0]
        key = shown(".".join(map(str, finding["loc"])), most=SHOWN) or "the whole"
        raise DataError(
            f"'{key}' cannot be used", expected=shown(expected_of(finding), most=SHOWN), where=where
        ) from None
    except OSError as error:
        raise DataError("a record that cannot be read", got=error.strerror, where=where) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError("a record that cannot be read", got=type(error).__name__, where=where) from None
