"""Permutations, running sums and differences of rows mod 2^64, fused so that each is one pass over memory.

The tables are int32: `gather[k]` is where row k comes from, `places[k]` is where row k goes to. Each function adds into
a pad, in the pad's memory, because a pad is used once. Tensors on a GPU take the versions in torch, which are equal bit
by bit. The caller has checked the tables: the kernels read and write wherever a table says.
Runs at the holders and the dealer. Nothing leaves.
"""

import numba
import numpy as np
import torch

Array = np.ndarray
WORDS, TABLE = numba.int64[:, ::1], numba.uint32[::1]  # said here, so that nobody waits for it in a run


@numba.njit(numba.void(WORDS, TABLE, WORDS), nogil=True, cache=True)
def _place_differences(x: Array, places: Array, pad: Array) -> None:
    for row in range(x.shape[0]):
        place = places[row]
        for j in range(x.shape[1]):
            before = x[row - 1, j] if row > 0 else 0
            pad[place, j] += x[row, j] - before


@numba.njit(numba.void(WORDS, TABLE, TABLE, WORDS), nogil=True, cache=True)
def _place_sums(x: Array, gather: Array, places: Array, pad: Array) -> None:
    if x.shape[1] == 1:  # one column: the running sum stays in a register
        total = x[0, 0] - x[0, 0]
        for k in range(gather.shape[0]):
            total += x[gather[k], 0]
            pad[places[k], 0] += total
        return
    totals = np.zeros(x.shape[1], dtype=x.dtype)
    for k in range(gather.shape[0]):
        origin, place = gather[k], places[k]
        for j in range(x.shape[1]):
            totals[j] += x[origin, j]
            pad[place, j] += totals[j]


@numba.njit(numba.void(WORDS, TABLE, WORDS), nogil=True, cache=True)
def _gather_differences(x: Array, gather: Array, out: Array) -> None:
    for row in range(gather.shape[0]):
        origin = gather[row]
        for j in range(x.shape[1]):
            before = x[gather[row - 1], j] if row > 0 else 0
            out[row, j] = x[origin, j] - before


def place_differences(x: torch.Tensor, places: torch.Tensor, pad: torch.Tensor) -> torch.Tensor:
    """pad[places[k]] += x[k] - x[k - 1], with x[-1] = 0."""
    if x.is_cuda:
        return place_differences_torch(x, places, pad)
    _place_differences(x.contiguous().numpy(), _unsigned(places), pad.numpy())
    return pad


def place_sums(x: torch.Tensor, gather: torch.Tensor, places: torch.Tensor, pad: torch.Tensor) -> torch.Tensor:
    """pad[places[k]] += x[gather[0]] + .. + x[gather[k]]."""
    if x.is_cuda:
        return place_sums_torch(x, gather, places, pad)
    _place_sums(x.contiguous().numpy(), _unsigned(gather), _unsigned(places), pad.numpy())
    return pad


def gather_differences(x: torch.Tensor, gather: torch.Tensor) -> torch.Tensor:
    """x[gather[k]] - x[gather[k - 1]], and x[gather[0]] first."""
    if x.is_cuda:
        return gather_differences_torch(x, gather)
    out = torch.empty((len(gather), x.shape[1]), dtype=x.dtype)
    _gather_differences(x.contiguous().numpy(), _unsigned(gather), out.numpy())
    return out


def place_differences_torch(x: torch.Tensor, places: torch.Tensor, pad: torch.Tensor) -> torch.Tensor:
    """As `place_differences`, on any device."""
    return pad.index_add_(0, places, _differences(x))


def place_sums_torch(x: torch.Tensor, gather: torch.Tensor, places: torch.Tensor, pad: torch.Tensor) -> torch.Tensor:
    """As `place_sums`, on any device. A GPU sums along rows of memory 100 times as fast as down columns."""
    columns = x.index_select(0, gather).t().contiguous()
    return pad.index_add_(0, places, columns.cumsum(dim=1).t())


def gather_differences_torch(x: torch.Tensor, gather: torch.Tensor) -> torch.Tensor:
    """As `gather_differences`, on any device."""
    return _differences(x.index_select(0, gather))


def _differences(x: torch.Tensor) -> torch.Tensor:
    return torch.diff(x, dim=0, prepend=torch.zeros_like(x[:1]))


def _unsigned(table: torch.Tensor) -> Array:
    """The kernels need not look for negative places then: half the time of a running sum."""
    return table.numpy().view(np.uint32)
