"""The joint layer: secure and clear give the same words, sums are exact, and what cannot be encoded is never sent."""

from collections import defaultdict, deque

import pytest
import torch

from tests.conftest import random_graph
from tests.protocol.joint import Run, agreement_of
from tests.protocol.test_equals_autograd import joint_weights, trained
from vfgnn.agreement import DEALER, SERVER
from vfgnn.common_programs import END
from vfgnn.data.partition import partition
from vfgnn.errors import DataError, Overflow
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import build
from vfgnn.messages import total_bytes
from vfgnn.settings import make_settings
from vfgnn.split import program
from vfgnn.split.program import (
    CONTROL,
    H0_SHARE,
    JOINT_PRODUCT,
    JOINT_UPDATE,
    JOINT_WEIGHTS,
    MASKED_FEATURES,
    PAIR_SEED,
)

BETWEEN_HOLDERS = {PAIR_SEED, MASKED_FEATURES, JOINT_WEIGHTS, JOINT_UPDATE, JOINT_PRODUCT}
BETWEEN_HOLDERS |= {H0_SHARE}


def settings_for(**changes):
    values = {
        "dim": 8,
        "layers": 2,
        "epochs": 6,
        "joint_learning_rate": 0.5,
        "joint_weight_decay": 0.001,
        "accept_h0_leak": True,
    }
    return make_settings({**values, **changes}, where="test")


@pytest.mark.parametrize("holders", [1, 2, 3, 4])
@pytest.mark.parametrize("integer", [True, False])
def test_secure_and_clear_give_the_same_weights_bit_by_bit(holders, integer):
    weights = []
    for layer in ("secure", "insecure_clear"):
        parties, *_ = trained(settings_for(joint_layer=layer), holders, random_graph(integer=integer), steps=6)
        weights.append((joint_weights(parties), parties.result.logits))
    assert torch.equal(weights[0][0], weights[1][0])
    assert torch.equal(weights[0][1], weights[1][1])


def test_server_and_dealer_see_no_message_between_holders():
    *_, sent = trained(settings_for(joint_layer="secure"), 3, random_graph(), steps=2)
    kinds = {party: {m.kind for m, _ in sent if m.receiver == party} for party in (SERVER, DEALER)}
    assert not kinds[SERVER] & BETWEEN_HOLDERS
    assert kinds[DEALER] == {CONTROL, END}
    assert not [m for m, _ in sent if m.kind in BETWEEN_HOLDERS and {m.sender, m.receiver} & {SERVER, DEALER}]


def test_what_is_opened_is_counted_by_name():
    parties, *_ = trained(settings_for(joint_layer="secure"), 3, random_graph(), steps=2)
    assert all(holder.channel.revealed == {"h0_share": 3} for holder in parties.holders)  # H_0 and two refreshes
    assert not parties.parties[SERVER].channel.revealed


def test_a_feature_beyond_its_bound_is_refused_before_anything_is_sent():
    graph = random_graph()
    graph.x[3, 2] = 5000.0
    holdings = partition(graph.x, graph.edge_index, holders=2, seed=3)
    with pytest.raises(DataError, match="at most 1024"):
        build(holdings, split_labels(graph), settings_for(), seed=1)


def test_an_update_beyond_its_bound_is_refused_before_it_is_sent():
    parties, *_ = trained(settings_for(epochs=1), 2, random_graph(), steps=1)
    layer = parties.holders[1].joint
    layer.momentum.q[0, 0] = 1e9
    with pytest.raises(DataError, match="update of W"):
        layer._encoded_updates()


def test_a_reveal_that_the_ring_cannot_hold_ends_the_run():
    """A rate that throws h0 out of bounds, and nothing is learnt from wrapped words."""
    with pytest.raises((Overflow, DataError)):
        trained(settings_for(joint_learning_rate=1e6, joint_weight_decay=0.0), 2, random_graph(), steps=6)


@pytest.mark.parametrize("layer", ["secure", "insecure_clear"])
@pytest.mark.parametrize("holders", [2, 3, 4])
def test_declared_bytes_and_rounds_are_the_measured_ones(holders, layer):
    """Rounds are counted as the longest chain of messages that wait for each other."""
    features = [torch.eye(12, 5 + i) for i in range(holders)]
    agreement = agreement_of(features, [True] * holders, joint_layer=layer)
    run = Run(agreement, features)
    chain = Chain(run.network)
    run.go(2, lambda *_: None)
    declared = program.setup_messages(agreement) + 2 * program.joint_refresh(agreement)
    measured = sum(words.numel() * words.element_size() for _, words in run.transcript)
    assert measured == total_bytes(declared)
    assert sorted(str(message) for message, _ in run.transcript) == sorted(map(str, declared))
    # Setup: the dealer's seeds, seeds of pairs (three or more holders), E, F, reveal; in the clear F and reveal.
    # Each refresh: update, product (secure), reveal.
    setup, refresh = (4 if holders == 2 else 5, 3) if layer == "secure" else (2, 2)
    assert chain.longest == setup + 2 * refresh


class Chain:
    """A logical clock: a message is one later than the latest that its sender had received."""

    def __init__(self, network):
        self.longest, self._clock, self._sent = 0, defaultdict(int), defaultdict(deque)
        put, get = network.put, network.get

        def later(message, payload):
            self._sent[message.sender, message.receiver].append(self._clock[message.sender] + 1)
            self.longest = max(self.longest, self._clock[message.sender] + 1)
            put(message, payload)

        def received(sender, receiver):
            result = get(sender, receiver)
            self._clock[receiver] = max(self._clock[receiver], self._sent[sender, receiver].popleft())
            return result

        network.put, network.get = later, received
