import itertools
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from vfgnn.errors import ProtocolError
from vfgnn.mpc.permutation import INDEX, checked_table, draw_permutation, inverse, left_factor
from vfgnn.randomness import Stream, insecure_seed


class Words:
    """A stream that hands out what the test says."""

    def __init__(self, *draws):
        self._draws = iter(draws)

    def words(self, rows):
        return torch.tensor(next(self._draws))


def passes_chi_square(counts, cells):
    """Seeds are fixed: uniform counts fail it for one choice of them in ten thousand."""
    expected = sum(counts.values()) / cells
    statistic = sum((counts[cell] - expected) ** 2 / expected for cell in counts)
    statistic += expected * (cells - len(counts))
    return statistic < chi2.isf(1e-4, cells - 1)


@pytest.mark.parametrize(("rows", "cells"), [(2, 2), (3, 6), (4, 24)])
def test_every_permutation_is_equally_likely(rows, cells):
    stream = Stream(insecure_seed(1), "permutations", rows)
    counts = Counter(tuple(draw_permutation(stream, rows).tolist()) for _ in range(200 * cells))
    assert set(counts) == set(itertools.permutations(range(rows)))
    assert passes_chi_square(counts, cells)


def test_the_chi_square_notices_the_order_of_words_below_4():
    """Repeated words that are not drawn again favour the identity."""
    stream = Stream(insecure_seed(1), "biased")
    counts = Counter(tuple(torch.argsort(stream.words(3) & 3, stable=True).tolist()) for _ in range(1200))
    assert not passes_chi_square(counts, 6)


def test_all_words_are_drawn_again_when_two_are_equal():
    assert draw_permutation(Words([5, 1, 5], [-7, 3, -9]), 3).tolist() == [2, 0, 1]


@pytest.mark.parametrize("rows", [0, 1])
def test_nothing_to_permute(rows):
    assert draw_permutation(Stream(insecure_seed(1), "few"), rows).tolist() == list(range(rows))


@given(st.permutations(range(7)), st.permutations(range(7)))
def test_the_two_factors_make_the_permutation(placement, drawn):
    p, q, x = torch.tensor(placement, dtype=INDEX), torch.tensor(drawn, dtype=INDEX), torch.arange(7) * 10
    bounced, expected = torch.empty_like(x), torch.empty_like(x)
    bounced[q.long()] = x
    expected[p.long()] = x
    sigma = left_factor(p, q)
    assert sigma.dtype == INDEX
    assert torch.equal(bounced[sigma.long()], expected)
    assert torch.equal(x[inverse(p).long()], expected)
    assert torch.equal(inverse(inverse(p)), p)


def test_what_is_left_of_a_fixed_permutation_is_uniform():
    stream, placement = Stream(insecure_seed(2), "split"), torch.tensor([2, 0, 1, 3], dtype=INDEX)
    counts = Counter(tuple(left_factor(placement, draw_permutation(stream, 4)).tolist()) for _ in range(4800))
    assert passes_chi_square(counts, 24)


@pytest.mark.parametrize("table", [[0, 1, 1], [0, 1, 4], [-1, 0, 1], [0, 0], [3, 3, 3]])
def test_a_table_that_would_lead_a_kernel_astray(table):
    with pytest.raises(ProtocolError, match="from bank"):
        checked_table(torch.tensor(table, dtype=INDEX), 4, "bank")


@pytest.mark.parametrize("table", [[], [3], [3, 0, 2], [1, 0, 3, 2]])
def test_a_table_of_different_places(table):
    assert checked_table(torch.tensor(table, dtype=INDEX), 4, "bank").tolist() == table
