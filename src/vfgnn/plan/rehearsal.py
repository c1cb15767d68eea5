"""A rehearsal: the real parties' code with made-up data of the declared sizes, over a network that is only on paper.

Every party has a clock of its own; work moves it by the processor time that was used, a message leaves when its
sender's line is free, takes its size over the bandwidth plus the latency, and a receiver's clock is never earlier than
what it has received. Work that the dealer and the holders do ahead, in threads of their own, moves no clock: it is
counted beside them. Nothing leaves this process.
"""

import time
from collections import defaultdict, deque
from dataclasses import dataclass

import torch

from vfgnn.agreement import Agreement
from vfgnn.data.holdings import Holding, Labels
from vfgnn.lab.simulate import build
from vfgnn.messages import Declared
from vfgnn.transport.memory import InMemoryNetwork

WARM_UP, TIMED = 2, 4  # steps with the joint layer, then as many without it
CPU_S_PER_BYTE = 3e-9  # TLS, WebSocket and the message log, at each end
DENSITY = 0.1


@dataclass
class Clock:
    """A party's own time, in seconds since the beginning, and the longest chain of messages that led to it."""

    now: float = 0.0
    busy: float = 0.0  # of that, the party's own work
    rounds: int = 0
    measured: float | None = None

    def work(self, scale: float) -> None:
        """Add the processor time that this thread has used since the last call."""
        used = time.thread_time()
        self.add((used - self.measured) * scale if self.measured is not None else 0.0)
        self.measured = used

    def add(self, seconds: float) -> None:
        """So much work."""
        self.now += seconds
        self.busy += seconds


@dataclass(frozen=True)
class Tick:
    """The end of a step at the label holder; processor time is that of all parties so far."""

    at: float
    rounds: int
    busy: float
    background: float


class PaperNetwork(InMemoryNetwork):
    """Moves messages in memory and notes when they would have arrived."""

    def __init__(self, *, bits_per_s: float, latency_s: float, scale: float) -> None:
        super().__init__()
        self._bits_per_s, self._latency_s, self._scale = bits_per_s, latency_s, scale
        self.clocks: dict[str, Clock] = defaultdict(Clock)
        self._line_free: dict[str, float] = defaultdict(float)
        self._arrivals: dict[tuple[str, str], deque[tuple[float, int]]] = defaultdict(deque)

    def put(self, message: Declared, payload: torch.Tensor) -> None:
        """As in memory."""
        clock, size = self.clocks[message.sender], message.bytes * self._scale
        clock.work(self._scale)
        clock.add(size * CPU_S_PER_BYTE)
        leaves = max(clock.now, self._line_free[message.sender]) + 8 * size / self._bits_per_s
        self._line_free[message.sender] = leaves
        self._arrivals[message.sender, message.receiver].append((leaves + self._latency_s, clock.rounds + 1))
        super().put(message, payload)
        clock.measured = time.thread_time()  # copying in memory is not what a real party does

    def get(self, sender: str, receiver: str) -> tuple[Declared, torch.Tensor]:
        """As in memory."""
        clock = self.clocks[receiver]
        clock.work(self._scale)
        message, payload = super().get(sender, receiver)
        arrives, rounds = self._arrivals[sender, receiver].popleft()
        clock.now = max(clock.now, arrives)
        clock.add(message.bytes * self._scale * CPU_S_PER_BYTE)
        clock.rounds = max(clock.rounds, rounds)
        clock.measured = time.thread_time()
        return message, payload

    def tick(self, party: str) -> Tick:
        """Where `party`, which calls this, stands now."""
        clock, everyone = self.clocks[party], list(self.clocks.values())
        clock.work(self._scale)
        background = time.process_time() - sum(one.measured or 0.0 for one in everyone)  # the threads of no clock
        return Tick(clock.now, clock.rounds, sum(one.busy for one in everyone), background * self._scale)


def rehearse(agreement: Agreement, network: PaperNetwork, nodes: int, *, train_rows: int, val_rows: int) -> list[Tick]:
    """The ends of all steps."""
    epochs = 2 * (WARM_UP + TIMED)
    joint = WARM_UP + TIMED if agreement.settings.trained_joint_epochs else 0
    settings = agreement.settings.model_copy(update={"epochs": epochs, "patience": None, "joint_layer_epochs": joint})
    holdings = [_made_up(agreement, name, nodes) for name in agreement.holder_names]
    leader, ticks = agreement.label_holder, list[Tick]()
    order = sorted(range(len(holdings)), key=lambda i: agreement.holder_names[i] != leader)  # `build` wants it first
    parties = build(
        [holdings[i] for i in order],
        _made_up_labels(nodes, agreement.classes, train_rows, val_rows),
        settings.model_copy(update={"accept_h0_leak": True, "accept_row_leak": True}),
        seed=0,
        on_epoch=lambda _: ticks.append(network.tick(leader)),
        network=network,
        names=[agreement.holder_names[i] for i in order],
    )
    parties.train()
    return ticks


def _made_up(agreement: Agreement, name: str, nodes: int) -> Holding:
    shape = next(holder for holder in agreement.holders if holder.name == name)
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(nodes, shape.features, generator=draw)
    x = torch.where(x < DENSITY, torch.ones_like(x) if shape.integer else x, torch.zeros_like(x))
    ends = torch.randint(nodes, (2, 2 * nodes if shape.edges else 0), generator=draw)
    return Holding(x=x, edge_index=ends)


def _made_up_labels(nodes: int, classes: int, train_rows: int, val_rows: int) -> Labels:
    val = min(max(val_rows, 1), nodes // 3)  # there must be one of each kind
    train = min(max(train_rows, 1), nodes - val - 1)
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))
    rows = order[:train], order[train : train + val], order[train + val :]
    return Labels(y=torch.arange(nodes) % classes, train=rows[0], val=rows[1], test=rows[2], classes=classes)
