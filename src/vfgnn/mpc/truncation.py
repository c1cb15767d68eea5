"""Division of shared words by a power of two: what brings a product back to its factors' fraction bits.

Shifting each share by itself is wrong for three or more holders: their shares wrap around the ring more than once, and
a quarter of the results or more is off by 2^(64 - f). With the dealer's r, and >> of the unsigned word:
  1. dealer: shares of a uniform r, of r >> f and of msb(r)
  2. all holders open c = v + 2^62 + r
  3. [v >> f] = (c >> f) - [r >> f] + [msb r] (1 - msb c) 2^(64 - f) - 2^(62 - f); one holder adds the public terms
While |v| < 2^62, v + 2^62 has no highest bit, so the sum wrapped if and only if r has it and c has not.
The result is v / 2^f rounded up or down at random, and right on average. One round for any number of values; as many
words are opened as v has, and the correction is twice as large.
"""

import torch

from vfgnn.mpc.shared import Arithmetic, TruncationPair, shift_right

OFFSET_BITS = 62


def truncate(arithmetic: Arithmetic, *shares: torch.Tensor, bits: int) -> list[torch.Tensor]:
    """Shares of v / 2^bits, less than one unit off, for each share of v with |v| < 2^62.

    Reveals: nothing; c is uniform to all holders.
    """
    pairs = [arithmetic.material.truncation_pair(tuple(share.shape), bits) for share in shares]
    masked = [arithmetic.plus_public(share + pair.r, 2**OFFSET_BITS) for share, pair in zip(shares, pairs, strict=True)]
    opened = arithmetic.opening.open(*masked)
    return [_shifted(arithmetic, c, pair, bits) for c, pair in zip(opened, pairs, strict=True)]


def _shifted(arithmetic: Arithmetic, c: torch.Tensor, pair: TruncationPair, bits: int) -> torch.Tensor:
    """Step 3."""
    wrapped = (pair.highest << (64 - bits)) * (c >= 0)  # c >= 0: its highest bit is 0
    public = shift_right(c, bits) - 2 ** (OFFSET_BITS - bits)
    return arithmetic.plus_public(wrapped.sub_(pair.shifted), public)
