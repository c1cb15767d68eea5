"""What a party receives of the private sparse product is uniform; and each pad, mask and split removed is noticed.

Statistics are a smoke test, the argument is in mpc/sparse.py. Words: chi-square over bytes as in test_secrecy.py.
Tables of slots: a uniform permutation of N has (N - 1) / 2 descents with variance (N + 1) / 12, and its rank
correlation with the identity has variance 1 / (N - 1). Both are close to normal: 6 deviations have a probability of
2e-9.
A bounce can be uniform by itself and still follow from the one before it: `linked` looks for that.
"""

import pytest
import torch

from tests.protocol.graphs import KINDS, Run, random_edges
from tests.protocol.test_secrecy import deviations
from vfgnn.agreement import DEALER
from vfgnn.mpc.graph_masks import GraphMasks

NODES, WIDTH, DECLARED = 300, 2, 1500
WORDS = (KINDS.bounce_1, KINDS.bounce_2, KINDS.bounce_3, KINDS.masked)
TABLES = (KINDS.gather_1, KINDS.gather_2, KINDS.gather_3)
NONE = frozenset[int]()


def made(holders=2, hops=1):
    """Shares that look like nothing random: one holder has all of U, small numbers, the others zeros."""
    draw = torch.Generator().manual_seed(0)
    edges = [random_edges(NODES, 600, draw) if i < 2 else None for i in range(holders)]
    declared = [DECLARED if i < 2 else 0 for i in range(holders)]
    u = torch.randint(0, 1000, (NODES, WIDTH), generator=draw)
    shares = [[u if i == 0 else torch.zeros_like(u) for i in range(holders)] for _ in range(hops)]
    run = Run(NODES, edges, declared)
    run.go([u] * hops, shares=shares)
    return run


def table_deviations(table):
    """How far the descents and the rank correlation of a table are from those of a uniform one."""
    count, table = len(table), table.double()
    descents = float((table[1:] < table[:-1]).sum() - (count - 1) / 2) / ((count + 1) / 12) ** 0.5
    correlation = float(torch.corrcoef(torch.stack([table, torch.arange(count).double()]))[0, 1])
    return max(abs(descents), abs(correlation) * (count - 1) ** 0.5)


def linked(known, received):
    """Of 40 rows that it knows, how many are the difference of two rows that it received (first column)."""
    rows = set(received[:, 0].tolist())
    words = known[known[:, 0] != 0, 0][:40]  # zero is the difference of any row and itself
    return sum(bool(rows & set((received[:, 0] + word).tolist())) for word in words)


def findings(run):
    """The messages that are not uniform to whoever receives them."""
    found = {kind for kind in WORDS if abs(deviations(run, kind)) >= 6}
    for kind in TABLES:
        found |= {kind for payloads in run.sent(kind).values() if any(table_deviations(t) >= 6 for t in payloads)}
    first, third = (run.sent(kind)[DEALER, "h1"][0] for kind in (KINDS.bounce_1, KINDS.bounce_3))
    second = run.sent(KINDS.bounce_2)["h1", DEALER][0]
    return found | {
        kind
        for kind, known, received in ((KINDS.bounce_2, first, second), (KINDS.bounce_3, second, third))
        if linked(known, received)
    }


def without(monkeypatch, *, pads=NONE, splits=NONE, mask=False):
    """These pads and masks are zeros, and these permutations are not split: P' is the identity."""
    pad, permutation, own_mask = GraphMasks.pad, GraphMasks.permutation, GraphMasks.mask

    def some_pads(self, number, partner, counter, size):
        words = pad(self, number, partner, counter, size)
        return torch.zeros_like(words) if number in pads else words

    def some_permutations(self, number, slots):
        drawn = permutation(self, number, slots)
        return torch.arange(slots, dtype=drawn.dtype) if number in splits else drawn

    def some_masks(self, counter, size):
        return torch.zeros(size, dtype=torch.int64) if mask else own_mask(self, counter, size)

    monkeypatch.setattr(GraphMasks, "pad", some_pads)
    monkeypatch.setattr(GraphMasks, "permutation", some_permutations)
    monkeypatch.setattr(GraphMasks, "mask", some_masks)


