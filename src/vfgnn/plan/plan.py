"""What a run will cost, before anything is sent: bytes, rounds, seconds per epoch and memory per party.

Bytes follow from the schedule. Seconds come from a rehearsal: the real parties' code with made-up data of the declared
sizes, in this process, over a network that only exists on paper. Every party has a clock of its own; work moves it by
the processor time that was used, a message leaves when its sender's line is free, takes its size over the bandwidth
plus the latency, and a receiver's clock is never earlier than what it has received. Nothing leaves this process.
"""

import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import torch

from vfgnn.config import DEALER, SERVER, Federation
from vfgnn.data.holdings import Holding, Labels
from vfgnn.lab.simulate import build
from vfgnn.messages import Declared, total_bytes
from vfgnn.party.own_data import OwnData
from vfgnn.program import Phase, Program, Repeated
from vfgnn.split.program import training
from vfgnn.split.steps import Moment, Rows
from vfgnn.transport.memory import InMemoryNetwork

WARM_UP, TIMED = 2, 4  # steps with the joint layer, then as many without it
CPU_S_PER_BYTE = 3e-9  # TLS, WebSocket and the message log, at each end
MAX_ENTRIES = 2 * 10**8  # of made-up features; larger federations are rehearsed at a smaller number of nodes
DENSITY = 0.1


@dataclass
class Clock:
    """A party's own time, in seconds since the beginning, and the longest chain of messages that led to it."""

    now: float = 0.0
    rounds: int = 0
    measured: float | None = None

    def work(self, scale: float) -> None:
        """Add the processor time that this thread has used since the last call."""
        used = time.thread_time()
        self.now += (used - self.measured) * scale if self.measured is not None else 0.0
        self.measured = used


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
        clock.now += size * CPU_S_PER_BYTE
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
        clock.now = max(clock.now, arrives) + message.bytes * self._scale * CPU_S_PER_BYTE
        clock.rounds = max(clock.rounds, rounds)
        clock.measured = time.thread_time()
        return message, payload


@dataclass(frozen=True)
class Sizes:
    """Payload bytes on all links."""

    setup: int
    epoch: int
    frozen_epoch: int  # with the joint layer frozen
    predict: int


@dataclass(frozen=True)
class Plan:
    """What `vfgnn run --dry-run` prints and writes."""

    bandwidth_mbit_s: float
    latency_ms: float
    bytes_setup: int
    bytes_per_epoch: int
    bytes_per_frozen_epoch: int
    bytes_predict: int
    rounds_per_epoch: int
    setup_s: float
    seconds_per_epoch: float
    seconds_per_frozen_epoch: float
    memory: dict[str, int]


