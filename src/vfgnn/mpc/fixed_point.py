"""Real numbers as words of the ring Z_2^64, and back.

A value v with f fraction bits is the word round(v 2^f) mod 2^64, kept in an int64. Sums and products of words wrap
around exactly as the ring does. Bounds are public; what lies beyond them is refused before anything is sent.
"""

from dataclasses import dataclass

import torch

from vfgnn.errors import DataError
from vfgnn.h0_bound import H0_BITS

FEATURE_BITS = 12  # of real-valued features; integers have 0


@dataclass(frozen=True)
class FixedPoint:
    """One encoding: so many fraction bits, values up to a public bound."""

    fraction_bits: int
    bound: float

    def __post_init__(self) -> None:
        if self.bound * 2.0**self.fraction_bits >= 2.0**62:
            raise DataError(
                "a bound that does not fit the ring",
                expected=f"less than 2^62 with {self.fraction_bits} fraction bits",
                got=f"{self.bound:g}",
                hint="lower the bound in the federation file",
            )

    def encode(self, values: torch.Tensor, what: str) -> torch.Tensor:
        """Words of finite values within the bound; `what` names them in the error."""
        if not values.numel():
            return values.to(torch.int64)
        smallest, largest = torch.aminmax(values)
        if not (float(largest) <= self.bound and float(smallest) >= -self.bound):  # also when one is NaN
            beyond = int((~(values.abs() <= self.bound)).sum())
            raise DataError(
                f"{what} cannot be encoded",
                expected=f"finite values of at most {self.bound:g}",
                got=f"{beyond} value(s) that are not",
                hint="scale the values, or raise the bound in the federation file",
            )
        return torch.mul(values.double(), 2.0**self.fraction_bits).round_().to(torch.int64)

    def decode(self, words: torch.Tensor) -> torch.Tensor:
        """float64 values of words."""
        return words.double().mul_(2.0**-self.fraction_bits)


def feature_bits(*, integer: bool) -> int:
    """f_k: fraction bits of a holder's features."""
    return 0 if integer else FEATURE_BITS


def weight_bits(features: int) -> int:
    """Of the block of W that meets features of so many bits: X_k W_k has those of h0."""
    return H0_BITS - features


def update_bits(features: int) -> int:
    """Of what meets X_k^T: X_k^T Q has those of W_k."""
    return H0_BITS - 2 * features
