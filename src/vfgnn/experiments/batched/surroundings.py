"""What a batched training computes with: features, edges and labels of one place, cut down to what it needs.

Runs wherever the search runs, on files that `search.py` wrote. They have labels of training and validation rows only:
there is nothing to test on.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from vfgnn.experiments.batched.sparse import Array, Csr, Operator, from_entries

FEATURE_BITS = 12  # as the joint layer encodes what are not whole numbers


@dataclass(frozen=True, repr=False, eq=False)
class Partition:
    """Whose data are trained on: all holders', one holder's, or all of it in one table."""

    blocks: tuple[Csr, ...]  # features, by whose they are
    edges: tuple[Array, ...]  # [2, edges] of each that publishes rows
    train: Array
    val: Array
    y_train: Array
    y_val: Array
    classes: int
    rounds: bool  # features are encoded in the ring

    @property
    def nodes(self) -> int:
        """How many."""
        return self.blocks[0].rows

    @property
    def columns(self) -> int:
        """Of all blocks together."""
        return sum(block.width for block in self.blocks)

    @lru_cache(maxsize=8)  # noqa: B019 (few places, and all of them are wanted)
    def features(self, *, scaled: bool) -> Csr:
        """All blocks side by side; each row of a block divided by its sum if `scaled`, as its holder does it alone."""
        blocks = [_prepared(block, scaled=scaled, rounds=self.rounds) for block in self.blocks]
        offsets = np.cumsum([0, *(block.width for block in blocks)])
        rows = np.concatenate([block.row_of_entry for block in blocks])
        columns = np.concatenate([block.columns + offset for block, offset in zip(blocks, offsets, strict=False)])
        values = np.concatenate([block.values for block in blocks])
        return from_entries(rows, columns, values, self.nodes, self.columns)


def _prepared(block: Csr, *, scaled: bool, rounds: bool) -> Csr:
    values = block.values.astype(np.float64)
    if scaled:
        sums = np.bincount(block.row_of_entry, np.abs(values), minlength=block.rows)
        values = values / np.where(sums > 0, sums, 1)[block.row_of_entry]
    if rounds and bool((values != np.round(values)).any()):
        values = np.round(values * 2.0**FEATURE_BITS) / 2.0**FEATURE_BITS
    return Csr(block.pointer, block.columns, values, block.width)


@lru_cache(maxsize=8)
def place_of(path: Path, reading: str, place: str) -> Partition:
    """From the file of one data set and partition seed."""
    with np.load(path, allow_pickle=False) as arrays:
        x = Csr(arrays["pointer"].astype(np.int64), arrays["columns"].astype(np.int64), arrays["values"], 0)
        holder_of_column, edges = arrays["column_owner"], arrays["edges"].astype(np.int64)
        known = arrays[f"known_edges_{reading}"]
        rest = {name: arrays[name].astype(np.int64) for name in ("train", "val", "y_train", "y_val")}
        classes = int(arrays["classes"])
    holders = range(int(holder_of_column.max()) + 1)
    blocks = tuple(_columns_of(x, holder_of_column == i) for i in holders)
    parts = tuple(edges[:, known[i]] for i in holders)
    if place == "federated":
        return Partition(blocks, parts, **rest, classes=classes, rounds=True)
    if place == "pooled":
        whole = Csr(x.pointer, x.columns, x.values, len(holder_of_column))
        return Partition((whole,), (edges,), **rest, classes=classes, rounds=False)
    i = int(place.split()[1])
    return Partition((blocks[i],), (parts[i],), **rest, classes=classes, rounds=False)


def _columns_of(x: Csr, mine: Array) -> Csr:
    numbers = np.where(mine, np.cumsum(mine) - 1, -1)
    return x.keep_columns(numbers, int(mine.sum()))


@dataclass(frozen=True, repr=False)
class Around:
    """What one holder computes some rows from: nodes in the order wanted rows, their neighbours, theirs, ...

    The rows of each layer are then the first of those of the layer before.
    """

    features: dict[bool, Operator]  # by whether rows are scaled
    layers: tuple[Operator, ...]  # what layer k does to rows: [its rows, those of the layer before]
    sizes: tuple[int, ...]  # how many rows come out of layer k
    degree: torch.Tensor  # of the wanted rows


@dataclass(frozen=True)
class Wanted:
    """How a surrounding is to be made."""

    gnn: str
    layers: int
    scalings: tuple[bool, ...]
    dtype: torch.dtype
    device: torch.device

    def operator(self, matrix: Csr) -> Operator:
        """A matrix where it is to be used."""
        return Operator(matrix, self.dtype, self.device)


def around(place: Partition, holder: int, rows: Array, wanted: Wanted) -> Around:
    """The surrounding of `rows` over one holder's edges."""
    source, target = place.edges[holder]
    degree = np.bincount(target, minlength=place.nodes)
    weighted = _normalised(source, target, degree) if wanted.gnn == "appnp" else _means(source, target, degree)
    order, sizes = _reached(weighted, rows, wanted.layers)
    numbers = np.full(place.nodes, -1)
    numbers[order] = np.arange(len(order))
    if wanted.gnn == "appnp":  # one matrix for all steps: what is wrong at the border does not get as far as the rows
        layers = (wanted.operator(weighted.pick(order).keep_columns(numbers, len(order))),) * wanted.layers
        out = (len(order),) * wanted.layers
    else:
        pairs = pairwise(sizes)
        cut = [weighted.pick(order[:after]).keep_columns(numbers, before) for before, after in pairs]
        layers, out = tuple(wanted.operator(matrix) for matrix in cut), tuple(sizes[1:])
    features = {scaled: wanted.operator(place.features(scaled=scaled).pick(order)) for scaled in wanted.scalings}
    return Around(features, layers, out, torch.from_numpy(degree[rows]).to(wanted.device))


def _means(source: Array, target: Array, degree: Array) -> Csr:
    """GraphSAGE: the mean of those who point at a node."""
    return from_entries(target, source, 1.0 / degree[target], len(degree), len(degree))


def _normalised(source: Array, target: Array, degree: Array) -> Csr:
    """GCN's weights, with self-loops."""
    loops = np.arange(len(degree))
    source, target = np.concatenate([source, loops]), np.concatenate([target, loops])
    root = 1 / np.sqrt(degree + 1.0)
    return from_entries(target, source, root[source] * root[target], len(degree), len(degree))


def _reached(matrix: Csr, rows: Array, layers: int) -> tuple[Array, list[int]]:
    """The nodes that `rows` hear of in so many layers, nearest first, and how many there are from far to near."""
    known, order, sizes = np.zeros(matrix.rows, dtype=bool), rows, [len(rows)]
    known[rows] = True
    border = rows
    for _ in range(layers):
        border = np.unique(matrix.pick(border).columns)
        border = border[~known[border]]
        known[border] = True
        order = np.concatenate([order, border])
        sizes.insert(0, len(order))
    return order, sizes
