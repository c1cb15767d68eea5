"""What all holders but one put together, in a sealed training of three: each opening lacks the last one's mask.

Every holder's masks are noted as they are drawn. A coalition takes its own masks and shares away from what it sees.
What is left has to be uniform, and is not if the last holder's masks alone are zeros: then the coalition has secrets.
Statistics as in test_sealed_secrecy.py.
"""

from collections import defaultdict

import pytest
import torch

from tests.protocol.test_sealed_secrecy import MASKED, OPERATIONS, Seen, deviations, phases
from vfgnn.agreement import DEALER
from vfgnn.mpc import material
from vfgnn.mpc.correlations import Masks
from vfgnn.mpc.graph_masks import GraphMasks
from vfgnn.mpc.shared import Operation
from vfgnn.mpc.sharing import reconstruct, without
from vfgnn.sealed import program

HOLDERS = ("A", "B", "C")  # A has the labels, C receives the dealer's corrections
FACTORS = ("blinding", "product", "Gram product")  # opened less their masks, all others plus them
DIRECTIONS = {program.COLUMNS_MASKED: "backward", program.NODES_MASKED: "forward"}


class Noted:
    """A training, and all masks that holders and dealer drew; those of `bare` are zeros."""

    def __init__(self, monkeypatch, bare=()):
        self.drawn, self.masks = {}, {}
        expand, mask, operand = material._expand, GraphMasks.mask, Masks.operand

        def noting_expand(payloads, seed, run, holder, operation, number):
            shares = expand(payloads, seed, run, holder, operation, number)
            if holder in bare:
                shares = [torch.zeros_like(share) for share in shares]
            kept = self.drawn.get((holder, number), [])
            self.drawn[holder, number] = max(kept, shares, key=len)  # the last holder draws no parts
            return [share.clone() for share in shares]

        def noting_mask(masks, counter, size):
            words = mask(masks, counter, size) * (masks._holder not in bare)
            self.masks[program.GRAPH_MASKED, masks._holder, counter] = words.clone()
            return words

        def noting_operand(masks, owner, direction, counter, shape):
            words = operand(masks, owner, direction, counter, shape) * (masks._holder not in bare)
            self.masks[direction, masks._holder, owner, counter] = words.clone()
            return words

        monkeypatch.setattr(material, "_expand", noting_expand)
        monkeypatch.setattr(GraphMasks, "mask", noting_mask)
        monkeypatch.setattr(Masks, "operand", noting_operand)
        self.seen = Seen(3, monkeypatch=monkeypatch)

    @property
    def operations(self):
        return [item for part in phases(self.seen.sizes) for item in part if isinstance(item, Operation)]

    def opened(self, last):
        """By operation: what is opened, less the masks of all but `last`."""
        neighbour = {"A": "B", "B": "A", "C": "A"}
        each = [self.seen.sent(program.OPENED, name, neighbour[name]) for name in HOLDERS]
        sums, found = [reconstruct(shares) for shares in zip(*each, strict=True)], defaultdict(list)
        for number, operation in enumerate(self.operations):
            for place in range(len(operation.opened)):
                own = [self.drawn[name, number][place] for name in HOLDERS if name != last]
                whole = sums.pop(0)
                under = reconstruct([whole, *own]) if operation.name in FACTORS else without(whole, own)
                found[operation.name].append(under)
        assert not sums
        return found

    def corrected(self, last):
        """What C is dealt, and the parts that the others of the coalition have: the true parts less those of `last`."""
        dealt, found = self.seen.sent(program.CORRECTION, DEALER, "C"), defaultdict(list)
        for number, operation in enumerate(self.operations):
            for place in range(len(operation.opened), len(operation.opened) + len(operation.correction)):
                own = [self.drawn[name, number][place] for name in ("A", "B") if name != last]
                found[operation.name].append(reconstruct([dealt.pop(0), *own]))
        assert not dealt
        return found

    def met(self, kind, last):
        """What meets the private matrices of a coalition's owner, with the masks that the coalition knows added."""
        found = []
        for owner in (name for name in HOLDERS if name != last):
            others = [name for name in HOLDERS if name != owner]
            received = [self.seen.sent(kind, name, owner) for name in others]
            (friend,) = (name for name in others if name != last)
            known = self._masks_of(kind, friend, owner)
            found += map(reconstruct, zip(self.seen.inputs[owner, kind], *received, known, strict=True))
        return found

    def _masks_of(self, kind, holder, owner):
        names = (kind, holder) if kind == program.GRAPH_MASKED else (DIRECTIONS[kind], holder, owner)
        return [self.masks[key] for key in sorted(key for key in self.masks if key[:-1] == names)]


@pytest.fixture(scope="module")
def noted():
    with pytest.MonkeyPatch.context() as patch:
        yield Noted(patch)


@pytest.mark.parametrize("last", HOLDERS)
def test_what_all_but_one_see_is_uniform(noted, last):
    opened = noted.opened(last)
    assert set(opened) == set(OPERATIONS)
    for name, payloads in opened.items():
        assert abs(deviations(payloads)) < 6, name
    for kind in MASKED["labels"]:
        assert abs(deviations(noted.met(kind, last))) < 6, kind


@pytest.mark.parametrize("last", ["A", "B"])
def test_what_is_dealt_to_a_coalition_is_uniform(noted, last):
    for name, payloads in noted.corrected(last).items():
        assert abs(deviations(payloads)) < 6, name


def test_a_holder_without_masks_of_its_own_is_noticed(monkeypatch):
    """The sum of all masks is as uniform as before, and so is every message but those that B sends its share in."""
    noted = Noted(monkeypatch, bare=("B",))
    for name, payloads in noted.seen.opened().items():
        assert abs(deviations(payloads)) < 6, name
    for name, payloads in noted.opened("B").items():
        assert deviations(payloads) > 6, name
    for kind in MASKED["labels"]:
        assert deviations(noted.met(kind, "B")) > 6, kind
    assert deviations(noted.corrected("B")["truncation"]) > 6  # r >> g has no highest bits
