"""The paper's smaller tables (Q4, Q5) and what it promises without printing it, as data: one trial per figure.

    proportions   Q4, Table 3: 9:1, 8:2, 7:3 of columns and edges, three ways to combine
    holders       Q5, Table 4: 2, 3, 4 holders, and beyond the paper 5 and 8
    aggregators   Mean, LSTM, Pooling, GCN, GAT, APPNP side by side
    modes         individual against collaborative initial embeddings, and fewer refreshes of the joint layer
    sensitivity   width d and depth K

Cora, as in the paper; aggregators and modes on all three data sets. Figures beside ours are the paper's own. The two
that the paper has can be had under both readings of how edges are split.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vfgnn.data.partition import EdgeSplit
from vfgnn.experiments.catalogue import BEST, READINGS, settings_for
from vfgnn.experiments.runner import Task, TaskResult, make_task
from vfgnn.experiments.tables import EVEN, NO_VARIATION, InitialEmbedding, TableRow, Variation, row_of
from vfgnn.settings import Gnn

DATASETS = ("cora", "citeseer", "pubmed")
COMBINES = {"VFGNN_C": "concat", "VFGNN_M": "mean", "VFGNN_R": "regression"}
PAPER_TABLE_3 = {
    (9, 1): {"VFGNN_C": 0.809, "VFGNN_M": 0.805, "VFGNN_R": 0.809},
    (8, 2): {"VFGNN_C": 0.802, "VFGNN_M": 0.796, "VFGNN_R": 0.807},
    (7, 3): {"VFGNN_C": 0.793, "VFGNN_M": 0.793, "VFGNN_R": 0.803},
}
PAPER_TABLE_4 = {
    2: {"VFGNN_C": 0.790, "VFGNN_M": 0.809, "VFGNN_R": 0.802},
    3: {"VFGNN_C": 0.749, "VFGNN_M": 0.774, "VFGNN_R": 0.760},
    4: {"VFGNN_C": 0.712, "VFGNN_M": 0.733, "VFGNN_R": 0.722},
}
GNNS: tuple[Gnn, ...] = ("sage_mean", "sage_lstm", "sage_pool", "gcn", "gat", "appnp")
HOLDERS = (2, 3, 4, 5, 8)
MODES: tuple[InitialEmbedding, ...] = ("individual", "collaborative")
REFRESHES = (0, 1, 5, 20, 50)


@dataclass(frozen=True)
class Trial:
    """One figure of one table, by everything that its trainings have in common."""

    table: str
    model: str
    preset: str
    combine: str
    dataset: str = "cora"
    holders: int = 2
    proportion: tuple[int, ...] = EVEN
    variation: Variation = NO_VARIATION
    paper: float | None = None
    edge_split: EdgeSplit = "undirected"

    @property
    def proportions(self) -> tuple[float, ...] | None:
        """As the partition wants them."""
        shares = self.proportion
        return None if len(set(shares)) == 1 else tuple(share / sum(shares) for share in shares)

    def task(self, seed: int) -> Task:
        """One training of it."""
        overrides = {"combine": self.combine, **self.variation.settings}
        settings = settings_for(
            self.preset, dataset=self.dataset, model=self.combine, edge_split=self.edge_split, overrides=overrides
        )
        return make_task(
            settings,
            edge_split=self.edge_split,
            dataset=self.dataset,
            where="federated",
            seed=seed,
            holders=self.holders,
            proportions=self.proportions,
        )


def _proportions() -> Iterator[Trial]:
    for proportion, printed in PAPER_TABLE_3.items():
        for model, combine in COMBINES.items():
            yield Trial("proportions", model, "paper", combine, proportion=proportion, paper=printed[model])
        best = max(printed.values())
        yield Trial("proportions", BEST, "best", "confidence", proportion=proportion, paper=best)


def _holders() -> Iterator[Trial]:
    for holders in HOLDERS:
        printed: Mapping[str, float] = PAPER_TABLE_4.get(holders, {})
        even = (1,) * holders
        for model, combine in COMBINES.items():
            yield Trial("holders", model, "paper", combine, "cora", holders, even, paper=printed.get(model))
        best = max(printed.values(), default=None)
        yield Trial("holders", BEST, "best", "confidence", "cora", holders, even, paper=best)


def _aggregators() -> Iterator[Trial]:
    """As many layers as VFGNN_M has; ten for APPNP, whose steps have no weights.

    LSTM, by far the slowest, on Cora only, with two layers of width 64.
    """
    for dataset in DATASETS:
        depth = settings_for("paper", dataset=dataset, model="mean", edge_split="undirected").layers
        for gnn in GNNS:
            if gnn == "sage_lstm" and dataset != "cora":
                continue
            variation = Variation(gnn=gnn, layers=10 if gnn == "appnp" else depth)
            if gnn == "sage_lstm":
                variation = Variation(gnn=gnn, layers=2, dim=64)
            yield Trial("aggregators", gnn, "paper", "mean", dataset, variation=variation)
            yield Trial("aggregators", f"{gnn}, no hidden layer", "best", "mean", dataset, variation=variation)


def _modes() -> Iterator[Trial]:
    for dataset in DATASETS:
        for mode in MODES:
            for preset, combine in (("paper", "mean"), ("best", "confidence")):
                variation = Variation(initial_embedding=mode)
                yield Trial("modes", f"{mode}, preset {preset}", preset, combine, dataset, variation=variation)
        for epochs in REFRESHES:
            variation = Variation(joint_layer_epochs=epochs)
            model = f"joint layer trained for {epochs} epochs"
            yield Trial("modes", model, "best", "confidence", dataset, variation=variation)


def _sensitivity() -> Iterator[Trial]:
    for dim in (16, 32, 64, 128):
        yield Trial("sensitivity", f"d = {dim}", "paper", "mean", variation=Variation(dim=dim))
    for layers in (1, 2, 3, 4, 5):
        yield Trial("sensitivity", f"K = {layers}", "paper", "mean", variation=Variation(layers=layers))


STUDIES = {
    "proportions": _proportions,
    "holders": _holders,
    "aggregators": _aggregators,
    "modes": _modes,
    "sensitivity": _sensitivity,
}
OF_THE_PAPER = ("proportions", "holders")
"""Those that the paper prints: its claims about them are judged under each reading."""


def trials_of(name: str, readings: Sequence[EdgeSplit]) -> list[Trial]:
    """A study under each of the readings; what the paper does not print, under the first alone, but for preset best."""
    under = readings if name in OF_THE_PAPER else READINGS[:1]
    return [
        replace(trial, edge_split=reading)
        for reading in under
        for trial in STUDIES[name]()
        if reading == READINGS[0] or trial.paper is not None or trial.preset == "best"
    ]


def study_tasks(name: str, seeds: int, readings: Sequence[EdgeSplit] = READINGS[:1]) -> dict[Task, list[Trial]]:
    """The trainings of a study; two figures may share one."""
    tasks: dict[Task, list[Trial]] = {}
    for trial in trials_of(name, readings):
        for seed in range(seeds):
            tasks.setdefault(trial.task(seed), []).append(trial)
    return tasks


def study_rows(tasks: Mapping[Task, list[Trial]], results: Mapping[Task, TaskResult]) -> list[TableRow]:
    """Test accuracy of the epoch that validation chose: mean and deviation over seeds."""
    reached: dict[Trial, list[float]] = {}
    for task, trials in tasks.items():
        for trial in trials:
            reached.setdefault(trial, []).append(results[task]["test_accuracy"])
    return [
        row_of(
            values,
            table=trial.table,
            dataset=trial.dataset,
            model=trial.model,
            preset=trial.preset,
            holders=trial.holders,
            proportion=trial.proportion,
            paper=trial.paper,
            variation=trial.variation,
            edge_split=trial.edge_split,
        )
        for trial, values in reached.items()
    ]
