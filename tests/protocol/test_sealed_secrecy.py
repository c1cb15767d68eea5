"""What each party of a sealed training receives is uniform; and these tests can fail: each mask is removed in turn.

Statistics are a smoke test, the argument is in docs/sealed.md. Chi-square over bytes has 255 degrees of freedom: mean
255, deviation 22.6. Random bytes stay within 6 deviations; seeds are fixed.
A share is uniform by itself, whatever it is sent under. So what counts is what a receiver can put together: the sum of
all that is opened, and its own share plus what the others send it.
"""

from collections import defaultdict

import pytest
import torch

from tests.sealed_twin import small, train
from vfgnn.agreement import DEALER
from vfgnn.mpc import material
from vfgnn.mpc.correlations import Masks
from vfgnn.mpc.graph_masks import GraphMasks
from vfgnn.mpc.products import PrivateProducts
from vfgnn.mpc.shared import Operation
from vfgnn.mpc.sharing import ZeroSharing, reconstruct
from vfgnn.mpc.sparse import PrivateGraphs
from vfgnn.randomness import Stream
from vfgnn.sealed import program
from vfgnn.sealed.prediction import PREDICTED_CLASSES
from vfgnn.sealed.rehearsal import script
from vfgnn.sealed.sizes import SealedSizes
from vfgnn.sealed.training import INNER_PRODUCTS, QUOTIENT, VALIDATION_CLASSES
from vfgnn.transport.memory import InMemoryNetwork

TOLD = {QUOTIENT, INNER_PRODUCTS, VALIDATION_CLASSES, PREDICTED_CLASSES}
PUBLIC = {program.ROW_ROLES, program.ROW_COUNTS}
SEEDS = {program.MATERIAL_SEED, program.PAIR_SEED, program.ORDER_SEED, program.PAD_SEED}
TABLES = {program.GATHER_1, program.GATHER_2, program.GATHER_3}
SETTINGS = {"hops": 3, "ridges": [0.3, 1.0], "steps": 3}
OPERATIONS = ("blinding", "scaling", "truncation", "lookup", "product", "Gram product", "differences", "bit tables")
BY_ORDER = {"labels": OPERATIONS, "features": (*OPERATIONS, "fixed matrix product")}
MASKED = {
    "labels": (program.GRAPH_MASKED, program.NODES_MASKED, program.COLUMNS_MASKED),
    "features": (program.GRAPH_MASKED, program.NODES_MASKED),
}


class Seen:
    """A training, every message of it, and what each holder put into its products."""

    def __init__(self, holders=2, *, seed=0, data=0, order="labels", monkeypatch):
        self.messages, self.inputs = [], defaultdict(list)
        network = InMemoryNetwork()
        put = network.put

        def spy(message, payload):
            self.messages.append((message, payload.clone()))
            put(message, payload)

        network.put = spy
        self._spy_on(monkeypatch)
        monkeypatch.setattr("vfgnn.lab.scenario._declared", lambda holding: 150)
        held, labels = small(holders, nodes=90, seed=data, real=(1,), edges=60, columns=[9] * holders)
        self.trained = train(held, labels, seed=seed, network=network, order=order, **SETTINGS)
        self.agreement = self.trained.agreement
        self.sizes = SealedSizes(self.agreement, len(labels.train), len(labels.val))

    def _spy_on(self, monkeypatch):
        hop, forward, backward = PrivateGraphs.times, PrivateProducts.forward, PrivateProducts.backward

        def times(graphs, share, prepared, *, self_loops):
            self.inputs[graphs._channel.party, program.GRAPH_MASKED].append(share.clone())
            return hop(graphs, share, prepared, self_loops=self_loops)

        def spying(method, kind):
            def multiplied(products, blocks, **keywords):
                me = products._channel.party
                if me in blocks:
                    self.inputs[me, kind].append(blocks[me].clone())
                return method(products, blocks, **keywords)

            return multiplied

        monkeypatch.setattr(PrivateGraphs, "times", times)
        monkeypatch.setattr(PrivateProducts, "forward", spying(forward, program.NODES_MASKED))
        monkeypatch.setattr(PrivateProducts, "backward", spying(backward, program.COLUMNS_MASKED))

    def sent(self, kind, sender=None, receiver=None):
        """Payloads of a kind, in order."""
        return [
            payload
            for message, payload in self.messages
            if message.kind == kind and sender in (None, message.sender) and receiver in (None, message.receiver)
        ]

    def opened(self):
        """By operation: what all holders together make known to all."""
        holders = self.agreement.holder_names
        neighbour = {name: holders[0] if name != holders[0] else holders[1] for name in holders}
        each = [self.sent(program.OPENED, name, neighbour[name]) for name in holders]
        joined = [reconstruct(shares) for shares in zip(*each, strict=True)]
        items = [item for part in phases(self.sizes) for item in part if isinstance(item, Operation)]
        names = [item.name for item in items for _ in item.opened]
        found = defaultdict(list)
        for name, words in zip(names, joined, strict=True):
            found[name].append(words)
        return found

    def met(self, kind):
        """What each owner puts together: its own share, and what all others send it."""
        found = []
        for owner in self.agreement.holder_names:
            others = [name for name in self.agreement.holder_names if name != owner]
            received = [self.sent(kind, name, owner) for name in others]
            found += [reconstruct(parts) for parts in zip(self.inputs[owner, kind], *received, strict=True)]
        return found


