"""How the presets' values were chosen: random points of a grid, judged on validation nodes alone.

The partitions' seeds here are not those that results are reported with. Training is batched (batched/): this module
writes what it needs to a folder, and reads what it found. No test label and no test figure is in either.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from vfgnn.data import datasets
from vfgnn.data.partition import check_proportions, deal, known_edges
from vfgnn.experiments.batched import main as batched
from vfgnn.experiments.batched.jobs import Curve, Job, Row, Value, write_jobs
from vfgnn.experiments.catalogue import BEST, READINGS, Model
from vfgnn.experiments.grids import Point, points
from vfgnn.lab.federation import split_labels
from vfgnn.settings import Preset, Settings

SEARCH_SEEDS = (1000, 1001)
FINAL_SEEDS = (1002, 1003, 1004)  # on which the best few are judged once more
FINALISTS = 10
LARGEST = "pubmed"  # comes last
USED = [
    *("gnn", "layers", "dim", "hidden_layers", "epochs", "dropout", "teleport", "confidence_degree"),
    *("feature_scaling", "embedding_activation", "initial_embedding", "row_scale", "head_scale", "output_scale"),
    *("learning_rate", "weight_decay", "joint_learning_rate", "joint_momentum", "joint_weight_decay"),
]

MODELS = {
    "paper": (
        Model("VFGNN_C", "paper", "federated", combine="concat"),
        Model("VFGNN_M", "paper", "federated", combine="mean"),
        Model("VFGNN_R", "paper", "federated", combine="regression"),
        Model("isolated", "paper", "isolated"),
        Model("pooled", "paper", "pooled"),
    ),
    "best": (
        Model(BEST, "best", "federated", combine="confidence"),
        Model("isolated", "best", "isolated"),
        Model("pooled", "best", "pooled"),
    ),
}


def points_of(model: Model, count: int) -> list[Point]:
    """The points that a row of a table may choose from; a preset's own values have to be beaten."""
    own = Preset(model.preset).settings().model_dump()
    return points(model.preset, count, own, alone=model.where != "federated")


def settings_of(model: Model, point: Point) -> Settings:
    """What the product would train with."""
    combine = {} if model.combine is None else {"combine": model.combine}
    return Preset(model.preset).settings(overrides={**combine, **point})


def jobs_of(model: Model, dataset: str, reading: str, count: int) -> list[Job]:
    """The trainings of one row; isolated models are judged at both holders, pooled ones have one reading."""
    if model.where == "pooled" and reading != READINGS[0]:
        return []
    row: Row = model.tuned_as  # type: ignore[assignment]
    holders = (0, 1) if model.where == "isolated" else (None,)
    jobs = list[Job]()
    for number, point in enumerate(points_of(model, count)):
        settings = settings_of(model, point).model_dump()
        values: dict[str, Value] = {name: settings[name] for name in USED}
        jobs += [
            Job(dataset, reading, row, holder, seed, number, values) for seed in SEARCH_SEEDS for holder in holders
        ]
    return jobs


@dataclass(frozen=True)
class Wanted:
    """What is searched for."""

    preset: str
    datasets: tuple[str, ...]
    readings: tuple[str, ...]
    count: int

    @property
    def jobs(self) -> list[Job]:
        """The trainings of all rows, the small data sets first, each point on the search's partitions."""
        small, large = [name for name in self.datasets if name != LARGEST], [LARGEST] * (LARGEST in self.datasets)
        order = [(name, reading) for part in (small, large) for reading in self.readings for name in part]
        rows = [(name, reading, model) for name, reading in order for model in MODELS[self.preset]]
        return [job for name, reading, model in rows for job in jobs_of(model, name, reading, self.count)]

    @property
    def patience(self) -> int | None:
        """The preset's."""
        return Preset(self.preset).settings().patience

    @property
    def points(self) -> dict[str, list[Point]]:
        """By row."""
        return {model.tuned_as: points_of(model, self.count) for model in MODELS[self.preset]}


def prepare(folder: Path, wanted: Wanted, data_dir: Path | None) -> list[Job]:
    """Write the data and the jobs of a search to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_jobs(folder / jobs_name(wanted.preset), wanted.jobs)
    for name in wanted.datasets:
        paths = {seed: folder / f"{name}-{seed}.npz" for seed in SEARCH_SEEDS + FINAL_SEEDS}
        missing = {seed: path for seed, path in paths.items() if not path.is_file()}
        data = datasets.load(name, data_dir) if missing else None
        for seed, path in missing.items():
            if data is not None:
                np.savez_compressed(path, **arrays_of(data, seed))  # type: ignore[arg-type]
    return wanted.jobs


def arrays_of(data: Data, seed: int) -> dict[str, np.ndarray]:
    """A graph as two holders share it, as `data.partition` deals it; labels of training and validation rows only."""
    x, labels, shares = data.x.to_sparse_csr(), split_labels(data), check_proportions(None, 2)
    found = {
        "pointer": x.crow_indices().numpy().astype(np.int32),
        "columns": x.col_indices().numpy().astype(np.int16),
        "values": x.values().numpy(),
        "edges": data.edge_index.numpy().astype(np.int32),
        "classes": np.array(labels.classes),
    }
    for reading in READINGS:
        rng = np.random.default_rng(seed)
        owner = np.zeros(data.x.shape[1], dtype=np.int8)
        owner[deal(len(owner), shares, rng)[1]] = 1
        found["column_owner"] = owner
        edges = data.edge_index.numpy()
        found[f"known_edges_{reading}"] = known_edges(edges, shares, reading, rng)
    for part, rows in (("train", labels.train), ("val", labels.val)):
        found[part], found[f"y_{part}"] = rows.numpy().astype(np.int32), labels.y[rows].numpy().astype(np.int8)
    return found


def search(
    folder: Path,
    wanted: Wanted,
    *,
    device: torch.device,
    on_start: Callable[[int], None] | None = None,
    on_group: Callable[[list[Curve], float], None] | None = None,
) -> None:
    """Train what is missing of a prepared folder: every point, then the best few on further partitions."""
    out, jobs = folder / results_name(wanted.preset), wanted.jobs
    if on_start is not None:
        on_start(len(batched.missing(jobs, out)))
    batched.train_all(jobs, folder, out, device, on_group=on_group)
    last = batched.Finals(SEARCH_SEEDS, FINAL_SEEDS, FINALISTS, wanted.patience).jobs(out)
    if on_start is not None:
        on_start(len(batched.missing([*jobs, *last], out)))
    batched.train_all(last, folder, out, device, on_group=on_group)


def jobs_name(preset: str) -> str:
    """The file of a prepared folder that says what has to be trained."""
    return f"jobs-{preset}.jsonl"


def results_name(preset: str) -> str:
    """The file of a prepared folder that has what was found."""
    return f"results-{preset}.jsonl"
