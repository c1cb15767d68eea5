"""What a sealed training is for: the same predictions at any number of holders, and a record of what was opened."""

import json

import pytest
import torch

import vfgnn
from tests.conftest import random_graph
from tests.sealed_twin import benchmark, small, train
from vfgnn.data.holdings import Holding

SMALL = {"protocol": "sealed", "sealed": {"hops": 3}}


def dealt_out(holdings, holders):
    """The same columns and edges at another number of holders; an edge's two directions stay together."""
    x = torch.cat([one.x for one in holdings], dim=1)
    ends = torch.cat([one.edge_index for one in holdings], dim=1)
    ends = torch.unique(torch.sort(ends[:, ends[0] != ends[1]], dim=0).values, dim=1)
    return [Holding(x=x[:, i::holders], edge_index=ends[:, i::holders]) for i in range(holders)]


def test_any_number_of_holders_has_the_same_model():
    held, labels = small(2, nodes=80, edges=120, seed=71)
    settings = {"hops": 3, "order": "labels", "opens": "scores", "ridges": [0.3], "record": False}
    found = [train(dealt_out(held, count), labels, **settings).leader.result.logits for count in (2, 3, 4, 8)]
    for other in found[1:]:
        # Nothing differs but masks, and so how each cut is rounded: twice the error beside the model in the clear.
        assert float((other - found[0]).abs().max()) < 2e-3
        assert float((other.argmax(1) == found[0].argmax(1)).double().mean()) >= 0.98


def test_classes_are_those_of_the_scores():
    held, labels = small(3, nodes=60, seed=72)
    classes, scores = (
        train(held, labels, hops=2, order="labels", opens=opens).leader.result.logits for opens in ("classes", "scores")
    )
    assert set(classes.unique().tolist()) == {0.0, 1.0}  # nothing but one class for each row
    assert torch.equal(classes.sum(1), torch.ones(60, dtype=torch.float64))
    assert torch.equal(classes.argmax(1), scores.argmax(1))


def test_scores_have_a_ranking_and_classes_have_none():
    held, labels = small(2, classes=2, nodes=60, seed=73)
    outcomes = {
        opens: train(held, labels, hops=2, opens=opens).leader.result.outcome.scores for opens in ("classes", "scores")
    }
    assert set(outcomes["classes"]) == {"accuracy", "f1"}
    assert {"auc", "average_precision"} < set(outcomes["scores"])


def test_the_record_says_what_was_opened_and_sent():
    result = vfgnn.simulate(random_graph(integer=True), holders=3, compare=False, **SMALL)
    written = json.loads(json.dumps(result.to_json()))
    assert set(written["bytes"]) == {"setup", "offline", "online"}
    assert all(count > 0 for count in written["bytes"].values())
    assert written["rounds"] > 0
    assert len(written["opened"].pop("allows")) == 3  # sentences: of classes, of inner products, of further trainings
    opened = {"to": "A", "what": "classes", "rows": 40 + 4 * 10, "validation_rows": 4 * 10}
    assert written["opened"] == {**opened, "columns": 1, "scalars": 18, "trainings": 1}
    assert written["leak_meter"] == {}  # nothing is revealed of features
    assert written["revealed_dimensions"] == 0


def test_the_other_protocol_has_no_such_record():
    result = vfgnn.simulate(random_graph(), compare=False, dim=8, epochs=2)
    assert not {"opened", "rounds", "bytes"} & set(result.to_json())


def test_compared_with_each_holder_alone_and_the_pooled_model():
    result = vfgnn.simulate(random_graph(nodes=80, integer=True), holders=2, **SMALL)
    assert set(result.isolated) == {"A alone", "B alone"}
    assert result.joint is not None
    assert abs(result.joint.test_accuracy - result.test_accuracy) <= 1 / 20  # one of 20 test rows


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_benchmarks_do_not_depend_on_the_number_of_holders(name):
    reached = []
    for holders in (2, 3, 4, 8):
        data = benchmark(name, holders)
        trained = train(data.holdings, data.labels, record=False)
        reached.append(trained.leader.result.outcome.test_accuracy)
    assert max(reached) - min(reached) <= 0.003, reached


@pytest.mark.parametrize(("opens", "has"), [("classes", False), ("scores", True)])
def test_predict_has_probabilities_where_scores_were_opened(opens, has):
    settings = {**SMALL, "sealed": {**SMALL["sealed"], "opens": opens}}
    result = vfgnn.simulate(random_graph(), compare=False, **settings)
    answer = vfgnn.predict(result)
    assert answer.y_pred.shape == (answer.num_nodes,)
    assert ("probability" in answer) is has
