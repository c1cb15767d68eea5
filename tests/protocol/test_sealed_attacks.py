"""Attacks on the sealed protocol find a planted leak, and stay at their baselines on noise and on real messages."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.planted import draw, holdings, labels, noise, smoothed, view_of
from tests.planted import verdicts as found_by
from vfgnn.audit import opened_predictions, words
from vfgnn.audit.inner_products import Explained
from vfgnn.audit.simulated_run import train_and_record
from vfgnn.audit.statistics import LEAKS
from vfgnn.audit.views import NotInView, Opened
from vfgnn.data.holdings import Holding
from vfgnn.mpc import material
from vfgnn.mpc.correlations import Masks
from vfgnn.mpc.graph_masks import GraphMasks
from vfgnn.sealed import program
from vfgnn.settings import make_settings

NODES, CLASSES = 600, 3
HELD, KNOWN = holdings(nodes=NODES, edges=900), labels(CLASSES, nodes=NODES)
UNION = Holding(HELD[0].x, torch.cat([one.edge_index for one in HELD], dim=1))
LEAK = pytest.mark.parametrize("leak", [True, False])
SEALED = {"protocol": "sealed", "sealed": {"opens": "scores"}}


def label_holder(opened=None, pooled=None, held=HELD, known=KNOWN, **settings):
    view, truth = view_of("A", held, known, {}, opened=opened, **{**SEALED, **settings})
    return view, replace(truth, pooled=pooled)


def check(verdicts, leak):
    assert verdicts
    for name, verdict in verdicts.items():
        assert (verdict == LEAKS) == leak, (name, verdict)


def smooth_scores(leak, *, seed=5):
    """Scores that are alike where there is an edge of anybody, or that are random."""
    scores = noise(NODES, CLASSES, seed=seed)
    return smoothed(UNION, smoothed(UNION, scores)) if leak else scores


@LEAK
def test_edges_from_predictions(leak):
    view, truth = label_holder(Opened(smooth_scores(leak)), lambda _: smooth_scores(leak))
    (found,) = opened_predictions.edges_from_predictions(view, truth, draw())
    check({found.attack.name: found.measured.verdict}, leak)
    assert found.attack == opened_predictions.SCORE_EDGES
    assert found.pooled.value == found.measured.attack.value  # the clear model says the same


def test_a_self_audit_has_no_clear_model_to_compare_with():
    (found,) = opened_predictions.edges_from_predictions(*label_holder(Opened(smooth_scores(True))), draw())
    assert found.pooled is None
    with pytest.raises(NotInView, match="data of all holders"):
        opened_predictions.edges_from_invented_labels(*label_holder(Opened(smooth_scores(True))), draw())


def test_classes_are_compared_with_classes():
    classes = F.one_hot(smooth_scores(True).argmax(dim=1), CLASSES).double()
    clear = 3.0 * smooth_scores(True) + 1.0  # other scores, the same classes
    view, truth = label_holder(Opened(classes), lambda _: clear, sealed={"opens": "classes"})
    (found,) = opened_predictions.edges_from_predictions(view, truth, draw())
    assert found.attack == opened_predictions.CLASS_EDGES
    assert found.pooled.value == found.measured.attack.value


@LEAK
def test_edges_from_invented_labels(leak):
    """The clear model answers with the labels of neighbours, or with noise."""

    def pooled(invented):
        given = F.one_hot(invented.y, CLASSES).double()
        return smoothed(UNION, smoothed(UNION, given)) if leak else noise(NODES, CLASSES, seed=int(invented.y[:9].sum()))

    view = label_holder(Opened(smooth_scores(False)), pooled)
    check(found_by(opened_predictions.edges_from_invented_labels, view), leak)


@LEAK
def test_features_from_predictions(leak):
    """Scores that are B's columns."""
    scores = HELD[1].x[:, :CLASSES] if leak else noise(NODES, CLASSES)
    check(found_by(opened_predictions.features_from_predictions, label_holder(Opened(scores), lambda _: scores)), leak)
    invented = lambda _: scores if leak else noise(NODES, CLASSES, seed=8)  # noqa: E731
    check(found_by(opened_predictions.features_from_invented_labels, label_holder(Opened(scores), invented)), leak)


def few_rows():
    """A training with 16 rows whose label holder has all columns."""
    held = [holdings(nodes=120, edges=100, columns=30)[0], Holding(torch.zeros(120, 0), holdings(nodes=120)[1].edge_index)]
    settings = make_settings({"protocol": "sealed", "sealed": {"hops": 3}}, where="test")
    return train_and_record(held, labels(nodes=120, train=16), settings, seed=1)


def test_inner_products_point_at_the_pair_that_explains_them():
    """To first order: products of the own edges and a faint one more; among all pairs of training rows it is found."""
    run = few_rows()
    view, edges = run.views["A"], run.views["A"].holding.edge_index.numpy()
    explained, pairs = Explained.of(view), torch.combinations(torch.arange(16), 2).t()
    ends = torch.from_numpy(edges)
    ends = torch.unique(torch.cat([ends, ends.flip(0)], dim=1), dim=1)
    ends = ends[:, ends[0] != ends[1]]
    for place in (3, 50, 100):
        more = torch.cat([ends, pairs[:, [place]], pairs[:, [place]].flip(0)], dim=1)
        weights = torch.ones(more.shape[1], dtype=torch.float64).index_fill(0, torch.tensor([-2, -1]) % more.shape[1], 1e-5)
        told = replace(explained, products=explained.products_of(more, weights))
        assert told.columns(edges, pairs)[:, 1].argmax() == place


