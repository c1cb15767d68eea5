"""A party's view of a run: the agreement, its own data, and the messages that it sent and received.

An attack is given a view and nothing else. In a simulation one process has all views; `Recorder` keeps them in memory.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from vfgnn.agreement import Agreement
from vfgnn.data.holdings import Holding, Labels
from vfgnn.lab.simulate import build
from vfgnn.messages import Declared, Kind
from vfgnn.settings import Settings
from vfgnn.transport.memory import InMemoryNetwork

FIRST = 3  # messages of each kind and link that are kept, and the last one: all of them would be GBs

Messages = Mapping[tuple[Kind, str, str], Sequence[Tensor]]
"""By kind, sender and receiver, in their order."""


@dataclass(frozen=True, repr=False)
class View:
    """What one party has after a run."""

    party: str
    agreement: Agreement
    messages: Messages
    holding: Holding | None = None  # of a holder
    labels: Labels | None = None  # of the label holder

    def received(self, kind: Kind, sender: str) -> Sequence[Tensor]:
        """What came from `sender`: the first messages, and the last."""
        return self.messages[kind, sender, self.party]

    def sent(self, kind: Kind, receiver: str) -> Sequence[Tensor]:
        """What this party sent to `receiver`."""
        return self.messages[kind, self.party, receiver]


class Recorder(InMemoryNetwork):
    """The network of a simulation, which keeps what crosses it."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[Kind, str, str], list[Tensor]] = defaultdict(list)

    def put(self, message: Declared, payload: Tensor) -> None:
        """As in memory."""
        link = self.kept[message.kind, message.sender, message.receiver]
        del link[FIRST:]
        link.append(payload.detach().clone())
        super().put(message, payload)


def train_and_record(
    holdings: Sequence[Holding], labels: Labels, settings: Settings, *, seed: int
) -> tuple[Agreement, dict[str, View]]:
    """Train a federation in this process; gives every party's view. The first holder has the labels."""
    network = Recorder()
    federation = build(holdings, labels, settings, seed=seed, network=network)
    federation.train()
    agreement = federation.agreement
    held = dict(zip(agreement.holder_names, holdings, strict=True))
    views = {}
    for party in federation.parties:
        own = {link: messages for link, messages in network.kept.items() if party in link[1:]}
        leads = party == agreement.label_holder
        views[party] = View(party, agreement, own, held.get(party), labels if leads else None)
    return agreement, views
