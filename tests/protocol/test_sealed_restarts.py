"""A sealed training that is interrupted goes on from its shares, under masks of its own, and opens nothing twice."""

import random
from collections import defaultdict
from dataclasses import replace

import pytest
import torch

from tests.masks import TOLD, Sent, repeated
from tests.protocol.test_sealed_accuracy import CASES as ACCURACY
from tests.protocol.test_sealed_accuracy import assert_within_the_bound
from tests.recording import first_words
from tests.restarts import Interrupted, Killed, lineage
from tests.sealed_twin import go_through, small
from vfgnn.errors import CheckpointRefused, PolicyRefused
from vfgnn.lab.simulate import assemble
from vfgnn.privacy.openings import OpeningLedger, Policy
from vfgnn.sealed.label_holder import SealedLabelHolder
from vfgnn.sealed.program import training
from vfgnn.sealed.sizes import SealedSizes

LABELS = {"hops": 2, "order": "labels", "steps": 3, "ridges": [0.3, 1.0]}
COLUMNS = {**LABELS, "order": "features", "columns_at_once": 4}
CASES = {
    "labels": (lambda: small(2, seed=31), LABELS),
    "labels, 3 holders, scores": (lambda: small(3, real=(1,), seed=32), {**LABELS, "opens": "scores"}),
    "labels, weighted by class": (lambda: small(2, seed=36), {**LABELS, "class_weights": "balanced"}),
    "one step": (lambda: small(2, seed=33), {**LABELS, "steps": 1}),
    "columns travel": (lambda: small(3, real=(1,), seed=34), {**COLUMNS, "columns_at_once": 6}),
    "columns travel, hops": (lambda: small(2, classes=2, nodes=40, seed=35), {**COLUMNS, "kernel": "hops"}),
}
QUICK = ("labels", "columns travel, hops")  # one of each order


def made(name, **changes):
    make, sealed = CASES[name]
    held, labels = make()
    return Interrupted(held, labels, sealed, names=("B", "C", "A")[: len(held)], **changes)


def assert_equals_twin(found):
    """Word by word: the same starts on plain words, with the same masks."""
    agreement, labels = found.agreement, found.labels
    fresh = assemble(agreement, found.held, labels, training(agreement), seed=0, protocol="sealed")
    starts = lineage(found.starts)
    _, trained, leader = go_through(agreement, found.held, labels, fresh.label_holder, seed=0, starts=starts)
    expected = {**{f"weights/{owner}": one for owner, one in trained.weights.items()}, "offset": trained.offset}
    words = found.weights()
    assert words.keys() == expected.keys()
    assert all(torch.equal(words[key], expected[key]) for key in words)
    assert torch.equal(found.opened, leader.heard)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_it_goes_on_from_every_step_as_the_integer_twin_does(name):
    whole = made(name)
    whole.start("one", forgets=False)
    assert_equals_twin(whole)
    for begin in range(1, whole.end):
        again = whole.copy()
        again.start("two", begin=begin)
        assert_equals_twin(again)
        for ledger in again.ledgers.values():
            assert len(ledger.openings) == 1  # it is one training


@pytest.mark.parametrize("name", ["smooth", pytest.param("hops", marks=pytest.mark.slow)])
def test_scores_of_several_starts_are_within_the_derived_bound(name, monkeypatch):
    """It asks nothing of masks: each cut is off by less than one unit, whichever start makes it."""
    make, changed = ACCURACY[name]
    held, labels = make()
    found, told = Interrupted(held, labels, {"opens": "scores", "order": "labels", **changed}), []
    choose = SealedLabelHolder.choose
    monkeypatch.setattr(SealedLabelHolder, "choose", lambda self, words: told.append(words) or choose(self, words))
    found.start("one", forgets=False)
    for name_, begin in (("two", 2), ("three", 4), ("four", 5)):
        roles = found.start(name_, begin=begin, forgets=False)
    holders = [roles[name] for name in found.agreement.holder_names]
    assert_within_the_bound(held, labels, holders, told[-1], **changed)


def test_what_is_told_again_is_what_was_told():
    """Of three holders each share is hidden anew; what they add up to is the same word by word."""
    whole = made("labels, 3 holders, scores")
    whole.start("one", forgets=False)
    quotient, products, classes, scores = whole.telling
    leader = whole.disks["B"]
    for begin, key in ((quotient, "training/heard/quotient"), (products, "training/heard/inner_products")):
        again = whole.copy()
        again.start("two", begin=begin)
        assert torch.equal(again.disks["B"][classes][key], leader[classes][key])
    again = whole.copy()
    again.start("two", begin=scores)
    assert torch.equal(again.opened, whole.opened)
    before = whole.copy()
    before.start("two", begin=scores - 1)  # what a training tells that forgets where it was
    assert not torch.equal(before.opened, whole.opened)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_killed_at_any_message_it_opens_everything_once(name, seed):
    """Whoever holds its shares at that moment: all go back to the step that all have, and no further."""
    found, draw, whole = made(name), random.Random(seed), made(name)
    whole.start("undisturbed")
    kills, messages = 0, len(whole.seen[0])
    while whole.end not in found.disks["C"] or found.common < found.end:
        try:
            found.start(f"start {kills}", lasts=draw.randrange(messages) if kills < 6 else None)
        except Killed:
            kills += 1
    assert_equals_twin(found)
    (ledger,) = found.ledgers.values()
    assert [(one.run, one.kind) for one in ledger.openings] == [("run", "training")]
    told = defaultdict(set)
    for seen in found.seen:
        for message, payload in seen:
            if message.kind in TOLD:
                told[message.kind].add(payload.numpy().tobytes())
    assert len(told) == 4
    assert {kind: len(contents) for kind, contents in told.items()} == dict.fromkeys(told, 1)


