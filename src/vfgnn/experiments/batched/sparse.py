"""Sparse matrices of numpy arrays, and their products with [rows, points * d] in torch.

Runs wherever the search runs. The transpose is kept beside each matrix: the backward pass multiplies by it.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import torch

DENSE_FROM = 0.04  # filled entries; from here on a dense product is faster
Array = np.ndarray


@dataclass(frozen=True, repr=False)
class Csr:
    """Rows of a sparse matrix: pointers, columns, values."""

    pointer: Array
    columns: Array
    values: Array
    width: int

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.pointer) - 1

    @property
    def row_of_entry(self) -> Array:
        """[entries]."""
        return np.repeat(np.arange(self.rows), np.diff(self.pointer))

    def pick(self, rows: Array) -> "Csr":
        """Some rows, in the order given."""
        counts = np.diff(self.pointer)[rows]
        pointer = np.concatenate([[0], np.cumsum(counts)])
        entries = np.arange(pointer[-1]) + np.repeat(self.pointer[rows] - pointer[:-1], counts)
        return Csr(pointer, self.columns[entries], self.values[entries], self.width)

    def keep_columns(self, numbers: Array, width: int) -> "Csr":
        """Columns renumbered by `numbers` (-1: left out)."""
        kept = numbers[self.columns] >= 0
        return from_entries(self.row_of_entry[kept], numbers[self.columns][kept], self.values[kept], self.rows, width)

    def transposed(self) -> "Csr":
        """Columns as rows."""
        return from_entries(self.columns, self.row_of_entry, self.values, self.width, self.rows)

    def dense(self) -> Array:
        """All entries; those that are repeated add up."""
        out = np.zeros((self.rows, self.width), dtype=self.values.dtype)
        np.add.at(out, (self.row_of_entry, self.columns), self.values)
        return out


def from_entries(rows: Array, columns: Array, values: Array, height: int, width: int) -> Csr:
    """Entries in any order."""
    order = np.argsort(rows, kind="stable")
    pointer = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=height))])
    return Csr(pointer, columns[order], values[order], width)


class Operator:
    """A constant matrix that multiplies [columns, points * d], with a gradient."""

    def __init__(self, matrix: Csr, dtype: torch.dtype, device: torch.device) -> None:
        self._place = dtype, device
        filled = len(matrix.values) / max(1, matrix.rows * matrix.width)
        if filled >= DENSE_FROM:
            self._matrix = torch.from_numpy(matrix.dense()).to(device, dtype)
            self._transpose = self._matrix.t()
        else:
            self._matrix, self._transpose = self._sparse(matrix), self._sparse(matrix.transposed())

    def _sparse(self, matrix: Csr) -> torch.Tensor:
        dtype, device = self._place
        index = torch.int32 if device.type == "cuda" else torch.int64
        pointer, columns = (torch.from_numpy(part).to(device, index) for part in (matrix.pointer, matrix.columns))
        values, size = torch.from_numpy(matrix.values).to(device, dtype), (matrix.rows, matrix.width)
        with warnings.catch_warnings():  # torch calls its own CSR support beta
            warnings.simplefilter("ignore")
            return torch.sparse_csr_tensor(pointer, columns, values, size, check_invariants=False)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """The product."""
        product: torch.Tensor = _StackedProduct.apply(x, self._matrix, self._transpose)  # type: ignore[no-untyped-call]
        return product


class _StackedProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor, matrix: torch.Tensor, transpose: torch.Tensor
    ) -> torch.Tensor:
        ctx.transpose = transpose  # type: ignore[attr-defined]
        return matrix @ x

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return ctx.transpose @ g.contiguous(), None, None  # type: ignore[attr-defined]