def plan(federation: Federation, *, bandwidth_mbit_s: float, latency_ms: float, train_rows: int, val_rows: int) -> Plan:
    """Predict the cost of a run; row counts matter when only needed rows are published."""
    columns = sum(holder.features for holder in federation.holders)
    nodes = min(federation.nodes, max(1000, MAX_ENTRIES // max(columns, 1)))
    scale = federation.nodes / nodes
    network = PaperNetwork(bits_per_s=bandwidth_mbit_s * 1e6, latency_s=latency_ms / 1e3, scale=scale)
    ticks, rounds = _rehearse(federation, network, nodes, train_rows=train_rows, val_rows=val_rows)
    trained, frozen = _between(ticks[: WARM_UP + TIMED]), _between(ticks[WARM_UP + TIMED :])
    size = sizes(training(federation), federation, train_rows, val_rows)
    return Plan(
        bandwidth_mbit_s=bandwidth_mbit_s,
        latency_ms=latency_ms,
        bytes_setup=size.setup,
        bytes_per_epoch=size.epoch,
        bytes_per_frozen_epoch=size.frozen_epoch,
        bytes_predict=size.predict,
        rounds_per_epoch=rounds[WARM_UP + 1] - rounds[WARM_UP],
        setup_s=max(0.0, ticks[0] - trained),
        seconds_per_epoch=trained,
        seconds_per_frozen_epoch=frozen,
        memory=memory(federation),
    )


def _rehearse(
    federation: Federation, network: PaperNetwork, nodes: int, *, train_rows: int, val_rows: int
) -> tuple[list[float], list[int]]:
    """When, and after how many rounds, the label holder ends each step."""
    epochs = 2 * (WARM_UP + TIMED)
    joint = WARM_UP + TIMED if federation.settings.trained_joint_epochs else 0
    settings = federation.settings.model_copy(update={"epochs": epochs, "patience": None, "joint_layer_epochs": joint})
    holdings = [_made_up(federation, name, nodes) for name in federation.holder_names]
    leader, ticks, rounds = federation.label_holder, list[float](), list[int]()

    def tick(_: object) -> None:
        clock = network.clocks[leader]
        clock.work(1.0)
        ticks.append(clock.now)
        rounds.append(clock.rounds)

    order = sorted(range(len(holdings)), key=lambda i: federation.holder_names[i] != leader)  # `build` wants it first
    parties = build(
        [holdings[i] for i in order],
        _made_up_labels(nodes, federation.classes, train_rows, val_rows),
        settings.model_copy(update={"accept_h0_leak": True}),
        seed=0,
        on_epoch=tick,
        network=network,
        names=[federation.holder_names[i] for i in order],
    )
    parties.train()
    return ticks, rounds


def _made_up(federation: Federation, name: str, nodes: int) -> Holding:
    shape = next(holder for holder in federation.holders if holder.name == name)
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(nodes, shape.features, generator=draw)
    x = torch.where(x < DENSITY, torch.ones_like(x) if shape.integer else x, torch.zeros_like(x))
    ends = torch.randint(nodes, (2, 2 * nodes if shape.edges else 0), generator=draw)
    return Holding(x=x, edge_index=ends)


def _made_up_labels(nodes: int, classes: int, train_rows: int, val_rows: int) -> Labels:
    train, val = min(train_rows, nodes // 3), min(val_rows, nodes // 3)
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))
    rows = order[:train], order[train : train + val], order[train + val :]
    return Labels(y=torch.arange(nodes) % classes, train=rows[0], val=rows[1], test=rows[2], classes=classes)


def _between(ticks: Sequence[float]) -> float:
    return median(after - before for before, after in zip(ticks[WARM_UP - 1 :], ticks[WARM_UP:], strict=False))


def sizes(program: Program[Moment], federation: Federation, train_rows: int, val_rows: int) -> Sizes:
    """Payload bytes on all links, from the program's table."""
    rows = Rows.everything(federation.nodes)
    if federation.settings.publish == "needed":
        rows = Rows(torch.arange(train_rows), torch.arange(val_rows), federation.nodes)
    moment = replace(program.largest, rows=rows)
    frozen = replace(moment, step=replace(moment.step, refresh=False, trains_joint=False))
    steps = [row for row in program.table if isinstance(row, Repeated)]
    at = program.table.index(steps[0])
    return Sizes(
        setup=_bytes(program.table[:at], moment),
        epoch=_bytes(steps, moment),
        frozen_epoch=_bytes(steps, frozen),
        predict=_bytes(program.table[at + 1 :], moment),
    )


def _bytes(rows: Sequence[Phase[Moment] | Repeated[Moment]], moment: Moment) -> int:
    phases = [phase for row in rows for phase in ((row,) if isinstance(row, Phase) else row.phases)]
    return sum(total_bytes(phase.messages(moment)) for phase in phases if phase.when(moment))


def memory(federation: Federation) -> dict[str, int]:
    """Bytes that each party's matrices need at their largest, beside the program's own few hundred megabytes."""
    n, d, word = federation.nodes, federation.settings.dim, 8
    publishers = len(federation.publishers)
    needs = {SERVER: 4 * n * d * (3 * publishers + 3)}
    columns = {holder.name: holder.features for holder in federation.holders}
    everyone = sum(columns.values())
    if federation.dealt:
        needs[DEALER] = word * (n * everyone + 2 * publishers * (n + everyone) * d)
    for name, own in columns.items():
        masked = everyone - own if federation.dealt else 0  # E of every other holder, dense
        joint = 12 * n * d if federation.collaborative else 3 * n * d  # Q, N, their copies, h0, shares, what is ahead
        needs[name] = word * (n * (masked + 2 * own) + joint) + 4 * n * d * 6
    return needs


def row_counts(federation: Federation, data: OwnData) -> tuple[int, int]:
    """Training and validation rows: the label holder knows them, the others take a tenth of the nodes for each."""
    if data.labels is not None:
        return len(data.labels.train), len(data.labels.val)
    if data.tables is not None and data.tables.labels is not None:
        split = data.tables.labels.split
        return int((split == 0).sum()), int((split == 1).sum())
    return max(1, federation.nodes // 10), max(1, federation.nodes // 10)