def phases(sizes):
    found = script(sizes)
    return [found.prepare, *found.steps, found.finish]


def deviations(payloads):
    """How many standard deviations the bytes are from uniform; the same payload counts once."""
    distinct = {tuple(payload.flatten()[:4].tolist()): payload for payload in payloads}
    joined = torch.cat([payload.contiguous().flatten().view(torch.uint8) for payload in distinct.values()])
    counts = torch.bincount(joined.long(), minlength=256).double()
    expected = counts.sum() / 256
    return (float(((counts - expected) ** 2 / expected).sum()) - 255) / 22.6


@pytest.mark.parametrize("holders", [2, 3])
@pytest.mark.parametrize("data", [1, 2])
@pytest.mark.parametrize("order", list(BY_ORDER))
def test_what_each_party_receives_is_uniform(holders, data, order, monkeypatch):
    """But for sizes, seeds, which rows train, and what is opened to the label holder."""
    seen = Seen(holders, data=data, order=order, monkeypatch=monkeypatch)
    leader = seen.agreement.label_holder
    views = defaultdict(list)
    for message, payload in seen.messages:
        if message.kind not in PUBLIC | SEEDS | TABLES:
            views[message.receiver, message.kind].append(payload)
    assert {kind for receiver, kind in views if receiver != leader}.isdisjoint(TOLD)
    for (receiver, kind), payloads in views.items():
        if kind not in TOLD:
            assert abs(deviations(payloads)) < 6, (receiver, kind)
    for name in BY_ORDER[order]:
        assert abs(deviations(seen.opened()[name])) < 6, name
    for kind in MASKED[order]:
        assert abs(deviations(seen.met(kind))) < 6, kind
    for kind in TABLES:
        assert all(abs(ascents(table)) < 6 for table in seen.sent(kind)), kind


def ascents(table):
    """Of n numbers in random order (n - 1) / 2 are followed by a larger one, with variance (n + 1) / 12."""
    rising = int((table[1:] > table[:-1]).sum())
    return (rising - (len(table) - 1) / 2) / ((len(table) + 1) / 12) ** 0.5


@pytest.mark.parametrize("order", list(BY_ORDER))
def test_only_the_label_holder_is_told_anything(order, monkeypatch):
    """No other party receives a scalar, a coefficient, a class or a label, masked or not, but as masked openings."""
    seen = Seen(3, order=order, monkeypatch=monkeypatch)
    for message, _ in seen.messages:
        if message.receiver != seen.agreement.label_holder:
            assert message.kind not in TOLD
    told = {message.kind for message, _ in seen.messages if message.kind in TOLD}
    assert told == TOLD
    masked = set(seen.opened())
    assert masked == set(BY_ORDER[order])  # every opening belongs to an operation with a mask


@pytest.mark.parametrize("order", list(BY_ORDER))
@pytest.mark.parametrize("holders", [2, 3])
def test_sizes_and_order_do_not_depend_on_data(holders, order, monkeypatch):
    links = []
    for data in (1, 2):
        by_link = defaultdict(list)
        for message, _ in Seen(holders, data=data, order=order, monkeypatch=monkeypatch).messages:
            by_link[message.sender, message.receiver].append(message)
        links.append(dict(by_link))
    assert links[0] == links[1]


@pytest.mark.parametrize(
    ("order", "name"), [*(("labels", name) for name in OPERATIONS), ("features", "fixed matrix product")]
)
def test_a_missing_mask_of_an_operation_is_noticed(order, name, monkeypatch):
    """Dealer and holders agree on a mask of zeros, so that nothing else changes."""
    expand = material._expand

    def bare(payloads, seed, run, holder, operation, number):
        shares = expand(payloads, seed, run, holder, operation, number)
        masks = len(operation.opened) if operation.name == name else 0
        return [torch.zeros_like(share) if i < masks else share for i, share in enumerate(shares)]

    monkeypatch.setattr(material, "_expand", bare)
    seen = Seen(2, order=order, monkeypatch=monkeypatch)
    assert deviations(seen.opened()[name]) > 6


@pytest.mark.parametrize(
    ("of", "method", "kind"),
    [
        (GraphMasks, "mask", program.GRAPH_MASKED),
        (Masks, "operand", program.NODES_MASKED),
        (Masks, "operand", program.COLUMNS_MASKED),
    ],
)
def test_a_missing_mask_of_what_meets_private_matrices_is_noticed(of, method, kind, monkeypatch):
    monkeypatch.setattr(of, method, lambda self, *names: torch.zeros(names[-1], dtype=torch.int64))
    seen = Seen(2, monkeypatch=monkeypatch)
    assert deviations(seen.met(kind)) > 6


