"""Nodes that came after training: predicted with the trained weights, whoever holds them, in both modes."""

from dataclasses import replace

import pytest
import torch

from vfgnn.data import datasets
from vfgnn.data.held_out import labels_without, without
from vfgnn.data.partition import partition
from vfgnn.errors import CheckpointRefused, ConfigError
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import build, predict_new_nodes
from vfgnn.settings import Preset
from vfgnn.split.new_nodes import in_trained_order, places_of, refuse_gone, refuse_unfit
from vfgnn.split.program import prediction
from vfgnn.split.state import ReleasedRows


@pytest.fixture(scope="module")
def citeseer():
    data = datasets.load("citeseer")
    return partition(data.x, data.edge_index, holders=3, seed=0), split_labels(data)


def settings(**changes):
    values = {"epochs": 8, "patience": None, "dim": 16, "joint_layer": "insecure_clear", **changes}
    return Preset("best").settings(overrides=values)


def trained(holdings, labels, kept, chosen):
    agreement = build([without(one, kept) for one in holdings], labels_without(labels, kept), chosen, seed=0)
    agreement.train()
    return agreement


@pytest.mark.parametrize("changes", [{}, {"joint_layer": "secure"}, {"initial_embedding": "individual"}], ids=str)
def test_without_new_nodes_the_logits_are_those_of_training(citeseer, changes):
    holdings, labels = citeseer
    everything = torch.ones(len(labels.y), dtype=torch.bool)
    agreement = trained(holdings, labels, everything, settings(**changes))
    again = predict_new_nodes(agreement, holdings, labels, torch.arange(len(labels.y)))
    torch.testing.assert_close(again, agreement.result.logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("mode", ["collaborative", "individual"])
def test_new_nodes_are_predicted(citeseer, mode):
    holdings, labels = citeseer
    kept = torch.ones(len(labels.y), dtype=torch.bool)
    kept[labels.test[::3]] = False
    agreement = trained(holdings, labels, kept, settings(initial_embedding=mode, epochs=40))
    logits = predict_new_nodes(agreement, holdings, labels, kept.nonzero()[:, 0])
    reached = float((logits[~kept].argmax(dim=1) == labels.y[~kept]).float().mean())
    assert reached > 0.55  # six classes


def test_a_trained_model_needs_no_label_to_predict(citeseer):
    """Labels are read again for each prediction; those of today may leave none of the trained nodes to test."""
    holdings, labels = citeseer
    before = build(holdings, labels, settings(), seed=0)
    outcome = before.train()
    nobody = torch.empty(0, dtype=torch.int64)
    again = build(holdings, replace(labels, test=nobody, trained=True), settings(), seed=1)
    for name, party in again.parties.items():
        party.load(before.parties[name].state())
    again.carry_out(prediction(again.agreement, new_nodes=False))
    assert again.result.outcome == outcome
    assert torch.equal(again.result.logits, before.result.logits)


def test_where_trained_rows_stand_now():
    assert places_of(torch.tensor([4, 1, 2]), torch.tensor([1, 7, 4, 2])).tolist() == [2, 0, 3]
    assert places_of(torch.tensor([4, 9]), torch.tensor([4])).tolist() == [0, -1]


def test_trained_nodes_keep_their_order_and_new_ones_follow():
    trained, now = torch.tensor([4, 1, 2]), torch.tensor([1, 7, 4, 9])
    assert in_trained_order(trained, now).tolist() == [4, 1, 7, 9]
    assert in_trained_order(trained, torch.tensor([2, 4, 1])).tolist() == [4, 1, 2]
    nothing = torch.empty(0, dtype=torch.int64)
    assert in_trained_order(nothing, nothing).tolist() == []


def test_what_was_noised_for_a_new_node_is_sent_again_wherever_it_stands():
    trained = ReleasedRows(torch.tensor([1, 0]), torch.tensor([[1.0], [0.0]]))
    later = trained.plus([torch.tensor([9.0]), None, None, torch.tensor([3.0])])
    assert later.rows.tolist() == [1, 0, 3]  # training's own noise stays what it was
    assert later.noised.tolist() == [[1.0], [0.0], [3.0]]
    assert trained.plus([None]) is trained


def test_released_rows_go_with_their_nodes():
    trained = ReleasedRows(torch.tensor([0, 2]), torch.tensor([[0.0], [2.0]]))
    moved = trained.over(torch.tensor([5, 1, -1]), None)  # node 2 is gone
    assert (moved.rows.tolist(), moved.noised.tolist()) == ([5], [[0.0]])


def test_what_cannot_be_extended_is_refused(citeseer):
    holdings, labels = citeseer
    agreement = build(holdings, labels, settings(), seed=0).agreement
    with pytest.raises(CheckpointRefused, match="no longer common"):
        refuse_gone(agreement, torch.tensor([0, -1]))
    refuse_gone(build(holdings, labels, settings(initial_embedding="individual"), seed=0).agreement, torch.tensor([-1]))
    refuse_unfit(agreement)
    for privacy, says in (
        ({"edge_epsilon": 8.0}, "edges are noised"),
        ({"row_epsilon": 8.0, "average_releases": 0.5}, "averages releases"),
    ):
        with pytest.raises(ConfigError, match=says):
            refuse_unfit(build(holdings, labels, settings(privacy=privacy, combine="mean"), seed=0).agreement)
