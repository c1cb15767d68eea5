"""Q3: VFGNN against SecureGNN on PubMed, the same network at both: accuracy, and the time of an epoch.

The network is VFGNN_M's of Table 2: SAGE-Mean over each holder's edges, mean, one sigmoid hidden layer, the output
layer. SecureGNN has both layers on shares, with the sigmoid's Taylor polynomial, and moves them by momentum SGD.

Time is that of real processes over TLS on this machine, a training step without evaluation, the median of 20. Also
measured: what an epoch of arXiv costs, on its real graph with generated features.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from vfgnn.data import datasets
from vfgnn.data.holdings import Holding, Labels
from vfgnn.data.partition import EdgeSplit, partition
from vfgnn.errors import DataError
from vfgnn.experiments.catalogue import READINGS, settings_for
from vfgnn.experiments.runner import Task, TaskResult, make_task
from vfgnn.experiments.tables import TableRow, row_of
from vfgnn.lab.federation import split_labels
from vfgnn.lab.local_files import write_federation
from vfgnn.lab.processes import VFGNN, LocalProcesses
from vfgnn.party.baseline import COMMAND
from vfgnn.settings import Settings
from vfgnn.split.program import training
from vfgnn.writing import write_whole

DATASET = "pubmed"
LAYER_RATE = 0.3
"""Of SecureGNN's layers: the best of .03, .1 and .3 on validation nodes of partitions 1000 to 1002."""
PAPER_ACCURACY = {"VFGNN_M": 0.8090, "SecureGNN": 0.7970}
PAPER_SECONDS = {"VFGNN_M": 18.65, "SecureGNN": 166.81}
STEPS, WARM_UP = 20, 5
Publish = Literal["all", "needed"]
PUBLISH: tuple[Publish, ...] = ("all", "needed")


@dataclass(frozen=True)
class Timing:
    """What an epoch takes."""

    dataset: str
    model: str
    publish: Publish
    features: Literal["real", "generated"]
    seconds: float
    bytes_per_epoch: int
    paper: float | None = None


def settings_of(dataset: str = DATASET, edge_split: EdgeSplit = "undirected", **changes: object) -> Settings:
    """VFGNN_M's, for both."""
    overrides = {"combine": "mean", **changes}
    return settings_for("paper", dataset=dataset, model="mean", edge_split=edge_split, overrides=overrides)


def baseline_tasks(seeds: int, readings: Sequence[EdgeSplit] = READINGS[:1]) -> dict[Task, str]:
    """The trainings behind the two accuracies."""
    every = [(reading, seed) for reading in readings for seed in range(seeds)]
    ours = {_our_task(seed, reading): "VFGNN_M" for reading, seed in every}
    return ours | {secure_task(seed, edge_split=reading): "SecureGNN" for reading, seed in every}


def _our_task(seed: int, edge_split: EdgeSplit) -> Task:
    settings = settings_of(edge_split=edge_split)
    return make_task(settings, dataset=DATASET, where="federated", seed=seed, edge_split=edge_split)


def secure_task(seed: int, layer_rate: float = LAYER_RATE, edge_split: EdgeSplit = "undirected") -> Task:
    """One training of SecureGNN."""
    return make_task(
        settings_of(edge_split=edge_split),
        dataset=DATASET,
        where="secure_gnn",
        seed=seed,
        layer_rate=layer_rate,
        edge_split=edge_split,
    )


def baseline_rows(tasks: Mapping[Task, str], results: Mapping[Task, TaskResult]) -> list[TableRow]:
    """Mean and deviation over seeds."""
    reached: dict[tuple[EdgeSplit, str], list[float]] = {}
    for task, model in tasks.items():
        reached.setdefault((task.edge_split, model), []).append(results[task]["test_accuracy"])
    return [
        row_of(
            values,
            table="baseline",
            dataset=DATASET,
            model=model,
            preset="paper",
            paper=PAPER_ACCURACY[model],
            edge_split=reading,
        )
        for (reading, model), values in reached.items()
    ]


@dataclass(frozen=True)
class Measurement:
    """One timing that is to be made."""

    dataset: str
    model: str
    publish: Publish
    features: Literal["real", "generated"] = "real"

    def measure(self, data_dir: Path | None) -> Timing:
        """Train for a few epochs, each party a process of its own."""
        holdings, labels = self._data(data_dir)
        epochs = STEPS + WARM_UP
        settings = settings_of(self.dataset, publish=self.publish)
        settings = settings.model_copy(update={"epochs": epochs, "evaluate_every": epochs + 1, "patience": None})
        secure = self.model == "SecureGNN"
        with tempfile.TemporaryDirectory(prefix="vfgnn-baseline-") as folder:
            local = write_federation(Path(folder), holdings, labels, settings, insecure_seed=0)
            names = [name for name in local.names if name != "server"] if secure else local.names
            with LocalProcesses(local, names=names, command=COMMAND if secure else VFGNN) as running:
                running.wait()
            ticks = local.ticks[:-1]  # the last one is the evaluation at the end
            size = local.traffic.bytes_in(*training(local.file.agreement).repeated) // epochs
        steps = [after - before for before, after in zip(ticks[WARM_UP - 1 :], ticks[WARM_UP:], strict=False)]
        printed = PAPER_SECONDS[self.model] if self.dataset == DATASET else None
        return Timing(self.dataset, self.model, self.publish, self.features, median(steps), size, printed)

    def _data(self, data_dir: Path | None) -> tuple[list[Holding], Labels]:
        data = datasets.load(self.dataset, data_dir, generated_features=self.features == "generated")
        return partition(data.x, data.edge_index, holders=2, seed=0), split_labels(data)


def measurements() -> Iterator[Measurement]:
    """All of them; arXiv's for VFGNN alone."""
    for model in PAPER_ACCURACY:
        for publish in PUBLISH:
            yield Measurement(DATASET, model, publish)
    for publish in PUBLISH:
        yield Measurement("arxiv", "VFGNN_M", publish, features="generated")


def measure_all(
    folder: Path, data_dir: Path | None, on_done: Callable[[Measurement], None] | None = None
) -> list[Timing]:
    """One after another, each kept in `folder` when it is done. Only ratios between them mean anything elsewhere."""
    found = []
    for measurement in measurements():
        content = json.dumps([asdict(measurement), settings_of(measurement.dataset).model_dump(mode="json")])
        path = folder / f"timing-{hashlib.sha256(content.encode()).hexdigest()[:16]}.json"
        if not path.is_file():
            try:
                timing = measurement.measure(data_dir)
            except DataError:
                if measurement.dataset == DATASET:
                    raise
                continue  # arXiv's graph is not everywhere: its cost is then not measured
            write_whole(path, json.dumps(asdict(timing), indent=1), for_others=True)
        found.append(Timing(**json.loads(path.read_text())))
        if on_done is not None:
            on_done(measurement)
    return found
