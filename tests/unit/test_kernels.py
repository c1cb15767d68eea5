import numpy as np
import pytest
import torch

from vfgnn.mpc.kernels import CsrMatrix


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (50, 20), (3, 40)])
def test_products_are_exact_modulo_2_64(threads, shape):
    draw = np.random.default_rng(0)
    x = torch.from_numpy(draw.integers(-(2**63), 2**63 - 1, shape) * (draw.random(shape) < 0.3))
    w = torch.from_numpy(draw.integers(-(2**63), 2**63 - 1, (shape[1], 6)))
    g = torch.from_numpy(draw.integers(-(2**63), 2**63 - 1, (shape[0], 6)))
    matrix = CsrMatrix(x, threads=threads)
    assert torch.equal(matrix.times(w), x @ w)  # torch wraps around as well
    assert torch.equal(matrix.transpose_times(g), x.t() @ g)


def test_products_of_floats():
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(60, 30, generator=draw, dtype=torch.float64)
    x = x * (torch.rand(60, 30, generator=draw) < 0.2)
    w = torch.rand(30, 5, generator=draw, dtype=torch.float64)
    # Sums of at most 60 products below 1, in another order: 60 * 60 * 1.1e-16.
    assert float((CsrMatrix(x).times(w) - x @ w).abs().max()) < 4e-13
    assert float((CsrMatrix(x, threads=2).transpose_times(x) - x.t() @ x).abs().max()) < 4e-13


def test_a_matrix_without_columns():
    matrix = CsrMatrix(torch.zeros(4, 0, dtype=torch.int64), threads=2)
    assert torch.equal(matrix.times(torch.zeros(0, 3).long()), torch.zeros(4, 3).long())
    assert matrix.transpose_times(torch.ones(4, 3).long()).shape == (0, 3)
