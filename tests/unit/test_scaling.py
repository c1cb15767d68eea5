import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shares import dealt, random_words, run_dealt
from vfgnn.errors import ProtocolError
from vfgnn.mpc.blinding import Blinded, blind, blind_operations, fixed_operations, fixed_products
from vfgnn.mpc.material import Corrections
from vfgnn.mpc.scaling import Scaling, scale, scale_operations
from vfgnn.mpc.shared import Arithmetic
from vfgnn.mpc.sharing import reconstruct

BORDERS = [0, 1, -1, 2**20, -(2**20), 2**61, -(2**61), 2**62 - 1, -(2**62) + 1]


def scaled(parties, v, factors, *, bits, public=None):
    """V >> bits and its products with each factor, opened; and the table."""
    labels = [f"s{i}" for i in range(len(factors))]
    operations = [
        *blind_operations(*zip(labels, (tuple(s.shape) for s in factors), strict=True)),
        *scale_operations((tuple(v.shape), labels), bits=bits),
    ]

    def work(arithmetic, v, *factors):
        blinded = blind(arithmetic, *zip(labels, factors, strict=True))
        (result,) = scale(arithmetic, (v, blinded), bits=bits)
        return [result.plain, *result.by]

    shares, table = run_dealt(parties, work, operations, v, *factors)
    assert table.payloads == [payload for operation in operations for payload in operation.opened]
    return [reconstruct(each) for each in zip(*shares, strict=True)], table


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("bits", [1, 8, 20, 31, 32, 33, 40, 61])
def test_the_quotient_is_one_unit_off_at_most_and_products_are_of_this_quotient(parties, bits):
    v = torch.cat([torch.tensor(BORDERS), random_words(55) >> 2, random_words(64, of="small") >> 40]).view(32, 4)
    column, scalar = random_words(32, 1, of="column"), random_words(1, 1, of="scalar")
    (plain, by_column, by_scalar), table = scaled(parties, v, [column, scalar], bits=bits)
    # plain 2^bits - v is below 2^62 + 2^bits, and does not wrap but for bits = 62.
    assert int(((plain << bits) - v).abs().max()) < 2**bits
    assert torch.equal(by_column, column * plain)
    assert torch.equal(by_scalar, scalar * plain)
    assert (table.rounds, table.words) == (2, 32 + 1 + 32 * 4)


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_without_a_division_any_word_is_multiplied(parties):
    v, s = random_words(9, 3, of="v"), random_words(9, 1, of="s")
    (plain, product), _ = scaled(parties, v, [s], bits=0)
    assert torch.equal(plain, v)
    assert torch.equal(product, s * v)


