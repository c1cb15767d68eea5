"""How the defaults of the sealed protocol's model were chosen: a grid, judged on validation nodes alone.

    python -m vfgnn.experiments.sealed_search --kept runs/sealed_search --json docs/records/sealed_search.json

One choice for Cora, CiteSeer and PubMed: the mean over the data sets, the public split and draws of 20 training nodes a
class with 500 others for validation. No draw takes a test node of the public split, so none has a part in any choice.
A path of ridge strengths is judged on one half of the validation nodes after the other half chose from it, and the
other way round. A second stage varies what the first one kept. What is kept is found again after a stop.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from torch_geometric.data import Data

from vfgnn.data import datasets
from vfgnn.experiments.splits import VALIDATION, draw_split, public_split
from vfgnn.model.propagated_kernels import Kernel, make_kernel
from vfgnn.model.propagated_ridge import RidgeModel, fit_by_kernel, make_targets
from vfgnn.model.propagation import union
from vfgnn.records import write_json

DATASETS = ("cora", "citeseer", "pubmed")
DRAWS = 10
RIDGE = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PATHS = ((1.0,), (0.3, 1.0), (0.3, 1.0, 3.0), (0.1, 0.3, 1.0, 3.0), (0.03, 0.1, 0.3, 1.0, 3.0), RIDGE)
START = RidgeModel(ridge=RIDGE)
PROPAGATIONS = tuple((hops, teleport) for hops in (4, 6, 8, 10, 16) for teleport in (0.05, 0.1, 0.15, 0.2))
Found = list[list[list[int]]]  # of each split and ridge strength, the right classes in either half


def pooled_kernel(data: Data, model: RidgeModel) -> Kernel:
    """All columns and edges in one place."""
    features = sp.csr_array(data.x.numpy().astype(np.float64))
    adjacency = union([data.edge_index.numpy()], int(data.num_nodes or 0))
    return make_kernel(
        features, adjacency, name=model.kernel, hops=model.hops, teleport=model.teleport, power=model.power
    )


def judge(data: Data, model: RidgeModel) -> Found:
    """Train on every split, and count in its validation rows."""
    kernel, y = pooled_kernel(data, model), data.y.numpy()
    found: Found = []
    for split in (public_split(data), *(draw_split(data, seed) for seed in range(DRAWS))):
        targets = make_targets(y, split.train, int(y.max()) + 1)
        fit = fit_by_kernel(kernel, targets, model)
        right = [scores[split.val].argmax(axis=1) == y[split.val] for scores in fit.scores]
        found.append([[int(row[::2].sum()), int(row[1::2].sum())] for row in right])
    return found


def path_score(found: Found, path: Sequence[float]) -> float:
    """Accuracy in the half that had no part in the choice of the ridge strength."""
    numbers = [RIDGE.index(ridge) for ridge in path]
    right = [
        of_split[max(numbers, key=lambda i: (of_split[i][half], i))][1 - half] for of_split in found for half in (0, 1)
    ]
    return sum(right) / (len(found) * VALIDATION)


def kept_or_judged(name: str, data: Data, model: RidgeModel, folder: Path) -> Found:
    """From the folder of what was judged before, by everything that determines it."""
    content = json.dumps({"dataset": name, "draws": DRAWS, **asdict(model)}, sort_keys=True)
    path = folder / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.json"
    if not path.is_file():
        write_json(path, judge(data, model), for_others=True)
    found: Found = json.loads(path.read_text())
    return found


def second_stage(best: RidgeModel) -> Iterator[RidgeModel]:
    """Steps, and what the coefficients minimise."""
    for steps in (2, 3, 4, 5, 6):
        yield replace(best, steps=steps)
        yield replace(best, steps=steps, minimum="kernel")


def search(folder: Path, data_dir: Path | None, console: Console) -> list[dict[str, object]]:
    """All rows, the best one first."""
    loaded = {name: datasets.load(name, data_dir) for name in DATASETS}

    def row(model: RidgeModel) -> dict[str, object]:
        found = {name: kept_or_judged(name, data, model, folder) for name, data in loaded.items()}
        paths = {path: {name: path_score(of_data, path) for name, of_data in found.items()} for path in PATHS}
        path = max(paths, key=lambda p: mean(paths[p].values()))
        scores = {json.dumps(path): round(mean(of_path.values()), 4) for path, of_path in paths.items()}
        result = {**asdict(model), "ridge": list(path), "validation": round(mean(paths[path].values()), 4)}
        console.print(result["hops"], result["teleport"], result["steps"], result["minimum"], result["validation"])
        return {**result, "datasets": {name: round(score, 4) for name, score in paths[path].items()}, "paths": scores}

    rows = [row(replace(START, hops=hops, teleport=teleport)) for hops, teleport in PROPAGATIONS]
    best = max(rows, key=lambda found: float(str(found["validation"])))
    model = replace(START, hops=int(str(best["hops"])), teleport=float(str(best["teleport"])))
    rows += [row(other) for other in second_stage(model) if other != model]
    return sorted(rows, key=lambda found: -float(str(found["validation"])))


def main() -> None:
    """Search, print, and write."""
    parser = argparse.ArgumentParser(description="The defaults of the sealed protocol's model, on validation nodes.")
    parser.add_argument("--kept", type=Path, default=Path("runs/sealed_search"), help="what was judged before")
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    rows = search(given.kept, given.data_dir, Console())
    write_json(given.json, {"draws": DRAWS, "validation_nodes": VALIDATION, "rows": rows}, for_others=True)


if __name__ == "__main__":
    main()
