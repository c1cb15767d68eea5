"""From finished trainings to the rows of a table: mean and deviation over seeds, beside the paper's figures."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

from vfgnn.data.partition import EdgeSplit
from vfgnn.experiments.catalogue import ARXIV, COMPARE, READINGS, Model, printed_for, settings_for
from vfgnn.experiments.runner import Task, TaskResult, make_task
from vfgnn.settings import Gnn

InitialEmbedding = Literal["individual", "collaborative"]
EVEN = (5, 5)


class Mark(StrEnum):
    """The verdict of a claim; a row that could not be trained here is open too."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    OPEN = "open"


@dataclass(frozen=True)
class Variation:
    """The settings that a study varies, under their own names; None: as the preset has it."""

    gnn: Gnn | None = None
    initial_embedding: InitialEmbedding | None = None
    joint_layer_epochs: int | None = None
    dim: int | None = None
    layers: int | None = None

    @property
    def settings(self) -> dict[str, object]:
        """The varied ones alone."""
        return {key: value for key, value in asdict(self).items() if value is not None}


NO_VARIATION = Variation()


@dataclass(frozen=True)
class TableRow:
    """One row of {"rows": [...]} as `vfgnn reproduce` writes it."""

    table: str
    dataset: str
    model: str  # the row's name, for people and to find the row by; values have fields of their own
    preset: str
    holders: int
    proportion: tuple[int, ...]  # of columns and edges, by holder
    epsilon: float | None
    mean: float | None  # None: open, it could not be trained here
    std: float | None
    n: int
    paper: float | None
    epsilon_total: float | None = None  # where rows are noised: of all releases of a run
    theorem: float | None = None  # and what the paper's theorem says of them
    variation: Variation = NO_VARIATION
    edge_split: EdgeSplit = "undirected"

    @property
    def shown(self) -> str:
        """Mean and deviation for people."""
        return Mark.OPEN if self.mean is None else f"{self.mean:.3f} ± {self.std or 0:.3f}"

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    def to_json(self) -> dict[str, object]:
        """As it is; totals of differential privacy, and a variation, only where there are some."""
        content = asdict(self) | {"proportion": show_proportion(self.proportion), "variation": self.variation.settings}
        extra = ("epsilon_total", "theorem", "variation")
        return {key: value for key, value in content.items() if key not in extra or value not in (None, {})}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "TableRow":
        """Back from such a file."""
        proportion = tuple(int(share) for share in content["proportion"].split(":"))
        variation = Variation(**content.get("variation", {}))
        return TableRow(**{**content, "proportion": proportion, "variation": variation})


def show_proportion(proportion: Sequence[int]) -> str:
    """As the paper writes it, e.g. 9:1."""
    return ":".join(str(share) for share in proportion)


@dataclass(frozen=True)
class Compared:
    """One row of Table 2 under one reading."""

    model: Model
    edge_split: EdgeSplit

    def tasks(self, dataset: str, seeds: int, holders: int) -> list[Task]:
        """Its trainings: even shares, seeds 0 .. seeds - 1."""
        model = self.model
        settings = settings_for(
            model.preset,
            dataset=dataset,
            model=model.tuned_as,
            edge_split=self.edge_split,
            overrides={} if model.combine is None else {"combine": model.combine},
        )
        return [
            make_task(
                settings,
                dataset=dataset,
                where=model.where,
                seed=seed,
                holders=holders,
                holder=model.holder,
                edge_split=self.edge_split,
            )
            for seed in range(seeds)
        ]


ComparedTasks = Mapping[Task, Sequence[Compared]]


def compare_tasks(
    datasets: Sequence[str],
    seeds: int,
    *,
    holders: int,
    models: Sequence[Model],
    readings: Sequence[EdgeSplit] = READINGS[:1],
) -> dict[Task, list[Compared]]:
    """The trainings of the paper's Table 2 (Q1 and Q2); both readings share those on pooled data."""
    tasks: dict[Task, list[Compared]] = {}
    for dataset in datasets:
        for row in (Compared(model, reading) for reading in readings for model in models):
            for task in row.tasks(dataset, seeds, holders):
                tasks.setdefault(task, []).append(row)
    return tasks


def row_of(
    reached: Sequence[float],
    *,
    table: str,
    dataset: str,
    model: str,
    preset: str,
    paper: float | None,
    holders: int = 2,
    proportion: tuple[int, ...] = EVEN,
    epsilon: float | None = None,
    epsilon_total: float | None = None,
    theorem: float | None = None,
    variation: Variation = NO_VARIATION,
    edge_split: EdgeSplit = "undirected",
) -> TableRow:
    """Mean and deviation of what was reached, one figure per seed; of nothing, an open row."""
    return TableRow(
        table=table,
        dataset=dataset,
        model=model,
        preset=preset,
        holders=holders,
        proportion=proportion,
        epsilon=epsilon,
        mean=statistics.mean(reached) if reached else None,
        std=(statistics.stdev(reached) if len(reached) > 1 else 0.0) if reached else None,
        n=len(reached),
        paper=paper,
        epsilon_total=epsilon_total,
        theorem=theorem,
        variation=variation,
        edge_split=edge_split,
    )


def compare_rows(tasks: ComparedTasks, results: Mapping[Task, TaskResult]) -> list[TableRow]:
    """Test accuracy of the epoch that validation chose."""
    reached: dict[tuple[str, Compared], list[float]] = {}
    for task, rows in tasks.items():
        for row in rows:
            reached.setdefault((task.dataset, row), []).append(results[task]["test_accuracy"])
    holders = next(iter(tasks)).holders
    return [
        row_of(
            values,
            table="compare",
            dataset=dataset,
            model=row.model.name,
            preset=row.model.preset,
            holders=holders,
            proportion=EVEN if holders == 2 else (1,) * holders,
            paper=printed_for(dataset).get(row.model.name) if holders == 2 else None,
            edge_split=row.edge_split,
        )
        for (dataset, row), values in sorted(reached.items(), key=_in_order(tasks))
    ]


def _in_order(tasks: ComparedTasks) -> Callable[[tuple[tuple[str, Compared], list[float]]], tuple[int, ...]]:
    """By data set, then by reading, then as the table lists its models: a shared training comes where it was first."""
    datasets = list(dict.fromkeys(task.dataset for task in tasks))
    models = list(dict.fromkeys(row.model for rows in tasks.values() for row in rows))
    return lambda one: (datasets.index(one[0][0]), READINGS.index(one[0][1].edge_split), models.index(one[0][1].model))


def open_rows() -> list[TableRow]:
    """The paper's rows of arXiv, which cannot be trained without its features."""
    printed = printed_for(ARXIV)
    return [
        row_of([], table="compare", dataset=ARXIV, model=model.name, preset=model.preset, paper=printed.get(model.name))
        for model in COMPARE
    ]


def models_named(names: Sequence[str] | None) -> tuple[Model, ...]:
    """The rows of Table 2, or those of them that are named."""
    return tuple(model for model in COMPARE if names is None or model.name in names)