def test_a_missing_mask_of_features_is_noticed(monkeypatch):
    monkeypatch.setattr(Masks, "features", lambda self, *shape: torch.zeros(shape, dtype=torch.int64))
    assert deviations(Seen(2, monkeypatch=monkeypatch).sent(program.MASKED_FEATURES)) > 6


def test_a_missing_mask_of_a_product_gives_the_other_mask_away(monkeypatch):
    """Without Z a correction is U^T V: whoever has V, and enough of them, solves for U, and then has X."""
    for masked in (True, False):
        if not masked:
            monkeypatch.setattr(Masks, "result", lambda self, *names: torch.zeros(names[-1], dtype=torch.int64))
        seen = Seen(2, monkeypatch=monkeypatch)
        products = {holder.channel.party: holder._means.products for holder in seen.trained.federation.holders}
        u = products["A"]._masks.features(90, 9)
        v = products["B"]._masks.operand("A", "backward", 1, (90, 2))
        correction = seen.sent(program.COLUMNS_CORRECTION, DEALER, "B")[0]
        assert torch.equal(correction, u.t() @ v) == (not masked)


@pytest.mark.parametrize(("pad", "seen_by"), [(1, "partner"), (2, "dealer"), (3, "partner")])
def test_a_missing_pad_is_noticed(pad, seen_by, monkeypatch):
    """Running sums begin with a row as it was: without its pad it can be found again, and with it where it went."""
    for padded in (True, False):
        if not padded:
            drawn = GraphMasks.pad

            def bare(self, number, partner, counter, size, drawn=drawn):
                words = drawn(self, number, partner, counter, size)
                return torch.zeros_like(words) if number == pad else words

            monkeypatch.setattr(GraphMasks, "pad", bare)
        seen = Seen(2, monkeypatch=monkeypatch)
        first, third = (seen.sent(kind, DEALER, "B")[0] for kind in (program.BOUNCE_1, program.BOUNCE_3))
        second = seen.sent(program.BOUNCE_2, "B", DEALER)[0]
        if pad == 1:  # slots without a row are zeros: which ones have an edge's source stands there
            noticed = int((first == 0).all(dim=1).sum()) > 0
        else:
            before, after = (first, second) if pad == 2 else (second, third)
            noticed = bool((before[:, None] == after[None]).all(dim=2).any())
        assert noticed == (not padded), seen_by


@pytest.mark.parametrize(("number", "kind"), [(1, program.GATHER_1), (2, program.GATHER_2), (3, program.GATHER_3)])
def test_a_permutation_that_is_not_split_is_noticed(number, kind, monkeypatch):
    """With an identity in the place of P'_k the other factor is the true permutation: the edges' own order."""
    drawn = GraphMasks.permutation
    monkeypatch.setattr(
        GraphMasks,
        "permutation",
        lambda self, which, slots: (
            torch.arange(slots, dtype=torch.int32) if which == number else drawn(self, which, slots)
        ),
    )
    assert any(abs(ascents(table)) > 6 for table in Seen(2, monkeypatch=monkeypatch).sent(kind))


def test_the_sharing_of_zero_hides_a_single_holders_share(monkeypatch):
    """Of 3 holders; without it the label holder reads each one's share, and could compare them over time."""
    for hidden in (True, False):
        if not hidden:
            monkeypatch.setattr(ZeroSharing, "hide", lambda self, share, counter: share)
        seen = Seen(3, monkeypatch=monkeypatch)
        calls = seen.trained.calls["B"]
        told = [number for number, (call, _) in enumerate(calls) if call == "tell"]
        own = [calls[number - 1][1][0] for number in told]  # what is told has been truncated just before
        sent = [seen.sent(kind, "B")[0] for kind in (QUOTIENT, INNER_PRODUCTS)]
        for share, words in zip(own, sent, strict=True):
            known = torch.equal(words[:-1, :-1], share[:-1, :-1])  # the last row and column are multiplied before
            assert known == (not hidden)


def test_runs_draw_their_own_masks(monkeypatch):
    """Another seed, the same data: no payload comes again."""
    one, other = (Seen(2, seed=seed, monkeypatch=monkeypatch) for seed in (0, 1))
    again = {tuple(p.flatten().tolist()) for m, p in other.messages if m.kind not in PUBLIC and p.numel() > 4}
    assert not any(tuple(p.flatten().tolist()) in again for m, p in one.messages if m.kind not in PUBLIC)


def test_dealer_and_holder_draw_from_streams_of_their_own():
    """One seed, two purposes: nothing in common."""
    words = [Stream(bytes(32), "run", "dealer", "A", name, 0).words(4) for name in OPERATIONS]
    assert len({tuple(each.tolist()) for each in words}) == len(OPERATIONS)
