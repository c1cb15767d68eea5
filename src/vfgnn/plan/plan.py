"""What a run will cost, before anything is sent: bytes, rounds, seconds per epoch and memory per party.

Bytes and memory follow from the program (sizes.py), seconds come from a rehearsal (rehearsal.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from vfgnn.agreement import Agreement
from vfgnn.party.own_data import OwnData
from vfgnn.plan.rehearsal import TIMED, WARM_UP, PaperNetwork, rehearse
from vfgnn.plan.sizes import memory, sizes
from vfgnn.split.program import training

MAX_ENTRIES = 2 * 10**8  # of made-up features; larger federations are rehearsed at a smaller number of nodes


@dataclass(frozen=True)
class Plan:
    """What `vfgnn plan` prints and writes."""

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


def make_plan(
    agreement: Agreement, *, bandwidth_mbit_s: float, latency_ms: float, train_rows: int, val_rows: int
) -> Plan:
    """Predict the cost of a run; row counts matter when only needed rows are published."""
    columns = sum(holder.features for holder in agreement.holders)
    nodes = min(agreement.nodes, max(1000, MAX_ENTRIES // max(columns, 1)))
    scale = agreement.nodes / nodes
    network = PaperNetwork(bits_per_s=bandwidth_mbit_s * 1e6, latency_s=latency_ms / 1e3, scale=scale)
    ticks, rounds = rehearse(agreement, network, nodes, train_rows=train_rows, val_rows=val_rows)
    trained, frozen = _between(ticks[: WARM_UP + TIMED]), _between(ticks[WARM_UP + TIMED :])
    size = sizes(training(agreement), agreement, train_rows, val_rows)
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
        memory=memory(agreement),
    )


def _between(ticks: Sequence[float]) -> float:
    return median(after - before for before, after in zip(ticks[WARM_UP - 1 :], ticks[WARM_UP:], strict=False))


def row_counts(agreement: Agreement, data: OwnData) -> tuple[int, int]:
    """Training and validation rows: the label holder knows them, the others take a tenth of the nodes for each."""
    if data.labels is not None:
        return len(data.labels.train), len(data.labels.val)
    if data.tables is not None and data.tables.labels is not None:
        split = data.tables.labels.split
        return int((split == 0).sum()), int((split == 1).sum())
    return max(1, agreement.nodes // 10), max(1, agreement.nodes // 10)
