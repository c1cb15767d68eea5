"""The limbs are plain torch, so their arithmetic is tested on any machine; where there is a GPU, there too."""

import pytest
import torch

from vfgnn.mpc import gpu
from vfgnn.mpc.gpu import GpuMatrix
from vfgnn.randomness import Stream, insecure_seed

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")]
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (33, 7, 5), (5, 300, 4), (200, 3, 64)])
def test_equal_to_the_cpu_bit_by_bit(device, shape):
    rows, columns, dim = shape
    stream = Stream(insecure_seed(1), "words", *shape)
    a, w, g = stream.words(rows, columns), stream.words(columns, dim), stream.words(rows, dim)
    matrix = GpuMatrix(a, torch.device(device))
    assert torch.equal(matrix.times(w).cpu(), a @ w)
    assert torch.equal(matrix.transpose_times(g).cpu(), a.t() @ g)


def test_the_largest_limbs_are_exact():
    a = torch.full((2, 4096), -1)  # all bits set
    assert torch.equal(GpuMatrix(a, torch.device("cpu")).times(a.t().contiguous()), a @ a.t())


def test_long_sums_are_cut(monkeypatch):
    monkeypatch.setattr(gpu, "LONGEST", 16)
    a = Stream(insecure_seed(1), "a").words(3, 100)
    b = Stream(insecure_seed(1), "b").words(100, 2)
    assert torch.equal(GpuMatrix(a, torch.device("cpu")).times(b), a @ b)
