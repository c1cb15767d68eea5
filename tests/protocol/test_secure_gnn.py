"""SecureGNN, all parties: trains, stays within its schedule, and shows nobody but the label holder a logit."""

from collections import defaultdict
from contextlib import suppress

import pytest
import torch

from tests.shares import looks_uniform
from vfgnn.data.holdings import Holding, Labels
from vfgnn.errors import ConfigError, VfgnnError
from vfgnn.lab.scenario import agreement_of
from vfgnn.lab.secure_gnn import train_secure_gnn
from vfgnn.mpc import beaver
from vfgnn.secure_gnn.program import GRADIENT_SHARE, LOGITS_SHARE, MASKED_SHARE, MATERIAL_CORRECTION, serverless
from vfgnn.settings import Preset
from vfgnn.transport.memory import InMemoryNetwork

NODES, CLASSES = 60, 3


class Tapped(InMemoryNetwork):
    """Keeps a copy of everything that crosses a link."""

    def __init__(self):
        super().__init__()
        self.seen = defaultdict(list)

    def put(self, message, payload):
        self.seen[message.kind, message.sender, message.receiver].append(payload.clone())
        super().put(message, payload)


def small(parties=2):
    """A graph with classes that neighbours share."""
    generator = torch.Generator().manual_seed(5)
    y = torch.arange(NODES) % CLASSES
    holdings = []
    for _ in range(parties):
        x = torch.nn.functional.one_hot(y, CLASSES).float() + 0.5 * torch.rand(NODES, CLASSES, generator=generator)
        source = torch.randint(0, NODES, (200,), generator=generator)
        target = (source + CLASSES * torch.randint(1, 10, (200,), generator=generator)) % NODES
        keep = source != target
        pairs = torch.stack([source[keep], target[keep]])
        holdings.append(Holding(x=x, edge_index=torch.unique(torch.cat([pairs, pairs.flip(0)], dim=1), dim=1)))
    order = torch.randperm(NODES, generator=generator)
    labels = Labels(
        y=y, train=order[:20].sort()[0], val=order[20:40].sort()[0], test=order[40:].sort()[0], classes=CLASSES
    )
    return holdings, labels


def settings(**changes):
    values = {"epochs": 30, "dim": 8, "patience": None, "joint_learning_rate": 0.3, "layers": 1, "publish": "needed"}
    return Preset("paper").settings(overrides={**values, **changes})


@pytest.mark.parametrize("joint_layer", ["insecure_clear", "secure"])
@pytest.mark.parametrize("publish", ["needed", "all"])
def test_it_learns(publish, joint_layer):
    holdings, labels = small()
    changes = {"publish": publish, "joint_layer": joint_layer, "epochs": 60, "dropout": 0.0}
    outcome = train_secure_gnn(holdings, labels, settings(**changes), seed=0)
    assert outcome.test_accuracy > 0.9
    assert outcome.history[-2].loss < 0.5 * outcome.history[0].loss


@pytest.mark.parametrize("combine", ["mean", "concat"])
@pytest.mark.parametrize("parties", [2, 3])
def test_any_number_of_holders(parties, combine):
    holdings, labels = small(parties)
    outcome = train_secure_gnn(holdings, labels, settings(combine=combine, dropout=0.5), seed=0)
    assert outcome.history[-2].loss < outcome.history[0].loss


def test_needed_and_all_train_the_same_model():
    holdings, labels = small()
    found = {
        publish: train_secure_gnn(holdings, labels, settings(publish=publish, dropout=0.0, epochs=10), seed=0)
        for publish in ("needed", "all")
    }
    losses = {publish: torch.tensor([m.loss for m in outcome.history[:-1]]) for publish, outcome in found.items()}
    # Truncation rounds at random, so not bit by bit.
    torch.testing.assert_close(losses["needed"], losses["all"], atol=2e-3, rtol=2e-3)


def test_an_early_stop_leaves_nobody_behind():
    holdings, labels = small()
    outcome = train_secure_gnn(holdings, labels, settings(patience=2, epochs=200), seed=0)
    assert outcome.history[-1].epoch < 200


@pytest.fixture(scope="module")
def tapped():
    holdings, labels = small(3)
    network = Tapped()
    train_secure_gnn(holdings, labels, settings(epochs=5, dropout=0.0), seed=0, network=network)
    return network


@pytest.mark.parametrize("kind", [MASKED_SHARE, MATERIAL_CORRECTION, LOGITS_SHARE, GRADIENT_SHARE])
def test_what_crosses_a_link_is_uniform(tapped, kind):
    links = {
        link: torch.cat([each.flatten() for each in sent]) for link, sent in tapped.seen.items() if link[0] == kind
    }
    assert links
    for words in links.values():
        assert looks_uniform(words)


def test_only_the_label_holder_gets_logits(tapped):
    assert {receiver for kind, _, receiver in tapped.seen if kind == LOGITS_SHARE} == {"A"}
    assert not any("server" in link for link in tapped.seen)


def opened(network):
    """What both holders learn from the openings: the sums of their shares."""
    pairs = zip(network.seen[MASKED_SHARE, "A", "B"], network.seen[MASKED_SHARE, "B", "A"], strict=True)
    return torch.cat([(one + other).flatten() for one, other in pairs])


def test_opened_values_are_uniform_and_without_masks_would_not_be(monkeypatch):
    holdings, labels = small(2)
    honest, careless = Tapped(), Tapped()
    train_secure_gnn(holdings, labels, settings(epochs=2), seed=0, network=honest)
    assert looks_uniform(opened(honest))
    monkeypatch.setattr(beaver, "masked", lambda share, mask: share)
    with suppress(VfgnnError):  # what comes out is wrong, and may be refused: the openings have been seen by then
        train_secure_gnn(holdings, labels, settings(epochs=2), seed=0, network=careless)
    assert not looks_uniform(opened(careless))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"combine": "regression"}, "mean or concat"),
        ({"dropout": 0.3}, "whole 1 / \\(1 - dropout\\)"),
        ({"privacy": {"label_epsilon": 2.0}}, "privacy"),
    ],
)
def test_what_cannot_be_done_on_shares_is_refused(changes, says):
    holdings, labels = small()
    with pytest.raises(ConfigError, match=says):
        serverless(agreement_of(holdings, labels, settings(**changes)))
