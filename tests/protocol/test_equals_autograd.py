"""Federated forward, every gradient and 20 steps equal the same computation in one autograd graph.

Tolerances, in float64 (unit roundoff u = 1.1e-16). The two sides do the same operations; they differ in the order of
sums of at most p = 12 columns, n = 40 nodes or d = 8 entries, of values below 10. So:
- forward and gradients of the first step: fewer than 10^3 roundings of values below 10, i.e. 10^4 u ~ 1e-12;
- weights after T = 20 steps: Adam divides by sqrt(v) + 1e-8, so a gradient that is nearly 0 moves a weight by at most
  lr * 1e-12 / 1e-8 = 1e-6 too far per step (lr = 0.01), and the next gradient differs by no more than its Lipschitz
  constant (order 1) times that: T * 1e-6 = 2e-5 is the bound that can be proved this way. What is asserted is 1e-8, a
  thousand times tighter, which a gradient wrong in any one entry of size 1e-6 would break.
"""

import pytest
import torch

from tests.conftest import random_graph
from tests.protocol.twin import Twin
from vfgnn.data.partition import partition
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import build
from vfgnn.settings import make_settings
from vfgnn.split.joint_layer import draw_weight_share
from vfgnn.split.program import HIDDEN

FIRST_STEP, AFTER_TRAINING = 1e-12, 1e-8
STEPS = 20

GNNS = ["sage_mean", "sage_lstm", "sage_pool", "gcn", "gat", "appnp"]
COMBINES = ["concat", "mean", "regression", "confidence"]


def settings_for(**changes):
    values = {
        "precision": "float64",
        "dim": 8,
        "layers": 2,
        "epochs": STEPS,
        "evaluate_every": STEPS + 1,
        "joint_learning_rate": 0.5,
        "joint_weight_decay": 0.001,
        "accept_h0_leak": True,
        "accept_row_leak": True,
    }
    return make_settings({**values, **changes}, where="test")


def trained(settings, holders, graph, steps=STEPS):
    """The parties after `steps` updates (not the best epoch: the last), and every message that went to and fro."""
    labels = split_labels(graph)
    holdings = partition(graph.x, graph.edge_index, holders=holders, seed=3)
    parties = build(holdings, labels, settings.model_copy(update={"epochs": steps}), seed=5)
    sent = []
    original = parties.network.put
    parties.network.put = lambda message, payload: (sent.append((message, payload.clone())), original(message, payload))
    parties.train()
    return parties, holdings, labels, sent


def joint_weights(parties):
    """W_t = a W_0 - X^T Q, put together from what no single party has."""
    layers = [holder.joint for holder in parties.holders]
    blocks = []
    for k, owner in zip(parties.agreement.holders, parties.holders, strict=True):
        if k.features:
            first = sum(draw_weight_share(parties.agreement, layer._seed)[k.name] for layer in layers)
            q = sum(layer.momentum.q for layer in layers if layer.reveals)
            a = next(layer.momentum.a for layer in layers if layer.reveals)
            x = decoded(owner.joint)
            blocks.append(a * first - x.t() @ q)
    return torch.cat(blocks)


def decoded(layer):
    """A holder's features as the ring has them."""
    return layer._x_ring.double() * 2.0 ** -layer._bits[layer._channel.party]


def largest_difference(ours, theirs):
    return max((float((a - b).detach().abs().max()) for a, b in zip(ours, theirs, strict=True)), default=0.0)


def check(settings, holders, graph):
    # Prepare: the twin starts from the same weights, and draws the same dropout and neighbours.
    once, holdings, labels, sent = trained(settings, holders, graph, steps=1)
    twin = Twin(holdings, labels, settings, seed=5)
    publishers = twin.agreement.publishers
    # Execute and assert the first step: z_L, and the gradients that crossed the channel.
    z = twin.step()
    hidden = next(payload for message, payload in sent if message.kind == HIDDEN)
    assert float((hidden - z).abs().max()) < FIRST_STEP
    assert largest_difference(grads(once.parties["server"].network), grads(twin.network)) < FIRST_STEP
    assert largest_difference(grads(once.label_holder.output), grads(twin.output)) < FIRST_STEP
    for name in publishers:
        ours = grads(next(h for h in once.holders if h.channel.party == name).modules)
        assert largest_difference(ours, grads(twin.modules[name])) < FIRST_STEP
    if twin.w is not None:
        g = sum(h.joint.momentum.n for h in once.holders if h.joint.reveals)  # N_1 = G
        assert float((twin.x.t() @ g - twin.w.grad).abs().max()) < FIRST_STEP
    # Execute and assert 20 steps.
    many, *_ = trained(settings, holders, graph)
    for _ in range(STEPS - 1):
        twin.step()
    assert largest_difference(many.parties["server"].network.parameters(), twin.network.parameters()) < AFTER_TRAINING
    assert largest_difference(many.label_holder.output.parameters(), twin.output.parameters()) < AFTER_TRAINING
    for name in publishers:
        ours = next(h for h in many.holders if h.channel.party == name).modules.parameters()
        assert largest_difference(ours, twin.modules[name].parameters()) < AFTER_TRAINING
    if twin.w is not None:
        assert float((joint_weights(many) - twin.w.detach()).abs().max()) < AFTER_TRAINING


