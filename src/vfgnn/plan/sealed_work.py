"""How long the parties of a sealed training work for what they send and receive: measured in a rehearsal.

The real parties train once, in memory, on made-up data of the declared sizes; of fewer nodes where that would take
long. Counted is the processor time of each of their threads, but not what it takes to move messages. Nothing leaves
this process.
"""

import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from threading import current_thread, local

import torch

from vfgnn.agreement import Agreement
from vfgnn.data.holdings import Holding, Labels
from vfgnn.lab.simulate import assemble
from vfgnn.messages import Declared
from vfgnn.sealed.program import row_messages, setup_messages, training
from vfgnn.sealed.record import Part
from vfgnn.transport.memory import InMemoryNetwork

MOST_BYTES = 5 * 10**8  # of all messages of a rehearsal: it takes a second or two
ONES = 16  # in each row of all holders' columns together, about
LEAST_NODES = 64


@dataclass(frozen=True)
class Rates:
    """Of each party: seconds before its first message, and for each byte of each part."""

    start_s: float
    per_byte: dict[tuple[str, Part], float]

    def seconds(self, party: str, part: Part, size: int) -> float:
        """Of work for so many bytes that are sent or received."""
        return self.per_byte.get((party, part), 0.0) * size


class MeasuredNetwork(InMemoryNetwork):
    """Moves messages in memory, and counts what each thread works between them."""

    def __init__(self, agreement: Agreement) -> None:
        super().__init__()
        before = [*row_messages(agreement), *setup_messages(agreement)]
        self._setup = {message.kind for message in before}
        self._mine = local()
        self.seconds: dict[tuple[str, Part], float] = defaultdict(float)
        self.bytes: Counter[tuple[str, Part]] = Counter()

    def put(self, message: Declared, payload: torch.Tensor) -> None:
        """As in memory."""
        self._count(message.sender, message)
        super().put(message, payload)
        self._mine.since = time.thread_time()

    def get(self, sender: str, receiver: str) -> tuple[Declared, torch.Tensor]:
        """As in memory."""
        found = super().get(sender, receiver)
        self._count(receiver, found[0])
        return found

    def _count(self, party: str, message: Declared) -> None:
        now = time.thread_time()
        ahead = current_thread().name != party
        part: Part = "offline" if ahead else "setup" if message.kind in self._setup else "online"
        self.seconds[party, part] += now - getattr(self._mine, "since", 0.0)
        self.bytes[party, part] += message.bytes
        self._mine.since = now


def measure(agreement: Agreement, *, train_rows: int, val_rows: int, bytes_in_all: int) -> Rates:
    """Train once. `bytes_in_all`: of the training that is planned."""
    share = min(1.0, MOST_BYTES / bytes_in_all)
    small = _smaller(agreement, share)
    holdings = [_made_up(small, name) for name in small.holder_names]
    labels = _made_up_labels(small, round(train_rows * share), round(val_rows * share))
    network, began = MeasuredNetwork(small), time.thread_time()
    parties = assemble(small, holdings, labels, training(small), seed=0, protocol="sealed", network=network)
    start_s = (time.thread_time() - began) / len(holdings) * agreement.nodes / small.nodes
    parties.train()
    per_byte = {key: seconds / max(1, network.bytes[key]) for key, seconds in network.seconds.items()}
    return Rates(start_s, per_byte)


def _smaller(agreement: Agreement, share: float) -> Agreement:
    """A share of the nodes and entries; without a server, which takes no part."""
    least = min(agreement.nodes, max(LEAST_NODES, 4 * agreement.classes))
    holders = [
        holder.model_copy(update={"entry_bound": max(16, round(holder.entry_bound * share)) if holder.edges else 0})
        for holder in agreement.holders
    ]
    nodes = max(least, round(agreement.nodes * share))
    return agreement.model_copy(update={"nodes": nodes, "holders": tuple(holders), "tokens": False})


def _made_up(agreement: Agreement, name: str) -> Holding:
    shape, nodes = next(holder for holder in agreement.holders if holder.name == name), agreement.nodes
    draw = torch.Generator().manual_seed(agreement.holder_names.index(name))
    x = (torch.rand(nodes, shape.features, generator=draw) < min(0.5, ONES / agreement.columns)).float()
    if agreement.settings.sealed.scaled:  # words have bits for columns of deviation 1, and smaller ones get too few
        x = torch.randn(nodes, shape.features, generator=draw)
    ends = torch.randint(nodes, (2, shape.entry_bound // 2), generator=draw)
    return Holding(x=x, edge_index=ends)


def _made_up_labels(agreement: Agreement, train_rows: int, val_rows: int) -> Labels:
    """With rows of each kind, and training rows of every class."""
    nodes, classes = agreement.nodes, agreement.classes
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))
    val = min(max(val_rows, 1), nodes // 3)
    train = min(max(train_rows, 2 * classes), nodes - val - 1)
    y = torch.empty_like(order)
    y[order] = torch.arange(nodes) % classes
    rows = order[:train], order[train : train + val], order[train + val :]
    return Labels(y=y, train=rows[0], val=rows[1], test=rows[2], classes=classes)
