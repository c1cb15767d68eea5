"""What new nodes cost on Cora: predicted by a model that never saw them, beside one that had them in training."""

from collections.abc import Iterator, Mapping

from vfgnn.experiments.catalogue import Where
from vfgnn.experiments.runner import Task, TaskResult, make_task
from vfgnn.experiments.tables import TableRow, row_of
from vfgnn.settings import Preset

DATASET = "cora"
WAYS: tuple[Where, ...] = ("transductive", "inductive")
MODES = ("collaborative", "individual")


def new_node_tasks(seeds: int) -> dict[Task, str]:
    """The trainings, and which row each belongs to."""
    return dict(_tasks(seeds))


def _tasks(seeds: int) -> Iterator[tuple[Task, str]]:
    for mode in MODES:
        settings = Preset("best").settings(dataset=DATASET, overrides={"initial_embedding": mode})
        for way in WAYS:
            for seed in range(seeds):
                yield make_task(settings, dataset=DATASET, where=way, seed=seed), f"{way}, {mode}"


def new_node_rows(tasks: Mapping[Task, str], results: Mapping[Task, TaskResult]) -> list[TableRow]:
    """Accuracy on the new nodes: mean and deviation over seeds."""
    return [
        row_of(
            [results[task]["test_accuracy"] for task, trained in tasks.items() if trained == row],
            table="new nodes",
            dataset=DATASET,
            model=row,
            preset="best",
            paper=None,
        )
        for row in dict.fromkeys(tasks.values())
    ]
