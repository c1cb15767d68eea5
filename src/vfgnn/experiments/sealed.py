"""`vfgnn reproduce sealed`: the sealed protocol beside the paper's own, each holder alone and everything in one place.

    sealed     the federation, nothing opened but classes; seeds are partitions and pads, the model depends on neither
    split      the paper's protocol with preset `best`, the same partitions (the trainings of `reproduce compare`)
    isolated   the sealed model on one holder's columns and edges with the label holder's labels: mean over holders
    pooled     the sealed model on everything, in the clear: one training

`draws` are further trainings with 20 other training nodes a class, at 2 holders and pooled: sealed_search.py.
"""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from vfgnn.errors import ConfigError
from vfgnn.experiments.catalogue import BEST, PAPER_TABLE_2, Where
from vfgnn.experiments.runner import Store, Task, TaskResult
from vfgnn.experiments.splits import REPORTED_FROM
from vfgnn.experiments.studies import PAPER_TABLE_4, Trial
from vfgnn.settings import Preset, Settings

Compared = Literal["sealed", "split", "isolated", "pooled"]
PROTOCOLS: tuple[Compared, ...] = ("sealed", "isolated", "pooled", "split")
PRESET, POOLED, HOLDERS_OF_DRAWS = "best", "GraphSAGE_A+B", 2


@dataclass(frozen=True)
class SealedCell:
    """One figure, by what its trainings have in common."""

    dataset: str
    holders: int  # 1: everything in one place
    protocol: Compared
    drawn: bool = False  # training nodes of draws instead of those that came with the data

    @property
    def paper(self) -> float | None:
        """The paper's insecure pooled model, or the best of its three federations with as many holders."""
        if self.drawn or self.protocol == "isolated":
            return None
        if self.protocol == "pooled":
            return PAPER_TABLE_2[self.dataset][POOLED]
        if self.holders == 2:
            return PAPER_TABLE_2[self.dataset][BEST]
        return max(PAPER_TABLE_4.get(self.holders, {}).values(), default=None) if self.dataset == "cora" else None


@dataclass(frozen=True)
class SealedRow:
    """One row of {"rows": [...]}."""

    dataset: str
    holders: int
    protocol: Compared
    split: Literal["public", "draws"]
    mean: float
    std: float
    n: int
    steps: int | None  # products with the kernel; of the paper's protocol None
    opened: Mapping[str, Any] | None  # to the label holder of a sealed training
    paper: float | None

    def to_json(self) -> dict[str, object]:
        """As it is."""
        return asdict(self)


SealedTasks = dict[
    SealedCell, list[list[Task]]
]  # of each cell and seed (or draw), the trainings that one figure is the mean of


def sealed_settings(dataset: str) -> Settings:
    """What was chosen for the data set; nothing of the paper's protocol, which has no part in a training."""
    chosen = Preset(PRESET).settings(dataset=dataset, overrides={"protocol": "sealed"})
    return Settings(protocol="sealed", sealed=chosen.sealed)


@dataclass(frozen=True)
class Wanted:
    """What is asked for."""

    datasets: tuple[str, ...]
    holders: tuple[int, ...]
    protocols: tuple[Compared, ...] = PROTOCOLS
    seeds: int = 3
    draws: int = 0

    def __post_init__(self) -> None:
        if not self.holders or min(self.holders) < 2:
            raise ConfigError("no federation", expected="numbers of holders from 2", got=str(list(self.holders)))


def protocols_named(names: Sequence[str]) -> tuple[Compared, ...]:
    """Those that are named, in their own order."""
    found = tuple(protocol for protocol in PROTOCOLS if protocol in names)
    if len(found) != len(set(names)) or not found:
        raise ConfigError(
            "unknown protocol", expected=f"some of {', '.join(PROTOCOLS)}", got=", ".join(names) or "none"
        )
    return found


def sealed_tasks(wanted: Wanted) -> SealedTasks:
    """All trainings, protocol by protocol, so that those of one protocol are done before those of the next."""
    tasks: SealedTasks = {}
    for protocol in wanted.protocols:
        for dataset in wanted.datasets:
            once = protocol == "pooled"
            for holders in (1,) if once else sorted(set(wanted.holders)):
                cell = SealedCell(dataset, holders, protocol)
                tasks[cell] = [_one_seed(cell, seed) for seed in range(1 if once else wanted.seeds)]
            if wanted.draws and protocol in ("sealed", "pooled"):
                cell = SealedCell(dataset, 1 if once else HOLDERS_OF_DRAWS, protocol, drawn=True)
                tasks[cell] = [[_sealed_task(cell, draw=REPORTED_FROM + draw)] for draw in range(wanted.draws)]
    return tasks


def notes_of(tasks: SealedTasks) -> dict[Task, str]:
    """Each training, and what it is."""
    return {
        task: f"{cell.dataset} {cell.protocol}, {cell.holders} holders"
        for cell, groups in tasks.items()
        for group in groups
        for task in group
    }


def kept_of(tasks: Iterable[Task], store: Store) -> dict[Task, TaskResult]:
    """What was trained before."""
    return {task: result for task in tasks if (result := store.get(task)) is not None}


def sealed_rows(tasks: SealedTasks, results: Mapping[Task, TaskResult]) -> list[SealedRow]:
    """Test accuracy: mean and deviation over seeds, or draws; of what has all its trainings."""
    return [
        _row(cell, [[results[task] for task in group] for group in groups])
        for cell, groups in tasks.items()
        if all(task in results for group in groups for task in group)
    ]


def _one_seed(cell: SealedCell, seed: int) -> list[Task]:
    if cell.protocol == "split":
        return [Trial("sealed", BEST, PRESET, "confidence", cell.dataset, cell.holders, (1,) * cell.holders).task(seed)]
    if cell.protocol == "isolated":
        return [_sealed_task(cell, seed=seed, holder=holder) for holder in range(cell.holders)]
    return [_sealed_task(cell, seed=seed)]


def _sealed_task(cell: SealedCell, *, seed: int = 0, holder: int | None = None, draw: int | None = None) -> Task:
    values = sealed_settings(cell.dataset).model_dump(mode="json", exclude_defaults=True)
    where: dict[Compared, Where] = {"sealed": "federated", "isolated": "isolated", "pooled": "pooled"}
    return Task(
        cell.dataset,
        where[cell.protocol],
        cell.holders,
        holder,
        None,
        seed,
        json.dumps(values, sort_keys=True),
        draw=draw,
    )


def _row(cell: SealedCell, groups: Sequence[Sequence[TaskResult]]) -> SealedRow:
    reached = [statistics.mean(one["test_accuracy"] for one in group) for group in groups]
    first = groups[0][0]
    return SealedRow(
        dataset=cell.dataset,
        holders=cell.holders,
        protocol=cell.protocol,
        split="draws" if cell.drawn else "public",
        mean=statistics.mean(reached),
        std=statistics.stdev(reached) if len(reached) > 1 else 0.0,
        n=len(reached),
        steps=None if cell.protocol == "split" else first["epochs"],
        opened=first.get("opened"),
        paper=cell.paper,
    )
