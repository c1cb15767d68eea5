"""A holder's features in words, or what masks them, ready for products. Runs at the holders; nothing leaves."""

import torch

from vfgnn.data.holdings import SPARSE_BELOW
from vfgnn.mpc.gpu import GpuMatrix
from vfgnn.mpc.products import Matrix


def ring_matrix(words: torch.Tensor, device: torch.device) -> Matrix:
    """X or E in words, ready for products: our kernels on a CPU, float64 limbs on a GPU."""
    if device.type != "cpu":
        return GpuMatrix(words, device)
    from vfgnn.mpc.kernels import CsrMatrix, DenseMatrix  # numba: a party that computes on a GPU need not have it

    threads = torch.get_num_threads()
    sparse = int(torch.count_nonzero(words)) < SPARSE_BELOW * max(words.numel(), 1)
    return CsrMatrix(words, threads=threads) if sparse else DenseMatrix(words, threads=threads)
