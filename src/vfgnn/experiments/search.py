"""How the presets' values were chosen: random points of a grid, judged on validation nodes alone.

The partition's seed here is not one of those that results are reported with.
"""

import random
from collections.abc import Callable
from pathlib import Path
from statistics import mean

from vfgnn.experiments.catalogue import BEST, Model
from vfgnn.experiments.runner import Store, Task, TaskResult, make_task, run_all
from vfgnn.settings import Preset

Point = dict[str, float | int]

SEARCH_SEEDS = (1000, 1001, 1002)

# The paper's ranges (section 4.1); the joint weights' rate is ours, because shares can only take momentum SGD steps.
PAPER_GRID: dict[str, list[float | int]] = {
    "layers": [2, 3, 4, 5],
    "dim": [32, 64, 128],
    "learning_rate": [0.001, 0.003, 0.01],
    "weight_decay": [0.0001, 0.001, 0.01],
    "joint_learning_rate": [0.3, 1.0, 3.0, 10.0],
}
BEST_GRID: dict[str, list[float | int]] = {
    "layers": [8, 10, 15],
    "teleport": [0.05, 0.1, 0.15],
    "dim": [64, 128],
    "dropout": [0.5, 0.6, 0.7, 0.8],
    "learning_rate": [0.01, 0.02, 0.03],
    "weight_decay": [0.001, 0.003, 0.005, 0.01],
    "joint_learning_rate": [1.0, 3.0, 10.0, 30.0],
    "joint_momentum": [0.0, 0.5, 0.9],
    "confidence_degree": [3, 5, 8],
}
GRIDS = {"paper": PAPER_GRID, "best": BEST_GRID}
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


def points(preset: str, count: int) -> list[Point]:
    """`count` random points of the preset's grid, the same ones for every model and data set.

    `best` has values of its own, which come first and have to be beaten; the paper gives ranges only.
    """
    draw = random.Random(f"vfgnn search {preset}")  # noqa: S311 (nothing secret)
    grid = GRIDS[preset]
    drawn: list[Point] = [{key: draw.choice(values) for key, values in grid.items()} for _ in range(count)]
    if preset == "paper":
        return drawn
    own = Preset(preset).settings().model_dump()
    return [{key: own[key] for key in grid}, *drawn]


def tasks_of(model: Model, dataset: str, point: Point, seeds: int) -> list[Task]:
    """The trainings that judge one point; isolated models are judged at both holders."""
    combine = {} if model.combine is None else {"combine": model.combine}
    settings = Preset(model.preset).settings(overrides={**combine, **point})
    holders = (0, 1) if model.where == "isolated" else (None,)
    return [
        make_task(settings, dataset=dataset, where=model.where, seed=seed, holder=holder)
        for seed in SEARCH_SEEDS[:seeds]
        for holder in holders
    ]


def search(
    preset: str,
    datasets: list[str],
    store: Store,
    *,
    count: int,
    seeds: int,
    models: list[str] | None = None,
    data_dir: Path | None = None,
    workers: int | None = None,
    on_start: Callable[[int], None] | None = None,
    on_done: Callable[[Task, TaskResult], None] | None = None,
) -> dict[str, dict[str, tuple[Point, float]]]:
    """For each data set and model the point with the best validation accuracy, and that accuracy."""
    plan = {
        (dataset, model.tuned_as): [(point, tasks_of(model, dataset, point, seeds)) for point in points(preset, count)]
        for dataset in datasets
        for model in MODELS[preset]
        if models is None or model.name in models
    }
    everything = [task for trials in plan.values() for _, tasks in trials for task in tasks]
    if on_start is not None:
        on_start(len(set(everything)))
    results = run_all(everything, store, data_dir=data_dir, workers=workers, on_done=on_done)
    chosen: dict[str, dict[str, tuple[Point, float]]] = {}
    for (dataset, model_name), trials in plan.items():
        scored = [(mean(results[task]["val_accuracy"] for task in tasks), point) for point, tasks in trials]
        best_score, best_point = max(scored, key=lambda trial: trial[0])
        chosen.setdefault(dataset, {})[model_name] = (best_point, best_score)
    return chosen


def to_toml(chosen: dict[str, dict[str, tuple[Point, float]]], command: str) -> str:
    """The content of `<preset>_chosen.toml`."""
    lines = [f"# Written by `{command}`: the best of its points on validation nodes."]
    for dataset, models in sorted(chosen.items()):
        for model, (point, score) in sorted(models.items()):
            lines += ["", f"[{dataset}.{model}]  # validation accuracy {score:.4f}"]
            lines += [f"{key} = {value}" for key, value in point.items()]
    return "\n".join(lines) + "\n"
