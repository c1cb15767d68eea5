"""Many training rows: sums stay in the ring with the guards of formats.py, and leave it, unseen or seen, without them.

Overflow cannot be seen on shares. What is tested: scores of the label holder beside the pooled model in float64. Less
than 1e-3 apart is what the specification asks for; what has left the ring is off by far more, or is refused by the
label holder, whose Rayleigh quotient or solution is then absurd.
"""

import numpy as np
import pytest
import torch

from tests.protocol.test_sealed_accuracy import ERROR, float_fit
from tests.sealed_twin import Trained, benchmark, labels_of, train
from vfgnn.data.holdings import Holding, Labels
from vfgnn.errors import DataError, Overflow
from vfgnn.sealed import rehearsal
from vfgnn.sealed.formats import lift, product_guard, range_guard


def error_of(held, labels, *, kernel="smooth", hops, seed=0):
    """Of the scores, to those of the nearest ridge; infinite if the training was refused."""
    own = {"kernel": kernel, "hops": hops, "opens": "scores", "order": "labels"}
    try:
        trained: Trained = train(held, labels, record=False, seed=seed, **own)
    except (Overflow, DataError):
        return np.inf
    scores = trained.leader.result.logits.numpy()
    fit = float_fit(held, labels, kernel=kernel, hops=hops)
    return min(float(np.abs(scores - each).max()) for each in fit.scores)


@pytest.fixture
def no_guards(monkeypatch):
    """The dealer deals for what is rehearsed, so that is forgotten before and after."""
    rehearsal.script.cache_clear()
    for guard in ("sizes.range_guard", "training.product_guard"):
        monkeypatch.setattr(f"vfgnn.sealed.{guard}", lambda *sizes: 0)
    yield
    rehearsal.script.cache_clear()


def crowded(rows=2000):
    """Bags of 30 of 300 words, three times each, a third of which says something about the class."""
    draw = torch.Generator().manual_seed(31)
    nodes = rows + 200
    y = torch.randint(3, (nodes,), generator=draw)
    chance = 0.08 + 0.06 * (torch.arange(300) % 9 == y[:, None]).double()
    x = 3 * (torch.rand(nodes, 300, generator=draw) < chance).double()
    ends = torch.randint(nodes, (2, 3000), generator=draw)
    ends = ends[:, (y[ends[0]] == y[ends[1]]) | (torch.arange(3000) < 800)]
    held = [Holding(x=x[:, :200], edge_index=ends[:, :600]), Holding(x=x[:, 200:], edge_index=ends[:, 600:])]
    return held, labels_of(y, 3, rows, 100)


def test_many_rows_stay_in_the_ring():
    held, labels = crowded()
    assert error_of(held, labels, hops=2) < ERROR


@pytest.mark.usefixtures("no_guards")
def test_without_guards_they_leave_it():
    held, labels = crowded()
    assert error_of(held, labels, hops=2) > ERROR


def test_what_leaves_the_ring_all_the_same_is_refused():
    """Eight steps with a spectrum far beyond B: the polynomials grow, and so do the inner products."""
    held, labels = crowded()
    with pytest.raises(Overflow, match="has left the ring"):
        train(held, labels, order="labels", kernel="hops", hops=2, steps=4, record=False)


def drawn(rows, *, scale=1):
    """So many training rows of PubMed, from a fixed order, and 500 for validation; columns times `scale`."""
    data = benchmark("pubmed", 2)
    y = data.labels.y
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(1))
    held = [Holding(x=one.x * scale, edge_index=one.edge_index) for one in data.holdings]
    return held, Labels(y, order[:rows], order[rows : rows + 500], order[rows + 500 :], 3)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "seed"), [(60, 0), (60, 1), (60, 2), (600, 0), (3000, 0), (18_000, 0)])
def test_pubmed_with_any_number_of_training_rows(rows, seed):
    """`seed`: of the masks, which cuts are rounded by; of few rows an error would vary most."""
    held, labels = drawn(rows)
    assert error_of(held, labels, hops=10, seed=seed) < ERROR


@pytest.mark.slow
@pytest.mark.usefixtures("no_guards")
def test_pubmed_without_guards():
    """Its own columns are small enough without any guard; ten times as long they are not."""
    held, labels = drawn(18_000, scale=10)
    assert error_of(held, labels, hops=10) > ERROR


@pytest.mark.slow
def test_pubmed_with_long_columns():
    held, labels = drawn(18_000, scale=10)
    assert error_of(held, labels, hops=10) < ERROR


def test_guards_grow_with_the_rows():
    """Below 0 an image is longer; what is cut before inner products is cut in both places together."""
    assert [range_guard(rows) for rows in (1, 64, 256, 257, 18_000, 10**6)] == [-8, -2, 0, 1, 7, 12]
    cut = [range_guard(rows) + product_guard(rows) for rows in (1, 16, 17, 256, 600, 18_000, 10**6)]
    assert cut == [0, 0, 1, 4, 6, 11, 16]
    assert [lift(rows) for rows in (1, 64, 256, 257, 4096, 4097, 10**6)] == [12, 6, 4, 3, 0, 0, 0]
