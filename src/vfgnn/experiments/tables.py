"""From finished trainings to the rows of a table: mean and deviation over seeds, beside the paper's figures."""

import statistics
from collections.abc import Sequence
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
    mean: float
    std: float
    n: int
    paper: float | None
    epsilon_total: float | None = None  # where rows are noised: of all releases of a run
    theorem: float | None = None  # and what the paper's theorem says of them

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


def compare_rows(tasks: dict[Task, Model], results: dict[Task, TaskResult]) -> list[TableRow]:
    """Test accuracy of the epoch that validation chose: mean and deviation over seeds."""
    reached: dict[tuple[str, Model], list[float]] = {}
    for task, model in tasks.items():
        reached.setdefault((task.dataset, model), []).append(results[task]["test_accuracy"])
    holders = next(iter(tasks)).holders
    return [
        TableRow(
            table="compare",
            dataset=dataset,
            model=model.name,
            preset=model.preset,
            holders=holders,
            proportion=":".join(["5", "5"] if holders == 2 else ["1"] * holders),
            epsilon=None,
            mean=statistics.mean(values),
            std=statistics.stdev(values) if len(values) > 1 else 0.0,
            n=len(values),
            paper=PAPER_TABLE_2[dataset].get(model.name) if holders == 2 else None,
        )
        for (dataset, model), values in reached.items()
    ]


def models_named(names: Sequence[str] | None) -> tuple[Model, ...]:
    """The rows of Table 2, or those of them that are named."""
    return tuple(model for model in COMPARE if names is None or model.name in names)
