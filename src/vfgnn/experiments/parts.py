"""Everything that is reproduced, part by part: which trainings a part needs, and which rows come of them.

compare       Q1 and Q2, Table 2               baseline      Q3, against SecureGNN
proportions   Q4, Table 3                      holders       Q5, Table 4
privacy       Q6, Table 5                      aggregators, modes, sensitivity: promised in the paper, not printed

What the paper prints can be had under both readings of how edges are split, the rest under the first. arXiv is apart.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vfgnn.data.partition import EdgeSplit
from vfgnn.experiments import baseline, new_nodes, privacy, studies, tables
from vfgnn.experiments.catalogue import READINGS, Model
from vfgnn.experiments.runner import Task, TaskResult
from vfgnn.experiments.tables import TableRow, show_proportion

DATASETS = ("cora", "citeseer", "pubmed")
Results = Mapping[Task, TaskResult]


@dataclass(frozen=True)
class Part:
    """One table or several."""

    name: str
    notes: Mapping[Task, str]  # each training, and what it is
    rows: Callable[[Results], list[TableRow]]


def compare(
    seeds: int,
    *,
    datasets: Sequence[str],
    holders: int,
    models: Sequence[Model],
    readings: Sequence[EdgeSplit] = READINGS[:1],
) -> Part:
    """Table 2, or some of its rows."""
    tasks = tables.compare_tasks(datasets, seeds, holders=holders, models=models, readings=readings)
    notes = {task: f"{task.dataset} {rows[0].model.name} {rows[0].edge_split}" for task, rows in tasks.items()}
    return Part("compare", notes, lambda results: tables.compare_rows(tasks, results))


def against_secure_gnn(seeds: int, readings: Sequence[EdgeSplit] = READINGS[:1]) -> Part:
    """The accuracies of Q3; times are measured apart."""
    tasks = baseline.baseline_tasks(seeds, readings)
    return Part("baseline", tasks, lambda results: baseline.baseline_rows(tasks, results))


def noised(seeds: int, readings: Sequence[EdgeSplit] = READINGS[:1]) -> Part:
    """Table 5 and what a total budget buys."""
    tasks = privacy.privacy_tasks(seeds, readings)
    notes = {task: f"{cell.noise} {cell.epsilon:g}" for task, cell in tasks.items()}
    return Part("privacy", notes, lambda results: privacy.privacy_rows(tasks, results))


def with_new_nodes(seeds: int) -> Part:
    """Nodes that come after training; not in the paper, and not part of its reproduction."""
    tasks = new_nodes.new_node_tasks(seeds)
    return Part("new nodes", tasks, lambda results: new_nodes.new_node_rows(tasks, results))


def study(name: str, seeds: int, readings: Sequence[EdgeSplit] = READINGS[:1]) -> Part:
    """One of the smaller tables."""
    tasks = studies.study_tasks(name, seeds, readings)
    notes = {task: f"{task.dataset} {one.model} {show_proportion(one.proportion)}" for task, (one, *_) in tasks.items()}
    return Part(name, notes, lambda results: studies.study_rows(tasks, results))


def everything(seeds: int, readings: Sequence[EdgeSplit] = READINGS) -> list[Part]:
    """The whole paper but arXiv, and what it promises."""
    return [
        compare(seeds, datasets=DATASETS, holders=2, models=tables.models_named(None), readings=readings),
        against_secure_gnn(seeds, readings),
        *(study(name, seeds, readings) for name in studies.STUDIES),
        noised(seeds, readings),
    ]
