"""Draws of training and validation nodes beside the split that came with a data set.

No draw takes a test node of the public split. Draws below REPORTED_FROM are for choosing values, those from there on
for reporting what the choice gives.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

from vfgnn.model.propagation import Integers

PER_CLASS, VALIDATION = 20, 500
REPORTED_FROM = 100


@dataclass(frozen=True)
class Split:
    """Rows to train with, and rows to judge by."""

    train: Integers
    val: Integers


def public_split(data: Data) -> Split:
    """The one that came with the data."""
    return Split(rows_of(data.train_mask), rows_of(data.val_mask))


def rows_of(mask: torch.Tensor) -> Integers:
    """The numbers of the rows in a mask."""
    return mask.nonzero()[:, 0].numpy()


def draw_split(data: Data, seed: int) -> Split:
    """20 nodes a class and 500 others; none of the public split's test nodes."""
    draw, y = np.random.default_rng([19, seed]), data.y.numpy()
    free = draw.permutation(rows_of(~data.test_mask))
    train = np.concatenate([free[y[free] == one][:PER_CLASS] for one in range(int(y.max()) + 1)])
    return Split(train, free[~np.isin(free, train)][:VALIDATION])


def redrawn(data: Data, seed: int) -> Data:
    """The same graph and test nodes, with a draw's nodes to train with and to judge by."""
    split, found = draw_split(data, seed), data.clone()
    found.train_mask, found.val_mask = _mask(data, split.train), _mask(data, split.val)
    return found


def _mask(data: Data, rows: Integers) -> torch.Tensor:
    return torch.zeros(len(data.y), dtype=torch.bool).index_fill(0, torch.from_numpy(rows), True)
