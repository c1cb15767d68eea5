"""How many fraction bits words have in the sealed protocol, and the small public factors that follow from them.

What is multiplied by a factor has SHORT bits; a factor has FACTOR bits; a product, and whatever waits to be truncated,
has LONG = SHORT + FACTOR bits. So one opening truncates a LONG value and multiplies it, and the result is LONG again.
"""

import math

SHORT = 18
FACTOR = 20
LONG = SHORT + FACTOR
COEFFICIENT = 30  # of what combines images: they may be large where it is small
SCORE = SHORT + COEFFICIENT  # of what is combined
ROW_NORM = 64.0  # of columns that are not scaled: so many ones, say
MEAN_BITS = 18  # of 1 / L, beyond the bits of L itself: so many are cut from a sum over L rows
FEATURE_BITS = 16  # of real columns: what meets them is cut by as many, and keeps more than SHORT


def factor_word(value: float) -> int:
    """A public factor."""
    return round(value * 2.0**FACTOR)


def feature_bits(*, integer: bool) -> int:
    """Fraction bits of a holder's columns."""
    return 0 if integer else FEATURE_BITS


def row_bits(rows: int) -> int:
    """The bits by which a sum over so many rows may be longer than its terms; some more do no harm."""
    return max(3, math.ceil(math.log2(rows)))


def range_guard(train_rows: int, row_norm: float = ROW_NORM) -> int:
    """Bits that are cut on entry to the second propagation, so that sums over many training rows stay in the ring.

    `row_norm`: about the squared norm of a row of all columns. What is cut here is lost to everything that follows. Up
    to 256 rows of 64 ones nothing has to be; with fewer an image has room to be longer, and the cut is below 0.
    """
    return math.ceil(math.log2(train_rows * row_norm)) - 14


def lift(train_rows: int, row_norm: float = ROW_NORM) -> int:
    """Bits by which a vector is longer while it spreads and meets the columns; they are cut on the way back, too.

    Spread over the graph its entries are small, and SHORT would leave them few digits. Columns make them longer, about
    `train_rows` times `row_norm` at most; the ring has room for 2^24, and 2^6 of that are left for longer columns.
    """
    return max(0, 18 - math.ceil(math.log2(train_rows * row_norm)))


def gram_bits(entries: int) -> int:
    """Fraction bits of vectors before their inner products: as many as a sum over so many entries below 32 leaves room.

    What the label holder solves is badly conditioned, so every bit counts. SHORT is what the graph can carry.
    """
    return min(26, (61 - 10 - math.ceil(math.log2(entries))) // 2)


def product_guard(train_rows: int, row_norm: float = ROW_NORM) -> int:
    """Bits that are cut from an image before its inner products, which would leave the ring first."""
    return max(0, math.ceil(math.log2(train_rows * row_norm)) - 10) - range_guard(train_rows, row_norm)
