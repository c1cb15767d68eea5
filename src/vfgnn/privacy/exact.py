"""Random draws with exactly the distribution that a proof names: every value can come out, as often as it should.

A draw is the quantile of a uniform number with infinitely many bits, of which only the needed ones are drawn:

1. The first 63 bits of all draws come at once. Floats, with a bound on their error, find the draws that these decide.
2. The few others compare their uniform number with the exact tail, in arbitrary precision, and draw further bits of it
   until the comparison is decided.

Runs at a holder, on its own secret stream; nothing leaves. How long a draw takes depends on the noise alone.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from mpmath.ctx_mp import MPContext

from vfgnn.errors import ConfigError
from vfgnn.randomness import Stream

Real = Any  # a number of mpmath, which has no types
BITS = 63  # drawn at once: what is left of a word beside a sign
GUARD_BITS = 128  # beyond the bits that are compared; mpmath's own error is a few units of the last
CLOSE = 2.0**-32  # in units of the last bit that is compared: far above that error
DEVIATIONS = 64
"""Noise beyond so many deviations is set to them. Its probability is below 2^-2900, and it is post-processing."""
NDTRI_ERROR = 2.0**-46
"""Relative, of `torch.special.ndtri`: 2^-50.4 is the worst of 10^5 points, the extremes and the places where its
formulas meet among them (tests/unit/test_exact.py)."""


class LazyUniform:
    """A uniform number that is known to lie in [word, word + 1] / 2^bits."""

    def __init__(self, word: int, stream: Stream) -> None:
        self._word, self._bits, self._stream = word, BITS, stream
        self._mp = MPContext()  # its own: the precision of mpmath's common one is shared by all threads

    def below(self, edge: Callable[[Any], Real]) -> bool:
        """Whether it is less than a real number, which `edge` computes in the precision of the mpmath it is given."""
        while True:
            self._mp.prec = self._bits + GUARD_BITS
            scaled = self._mp.ldexp(edge(self._mp), self._bits)
            if self._word + 1 <= scaled - CLOSE:
                return True
            if self._word >= scaled + CLOSE:
                return False
            self._word = (self._word << 64) + int(self._stream.words(1).item()) % 2**64
            self._bits += 64

    def quantile(self, tail: Callable[[Any, int], Real], low: int, high: int) -> int:
        """The first whole number v from `low` to `high` whose `tail`, the probability of more than v, is not above."""
        while low < high:
            middle = (low + high) // 2
            if self.below(lambda mp: tail(mp, middle)):  # noqa: B023
                low = middle + 1
            else:
                high = middle
        return low


def gaussian(stream: Stream, shape: tuple[int, ...], std: float) -> torch.Tensor:
    """A Gaussian of deviation `std`, rounded to the nearest whole number, as int64."""
    if not (std > 0 and DEVIATIONS * std <= 2.0**53):
        raise ConfigError(
            "noise of this deviation cannot be drawn",
            expected=f"above 0, and {DEVIATIONS} deviations of at most 2^53 steps of the grid",
            got=f"a deviation of {std:g} steps",
        )
    words = stream.words(*shape)
    word = (words >> 1) & (2**BITS - 1)  # the first bits of U; P(|Z| > x) = U has the solution x = -ndtri(U / 2)
    known = word.double()
    scaled = torch.special.ndtri((known + 0.5) / 2.0 ** (BITS + 1)).mul_(-std)
    # By Mills' ratio |dx| <= 1.26 dU / U: 0.63 / word for the bits to come, 2^-51 for the float that stands for U.
    slack = known.reciprocal_().add_(2.0**-51).mul_(std).add_(scaled, alpha=NDTRI_ERROR)

    def tail(mp: Any, value: int) -> Real:  # noqa: ANN401
        return mp.erfc((2 * value + 1) / (std * mp.sqrt(8)))

    magnitude = _decided(
        word, (scaled - slack).round_(), scaled.add_(slack).round_(), tail, stream, most=math.ceil(DEVIATIONS * std)
    )
    return magnitude.mul_(1 - 2 * (words & 1))


def geometric(stream: Stream, count: int, *, rate: Callable[[Any], Real], most: int) -> torch.Tensor:
    """Whole numbers v from 0 on, more than v with probability e^(-rate (v + 1)), as int64; more than `most` is `most`.

    `rate` computes a real number in the precision of the mpmath it is given, such as `lambda mp: mp.log(2)`.
    """
    word = (stream.words(count) >> 1) & (2**BITS - 1)
    known, per = word.double(), max(float(rate(MPContext())), 1e-300)  # below that every draw is `most`
    scaled = ((known + 0.5) / 2.0**BITS).log_().div_(-per)
    # d log U = dU / U: 0.5 / word for the bits to come, 2^-51 for the float; 2^-48 for logarithm, rate and quotient.
    slack = known.reciprocal_().add_(2.0**-51).div_(per).add_(scaled, alpha=2.0**-48)

    def tail(mp: Any, value: int) -> Real:  # noqa: ANN401
        return mp.exp(-rate(mp) * (value + 1))

    return _decided(word, (scaled - slack).floor_(), scaled.add_(slack).floor_(), tail, stream, most=most)


def bernoulli(stream: Stream, count: int, probability: Callable[[Any], Real]) -> torch.Tensor:
    """Yes with a probability that `probability` computes in the precision of the mpmath it is given."""
    word = (stream.words(count) >> 1) & (2**BITS - 1)
    mp = MPContext()
    mp.prec = BITS + GUARD_BITS
    edge = mp.ldexp(probability(mp), BITS)
    low, high = int(mp.floor(edge - CLOSE)), int(mp.floor(edge + CLOSE))  # the only words that can be undecided
    yes: torch.Tensor = word < low
    for at in ((word >= low) & (word <= high)).nonzero()[:, 0].tolist():
        yes[at] = LazyUniform(int(word[at]), stream).below(probability)
    return yes


def _decided(
    word: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
    tail: Callable[[Any, int], Real],
    stream: Stream,
    *,
    most: int,
) -> torch.Tensor:
    """The value where the bounds on it agree; where they do not, the quantile of the word and further bits."""
    undecided = low.clamp_(0, most) != high.clamp_(0, most)
    drawn = low.to(torch.int64).clamp_max_(most)  # which as a float may be a little more
    for at in undecided.nonzero():
        place = tuple(at.tolist())
        highest = min(int(high[place]), most)
        drawn[place] = LazyUniform(int(word[place]), stream).quantile(tail, int(drawn[place]), highest)
    return drawn
