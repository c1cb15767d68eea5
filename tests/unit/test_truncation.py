import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shares import looks_uniform, random_words, run_dealt, run_parties
from vfgnn.mpc.beaver import Product, products
from vfgnn.mpc.shared import DealtShares
from vfgnn.mpc.sharing import reconstruct, split
from vfgnn.mpc.truncation import Truncation, truncate
from vfgnn.randomness import Stream, insecure_seed

EDGES = sorted(
    {
        sign * value
        for sign in (1, -1)
        for power in (0, 1, 19, 20, 21, 40, 61)
        for value in (0, 2**power - 1, 2**power, 2**power + 1, 2**62 - 2**power)
        if abs(value) < 2**62
    }
)
MASKS = [
    0,
    1,
    2**20 - 1,
    2**20,
    2**62 - 1,
    2**62,
    2**63 - 1,
    -(2**63),
    -(2**63) + 1,
    -(2**62) - 1,
    -(2**62),
    -(2**20),
    -1,
]


class Chosen:
    """Material with a mask of the test's choice."""

    def __init__(self, r, parts):
        self._dealt = DealtShares((r,), (parts,))

    def take(self, operation):
        return self._dealt


def chosen(parties, r, bits):
    (following,) = Truncation(tuple(r.shape), bits).dealt([r], [])
    streams = [Stream(insecure_seed(5), "pair", i) for i in range(2)]
    split_up = [split(secret, parties, stream) for secret, stream in zip((r, following), streams, strict=True)]
    return [Chosen(*own) for own in zip(*split_up, strict=True)]


def off(result, v, bits):
    """result 2^bits - v: of |v| < 2^62 at most 2^62 + 2^bits, which does not wrap."""
    return (result << bits) - v


@pytest.mark.parametrize("parties", [2, 3, 4, 5])
@pytest.mark.parametrize("bits", [1, 20, 36, 40, 61])
def test_every_edge_value_under_every_edge_mask(parties, bits):
    v, r = torch.tensor(list(itertools.product(EDGES, MASKS))).unbind(1)
    shares, _ = run_parties(
        parties, lambda a, v: truncate(a, v, bits=bits)[0], chosen(parties, r.contiguous(), bits), v
    )
    assert int(off(reconstruct(shares), v, bits).abs().max()) < 2**bits


@pytest.mark.parametrize("parties", [2, 3, 4, 5])
@pytest.mark.parametrize("bits", [1, 20, 36, 62])
def test_random_values_of_all_sizes(parties, bits):
    v = (random_words(64, 1000) >> torch.arange(2, 66).clamp(max=63).view(64, 1)).clamp(min=-(2**62) + 1)
    shares, table = run_dealt(parties, lambda a, v: truncate(a, v, bits=bits)[0], [Truncation(tuple(v.shape), bits)], v)
    result = reconstruct(shares)
    if bits == 62:
        assert set(result.unique().tolist()) <= {-1, 0, 1}
    else:
        assert int(off(result, v, bits).abs().max()) < 2**bits
    assert (table.rounds, table.words) == (1, v.numel())
    assert torch.Size(Truncation(tuple(v.shape), bits).correction[0].shape).numel() == 2 * v.numel()


@settings(max_examples=50, deadline=None)
@given(st.integers(-(2**62) + 1, 2**62 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(1, 62), st.integers(2, 5))
def test_the_result_is_the_quotient_rounded_up_or_down(value, mask, bits, parties):
    v, r = torch.tensor([value]), torch.tensor([mask])
    shares, _ = run_parties(parties, lambda a, v: truncate(a, v, bits=bits)[0], chosen(parties, r, bits), v)
    assert int(reconstruct(shares)) in (value >> bits, -(-value >> bits))


def test_the_rounding_is_right_on_average():
    v = torch.full((100_000,), 5 * 2**20 + 2**18)
    shares, _ = run_dealt(3, lambda a, v: truncate(a, v, bits=20)[0], [Truncation((100_000,), 20)], v)
    result = reconstruct(shares)
    assert set(result.tolist()) == {5, 6}
    # 6 with probability 1/4: a deviation of sqrt(3/16 / 100 000) = 0.0014, five times.
    assert abs(float(result.double().mean()) - 5.25) < 0.007


@pytest.mark.parametrize(("parties", "low", "high"), [(2, 0.0, 0.001), (3, 0.24, 0.26), (4, 0.32, 0.35)])
def test_shifting_each_share_by_itself_is_wrong_for_three_or_more(parties, low, high):
    v = random_words(100_000) >> 30
    shares = split(v, parties, Stream(insecure_seed(9), "shares"))
    result = reconstruct([share >> 20 for share in shares])
    wrong = (result - (v >> 20)).abs() > parties
    # Three shares wrap with probability 1/4, four with 1/3: 100 000 values deviate by less than 0.01.
    assert low <= float(wrong.double().mean()) <= high
    kept, _ = run_dealt(parties, lambda a, v: truncate(a, v, bits=20)[0], [Truncation(tuple(v.shape), 20)], v)
    assert int(off(reconstruct(kept), v, 20).abs().max()) < 2**20


def test_beyond_the_bound_it_fails():
    v, r = torch.tensor([2**62 + 1]), torch.tensor([2**63 - 1])
    shares, _ = run_parties(2, lambda a, v: truncate(a, v, bits=20)[0], chosen(2, r, 20), v)
    assert int(reconstruct(shares)) == 2**42 + 1 - 2**44


@pytest.mark.parametrize("party", [0, 1, 2])
def test_a_share_of_the_result_looks_uniform(party):
    v = torch.zeros(65536, dtype=torch.int64)
    shares, _ = run_dealt(3, lambda a, v: truncate(a, v, bits=20)[0], [Truncation((65536,), 20)], v)
    assert looks_uniform(shares[party])


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_products_of_fixed_point_numbers(parties):
    x = torch.linspace(-30, 30, 601, dtype=torch.float64)
    y = torch.linspace(5, -7, 601, dtype=torch.float64)
    x_ring, y_ring = ((values * 2**20).round().long() for values in (x, y))
    operations = [Product((601,)), Truncation((601,), 20)]
    shares, table = run_dealt(
        parties, lambda a, *xy: truncate(a, *products(a, xy), bits=20)[0], operations, x_ring, y_ring
    )
    exact = (x_ring.double() / 2**20) * (y_ring.double() / 2**20)
    assert float((reconstruct(shares).double() / 2**20 - exact).abs().max()) < 2**-20
    assert table.rounds == 2


def test_several_truncations_take_one_round():
    v, w = random_words(4, 5, of="v") >> 3, random_words(7, of="w") >> 3
    operations = [Truncation((4, 5), 20), Truncation((7,), 20)]
    shares, table = run_dealt(3, lambda a, *vw: truncate(a, *vw, bits=20), operations, v, w)
    results = [reconstruct(each) for each in zip(*shares, strict=True)]
    assert all(int(off(got, of, 20).abs().max()) < 2**20 for got, of in zip(results, (v, w), strict=True))
    assert table.opened == [[(4, 5), (7,)]]


@pytest.mark.parametrize("bits", [-1, 0, 63, 64])
def test_other_widths_are_refused(bits):
    with pytest.raises(ValueError, match="1 to 62"):
        Truncation((3,), bits)
