"""Exact draws: the quantile of all bits that were drawn, in the middle, at the edges and in the far tail."""

import math

import mpmath
import pytest
import torch
from scipy import stats

from vfgnn.errors import ConfigError
from vfgnn.privacy import exact
from vfgnn.privacy.mechanisms import GRID, GaussianMechanism
from vfgnn.randomness import Stream, insecure_seed

STD = GRID  # one deviation, in steps of the grid


class Forced:
    """A stream whose words are given: first those of a whole draw, then those that single draws ask for."""

    def __init__(self, first, *later):
        self.first, self.later, self.asked = first, list(later), 0

    def words(self, *shape):
        if self.first is not None:
            drawn, self.first = self.first, None
            return torch.tensor([signed(word) for word in drawn]).reshape(shape)
        self.asked += 1
        return torch.tensor([signed(self.later.pop(0) if self.later else 2**63)])


def signed(word):
    return word - 2**64 if word >= 2**63 else word


def draw(words, *later, std=STD):
    return exact.gaussian(Forced([2 * word for word in words], *later), (len(words),), std).tolist()


def true_magnitude(word, bits=63, std=STD):
    """Newton's method on mpmath's complementary error function: the value in the middle of the word's interval."""
    with mpmath.workprec(400):
        tail = (mpmath.mpf(word) + mpmath.mpf(1) / 2) / mpmath.mpf(2) ** bits
        start = -float(torch.special.ndtri(torch.tensor(float(tail) / 2, dtype=torch.float64)))
        x = mpmath.findroot(lambda x: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2))) - mpmath.log(tail), start)
        return int(mpmath.nint(x * std))


def test_ordinary_words_give_the_rounded_quantile():
    words = [int(word) & (2**63 - 1) for word in Stream(insecure_seed(5), "words").words(300)]
    assert draw(words) == [true_magnitude(word) for word in words]


def edge_word(k, std=STD, bits=63):
    """The word whose interval holds the border between the values k and k + 1."""
    with mpmath.workprec(400):
        return int(mpmath.floor(mpmath.ldexp(mpmath.erfc((2 * k + 1) / (std * mpmath.sqrt(8))), bits)))


@pytest.mark.parametrize("k", [0, 1, 10_000_000, 50_000_000, 100_000_000, 120_000_000])
def test_a_word_on_a_border_is_decided_by_the_bits_that_follow(k):
    word = edge_word(k)
    assert draw([word], 0) == [k + 1] and draw([word], 2**64 - 1) == [k]  # a smaller U is further out
    follows = edge_word(k, bits=127) % 2**64
    assert draw([word], follows - 1) == [k + 1] and draw([word], follows + 1) == [k]
    stream = Forced([2 * word], follows, 0)
    assert exact.gaussian(stream, (1,), STD).tolist() == [k + 1] and stream.asked == 2


def test_the_sign_is_the_last_bit():
    assert exact.gaussian(Forced([2**40, 2**40 + 1]), (2,), STD).sum() == 0


@pytest.mark.parametrize("deviations", [7.5, 8.5, 12.0, 20.0])
def test_neighbours_in_the_far_tail_can_all_come_out(deviations):
    """One word of 64 bits reaches one value in four at 7.5 deviations, and fewer further out."""
    begin = int(deviations * STD)
    found = []
    for k in range(begin, begin + 6):
        with mpmath.workprec(3000):
            bits = 63 + 64 * 12
            edges = [mpmath.erfc((2 * one + 1) / (STD * mpmath.sqrt(8))) for one in (k - 1, k)]
            middle = int(mpmath.ldexp((edges[0] + edges[1]) / 2, bits))
        later = [(middle >> (64 * (11 - at))) % 2**64 for at in range(12)]
        found += draw([middle >> (64 * 12)], *later)
    assert found == list(range(begin, begin + 6))