def grads(module):
    return [weight.grad for weight in module.parameters()]


@pytest.mark.parametrize(
    "holders", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("combine", COMBINES)
@pytest.mark.parametrize("gnn", GNNS)
def test_collaborative_equals_autograd(gnn, combine, holders):
    check(settings_for(gnn=gnn, combine=combine), holders, random_graph(integer=True))


@pytest.mark.parametrize("holders", [2, 3, 4])
@pytest.mark.parametrize(
    "changes",
    [
        {"initial_embedding": "individual"},
        {"joint_nesterov": True},
        {"fanout": (2, 2)},
        {"fanout": (1, 2), "gnn": "gcn"},
        {"hidden_layers": 0, "combine": "concat"},
        {"hidden_layers": 2},
        {"dropout": 0.0},
        {"embedding_activation": "tanh"},
    ],
)
def test_variants_equal_autograd(changes, holders):
    check(settings_for(**changes), holders, random_graph(integer=True))


def test_the_comparison_can_fail(graph):
    """One holder's gradient dropped, and the twin notices."""
    settings = settings_for()
    labels = split_labels(graph)
    holdings = partition(graph.x, graph.edge_index, holders=2, seed=3)
    twin = Twin(holdings, labels, settings, seed=5)
    parties = build(holdings, labels, settings.model_copy(update={"epochs": 2}), seed=5)
    parties.holders[1].features.learn = lambda: None
    parties.train()
    twin.step()
    twin.step()
    assert float((joint_weights(parties) - twin.w.detach()).abs().max()) > 1e-4


@pytest.mark.parametrize("gnn", GNNS)
def test_publish_all_trains_the_same_model(gnn, graph):
    """Rows that get no gradient change nothing but the traffic (dropout off: the masks have other shapes)."""
    outcomes = []
    for publish in ("needed", "all"):
        changes = {"gnn": gnn, "publish": publish, "dropout": 0.0, "evaluate_every": 1}
        settings = settings_for(**changes)
        if gnn == "sage_lstm":  # its neighbours are drawn in each step, whichever rows are published
            settings = settings.model_copy(update={"epochs": 3})
        parties, *_ = trained(settings, 3, graph, steps=settings.epochs)
        outcomes.append((joint_weights(parties), parties.result.outcome, parties.result.logits))
    needed, everything = outcomes
    assert float((needed[0] - everything[0]).abs().max()) < AFTER_TRAINING
    assert needed[1].test_accuracy == everything[1].test_accuracy
    # A logit is a sum over d = 8 of weights and rows that each differ by some 1e-8 after a few layers: below 1e-6.
    assert float((needed[2] - everything[2]).abs().max()) < 1e-6


def test_float32_follows_float64(graph):
    """The default precision computes the same model: loss curves agree to float32's accuracy.

    20 steps; each loss is a mean of 20 terms of size ~1 after < 10^3 roundings of 6e-8: 1e-4 with room for Adam.
    """
    curves = []
    for precision in ("float32", "float64"):
        settings = settings_for(precision=precision)
        labels = split_labels(graph)
        holdings = partition(graph.x, graph.edge_index, holders=2, seed=3)
        parties = build(holdings, labels, settings, seed=5)
        parties.train()
        curves.append([m.loss for m in parties.result.outcome.history if m.loss is not None])
    assert max(abs(a - b) for a, b in zip(*curves, strict=True)) < 1e-4


def test_graph_size_does_not_matter():
    graph = random_graph(nodes=24, features=5, edges=30, seed=9, integer=True)
    check(settings_for(gnn="sage_mean", layers=3), 2, graph)
