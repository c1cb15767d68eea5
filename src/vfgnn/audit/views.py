"""What an attack works with: a party's view of a run, and the truth that its guesses are held against.

A view is the agreement, the party's own data, the messages that it sent and received, and what was opened to it. An
attack guesses from a view and from nothing else. `simulated_run.py` makes views in memory; `recorded_views.py` reads
what a party of a real federation recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from torch import Tensor

from vfgnn.agreement import Agreement
from vfgnn.data.holdings import Holding, Labels
from vfgnn.messages import Kind

Messages = Mapping[tuple[Kind, str, str], Sequence[Tensor]]
"""By kind, sender and receiver, in their order: the first ones and the last (view_file.py says how many)."""
Some = TypeVar("Some")


class NotInView(LookupError):
    """An attack needs something that this view or this truth does not have, so it cannot be measured here."""


@dataclass(frozen=True, repr=False)
class Opened:
    """Sealed: what a training opened to the label holder."""

    predictions: Tensor  # [nodes, classes]: scores, or one-hot classes
    products: tuple[Tensor, ...] = ()  # inner products of the basis, in the order in which they came


@dataclass(frozen=True, repr=False)
class View:
    """What one party has after a run.

    In the self-audit of a holder it is what that holder knows of another party's view: the messages that it sent there.
    """

    party: str
    agreement: Agreement
    messages: Messages
    holding: Holding | None = None  # of a holder
    labels: Labels | None = None  # of the label holder
    opened: Opened | None = None  # of the label holder in a sealed run

    def received(self, kind: Kind, sender: str) -> Sequence[Tensor]:
        """What came from `sender`: the first messages, and the last."""
        return self._messages(kind, sender, self.party)

    def sent(self, kind: Kind, receiver: str) -> Sequence[Tensor]:
        """What this party sent to `receiver`."""
        return self._messages(kind, self.party, receiver)

    def _messages(self, kind: Kind, sender: str, receiver: str) -> Sequence[Tensor]:
        found = self.messages.get((kind, sender, receiver))
        if not found:
            raise NotInView(f"{kind} from {sender} to {receiver}")
        return found

    @property
    def own_holding(self) -> Holding:
        """The party's own features and edges."""
        return _there(self.holding, f"the data of {self.party}")

    @property
    def own_labels(self) -> Labels:
        """The party's own labels."""
        return _there(self.labels, f"the labels of {self.party}")

    @property
    def told(self) -> Opened:
        """What was opened to the party."""
        return _there(self.opened, f"what was opened to {self.party}")


@dataclass(frozen=True, repr=False)
class Truth:
    """What the auditor knows to be so; no attack guesses from it.

    In a test federation it is everybody's data. A holder that audits itself has its own data, and what it sent.
    """

    holdings: Mapping[str, Holding] = field(default_factory=dict)  # by holder
    labels: Labels | None = None
    messages: Messages = field(default_factory=dict)  # that these holders sent
    pooled: Callable[[Labels], Tensor] | None = None  # sealed: scores [nodes, classes] of the clear model, by labels

    def holding(self, of: str) -> Holding:
        """A holder's features and edges."""
        return _there(self.holdings.get(of), f"the data of {of}")

    @property
    def known_labels(self) -> Labels:
        """All labels."""
        return _there(self.labels, "the labels")

    def sent(self, kind: Kind, sender: str, receiver: str) -> Sequence[Tensor]:
        """What `sender` sent to `receiver`: the first messages, and the last."""
        return _there(self.messages.get((kind, sender, receiver)), f"{kind} from {sender} to {receiver}")


def _there(found: Some | None, what: str) -> Some:
    if found is None:
        raise NotInView(what)
    return found
