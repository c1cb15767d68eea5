"""What a run will cost, before anything is sent: bytes, rounds, seconds per epoch and memory per party.

Of the paper's protocol; sealed.py has the other one. Bytes and memory follow from the program (sizes.py), seconds come
from a rehearsal (rehearsal.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from vfgnn.agreement import Agreement
from vfgnn.plan.expected import Expected
from vfgnn.plan.rehearsal import TIMED, WARM_UP, PaperNetwork, Tick, rehearse
from vfgnn.plan.sizes import memory, sizes
from vfgnn.split.program import training

MAX_ENTRIES = 2 * 10**7
"""Of all matrices of a rehearsal: larger federations are rehearsed over fewer nodes, and times are scaled."""
DEALERS_PART = 0.5
"""Of all work in the background: the dealer multiplies once more whatever the holders do (CiteSeer: 0.47)."""


@dataclass(frozen=True)
class Plan:
    """What `vfgnn plan` prints and writes."""

    bandwidth_mbit_s: float
    latency_ms: float
    shared_cores: int | None  # None: every party has a machine of its own
    nodes: int
    assumed: tuple[str, ...]
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
    expected: Expected, *, bandwidth_mbit_s: float, latency_ms: float, shared_cores: int | None = None
) -> Plan:
    """Predict the cost of a run. `shared_cores`: of the one machine that all parties run on."""
    agreement = expected.agreement
    nodes = rehearsed_nodes(agreement)
    scale = agreement.nodes / nodes
    network = PaperNetwork(bits_per_s=bandwidth_mbit_s * 1e6, latency_s=latency_ms / 1e3, scale=scale)
    train_rows, val_rows = (round(rows / scale) for rows in (expected.train_rows, expected.val_rows))
    ticks = rehearse(agreement, network, nodes, train_rows=train_rows, val_rows=val_rows)
    trained = _seconds(ticks[: WARM_UP + TIMED], shared_cores)
    size = sizes(training(agreement), agreement, expected.train_rows, expected.val_rows)
    return Plan(
        bandwidth_mbit_s=bandwidth_mbit_s,
        latency_ms=latency_ms,
        shared_cores=shared_cores,
        nodes=agreement.nodes,
        assumed=expected.assumed,
        bytes_setup=size.setup,
        bytes_per_epoch=size.epoch,
        bytes_per_frozen_epoch=size.frozen_epoch,
        bytes_predict=size.predict,
        rounds_per_epoch=ticks[WARM_UP + 1].rounds - ticks[WARM_UP].rounds,
        setup_s=max(0.0, ticks[0].at - trained),
        seconds_per_epoch=trained,
        seconds_per_frozen_epoch=_seconds(ticks[WARM_UP + TIMED :], shared_cores),
        memory=memory(agreement),
    )


def rehearsed_nodes(agreement: Agreement) -> int:
    """All of them, or as many as a rehearsal of a minute can have."""
    columns = sum(holder.features for holder in agreement.holders)
    joint = 4 * agreement.settings.dim * len(agreement.holders)  # shares, masks, h0 and rows of each
    return min(agreement.nodes, max(1000, MAX_ENTRIES // (columns + joint)))


def _seconds(ticks: Sequence[Tick], shared_cores: int | None) -> float:
    """Of a step: the longest chain of work and messages, or the processors' work if that takes longer."""
    steps = list(zip(ticks[WARM_UP - 1 :], ticks[WARM_UP:], strict=False))
    chain = median(after.at - before.at for before, after in steps)
    background = median(after.background - before.background for before, after in steps)
    if shared_cores is None:
        return max(chain, DEALERS_PART * background)
    return max(chain, (median(after.busy - before.busy for before, after in steps) + background) / shared_cores)
