"""From finished trainings to the rows of a table: mean and deviation over seeds, beside the paper's figures."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

from vfgnn.experiments.catalogue import COMPARE, PAPER_TABLE_2, Model
from vfgnn.experiments.runner import Task, TaskResult, make_task
from vfgnn.settings import Gnn, Preset

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


def compare_tasks(datasets: Sequence[str], seeds: int, *, holders: int, models: Sequence[Model]) -> dict[Task, Model]:
    """The trainings of the paper's Table 2 (Q1 and Q2): even shares, seeds 0 .. seeds - 1."""
    tasks: dict[Task, Model] = {}
    for dataset in datasets:
        for model in models:
            combine = {} if model.combine is None else {"combine": model.combine}
            settings = Preset(model.preset).settings(dataset=dataset, model=model.tuned_as, overrides=combine)
            for seed in range(seeds):
                task = make_task(
                    settings, dataset=dataset, where=model.where, seed=seed, holders=holders, holder=model.holder
                )
                tasks[task] = model
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
    )


def compare_rows(tasks: Mapping[Task, Model], results: Mapping[Task, TaskResult]) -> list[TableRow]:
    """Test accuracy of the epoch that validation chose."""
    reached: dict[tuple[str, Model], list[float]] = {}
    for task, model in tasks.items():
        reached.setdefault((task.dataset, model), []).append(results[task]["test_accuracy"])
    holders = next(iter(tasks)).holders
    return [
        row_of(
            values,
            table="compare",
            dataset=dataset,
            model=model.name,
            preset=model.preset,
            holders=holders,
            proportion=EVEN if holders == 2 else (1,) * holders,
            paper=PAPER_TABLE_2[dataset].get(model.name) if holders == 2 else None,
        )
        for (dataset, model), values in reached.items()
    ]


def open_rows(dataset: str) -> list[TableRow]:
    """The paper's rows of a data set that cannot be trained here."""
    printed = PAPER_TABLE_2[dataset]
    return [
        row_of(
            [], table="compare", dataset=dataset, model=model.name, preset=model.preset, paper=printed.get(model.name)
        )
        for model in COMPARE
    ]


def models_named(names: Sequence[str] | None) -> tuple[Model, ...]:
    """The rows of Table 2, or those of them that are named."""
    return tuple(model for model in COMPARE if names is None or model.name in names)
