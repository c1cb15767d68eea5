"""Products mod 2^64 on a GPU, equal to the CPU's bit by bit; torch alone.

torch has no int64 matrix product there, and float64 is exact below 2^53. A word is four limbs of 16 bits,
a = sum_i a_i 2^(16 i); a b mod 2^64 = sum over i + j <= 3 of a_i b_j 2^(16 (i + j)). For each i + j at most 4 products
are summed, of values below 2^32 over K terms: exact while 4 K 2^32 <= 2^53, K <= 2^19; longer sums are cut into pieces.
Runs at holders with a GPU. Nothing leaves.
"""

import torch

LIMBS, BITS = 4, 16
LONGEST = 2**19


def _limbs(words: torch.Tensor) -> list[torch.Tensor]:
    """Unsigned limbs as float64, lowest first."""
    return [((words >> (BITS * i)) & (2**BITS - 1)).double() for i in range(LIMBS)]


def _product(a: list[torch.Tensor], b: list[torch.Tensor]) -> torch.Tensor:
    """Sum over K <= LONGEST."""
    total = torch.zeros((a[0].shape[0], b[0].shape[1]), dtype=torch.int64, device=a[0].device)
    for power in range(LIMBS):
        exact = a[0] @ b[power]
        for i in range(1, power + 1):
            exact += a[i] @ b[power - i]
        total += exact.to(torch.int64) << (BITS * power)
    return total


class GpuMatrix:
    """A [rows, columns] on a GPU: 32 bytes of memory for each word."""

    def __init__(self, a: torch.Tensor, device: torch.device) -> None:
        self._device = device
        self._limbs = _limbs(a.to(device))

    def times(self, w: torch.Tensor) -> torch.Tensor:
        """A w."""
        return self._sum(self._limbs, w)

    def transpose_times(self, g: torch.Tensor) -> torch.Tensor:
        """A^T g."""
        return self._sum([limb.t() for limb in self._limbs], g)

    def _sum(self, a: list[torch.Tensor], b: torch.Tensor) -> torch.Tensor:
        b = b.to(self._device)
        pieces = range(0, max(b.shape[0], 1), LONGEST)
        products = [_product([limb[:, at : at + LONGEST] for limb in a], _limbs(b[at : at + LONGEST])) for at in pieces]
        return torch.stack(products).sum(dim=0) if len(products) > 1 else products[0]
