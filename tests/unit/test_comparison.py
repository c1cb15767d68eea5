import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shares import random_words, run_dealt
from vfgnn.mpc.comparison import Differences, argmax, argmax_operations, borrow, conjunctions, pairs_of
from vfgnn.mpc.shared import Payload
from vfgnn.mpc.sharing import BITS, reconstruct


def one_hot(parties, scores, *, bits=24, cut=0):
    operations = argmax_operations(*scores.shape, bits=bits, cut=cut)
    shares, table = run_dealt(parties, lambda a, s: argmax(a, s, bits=bits, cut=cut), operations, scores)
    assert table.payloads == [payload for operation in operations for payload in operation.opened]
    return reconstruct(shares), table


def expected(scores):
    """The first of the highest; torch's own argmax does not promise which."""
    best = [max(range(len(row)), key=lambda place, row=row: (row[place], -place)) for row in scores.tolist()]
    return torch.nn.functional.one_hot(torch.tensor(best), scores.shape[1]).to(BITS)


@pytest.mark.parametrize("parties", [2, 3])
def test_all_pairs_of_values_at_6_bits(parties):
    values = range(-16, 16)  # differences reach from -31 to 31
    scores = torch.tensor(list(itertools.product(values, values)))
    found, table = one_hot(parties, scores, bits=6)
    assert torch.equal(found, expected(scores))
    assert table.rounds == 1


def test_all_differences_at_12_bits():
    differences = torch.arange(-2047, 2048)
    scores = torch.stack([torch.zeros_like(differences), differences], dim=1) + random_words(len(differences), 1)
    found, table = one_hot(2, scores, bits=12)
    assert torch.equal(found, expected(torch.stack([torch.zeros_like(differences), differences], dim=1)))
    assert table.rounds == 2


@pytest.mark.parametrize("bits", [6, 12, 18])
def test_the_sign_of_all_small_differences_under_all_masks_of_a_digit(bits):
    """What `argmax` does, in whole numbers: the sign of c - r from digits of c and one-hot digits of r."""
    half, digits = 2 ** (bits - 1), bits // 6
    spread = range(-half, half) if bits == 6 else [-half, -half + 1, -65, -64, -63, -1, 0, 1, 63, 64, 65, half - 1]
    masks = range(2**bits) if bits == 6 else [*range(0, 2**bits, 2**bits // 61), 63, 64, 2**bits - 1, half, half - 1]
    table = borrow(digits).truth if digits > 1 else None
    for x, r in itertools.product(spread, masks):
        c = (x + r) % 2**bits
        of = [((c >> 6 * i) & 63, (r >> 6 * i) & 63) for i in range(digits)]
        (top_c, top_r), inputs = of[-1], []
        for i, (one, other) in enumerate(of[:-1]):
            inputs += [one == other] * (i > 0) + [one < other]
        sign = (top_c >> 5) ^ (top_r >> 5) ^ ((top_c & 31) < (top_r & 31))
        if table:
            inputs.append((top_c & 31) == (top_r & 31))
            sign ^= table[sum(int(bit) << place for place, bit in enumerate(inputs))]
        assert sign == (x < 0)


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_random_scores_at_24_bits(parties, classes):
    scores = random_words(400, classes) >> 41  # 23 bits, signed
    found, table = one_hot(parties, scores)
    assert torch.equal(found, expected(scores))
    assert table.rounds == (2 if classes == 2 else 3)


@pytest.mark.parametrize("classes", [8, 40, 64])
def test_many_classes_take_more_levels(classes):
    scores = random_words(12, classes) >> 41
    scores[:4] >>= 20  # ties
    found, table = one_hot(2, scores)
    assert torch.equal(found, expected(scores))
    assert table.rounds == {8: 4, 40: 5, 64: 5}[classes]


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_ties_and_extremes(classes):
    ends = torch.tensor([-(2**22), -(2**22) + 1, -1, 0, 1, 2**22 - 1])
    scores = ends[random_words(500, classes, of="places") % 6]
    scores[0] = 7
    scores[1] = torch.arange(classes)
    found, _ = one_hot(3, scores)
    assert torch.equal(found, expected(scores))
    assert int(found[0].argmax()) == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-(2**22), 2**22 - 1), min_size=2, max_size=7), st.integers(0, 2**40), st.integers(2, 4))