SET_UP = {"sealed_seed", "sealed_pair_seed", "order_seed", "pad_seed", "sealed_features"}
SET_UP |= {"gather_1", "gather_2", "gather_3", "sealed_correction", "sealed_opened"}
MASKED = SET_UP | {"bounce_1", "bounce_2", "bounce_3", "graph_masked", "columns_masked", "nodes_masked"}
MASKED |= {"columns_correction", "nodes_correction"}


def sent_in(found):
    """All messages of all starts; those of one name are told apart by nothing but their content."""
    for number, seen in enumerate(found.seen):
        for message, payload in seen:
            content = payload.contiguous().numpy().tobytes()
            ends = message.sender, message.receiver, str(message.kind)
            yield Sent(str(number), *ends, message.bytes, content, first_words(payload))


@pytest.mark.parametrize("begin", [0, 4])
def test_no_mask_pad_seed_or_permutation_comes_twice(begin):
    """In a start that does again what one did before, with the same columns, edges and shares."""
    whole = made("labels, 3 holders, scores")
    whole.start("one", forgets=False)
    fresh, again = whole.copy(), whole.copy()
    fresh.seen, again.seen = list(whole.seen), list(whole.seen)
    for found, name in ((fresh, "two"), (again, "one")):
        if not begin:  # as if it had been killed before anything was opened
            found.ledgers = {name: OpeningLedger() for name in found.ledgers}
        found.start(name, begin=begin)
    kinds = {one.kind for one in sent_in(fresh)}
    assert kinds >= MASKED
    assert not repeated(sent_in(fresh))
    # A variant that draws from the same seeds under the same name: all that does not depend on where it goes on.
    found = repeated(sent_in(again))
    assert found >= SET_UP and (begin or found == MASKED | {"sealed_opened, in sum"})


def test_there_is_no_going_back_behind_what_was_told():
    """Not for a label holder that has lost its last step, nor for one that says so."""
    found = made("labels")
    with pytest.raises(Killed):
        found.start("one", after="quotient")
    first, *_ = found.telling
    assert sorted(found.disks["C"]) == [first]  # the other holder has told, and forgotten what was before
    assert sorted(found.disks["B"]) == [0, first]
    del found.disks["B"][first]
    with pytest.raises(PolicyRefused, match="refuses to begin run run anew: something of it has been opened"):
        found.start("two", begin=0)


def test_a_training_that_goes_on_is_about_the_same_rows():
    found = made("labels")
    found.start("one", forgets=False)
    train = torch.cat([found.labels.val[:1], found.labels.train[1:]])
    val = torch.cat([found.labels.train[:1], found.labels.val[1:]])
    found.labels = type(found.labels)(found.labels.y, train, val, found.labels.test, found.labels.classes)
    with pytest.raises(CheckpointRefused, match="other rows train and validate than when this training began"):
        found.start("two", begin=SealedSizes(found.agreement, 12, 6).units)


@pytest.mark.parametrize("limit", ["max_trainings", "max_opened_rows"])
def test_every_other_holder_refuses_what_is_beyond_its_limits_before_anything_is_computed(limit):
    """Whatever the label holder does: it has no part in the counting. With labels that it made up, it is one more."""
    found = made("labels, 3 holders, scores")
    found.start("one")
    y = found.labels.y.flip(0)
    found.labels = replace(found.labels, y=y)
    limits = {"max_trainings": 1} if limit == "max_trainings" else {"max_opened_rows": found.agreement.nodes + 2 * 6}
    for name in found.policies:
        found.policies = {other: Policy(other, max_trainings=10**6) for other in found.policies}
        found.policies[name] = Policy(name, **limits)
        with pytest.raises(PolicyRefused, match=f"{name} refuses to open more: {limit}") as refused:
            found.start(f"two at {name}", begin=0, run="two")
        assert refused.value.exit_code == 4
        assert name not in {message.sender for message, _ in found.seen[-1]}
        assert "sealed_opened" not in {message.kind for message, _ in found.seen[-1]}
    assert all(len(ledger.openings) == 1 for ledger in found.ledgers.values())
