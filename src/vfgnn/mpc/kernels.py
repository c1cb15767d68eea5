"""Sparse and dense matrices times dense ones, and their transposes, mod 2^64 on the CPU's cores.

All kernels walk the left matrix by rows, several entries at a time, so that a row of the result is loaded and stored
once for all of them; transposed products sum into a small result that stays in the cache, and need no stored transpose.
Runs at the holders and the dealer. Nothing leaves.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import torch

Array = np.ndarray
Kernel = Callable[..., None]


@numba.njit(nogil=True, cache=True)
def _csr_times(indptr: Array, indices: Array, values: Array, w: Array, out: Array, begin: int, end: int) -> None:
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
            value, column = values[k], indices[k]
            for j in range(w.shape[1]):
                out[row, j] += value * w[column, j]


@numba.njit(nogil=True, cache=True)
def _csr_transpose_times(
    indptr: Array, indices: Array, values: Array, g: Array, out: Array, begin: int, end: int
) -> None:
    for row in range(begin, end):
        for k in range(indptr[row], indptr[row + 1]):
            value, column = values[k], indices[k]
            for j in range(g.shape[1]):
                out[column, j] += value * g[row, j]


@numba.njit(nogil=True, cache=True)
def _dense_times(a: Array, w: Array, out: Array, begin: int, end: int) -> None:
    columns, fours = a.shape[1], a.shape[1] // 4 * 4
    out[begin:end] = 0
    row = begin
    while row + 4 <= end:
        for k in range(0, fours, 4):
            a0, a1, a2, a3 = a[row, k], a[row, k + 1], a[row, k + 2], a[row, k + 3]
            b0, b1, b2, b3 = a[row + 1, k], a[row + 1, k + 1], a[row + 1, k + 2], a[row + 1, k + 3]
            c0, c1, c2, c3 = a[row + 2, k], a[row + 2, k + 1], a[row + 2, k + 2], a[row + 2, k + 3]
            d0, d1, d2, d3 = a[row + 3, k], a[row + 3, k + 1], a[row + 3, k + 2], a[row + 3, k + 3]
            for j in range(w.shape[1]):
                w0, w1, w2, w3 = w[k, j], w[k + 1, j], w[k + 2, j], w[k + 3, j]
                out[row, j] += a0 * w0 + a1 * w1 + a2 * w2 + a3 * w3
                out[row + 1, j] += b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3
                out[row + 2, j] += c0 * w0 + c1 * w1 + c2 * w2 + c3 * w3
                out[row + 3, j] += d0 * w0 + d1 * w1 + d2 * w2 + d3 * w3
        for k in range(fours, columns):
            for r in range(row, row + 4):
                value = a[r, k]
                for j in range(w.shape[1]):
                    out[r, j] += value * w[k, j]
        row += 4
    for r in range(row, end):
        for k in range(columns):
            value = a[r, k]
            for j in range(w.shape[1]):
                out[r, j] += value * w[k, j]


@numba.njit(nogil=True, cache=True)
def _dense_transpose_times(a: Array, g: Array, out: Array, begin: int, end: int) -> None:
    row = begin
    while row + 8 <= end:
        for k in range(a.shape[1]):
            a0, a1, a2, a3 = a[row, k], a[row + 1, k], a[row + 2, k], a[row + 3, k]
            a4, a5, a6, a7 = a[row + 4, k], a[row + 5, k], a[row + 6, k], a[row + 7, k]
            for j in range(g.shape[1]):
                out[k, j] += (
                    a0 * g[row, j]
                    + a1 * g[row + 1, j]
                    + a2 * g[row + 2, j]
                    + a3 * g[row + 3, j]
                    + a4 * g[row + 4, j]
                    + a5 * g[row + 5, j]
                    + a6 * g[row + 6, j]
                    + a7 * g[row + 7, j]
                )
        row += 8
    for r in range(row, end):
        for k in range(a.shape[1]):
            value = a[r, k]
            for j in range(g.shape[1]):
                out[k, j] += value * g[r, j]


class _Matrix:
    """A matrix by rows, in blocks of equal work for `threads` cores."""

    _times: Kernel
    _transpose_times: Kernel

    def __init__(self, arrays: tuple[Array, ...], shape: tuple[int, int], work: Array, threads: int) -> None:
        self.shape, self._arrays = shape, arrays
        bounds = np.searchsorted(work, np.linspace(0, work[-1], threads + 1), side="left")
        bounds[0], bounds[-1] = 0, shape[0]
        self._blocks = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def times(self, w: torch.Tensor) -> torch.Tensor:
        """A w."""
        out = torch.empty((self.shape[0], w.shape[1]), dtype=w.dtype)
        self._run(type(self)._times, w, [out.numpy()] * len(self._blocks))
        return out

    def transpose_times(self, g: torch.Tensor) -> torch.Tensor:
        """A^T g; each core sums into a matrix of its own."""
        outs = [np.zeros((self.shape[1], g.shape[1]), dtype=g.numpy().dtype) for _ in self._blocks]
        self._run(type(self)._transpose_times, g, outs)
        for other in outs[1:]:
            outs[0] += other
        return torch.from_numpy(outs[0])

    def _run(self, kernel: Kernel, dense: torch.Tensor, outs: list[Array]) -> None:
        arguments = (*self._arrays, dense.contiguous().numpy())
        work = [(*arguments, out, *block) for out, block in zip(outs, self._blocks, strict=True)]
        waiting = [self._pool.submit(kernel, *one) for one in work[1:]] if self._pool else []
        kernel(*work[0])
        for other in waiting:
            other.result()


class CsrMatrix(_Matrix):
    """A sparse matrix."""

    _times, _transpose_times = staticmethod(_csr_times), staticmethod(_csr_transpose_times)

    def __init__(self, a: torch.Tensor, *, threads: int = 1) -> None:
        csr = a if a.layout == torch.sparse_csr else a.to_sparse_csr()
        indptr = csr.crow_indices().numpy()
        arrays = (indptr, csr.col_indices().int().numpy(), csr.values().numpy())
        super().__init__(arrays, (int(a.shape[0]), int(a.shape[1])), indptr, threads)


class DenseMatrix(_Matrix):
    """A dense matrix."""

    _times, _transpose_times = staticmethod(_dense_times), staticmethod(_dense_transpose_times)

    def __init__(self, a: torch.Tensor, *, threads: int = 1) -> None:
        rows = np.arange(a.shape[0] + 1)
        super().__init__((a.contiguous().numpy(),), (int(a.shape[0]), int(a.shape[1])), rows, threads)