@pytest.mark.parametrize("holders", [2, 3, 4])
def test_every_message_is_uniform_to_its_receiver(holders):
    assert findings(made(holders)) == set()


@pytest.mark.parametrize(
    ("removed", "exposed"),
    [
        ({"pads": {1}}, {KINDS.bounce_1}),
        ({"pads": {2}}, {KINDS.bounce_2}),
        ({"pads": {3}}, {KINDS.bounce_3}),
        ({"mask": True}, {KINDS.masked}),
        ({"splits": {1}}, {KINDS.gather_1}),
        ({"splits": {2}}, {KINDS.gather_2}),
        ({"splits": {3}}, {KINDS.gather_3}),
    ],
)
@pytest.mark.parametrize("holders", [2, 3])
def test_each_that_is_removed_is_noticed(monkeypatch, holders, removed, exposed):
    without(monkeypatch, **removed)
    assert findings(made(holders)) == exposed


@pytest.mark.parametrize(
    ("kept", "kind"), [(1, KINDS.bounce_1), (2, KINDS.bounce_2), (3, KINDS.bounce_3), (None, KINDS.masked)]
)
def test_each_message_is_uniform_by_its_own_pad_alone(monkeypatch, kept, kind):
    """The receiver knows other pads: with those at zero its message is as uniform, and without its own it is not."""
    without(monkeypatch, pads={1, 2, 3} - {kept}, mask=kept is not None)
    assert abs(deviations(made(), kind)) < 6
    without(monkeypatch, pads={1, 2, 3}, mask=True)
    assert deviations(made(), kind) > 6


@pytest.mark.parametrize(("kept", "kind"), list(enumerate(TABLES, 1)))
def test_each_table_is_uniform_by_its_own_split_alone(monkeypatch, kept, kind):
    without(monkeypatch, splits={1, 2, 3} - {kept})
    assert all(table_deviations(table) < 6 for tables in made().sent(kind).values() for table in tables)


def test_what_two_hops_have_in_common_is_uniform():
    """Same shares, edges and permutations: the difference of two hops' messages must not show them."""
    run = made(3, hops=2)
    for kind in WORDS:
        one, other = run.sent(kind, 0), run.sent(kind, 1)
        run.transcript += [
            (message, other[link][0] - one[link][0])
            for link in one
            for message, payload in list(run.transcript)
            if payload is one[link][0]
        ]
        assert abs(deviations(run, kind)) < 6, kind


def test_partners_share_an_owners_permutations_and_no_pads():
    run = made(3)
    one, other = ("h0", "h1"), ("h0", "h2")
    for kind in (KINDS.order_seed, KINDS.gather_1, KINDS.gather_3):
        assert torch.equal(run.sent(kind)[one][0], run.sent(kind)[other][0])
    assert not torch.equal(run.sent(KINDS.pad_seed)[one][0], run.sent(KINDS.pad_seed)[other][0])
    of_h0 = [run.sent(KINDS.bounce_2)[partner, DEALER][0] for partner in ("h1", "h2")]
    assert not bool((of_h0[0] == of_h0[1]).any())


def test_the_dealer_gets_one_table_and_one_bounce_for_each_pair():
    """Above all no seed: it would expand r2 and P'_2."""
    run = made(3)
    received = [message.kind for message, _ in run.transcript if message.receiver == DEALER]
    assert sorted(received) == sorted([KINDS.gather_2] * 2 + [KINDS.bounce_2] * 4)


def test_an_owner_gets_masked_shares_only():
    run = made(3)
    received = {message.kind for message, _ in run.transcript if message.receiver == "h0" and message.sender == "h2"}
    assert received == {KINDS.masked}
    everywhere = run.sent(KINDS.masked)
    assert torch.equal(everywhere["h2", "h0"][0], everywhere["h2", "h1"][0])  # two masks of one share would subtract


def test_pads_differ_between_numbers_partners_hops_holders_and_runs():
    seen = {
        tuple(GraphMasks(bytes(32), run=run, holder=holder).pad(number, partner, counter, (3, 1)).flatten().tolist())
        for run in ("one", "two")
        for holder in ("a", "b")
        for number in (1, 2, 3)
        for partner in ("c", "d")
        for counter in (0, 1)
    }
    assert len(seen) == 48
