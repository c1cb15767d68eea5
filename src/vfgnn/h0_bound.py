"""How large features may be, so that h0 cannot leave the ring unnoticed. Follows from public numbers alone.

h0 = X W_0 has 50 fraction bits in Z_2^64: it is known up to multiples of 2^14. After a reveal |h0| > 2^11 ends the run,
so only a true |h0| from 2^14 - 2^11 on can look right and be wrong. W_0 is the sum of I shares, each uniform within
b = sqrt(6 / (p + d)) / sqrt(I), and |x| <= B for each of the p columns of a row. Either bound is enough:
always       |h0| <= p I b B
but for 2^-40  uniform values are sub-Gaussian with their own variance b^2 / 3 (Hoeffding's method), so
             P(|h0| >= t) <= 2 exp(-t^2 / (2 p I B^2 b^2 / 3)) for one value, and n d times this for all of them
This is about H_0, the first reveal. Of a refresh, a H_0 - X X^T Q, nothing of the kind is proved: docs/protocol.md, 2.
"""

import math

H0_BITS = 50  # fraction bits of h0; what meets X^T has H0_BITS - 2 FEATURE_BITS, and its rounding is what limits h0
H0_BOUND = 2.0**11  # 50 + 11 = 61 bits: |h0| beyond this cannot be told from a wrap-around
UNNOTICED = 2.0 ** (64 - H0_BITS) - H0_BOUND  # from here on a wrapped value can lie within H0_BOUND
ROUNDING = 1.0  # of shares of W_0, 2^-39 each: p I B 2^-39 in all, far less than this
FAILURE = 2.0**-40  # that any value of H_0 is beyond UNNOTICED


def weight_share_bound(columns: int, dim: int, holders: int) -> float:
    """Of one holder's share of W_0: Glorot's bound scaled by 1/sqrt(I), so that the sum has Glorot's variance."""
    return math.sqrt(6 / (columns + dim)) / math.sqrt(holders)


def largest_feature_bound(*, columns: int, dim: int, holders: int, nodes: int) -> float:
    """B: with |x| up to this, no value of H_0 can be wrong unnoticed (but for FAILURE)."""
    share, room = weight_share_bound(columns, dim, holders), UNNOTICED - ROUNDING
    always = room / (columns * holders * share)
    deviation = share * math.sqrt(columns * holders / 3)  # of a value of H_0, for B = 1
    likely = room / (deviation * math.sqrt(2 * math.log(2 * nodes * dim / FAILURE)))
    return max(always, likely)