def test_one_word_alone_leaves_holes_in_the_far_tail(monkeypatch):
    """The test above can fail: without the further bits neighbours are out of reach."""
    monkeypatch.setattr(exact.LazyUniform, "quantile", lambda self, tail, low, high: (low + high) // 2)
    with pytest.raises(AssertionError):
        test_neighbours_in_the_far_tail_can_all_come_out(8.5)


def test_floats_alone_are_wrong_at_some_border(monkeypatch):
    """The comparison with the exact quantile finds a sampler that trusts its floats."""
    words = [edge_word(k) + step for k in range(40_000_000, 40_000_100) for step in (-40, 40)]
    truth = [true_magnitude(word) for word in words]
    assert draw(words) == truth
    monkeypatch.setattr(exact, "_decided", lambda word, low, high, *_, most: high.to(torch.int64))
    monkeypatch.setattr(exact, "NDTRI_ERROR", 0.0)
    assert draw(words) != truth


def worst_error(words):
    """Of torch's quantile, relative, over the middles of words."""
    halves = (torch.tensor(words).double() + 0.5) / 2.0**64
    worst = 0.0
    with mpmath.workprec(160):
        root, norm = mpmath.sqrt(2), mpmath.sqrt(2 * mpmath.pi)
        for half, found in zip(halves.tolist(), torch.special.ndtri(halves).neg().tolist(), strict=True):
            x = mpmath.mpf(found)
            for _ in range(2):  # Newton: from a relative error of 2^-40 on, two steps leave less than 2^-150
                x += (mpmath.erfc(x / root) / 2 - half) * norm * mpmath.exp(x * x / 2)
            worst = max(worst, float(abs(x - found) / max(x, mpmath.mpf(2) ** -60)))
    return worst


def quantile_words(each):
    """Words of every size, and where the quantile's formulas meet: U / 2 = e^-2 and e^-32."""
    drawn = Stream(insecure_seed(7), "words")
    sizes = [word for bits in range(1, 64) for word in (drawn.words(each) & (2**bits - 1)).tolist()]
    meets = [int(math.exp(-power) * 2.0**64) for power in (2, 32)]
    near = [place + step for place in meets for step in (drawn.words(8 * each) >> 50).tolist()]
    middle = [2**63 - 1 - (word & (2**bits - 1)) for bits in range(1, 60) for word in drawn.words(each).tolist()]
    return [*sizes, *near, *middle, 0, 1, 2**63 - 1]


def test_the_bound_on_torchs_quantile():
    assert worst_error(quantile_words(5)) < exact.NDTRI_ERROR / 8


@pytest.mark.slow
def test_the_bound_on_torchs_quantile_at_a_hundred_thousand_points():
    words = quantile_words(750)
    assert len(words) > 100_000
    assert worst_error(words) < exact.NDTRI_ERROR / 8


@pytest.mark.parametrize("std", [0.3, 1.0, 2.5])
def test_small_deviations_have_the_frequencies_of_a_rounded_gaussian(std):
    values = exact.gaussian(Stream(insecure_seed(2), "noise"), (400_000,), std)
    edges = torch.arange(-round(3 * std) - 1, round(3 * std) + 1).double() + 0.5
    counts = torch.bincount(torch.bucketize(values.double(), edges), minlength=len(edges) + 1).numpy()
    below = stats.norm.cdf([-math.inf, *(edges / std).tolist(), math.inf])
    assert stats.chisquare(counts, (below[1:] - below[:-1]) * len(values)).pvalue > 1e-4


@pytest.mark.parametrize("std", [0.0, -1.0, math.nan, math.inf, 2.0**47 * 1.01])
def test_a_deviation_that_leaves_the_grid_is_refused(std):
    with pytest.raises(ConfigError, match="cannot be drawn"):
        exact.gaussian(Stream(insecure_seed(0), "noise"), (2,), std)


@pytest.mark.parametrize(("clip_norm", "multiplier"), [(2.0**29, 1e-9), (1.0, 2.0**23), (1e300, 1.0), (1.0, math.nan)])
def test_rows_and_noise_beyond_the_grid_are_refused(clip_norm, multiplier):
    with pytest.raises(ConfigError, match="leaves the grid"):
        GaussianMechanism(clip_norm, multiplier, "zero_out")
    GaussianMechanism(1.0, 2.0**22, "zero_out")


def rate_of(epsilon):
    return lambda mp: mp.log1p(mp.exp(-epsilon))


@pytest.mark.parametrize("epsilon", [0.5, 8.0, 30.0])
def test_gaps_are_the_quantile_of_their_words(epsilon):
    words = [1, 2, 1000, 2**40 + 7, 2**62, 2**63 - 2**30, *(2**bits + 12345 for bits in range(20, 62, 3))]
    found = exact.geometric(Forced([2 * w for w in words], 2**63), len(words), rate=rate_of(epsilon), most=2**61)
    with mpmath.workprec(300):
        rate = rate_of(epsilon)(mpmath.mp)
        middles = [(mpmath.mpf(word) + mpmath.mpf(1) / 2) / 2**63 for word in words]
        assert found.tolist() == [int(mpmath.floor(-mpmath.log(middle) / rate)) for middle in middles]


def test_a_gap_may_be_longer_than_one_word_can_tell():
    """At 53 bits no gap was longer than 37 times the mean: an answer that one edge list allowed and another did not."""
    found = exact.geometric(Forced([0], 0, 1), 1, rate=rate_of(0.0), most=10**6)  # a fair coin
    assert found.tolist() == [190]  # 63 + 64 + 63 zeros before the one


def test_a_gap_is_never_more_than_the_most():
    words = [0, 1, 2**62]
    for epsilon in (40.0, 700.0, 5000.0):
        found = exact.geometric(Forced([2 * w for w in words]), 3, rate=rate_of(epsilon), most=1000)
        assert found.tolist() == [1000] * 3


def test_a_coin_is_decided_by_as_many_bits_as_it_takes():
    third = 2**63 // 3
    words = [third - 1, third, third, third + 1]
    later = [0x5555555555555554, 0xAAAAAAAAAAAAAAAB]  # 2/3 of the last bit is what a third leaves over
    found = exact.bernoulli(Forced([2 * w for w in words], *later), 4, lambda mp: mp.mpf(1) / 3)
    assert found.tolist() == [True, True, False, False]


def test_whole_numbers_below_a_bound_are_drawn_again_beyond_its_last_multiple():
    assert Stream.below(Forced([2**63 - 1, 5], 11), 2, bound=3).tolist() == [2, 2]  # 2^63 - 1 = 1 mod 3 is left out
    counts = torch.bincount(Stream(insecure_seed(4), "labels").below(60_000, bound=6))
    assert stats.chisquare(counts.numpy()).pvalue > 1e-4
