"""What a search may choose: the values of each preset's grid, and random points of it.

The paper gives K, d, the learning rate and L2 as ranges (section 4.1) and leaves the rest open.
"""

import random

Point = dict[str, float | int | str]

# The joint weights' rate is ours, because shares can only take momentum SGD steps. From `embedding_activation` on: what
# the paper does not say.
PAPER_GRID: dict[str, list[float | int | str]] = {
    "layers": [2, 3, 4, 5],
    "dim": [32, 64, 128],
    "learning_rate": [0.001, 0.002, 0.005, 0.01],
    "weight_decay": [0.0001, 0.001, 0.003, 0.01],
    "joint_learning_rate": [0.3, 1.0, 3.0, 10.0],
    "embedding_activation": ["none", "tanh"],
    "feature_scaling": ["none", "row"],
    "row_scale": [1.0, 4.0],
    "head_scale": [1.0, 4.0],
    "output_scale": [1.0, 4.0],
}
BEST_GRID: dict[str, list[float | int | str]] = {
    "layers": [8, 10, 15],
    "teleport": [0.05, 0.1, 0.15],
    "dim": [64, 128],
    "dropout": [0.5, 0.6, 0.7, 0.8],
    "learning_rate": [0.01, 0.02, 0.03],
    "weight_decay": [0.001, 0.003, 0.005, 0.01],
    "joint_learning_rate": [1.0, 3.0, 10.0, 30.0],
    "joint_momentum": [0.0, 0.5, 0.9],
    "confidence_degree": [3, 5, 8],
    "feature_scaling": ["none", "row"],
}
GRIDS = {"paper": PAPER_GRID, "best": BEST_GRID}
ALONE: dict[str, list[float | int | str]] = {"initial_embedding": ["collaborative", "individual"]}
"""Where nobody else has a part of W: momentum SGD as between holders, or Adam as for everything else."""


def points(preset: str, count: int, own: Point, *, alone: bool) -> list[Point]:
    """`count` random points of the preset's grid, the same ones for every data set; `alone`: of one table.

    `own` has the preset's values of today; they come first if the grid has all of them, and have to be beaten.
    """
    draw = random.Random(f"vfgnn search {preset}")  # noqa: S311 (nothing secret)
    grid = GRIDS[preset] | (ALONE if alone else {})
    drawn: list[Point] = [{key: draw.choice(values) for key, values in grid.items()} for _ in range(count)]
    if preset == "paper":
        return drawn
    return [{key: own[key] for key in grid}, *drawn[1:]]