@settings(max_examples=25, deadline=None)
@given(st.integers(-(2**62) + 1, 2**62 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(1, 40), st.integers(2, 4))
def test_any_value_any_factor(value, factor, bits, parties):
    (plain, product), _ = scaled(parties, torch.tensor([[value]]), [torch.tensor([[factor]])], bits=bits)
    assert int(plain) in (value >> bits, -(-value >> bits))
    assert torch.equal(product, plain * factor)


@pytest.mark.parametrize("bits", [20, 40])
def test_equals_the_formula_under_the_masks_that_were_dealt(bits):
    """Rounding follows from r: with the dealer's seeds in hand, nothing is left to chance."""
    v = random_words(1000, 1) >> 2
    operations = scale_operations(((1000, 1), ()), bits=bits)
    taken = [material.take(operations[0]) for material in dealt(3, operations)]
    r = reconstruct([own.masks[0] for own in taken])
    (plain,), _ = scaled(3, v, [], bits=bits)
    words = [
        ((x + 2**62 + y) >> bits) - (y >> bits) - 2 ** (62 - bits)
        for x, y in zip(v.flatten().tolist(), (word % 2**64 for word in r.flatten().tolist()), strict=True)
    ]
    assert plain.flatten().tolist() == words


@pytest.mark.parametrize("parties", [2, 3])
def test_several_pairs_take_one_round_and_factors_serve_again(parties):
    v, w = random_words(6, 3, of="v") >> 3, random_words(6, 2, of="w") >> 3
    s, t = random_words(6, 1, of="s"), random_words(1, 1, of="t")
    operations = [
        *blind_operations(("s", (6, 1)), ("t", (1, 1))),
        *scale_operations(((6, 3), ["s", "t"]), ((6, 2), ["t"]), bits=20),
        *scale_operations(((6, 3), ["s"]), bits=10),
    ]

    def work(arithmetic, v, w, s, t):
        blinded_s, blinded_t = blind(arithmetic, ("s", s), ("t", t))
        one, other = scale(arithmetic, (v, [blinded_s, blinded_t]), (w, [blinded_t]), bits=20)
        (again,) = scale(arithmetic, (v, [blinded_s]), bits=10)
        return [one.plain, *one.by, other.plain, *other.by, again.plain, *again.by, blinded_s.share(arithmetic)]

    shares, table = run_dealt(parties, work, operations, v, w, s, t)
    plain, by_s, by_t, other, other_by_t, again, again_by_s, opened = (
        reconstruct(each) for each in zip(*shares, strict=True)
    )
    assert table.rounds == 3
    assert torch.equal(by_s, s * plain)
    assert torch.equal(by_t, t * plain)
    assert torch.equal(other_by_t, t * other)
    assert torch.equal(again_by_s, s * again)
    assert torch.equal(opened, s)


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_one_holders_private_scalars_need_no_sharing(parties):
    values = torch.tensor([[5], [-7]])
    operations = [*blind_operations(("alpha", (2, 1))), *scale_operations(((2, 3), ["alpha"]), bits=4)]
    v = (random_words(2, 3) >> 20) << 4

    def work(arithmetic, v):
        own = values if arithmetic.leads else torch.zeros_like(values)
        (alpha,) = blind(arithmetic, ("alpha", own))
        return scale(arithmetic, (v, [alpha]), bits=4)[0].by[0]

    shares, table = run_dealt(parties, work, operations, v)
    assert torch.equal(reconstruct(shares), values * (v >> 4))
    seen = torch.cat([share.flatten() for share in table.sent[:parties]])
    assert not set(seen.tolist()) & {0, 5, -7}  # nobody sends its share as it is


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_a_fixed_matrix_is_opened_once(parties):
    g, w = random_words(5, 7, of="g"), random_words(7, 2, of="w")
    times = 4
    operations = [*blind_operations(("G", (5, 7))), *fixed_operations(*[("G", 5, 7, 2)] * times)]

    def work(arithmetic, g, w):
        (fixed,) = blind(arithmetic, ("G", g))
        return [fixed_products(arithmetic, (fixed, w * (i + 1)))[0] for i in range(times)]

    shares, table = run_dealt(parties, work, operations, g, w)
    for i, each in enumerate(zip(*shares, strict=True)):
        assert torch.equal(reconstruct(each), g @ (w * (i + 1)))
    assert (table.rounds, table.words) == (1 + times, 5 * 7 + times * 7 * 2)
    assert table.payloads == [payload for operation in operations for payload in operation.opened]
    assert len({tuple(opened.flatten().tolist()) for opened in table.sums}) == 1 + times


def test_corrections_are_as_large_as_declared():
    for bits, k in itertools.product((0, 20, 40), (0, 1, 2)):
        labels = [f"s{i}" for i in range(k)]
        operations = [*blind_operations(*((label, (4, 1)) for label in labels)), Scaling((4, 3), bits, tuple(labels))]
        corrections = Corrections({"a": bytes(32), "b": bytes(31) + b"1"}, run="run").compute(operations)
        wanted = [payload for operation in operations for payload in operation.correction]
        assert [(tuple(each.shape), each.dtype) for each in corrections] == [(p.shape, p.dtype) for p in wanted]
        sizes = {0: 8, 20: 12, 40: 16}
        assert sum(each.numel() * each.itemsize for each in corrections) == sizes[bits] * (1 + k) * 12


def test_labels_are_spent_once_and_known():
    corrections = Corrections({"a": bytes(32), "b": bytes(32)}, run="run")
    with pytest.raises(ProtocolError, match="nothing was blinded as 's'"):
        corrections.compute(scale_operations(((2, 2), ["s"]), bits=20))
    with pytest.raises(ProtocolError, match="two secrets"):
        corrections.compute(blind_operations(("s", (2, 1)), ("s", (2, 1))))


@pytest.mark.parametrize("shape", [(3, 1), (1, 3), (2,), (2, 3, 1)])
def test_a_factor_that_does_not_fit_is_refused(shape):
    factor = Blinded("s", random_words(*shape), random_words(*shape))
    with pytest.raises(ValueError, match="does not fit"):
        scale(Arithmetic(None, None, leads=True), (random_words(2, 1), [factor]), bits=20)


@pytest.mark.parametrize("bits", [-1, 63, 64])
def test_other_widths_are_refused(bits):
    with pytest.raises(ValueError, match="0 to 62"):
        Scaling((3,), bits, ())


def test_beyond_the_bound_it_fails():
    """That the range matters: a value of 2^62 or more wraps unseen, under some masks."""
    v = torch.full((1000, 1), 2**62 + 2**61)
    (plain,), _ = scaled(2, v, [], bits=20)
    assert 0 < int(((plain - (v >> 20)).abs() > 1).sum()) < 1000