def test_any_row_wherever_it_lies(row, moved, parties):
    """Only differences count."""
    scores = torch.tensor([row])
    assert torch.equal(one_hot(parties, scores + moved)[0], expected(scores))


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize(("bits", "cut"), [(24, 8), (24, 9), (24, 30), (24, 40), (6, 58), (30, 34)])
@pytest.mark.parametrize("classes", [2, 5])
def test_what_is_cut_decides_nothing_but_ties(parties, bits, cut, classes):
    """Each score is less than one unit of 2^cut off beside the first one's: within two units either may win."""
    scores = random_words(300, classes) >> (66 - bits - cut)  # of bits - 2 bits when they are cut
    scores[:50] = (scores[:50] >> cut) << cut  # nothing is lost: exact
    found, table = one_hot(parties, scores, bits=bits, cut=cut)
    exact = expected(scores)
    assert torch.equal(found.sum(dim=1), torch.ones(300, dtype=torch.int64))  # always one class, also in a close race
    assert torch.equal(found[:50], exact[:50])
    below = scores.max(dim=1).values - scores.gather(1, found.argmax(dim=1, keepdim=True))[:, 0]
    assert int(below.max()) < 2 << cut
    assert table.payloads[0].dtype == (torch.int32 if bits + cut <= 32 else torch.int64)


def test_close_races_are_won_by_either():
    """A quarter of a unit apart: what is lost would decide, and so one of both wins."""
    scores = torch.tensor([[0, 2**28, 3 * 2**28]]).repeat(400, 1)
    found, _ = one_hot(2, scores, cut=30)
    assert set(found.argmax(dim=1).tolist()) == {0, 1, 2}


def test_beyond_the_range_it_fails():
    scores = torch.tensor([[0, 2**23 + 1]])
    assert not torch.equal(one_hot(2, scores)[0], expected(scores))


@pytest.mark.parametrize("classes", range(2, 65))
def test_the_levels_end_in_one_bit_for_each_class(classes):
    if classes == 2:
        return
    levels = conjunctions(classes)
    bits = torch.tensor([[a == 1 for a, _ in pairs_of(classes)]]).t()  # class 1 beats all but 0 ...
    bits[0] = False  # ... and 0 as well, which beats the others
    bits[[i for i, (a, b) in enumerate(pairs_of(classes)) if a == 0 and b > 1]] = True
    for level in levels:
        assert max(len(table.inputs) for table in level) <= 6
        bits = torch.stack([torch.tensor(table.truth)[table.index(bits)] for table in level])
    assert bits.flatten().tolist() == [int(c == 1) for c in range(classes)]


def test_bytes_for_pubmed():
    operations = argmax_operations(19_717, 3)
    opened = sum(size(payload) for operation in operations for payload in operation.opened)
    corrections = sum(size(payload) for operation in operations for payload in operation.correction)
    assert opened == pytest.approx(19_717 * (2 * 4 + 3 * 6 / 8 + 3 / 8), abs=2)
    assert corrections == 19_717 * (3 * 40 + 3)
    assert corrections + 2 * opened < 3e6  # 2 holders


def size(payload):
    return torch.Size(payload.shape).numel() * payload.dtype.itemsize


def test_types():
    differences, *tables = argmax_operations(10, 3)
    assert differences.opened == (Payload((2, 10), torch.int32),)
    assert {payload.dtype for table in tables for payload in (*table.opened, *table.correction)} == {BITS}


@pytest.mark.parametrize(("classes", "bits"), [(1, 24), (65, 24), (3, 23), (3, 0), (3, 36)])
def test_what_cannot_be_compared_is_refused(classes, bits):
    with pytest.raises(ValueError, match="classes are compared"):
        Differences(4, classes, bits, 0)


@pytest.mark.parametrize(("bits", "cut"), [(24, 41), (24, -1), (30, 35)])
def test_a_word_has_only_so_many_bits(bits, cut):
    with pytest.raises(ValueError, match="bits left"):
        Differences(4, 3, bits, cut)
