"""From finished trainings to the rows of a table: mean and deviation over seeds, beside the paper's figures."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from vfgnn.config import Preset
from vfgnn.experiments.catalogue import COMPARE, PAPER_TABLE_2, Model
from vfgnn.experiments.runner import Task, TaskResult, make_task


@dataclass(frozen=True)
class TableRow:
    """One row of {"rows": [...]} as `vfgnn reproduce` writes it."""

    table: str
    dataset: str
    model: str
    preset: str
    holders: int
    proportion: str
    epsilon: float | None
    mean: float | None  # None: open, it could not be trained here
    std: float | None
    n: int
    paper: float | None
    epsilon_total: float | None = None  # where rows are noised: of all releases of a run
    theorem: float | None = None  # and what the paper's theorem says of them

    @property
    def shown(self) -> str:
        """Mean and deviation for people."""
        return "open" if self.mean is None else f"{self.mean:.3f} ± {self.std or 0:.3f}"

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    def to_json(self) -> dict[str, object]:
        """As it is; totals of differential privacy only where there are some."""
        extra = ("epsilon_total", "theorem")
        return {key: value for key, value in asdict(self).items() if key not in extra or value is not None}


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
    proportion: str = "5:5",
    epsilon: float | None = None,
    epsilon_total: float | None = None,
    theorem: float | None = None,
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
            proportion=":".join(["5", "5"] if holders == 2 else ["1"] * holders),
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