@LEAK
def test_edges_from_inner_products(leak, monkeypatch):
    """What they say of a pair reaches the learned attack; those of a real training say nothing that it can use."""
    run = few_rows()
    if leak:
        real = run.views["B"].holding.edge_index.t().tolist() + run.views["A"].holding.edge_index.t().tolist()
        known = {tuple(pair) for pair in real}
        column = lambda self, edges, pairs: np.array([[tuple(p) in known] for p in pairs.t().tolist()], dtype=float)  # noqa: E731
        monkeypatch.setattr(Explained, "columns", column)
    check(found_by(opened_predictions.edges_from_inner_products, (run.views["A"], run.truth)), leak)


WORDS = {"protocol": "sealed"}


def masked(*messages, kind=program.GRAPH_MASKED, known=KNOWN, held=HELD):
    view, truth = view_of("B", held, known, {}, **WORDS)
    return replace(view, messages={(kind, "A", "B"): list(messages)}), truth


def uniform(*shape, seed=0):
    low, high = -(2**63), 2**63 - 1
    return torch.randint(low, high, shape, generator=draw(seed))


@LEAK
def test_words_that_are_not_uniform(leak):
    words_sent = uniform(NODES, 4) >> (20 if leak else 0)
    check(found_by(words.uniform_words, masked(words_sent)), leak)


@LEAK
def test_a_mask_that_is_used_twice(leak):
    first, secret = uniform(NODES, 4), uniform(NODES, 4, seed=1) >> 30
    check(found_by(words.uniform_words, masked(first, first + secret if leak else uniform(NODES, 4, seed=2))), leak)


@LEAK
def test_shares_that_add_up_to_something_small(leak):
    """Each share is uniform by itself; their sum is what is opened."""
    view, truth = masked(share := uniform(NODES, 4), kind=program.OPENED)
    other = (uniform(NODES, 4, seed=1) >> 30) - share if leak else uniform(NODES, 4, seed=2)
    sent = {(program.OPENED, "B", "A"): [other]}
    check(found_by(words.uniform_words, (replace(view, messages={**view.messages, **sent}), truth)), leak)


@LEAK
def test_a_table_that_keeps_its_order(leak):
    slots = NODES + next(one.entry_bound for one in masked()[0].agreement.holders if one.name == "A")
    table = torch.randperm(slots, generator=draw())
    table = (torch.arange(slots) if leak else table).to(torch.int32)
    check(found_by(words.uniform_words, masked(table, kind=program.GATHER_1)), leak)


@LEAK
def test_words_that_go_with_data(leak):
    """Words whose lower half is as it should be, and whose upper half goes with A's columns and edges."""
    spread = smoothed(HELD[0], noise(NODES, 40)) @ noise(40, 40, seed=1) + 9 * HELD[0].x @ noise(6, 40, seed=2)
    clear = (spread * 2**55).long() + (uniform(NODES, 40) >> 32)
    sent = [clear if leak else uniform(NODES, 40), uniform(NODES, 200, seed=3)]
    view = masked(*sent[: 1 if leak else 2])
    check(found_by(words.words_and_data, view), leak)


def small_run(holders=3):
    """On a graph of 500 nodes."""
    held, known = holdings(holders, nodes=500, edges=700, columns=8), labels(nodes=500)
    settings = make_settings({**WORDS, "sealed": {"hops": 3, "steps": 3, "ridges": [0.3, 1.0]}}, where="test")
    return train_and_record(held, known, settings, seed=2)


def test_a_real_run_gives_dealer_and_holders_nothing():
    run = small_run()
    found = [
        one
        for party in ("dealer", "B", "C")
        for carry_out in (words.uniform_words, words.words_and_data)
        for one in carry_out(run.views[party], run.truth, draw())
    ]
    assert {one.party for one in found} == {"dealer", "B", "C"}
    for one in found:
        assert one.measured.verdict != LEAKS, (one.attack.name, one.party, one.about)


def bare_operation(monkeypatch):
    expand = material._expand

    def bare(payloads, seed, run, holder, operation, number):
        shares = expand(payloads, seed, run, holder, operation, number)
        masks = len(operation.opened) if operation.name == "truncation" else 0
        return [torch.zeros_like(share) if i < masks else share for i, share in enumerate(shares)]

    monkeypatch.setattr(material, "_expand", bare)


def bare_features(monkeypatch):
    monkeypatch.setattr(Masks, "features", lambda self, *shape: torch.zeros(shape, dtype=torch.int64))


def bare_permutation(monkeypatch):
    monkeypatch.setattr(GraphMasks, "permutation", lambda self, which, slots: torch.arange(slots, dtype=torch.int32))


@pytest.mark.parametrize("bare", [bare_operation, bare_features, bare_permutation])
def test_a_mask_that_is_missing_in_a_real_run_is_found(bare, monkeypatch):
    bare(monkeypatch)
    run = small_run(holders=2)
    assert LEAKS in found_by(words.uniform_words, (run.views["B"], run.truth)).values()


def test_words_of_the_clear_joint_layer_are_not_called_masked():
    view, truth = view_of("B", HELD, KNOWN, {}, joint_layer="insecure_clear")
    with pytest.raises(NotInView, match="secure"):
        words.uniform_words(view, truth, draw())
