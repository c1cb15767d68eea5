"""Q6, differential privacy: the paper's Table 5 with honest totals, and what a total budget buys by other means.

The paper noises every release of a row and quotes the epsilon of one release. The first table repeats that (Cora, mean
combine, even shares, classical calibration, every row published in every epoch) and puts beside it what all releases
of a run come to, exactly, and by the paper's theorem. The second keeps to a TOTAL epsilon: edges, labels or both are
noised once. What the paper printed is also had under the other reading of how edges are split.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from vfgnn.data.partition import EdgeSplit
from vfgnn.experiments.catalogue import READINGS, settings_for
from vfgnn.experiments.runner import Task, TaskResult, make_task
from vfgnn.experiments.tables import TableRow, row_of
from vfgnn.privacy.calibration import classical_multiplier, epsilon_of
from vfgnn.settings import Settings

DATASET, DELTA = "cora", 1e-4
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, math.inf)
PRINTED = (4.0, 8.0, 16.0, 32.0, 64.0)
TOTALS = (4.0, 6.0, 8.0, 10.0)


class Noise(StrEnum):
    """What is noised, or what becomes of noised rows; a member's value is the name of its rows."""

    GAUSSIAN = "Gaussian"
    JAMES_STEIN = "James-Stein"
    POSITIVE_PART = "James-Stein, positive part"
    KNOWN_NORM = "known norm, x / (1 + d s^2)"
    NARROW = "width 16"
    AVERAGED = "server averages releases"
    EDGES = "edges"
    LABELS = "labels"
    EDGES_AND_LABELS = "edges and labels"


PAPER_TABLE_5 = {
    Noise.GAUSSIAN: dict(zip(PRINTED, (0.502, 0.702, 0.772, 0.789, 0.794), strict=True)),
    Noise.JAMES_STEIN: dict(zip(PRINTED, (0.510, 0.706, 0.781, 0.799, 0.804), strict=True)),
}
"""The paper's own figures (Table 5, accuracy on test nodes)."""

Change = dict[str, object]
MECHANISMS: dict[Noise, tuple[Change, Change]] = {  # settings, and settings of privacy
    Noise.GAUSSIAN: ({}, {}),
    Noise.JAMES_STEIN: ({}, {"shrink": "james_stein"}),
}
VARIANTS: dict[Noise, tuple[Change, Change]] = {
    Noise.POSITIVE_PART: ({}, {"shrink": "james_stein_positive"}),
    Noise.KNOWN_NORM: ({}, {"shrink": "known_norm"}),
    Noise.NARROW: ({"dim": 16}, {}),
    Noise.AVERAGED: ({}, {"average_releases": 0.95}),
}
"""All are post-processing, or fewer values to noise: the same epsilon."""

INPUTS = {  # whether edges are noised, and whether labels are
    Noise.EDGES: (True, False),
    Noise.LABELS: (False, True),
    Noise.EDGES_AND_LABELS: (True, True),
}
EDGES: dict[float, Change] = {
    4.0: {"layers": 2, "teleport": 0.5},
    6.0: {"layers": 1, "teleport": 0.5},
    8.0: {"layers": 6, "teleport": 0.1},
    10.0: {"layers": 6, "teleport": 0.1},
}
"""The more false edges, the fewer hops; chosen on validation nodes of partitions 1000 to 1002."""


@dataclass(frozen=True)
class Cell:
    """One figure of a table."""

    table: Literal["privacy", "privacy variants", "privacy of inputs"]
    noise: Noise
    epsilon: float
    edge_split: EdgeSplit = "undirected"


def noised_rows(epsilon: float, changes: Change, privacy: Change, *, edge_split: EdgeSplit = "undirected") -> Settings:
    """The paper's mechanism; at infinity, none."""
    own: Change = {} if math.isinf(epsilon) else {"row_epsilon": epsilon, "calibration": "classical", **privacy}
    overrides = {"combine": "mean", "publish": "all", **changes, "privacy": {**own, "delta": DELTA}}
    return settings_for("best", dataset=DATASET, model="mean", edge_split=edge_split, overrides=overrides)


