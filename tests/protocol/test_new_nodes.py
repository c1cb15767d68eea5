"""Nodes that came after training: predicted with the trained weights, whoever holds them, in both modes."""

import pytest
import torch

from vfgnn.config import Preset
from vfgnn.data import datasets
from vfgnn.data.held_out import labels_without, without
from vfgnn.data.partition import partition
from vfgnn.errors import CheckpointRefused, ConfigError
from vfgnn.parties.new_nodes import places_of, refuse_unfit
from vfgnn.run.federation import split_labels
from vfgnn.run.simulate import build, predict_new_nodes


@pytest.fixture(scope="module")
def citeseer():
    data = datasets.load("citeseer")
    return partition(data.x, data.edge_index, holders=3, seed=0), split_labels(data)


def settings(**changes):
    values = {"epochs": 8, "patience": None, "dim": 16, "joint_layer": "insecure_clear", **changes}
    return Preset("best").settings(overrides=values)


def trained(holdings, labels, kept, chosen):
    federation = build([without(one, kept) for one in holdings], labels_without(labels, kept), chosen, seed=0)
    federation.train()
    return federation


@pytest.mark.parametrize("changes", [{}, {"joint_layer": "secure"}, {"initial_embedding": "individual"}], ids=str)
def test_without_new_nodes_the_logits_are_those_of_training(citeseer, changes):
    holdings, labels = citeseer
    everything = torch.ones(len(labels.y), dtype=torch.bool)
    federation = trained(holdings, labels, everything, settings(**changes))
    again = predict_new_nodes(federation, holdings, labels, torch.arange(len(labels.y)))
    torch.testing.assert_close(again, federation.label_holder.logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("mode", ["collaborative", "individual"])
def test_new_nodes_are_predicted(citeseer, mode):
    holdings, labels = citeseer
    kept = torch.ones(len(labels.y), dtype=torch.bool)
    kept[labels.test[::3]] = False
    federation = trained(holdings, labels, kept, settings(initial_embedding=mode, epochs=40))
    logits = predict_new_nodes(federation, holdings, labels, kept.nonzero()[:, 0])
    reached = float((logits[~kept].argmax(dim=1) == labels.y[~kept]).float().mean())
    assert reached > 0.55  # six classes


def test_where_trained_rows_stand_now():
    assert places_of(torch.tensor([4, 1, 2]), torch.tensor([1, 7, 4, 2])).tolist() == [2, 0, 3]
    assert places_of(torch.tensor([4, 9]), torch.tensor([4])).tolist() == [0, -1]


def test_what_cannot_be_extended_is_refused(citeseer):
    holdings, labels = citeseer
    federation = build(holdings, labels, settings(), seed=0).federation
    with pytest.raises(CheckpointRefused, match="no longer common"):
        refuse_unfit(federation, torch.tensor([0, -1]))
    noised = settings(privacy={"edge_epsilon": 8.0})
    with pytest.raises(ConfigError, match="edges are noised"):
        refuse_unfit(build(holdings, labels, noised, seed=0).federation, torch.tensor([0, 1]))
