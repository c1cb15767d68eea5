"""What the paper leaves open: how features are scaled, and how wide the head begins. The defaults change nothing."""

import pytest
import torch

from vfgnn.data.partition import partition
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import build
from vfgnn.model.cg1_features import scaled_rows
from vfgnn.model.cg2_server import ServerNetwork
from vfgnn.model.cg3_labels import OutputLayer
from vfgnn.settings import Preset, make_settings

TINY = {"dim": 8, "epochs": 3, "dropout": 0.0, "accept_h0_leak": True, "accept_row_leak": True}


def settings_for(**changes):
    return make_settings({**TINY, **changes}, where="test")


def trained(graph, **changes):
    parties = build(
        partition(graph.x, graph.edge_index, holders=2, seed=1), split_labels(graph), settings_for(**changes), seed=2
    )
    parties.train()
    return parties


def test_rows_are_divided_by_the_sum_of_their_sizes():
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [-2.0, 2.0]])
    assert scaled_rows(x, "row").tolist() == [[0.25, 0.75], [0.0, 0.0], [-0.5, 0.5]]
    assert scaled_rows(x, "none") is x
    assert scaled_rows(torch.tensor([[1, 3]]), "row").tolist() == [[0.25, 0.75]]


@pytest.mark.parametrize("layer", ["insecure_clear", "secure"])
def test_whole_numbers_that_are_scaled_have_fraction_bits(graph, layer):
    graph.x = graph.x.ceil()
    plain, scaled = (trained(graph, joint_layer=layer, feature_scaling=scaling) for scaling in ("none", "row"))
    assert {bits for holder in plain.holders for bits in holder.joint._bits.values()} == {0}
    assert {bits for holder in scaled.holders for bits in holder.joint._bits.values()} == {12}
    for holder, whole in zip(scaled.holders, partition(graph.x, graph.edge_index, holders=2, seed=1), strict=True):
        known = holder.joint._x_ring.double() * 2.0**-12
        assert float((known - scaled_rows(whole.x, "row")).abs().max()) <= 2.0**-13  # rounded once
        assert torch.isfinite(holder.features.h0).all()


def drawn(kind, **changes):
    torch.manual_seed(0)
    return kind(settings_for(combine="concat", **changes))


def test_only_the_weights_of_the_layer_that_is_named_begin_wider():
    plain, wide = (drawn(lambda s: ServerNetwork(s, 2), hidden_layers=2, head_scale=by) for by in (1.0, 4.0))
    assert torch.equal(wide.hidden[0].weight, 4 * plain.hidden[0].weight)
    assert torch.equal(wide.hidden[0].bias, plain.hidden[0].bias)
    assert torch.equal(wide.hidden[1].weight, plain.hidden[1].weight)
    plain, wide = (drawn(lambda s: OutputLayer(s, 8, 3), output_scale=by) for by in (1.0, 4.0))
    assert torch.equal(wide.linear.weight, 4 * plain.linear.weight)
    assert torch.equal(wide.linear.bias, plain.linear.bias)


def test_combined_rows_are_scaled_before_dropout():
    rows = torch.rand(2, 5, 8)
    plain, scaled = (drawn(lambda s: ServerNetwork(s, 2), hidden_layers=0, row_scale=by) for by in (1.0, 4.0))
    assert torch.equal(scaled(rows, []), 4 * plain(rows, []))


def test_a_preset_has_values_for_each_reading_of_the_edge_split():
    preset = Preset("paper")
    preset._chosen = {"cora": {"mean": {"layers": 3}, "mean_directed": {"layers": 4}, "pooled": {"layers": 5}}}
    assert preset.settings(dataset="cora").layers == 3
    assert preset.settings(dataset="cora", edge_split="directed").layers == 4
    assert preset.settings(dataset="cora", model="pooled", edge_split="directed").layers == 5