def width() -> int:
    """D of the rows that Table 5 is about."""
    return noised_rows(math.inf, {}, {}).dim


def noised_inputs(epsilon: float, *, edges: bool, labels: bool) -> Settings:
    """Randomised response, once, at a total epsilon for each of the two."""
    privacy: Change = {}
    if edges:
        privacy |= {"edge_epsilon": epsilon, "publish_noised_edges": True}
    if labels:
        privacy |= {"label_epsilon": epsilon}
    changes = EDGES[epsilon] if edges else {}
    overrides = {**changes, "privacy": privacy}
    return settings_for("best", dataset=DATASET, model="confidence", edge_split="undirected", overrides=overrides)


def _cells(readings: Sequence[EdgeSplit]) -> Iterator[tuple[Cell, Settings]]:
    for reading in readings:
        if reading == READINGS[0]:
            yield from _every_cell()
        else:
            for epsilon in PRINTED:
                for noise, change in MECHANISMS.items():
                    yield Cell("privacy", noise, epsilon, reading), noised_rows(epsilon, *change, edge_split=reading)


def _every_cell() -> Iterator[tuple[Cell, Settings]]:
    for epsilon in EPSILONS:
        for noise, change in MECHANISMS.items():
            if not (math.isinf(epsilon) and noise != Noise.GAUSSIAN):
                yield Cell("privacy", noise, epsilon), noised_rows(epsilon, *change)
    for epsilon in PRINTED:
        for noise, change in VARIANTS.items():
            yield Cell("privacy variants", noise, epsilon), noised_rows(epsilon, *change)
    for epsilon in TOTALS:
        for noise, (edges, labels) in INPUTS.items():
            yield Cell("privacy of inputs", noise, epsilon), noised_inputs(epsilon, edges=edges, labels=labels)


def privacy_tasks(seeds: int, readings: Sequence[EdgeSplit] = READINGS[:1]) -> dict[Task, Cell]:
    """All trainings, seeds 0 .. seeds - 1."""
    return {
        make_task(settings, dataset=DATASET, where="federated", seed=seed, edge_split=cell.edge_split): cell
        for cell, settings in _cells(readings)
        for seed in range(seeds)
    }


def privacy_rows(tasks: Mapping[Task, Cell], results: Mapping[Task, TaskResult]) -> list[TableRow]:
    """Mean and deviation over seeds, with what the releases of a run come to."""
    found: dict[Cell, list[TaskResult]] = {}
    for task, cell in tasks.items():
        found.setdefault(cell, []).append(results[task])
    return [_row(cell, of_cell) for cell, of_cell in found.items()]


def _row(cell: Cell, results: list[TaskResult]) -> TableRow:
    reached = [result["test_accuracy"] for result in results]
    total, theorem = _totals(cell, results)
    return row_of(
        reached,
        table=cell.table,
        dataset=DATASET,
        model="no noise" if math.isinf(cell.epsilon) else cell.noise,
        preset="best",
        epsilon=None if math.isinf(cell.epsilon) else cell.epsilon,
        paper=PAPER_TABLE_5.get(cell.noise, {}).get(cell.epsilon),
        epsilon_total=total,
        theorem=theorem,
        edge_split=cell.edge_split,
    )


def _totals(cell: Cell, results: list[TaskResult]) -> tuple[float | None, float | None]:
    """The exact total of a run's releases, and the theorem's q sqrt(T) epsilon with q = 1 and its constant left out."""
    if cell.table == "privacy of inputs":
        return cell.epsilon, None
    if math.isinf(cell.epsilon):
        return None, None
    multiplier = classical_multiplier(cell.epsilon, DELTA)
    released = [result["epochs"] + 1 for result in results]  # every row in every step, the last evaluation included
    mean: Callable[[list[float]], float] = statistics.mean
    exact = mean([epsilon_of(multiplier, DELTA, count) for count in released])
    return exact, mean([math.sqrt(count) * cell.epsilon for count in released])
