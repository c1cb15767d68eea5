"""Sparse and dense matrices times dense ones, and their transposes, mod 2^64 on the CPU's cores.

The sparse kernels walk X by rows. In X w the small w stays in the cache; in X^T g the small result does, and g is read
once from front to back, which is 2-3 times faster than a product with a stored transpose when X is tall.
Runs at the holders and the dealer. Nothing leaves.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import torch

Array = np.ndarray


class DenseMatrix:
    """A [rows, columns] with its transpose beside it: torch's integer product wants both sides by rows."""

    def __init__(self, a: torch.Tensor, *, threads: int = 1) -> None:
        self._a, self._a_transposed = a.contiguous(), a.t().contiguous()
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def times(self, w: torch.Tensor) -> torch.Tensor:
        """A w."""
        return self._product(self._a, w)

    def transpose_times(self, g: torch.Tensor) -> torch.Tensor:
        """A^T g."""
        return self._product(self._a_transposed, g)

    def _product(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Torch multiplies integers on one core: give each core its rows."""
        if self._pool is None or not a.shape[0]:
            return a @ b
        blocks = a.tensor_split(self._threads)
        waiting = [self._pool.submit(torch.matmul, block, b) for block in blocks[1:]]
        return torch.cat([blocks[0] @ b, *(other.result() for other in waiting)])


@numba.njit(nogil=True, cache=True, fastmath=False)
def _times(indptr: Array, indices: Array, values: Array, w: Array, out: Array, begin: int, end: int) -> None:
    # Four entries at a time: the row of the result is loaded and stored once for all of them.
    for row in range(begin, end):
        out[row, :] = 0
        first, after = indptr[row], indptr[row + 1]
        fours = first + (after - first) // 4 * 4
        for k in range(first, fours, 4):
            v0, v1, v2, v3 = values[k], values[k + 1], values[k + 2], values[k + 3]
            c0, c1, c2, c3 = indices[k], indices[k + 1], indices[k + 2], indices[k + 3]
            for j in range(w.shape[1]):
                out[row, j] += v0 * w[c0, j] + v1 * w[c1, j] + v2 * w[c2, j] + v3 * w[c3, j]
        for k in range(fours, after):
            value = values[k]
            column = indices[k]
            for j in range(w.shape[1]):
                out[row, j] += value * w[column, j]


@numba.njit(nogil=True, cache=True, fastmath=False)
def _transpose_times(indptr: Array, indices: Array, values: Array, g: Array, out: Array, begin: int, end: int) -> None:
    for row in range(begin, end):
        for k in range(indptr[row], indptr[row + 1]):
            value = values[k]
            column = indices[k]
            for j in range(g.shape[1]):
                out[column, j] += value * g[row, j]


class CsrMatrix:
    """X [rows, columns] in CSR, for products with dense matrices on `threads` cores."""

    def __init__(self, x: torch.Tensor, *, threads: int = 1) -> None:
        self.shape = (int(x.shape[0]), int(x.shape[1]))
        csr = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
        self._indptr, self._indices = csr.crow_indices().numpy(), csr.col_indices().int().numpy()
        self._values = csr.values().numpy()
        # Blocks of equal work, not of equal length: rows differ in how many entries they have.
        shares = np.linspace(0, self._indptr[-1], threads + 1)
        bounds = np.searchsorted(self._indptr, shares, side="left")
        bounds[0], bounds[-1] = 0, self.shape[0]
        self._blocks = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def times(self, w: torch.Tensor) -> torch.Tensor:
        """X w."""
        out = torch.empty((self.shape[0], w.shape[1]), dtype=w.dtype)
        outs = [out.numpy()] * len(self._blocks)
        self._run(_times, w, outs)
        return out

    def transpose_times(self, g: torch.Tensor) -> torch.Tensor:
        """X^T g; each core sums into a matrix of its own."""
        outs = [np.zeros((self.shape[1], g.shape[1]), dtype=g.numpy().dtype) for _ in self._blocks]
        self._run(_transpose_times, g, outs)
        for other in outs[1:]:
            outs[0] += other
        return torch.from_numpy(outs[0])

    def _run(self, kernel: Callable[..., None], dense: torch.Tensor, outs: list[Array]) -> None:
        matrix = (self._indptr, self._indices, self._values, dense.contiguous().numpy())
        work = [(*matrix, out, *block) for out, block in zip(outs, self._blocks, strict=True)]
        waiting = [self._pool.submit(kernel, *arguments) for arguments in work[1:]] if self._pool else []
        kernel(*work[0])
        for other in waiting:
            other.result()
