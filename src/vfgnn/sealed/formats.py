"""How many fraction bits words have in the sealed protocol, and the small public factors that follow from them.

What is multiplied by a factor has SHORT bits; a factor has FACTOR bits; a product, and whatever waits to be truncated,
has LONG = SHORT + FACTOR bits. So one opening truncates a LONG value and multiplies it, and the result is LONG again.
"""

import math

SHORT = 18
FACTOR = 20
LONG = SHORT + FACTOR
REAL = 16  # of real-valued features; whole numbers have none
MEAN_BITS = 20  # of 1 / L, beyond the bits of L itself


def factor_word(value: float) -> int:
    """A public factor."""
    return round(value * 2.0**FACTOR)


def row_bits(rows: int) -> int:
    """The bits by which a sum over so many rows may be longer than its terms."""
    return max(1, math.ceil(math.log2(rows)))


def range_guard(train_rows: int) -> int:
    """Bits that are cut on entry to the second propagation, so that sums over many training rows stay in the ring."""
    return max(0, math.ceil(math.log2(train_rows / 64)))
