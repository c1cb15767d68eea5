"""What a party receives is uniform; and these tests can fail: each mask removed in turn is noticed.

Statistics are a smoke test, the argument is in docs/protocol.md. Chi-square over bytes has 255 degrees of freedom: mean
255, deviation 22.6. Random bytes stay within 6 deviations (probability 2e-9 each way for a normal tail).
"""

import pytest
import torch

from tests.protocol.joint import Run, agreement_of
from vfgnn.mpc.correlations import Masks
from vfgnn.mpc.fixed_point import FixedPoint, update_bits, weight_bits
from vfgnn.mpc.products import PrivateProducts
from vfgnn.mpc.sharing import ZeroSharing
from vfgnn.randomness import insecure_seed
from vfgnn.split.joint_layer import draw_weight_share
from vfgnn.split.program import (
    CORRECTION_BACKWARD,
    CORRECTION_FORWARD,
    H0_SHARE,
    JOINT_PRODUCT,
    JOINT_UPDATE,
    JOINT_WEIGHTS,
    MASKED_FEATURES,
)

UNIFORM = [
    MASKED_FEATURES,
    JOINT_WEIGHTS,
    JOINT_UPDATE,
    JOINT_PRODUCT,
    CORRECTION_FORWARD,
    CORRECTION_BACKWARD,
    H0_SHARE,
]


def made(holders=3, seed=0, sabotage=None, steps=3):
    """Large enough for statistics: each kind has at least 64 x 16 words per message."""
    draw = torch.Generator().manual_seed(seed)
    features = [(torch.rand(96, 64, generator=draw) < 0.1).float() for _ in range(holders)]
    agreement = agreement_of(features, [True] * holders, dim=16)
    updates = torch.randn(holders, 96, 16, generator=draw).double() * 0.01
    run = Run(agreement, features, seed=seed, sabotage=sabotage)
    run.go(steps, lambda name, layer, _: layer.momentum.q.add_(updates[int(name[1])]))
    return run, features, updates


def deviations(run, kind):
    """How many standard deviations the bytes of all messages of a kind are from uniform."""
    sent = {}  # the same words to several receivers are counted once
    for message, words in run.transcript:
        if message.kind == kind:
            sent[message.sender, tuple(words.flatten()[:4].tolist())] = words.flatten()
    payload = torch.cat(list(sent.values()))
    counts = torch.bincount(payload.view(torch.uint8).long(), minlength=256).double()
    expected = counts.sum() / 256
    return (float(((counts - expected) ** 2 / expected).sum()) - 255) / 22.6


def correlation(words, secret):
    a, b = words.double().flatten(), secret.double().flatten()
    return float(torch.corrcoef(torch.stack([a, b]))[0, 1])


@pytest.mark.parametrize("holders", [2, 3, 4])
def test_every_message_is_uniform(holders):
    run, features, updates = made(holders)
    for kind in UNIFORM:
        assert abs(deviations(run, kind)) < 6, kind
    for message, words in run.transcript:
        sender = int(message.sender[1]) if message.sender.startswith("h") else None
        if message.kind == MASKED_FEATURES:
            # 6144 independent words: the correlation's standard error is 1/sqrt(6144) = 0.0128; six of them.
            assert abs(correlation(words, features[sender])) < 6 / 6144**0.5
        if message.kind == JOINT_UPDATE:
            assert abs(correlation(words, updates[sender])) < 6 / 1536**0.5


def without(monkeypatch, name):
    """A mask that is all zeros."""
    monkeypatch.setattr(Masks, name, lambda self, *arguments: torch.zeros(shape_of(name, arguments), dtype=torch.int64))


def shape_of(name, arguments):
    return tuple(arguments) if name == "features" else arguments[-1]


