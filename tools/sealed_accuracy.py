"""What the sealed protocol's model reaches in the clear with what was chosen: figures on test nodes, to be read once.

    python tools/sealed_accuracy.py --json docs/records/sealed_accuracy.json

The ridge strength is chosen by the validation classes of each split. The defaults and a data set's own values came from
validation nodes (vfgnn/experiments: sealed_search.py, sealed_choice.py). `public`: the split that came with the data.
`draws`: 5 draws of 20 training nodes a class and 500 for validation, judged on the public split's test nodes, which no
choice has seen. `others`: 5 draws over all nodes, judged on 1,000 of the rest; some of these were validation nodes of
the searches.
Data is found as by `vfgnn simulate`: VFGNN_DATA, the cache, the copy of CiteSeer inside the package.
"""

import argparse
from pathlib import Path
from statistics import mean, pstdev

import numpy as np
from rich.console import Console
from torch_geometric.data import Data

from vfgnn.data import datasets
from vfgnn.data.feature_maps import mapped
from vfgnn.data.holdings import Holding
from vfgnn.experiments.sealed import sealed_settings
from vfgnn.experiments.sealed_search import DATASETS, pooled_kernel
from vfgnn.experiments.splits import PER_CLASS, REPORTED_FROM, VALIDATION, Split, draw_split, public_split, rows_of
from vfgnn.model.propagated_kernels import Kernel
from vfgnn.model.propagated_ridge import RidgeModel, choose, fit_by_kernel, make_targets
from vfgnn.model.propagation import Integers
from vfgnn.model.ridge_training import ridge_model
from vfgnn.records import write_json
from vfgnn.settings import Settings

DRAWS, TEST = 5, 1000


def other_split(y: Integers, seed: int) -> tuple[Split, Integers]:
    """20 nodes a class, 500 for validation, 1,000 of the rest for the test."""
    order = np.random.default_rng([20, seed]).permutation(len(y))
    train = np.concatenate([order[y[order] == one][:PER_CLASS] for one in range(int(y.max()) + 1)])
    rest = order[~np.isin(order, train)]
    return Split(train, rest[:VALIDATION]), rest[VALIDATION:][:TEST]


def accuracy(kernel: Kernel, y: Integers, split: Split, test: Integers, model: RidgeModel) -> float:
    """Of the ridge strength that the validation classes choose."""
    fit = fit_by_kernel(kernel, make_targets(y, split.train, int(y.max()) + 1), model)
    scores = fit.scores[choose(fit, y, split.val, metric="accuracy")]
    return float((scores[test].argmax(axis=1) == y[test]).mean())


def measure(data: Data, settings: Settings) -> dict[str, list[float]]:
    """Each figure of each kind of split."""
    model = ridge_model(settings)
    data.x = mapped(Holding(x=data.x, edge_index=data.edge_index), settings.sealed).x
    kernel, y, test = pooled_kernel(data, model), data.y.numpy(), rows_of(data.test_mask)
    others = [other_split(y, seed) for seed in range(DRAWS)]
    return {
        "public": [accuracy(kernel, y, public_split(data), test, model)],
        "draws": [accuracy(kernel, y, draw_split(data, REPORTED_FROM + seed), test, model) for seed in range(DRAWS)],
        "others": [accuracy(kernel, y, split, rest, model) for split, rest in others],
    }


def main() -> None:
    """Train, print, and write."""
    parser = argparse.ArgumentParser(description="Test accuracy of the sealed protocol's model.")
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    console, rows = Console(), []
    for name in DATASETS:
        for kind, reached in measure(datasets.load(name, given.data_dir), sealed_settings(name)).items():
            row = {"dataset": name, "split": kind, "mean": mean(reached), "std": pstdev(reached), "n": len(reached)}
            console.print(f"{name:9} {kind:7} {row['mean']:.4f} ± {row['std']:.4f}")
            rows.append(row)
    write_json(given.json, {"rows": rows}, for_others=True)


if __name__ == "__main__":
    main()