@pytest.mark.parametrize(
    ("mask", "exposed"),
    [
        ("features", MASKED_FEATURES),
        ("operand", JOINT_WEIGHTS),
        ("operand", JOINT_UPDATE),
    ],
)
def test_a_missing_mask_is_noticed(monkeypatch, mask, exposed):
    without(monkeypatch, mask)
    run, *_ = made()
    assert deviations(run, exposed) > 6


def test_a_missing_mask_of_the_product_gives_the_update_away(monkeypatch):
    """<P_k>_j is uniform by itself; without V, k would put P_k = X_k^T Q together."""
    kept = {}
    backward = PrivateProducts.backward

    def remember(self, *arguments, **keywords):
        kept[self._channel.party] = backward(self, *arguments, **keywords)
        return kept[self._channel.party]

    monkeypatch.setattr(PrivateProducts, "backward", remember)
    for masked in (True, False):
        if not masked:
            without(monkeypatch, "operand")
        run, features, updates = made(2, steps=1)
        received = next(w for m, w in run.transcript if (m.kind, m.receiver) == (JOINT_PRODUCT, "h0"))
        encode = FixedPoint(update_bits(0), 2048.0).encode
        secret = features[0].long().t() @ sum(encode(update, "q") for update in updates)
        assert torch.equal(kept["h0"]["h0"] + received, secret) == (not masked)


def test_a_missing_result_mask_is_noticed(monkeypatch):
    """Without Z a correction is U V: whoever knows V (it does) and many of them solves for U."""
    without(monkeypatch, "result")
    run, *_ = made(2)
    message, words = next((m, w) for m, w in run.transcript if m.kind == CORRECTION_FORWARD)
    receiver, owner = message.receiver, "h1" if message.receiver == "h0" else "h0"
    v = run.layers[receiver]._products._masks.operand(owner, "forward", 0, (64, 16))
    u = run.layers[owner]._products._masks.features(96, 64)
    assert torch.equal(words, u @ v)


def attack(run):
    """Holder h0, alone with the features, puts together X <W>_j of a single j from what it has seen."""
    layer = run.layers["h0"]
    share = next(w for m, w in run.transcript if (m.kind, m.sender, m.receiver) == (H0_SHARE, "h1", "h0"))
    masked = next(w for m, w in run.transcript if (m.kind, m.sender) == (JOINT_WEIGHTS, "h1"))
    z = layer._products._masks.result("h1", "forward", 0, (20, 4))
    return share + z + layer._x_ring @ masked


def only_h0_has_features(sabotage=None):
    x = torch.arange(100.0).reshape(20, 5) % 7
    features = [x, torch.zeros(20, 0), torch.zeros(20, 0)]
    agreement = agreement_of(features, [True, True, True])
    run = Run(agreement, features, sabotage=sabotage).go(1, lambda *_: None)
    w = draw_weight_share(agreement, insecure_seed(1))["h0"]
    return run, x.long() @ FixedPoint(weight_bits(0), 16.0).encode(w, "w")


def test_the_sharing_of_zero_hides_a_single_holders_part(monkeypatch):
    run, secret = only_h0_has_features()
    assert not torch.equal(attack(run), secret)
    assert (attack(run) == secret).sum() == 0
    monkeypatch.setattr(ZeroSharing, "hide", lambda self, share, counter: share)
    run, secret = only_h0_has_features()
    assert torch.equal(attack(run), secret)  # without it the attack succeeds to the last bit


def test_masks_differ_between_products_owners_directions_and_runs():
    one, other = (Masks(insecure_seed(1), run=run, holder="a") for run in ("run 1", "run 2"))
    seen = [
        masks.operand(owner, direction, counter, (4, 4))
        for masks in (one, other)
        for owner in ("b", "c")
        for direction in ("forward", "backward")
        for counter in (0, 1)
    ]
    assert len({tuple(words.flatten().tolist()) for words in seen}) == len(seen)


def test_nothing_secret_in_a_repr():
    masks = Masks(insecure_seed(1), run="r", holder="a")
    assert "insecure" not in repr(masks)
