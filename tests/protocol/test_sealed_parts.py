"""Each part of the arithmetic on shares: what crosses the links is declared and uniform, and the tests can fail."""

from dataclasses import dataclass
from functools import partial

import pytest
import torch

from tests.protocol.sealed_parts import CLASSES, CORRECTION, OPENED, looks_random, over_the_network, zero_sharings
from tests.shares import SEEDS, random_words
from vfgnn.agreement import DEALER
from vfgnn.errors import ProtocolError
from vfgnn.mpc import material
from vfgnn.mpc.beaver import GramProduct, gram
from vfgnn.mpc.blinding import blind, blind_operations, fixed_operations, fixed_products
from vfgnn.mpc.comparison import argmax, argmax_operations
from vfgnn.mpc.lookup import look_up, look_up_operations
from vfgnn.mpc.opening import ClassOpening
from vfgnn.mpc.scaling import scale, scale_operations
from vfgnn.mpc.sharing import BITS, ZeroSharing, reconstruct

TABLE = torch.arange(256) * 1000


@dataclass
class Part:
    """What is done twice with secrets that are anything but uniform."""

    work: object
    operations: list
    inputs: tuple
    names: tuple  # of the operations whose masks are removed in turn


def scale_twice(arithmetic, v, s):
    (factor,) = blind(arithmetic, ("s", s))
    return [scale(arithmetic, (v, [factor]), bits=20)[0].by[0] for _ in range(2)]


def fixed_twice(arithmetic, g, w):
    (fixed,) = blind(arithmetic, ("g", g))
    return [fixed_products(arithmetic, (fixed, w))[0] for _ in range(2)]


def twice(work):
    return lambda arithmetic, *shares: [work(arithmetic, *shares) for _ in range(2)]


def ones(*shape):
    return torch.ones(shape, dtype=torch.int64)


PARTS = {
    "gram": Part(twice(gram), [GramProduct(64, 64)] * 2, (ones(64, 64),), ("Gram product",)),
    "scaling": Part(
        scale_twice,
        [*blind_operations(("s", (2048, 1))), *scale_operations(((2048, 3), ["s"]), bits=20) * 2],
        (ones(2048, 3) << 30, ones(2048, 1)),
        ("blinding", "scaling"),
    ),
    "fixed": Part(
        fixed_twice,
        [*blind_operations(("g", (512, 1))), *fixed_operations(*[("g", 512, 1, 512)] * 2)],
        (ones(512, 1), ones(1, 512)),  # one term each: a sum of many products would look uniform by itself
        ("blinding", "fixed matrix product"),
    ),
    "lookup": Part(
        twice(lambda arithmetic, d: look_up(arithmetic, d, TABLE)),
        look_up_operations((8192,), TABLE) * 2,
        (ones(8192) * 3,),
        ("lookup",),
    ),
    "argmax": Part(
        twice(argmax),
        [*argmax_operations(8192, 3), *argmax_operations(8192, 3)],
        (torch.tensor([[5, 7, 6]]).repeat(8192, 1),),
        ("differences", "bit tables"),
    ),
    "argmax of long scores": Part(
        twice(partial(argmax, cut=30)),
        [*argmax_operations(8192, 3, cut=30), *argmax_operations(8192, 3, cut=30)],
        (torch.tensor([[5, 7, 6]]).repeat(8192, 1) << 30,),
        ("differences", "bit tables"),
    ),
}


def run(part, parties):
    return over_the_network(parties, lambda a, _, *shares: part.work(a, *shares), part.operations, *part.inputs)


def by_type(payloads):
    """Words, their halves and bits have statistics of their own."""
    types = {each.dtype for each in payloads}
    return [[each for each in payloads if each.dtype == one] for one in types]


def sums(network, parties):
    """What everybody learns from the openings."""
    names = list(SEEDS)[:parties]
    sent = [network.seen[OPENED, name, names[0]] for name in names[1:]]
    own = network.seen[OPENED, names[0], names[1]]
    return [reconstruct(each) for each in zip(own, *sent, strict=True)]


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("name", PARTS)
def test_everything_that_crosses_a_link_is_declared_and_uniform(name, parties):
    _, network = run(PARTS[name], parties)  # what is not declared, or does not come, ends in an error
    links = {link: sent for link, sent in network.seen.items() if sent}
    assert {(a, b) for _, a, b in links} == {
        *((a, b) for a in list(SEEDS)[:parties] for b in list(SEEDS)[:parties] if a != b),
        (DEALER, list(SEEDS)[parties - 1]),
    }
    for sent in (*links.values(), sums(network, parties)):
        assert all(looks_random(each) for each in by_type(sent))


@pytest.mark.parametrize("name", PARTS)
def test_no_mask_comes_twice(name):
    """The secrets are the same both times; nothing that was opened or dealt is."""
    _, network = run(PARTS[name], 2)
    payloads = [*sums(network, 2), *network.seen[CORRECTION, DEALER, "h1"]]
    assert len({each.numpy().tobytes() for each in payloads}) == len(payloads)


def sabotage(monkeypatch, name, of):
    """Masks ("masks") or the other holders' shares of what follows from them ("parts") that are all zeros."""
    expand = material._expand

    def careless(payloads, seed, run, holder, operation, number):
        drawn, count = expand(payloads, seed, run, holder, operation, number), len(operation.opened)
        if operation.name == name:
            for one in drawn[:count] if of == "masks" else drawn[count:]:
                one.zero_()
        return drawn

    monkeypatch.setattr(material, "_expand", careless)


@pytest.mark.parametrize(("name", "operation"), [(name, each) for name, part in PARTS.items() for each in part.names])
def test_a_missing_mask_is_noticed(monkeypatch, name, operation):
    sabotage(monkeypatch, operation, "masks")
    _, network = run(PARTS[name], 3)
    assert not all(looks_random([each]) for each in sums(network, 3))


@pytest.mark.parametrize(
    ("name", "operation"),
    [(name, each) for name, part in PARTS.items() for each in part.names if each != "blinding"],
)
def test_parts_that_are_not_split_are_noticed(monkeypatch, name, operation):
    sabotage(monkeypatch, operation, "parts")
    _, network = run(PARTS[name], 3)
    assert not all(looks_random([each]) for each in network.seen[CORRECTION, DEALER, "h2"])


def classes_opened(parties, scores, to):
    holders = tuple(SEEDS)[:parties]
    opening, zero = ClassOpening(holders, to, CLASSES), zero_sharings(holders)
    operations = argmax_operations(*scores.shape)

    def work(arithmetic, channel, share):
        return opening.open(channel, argmax(arithmetic, share), zero[channel.party], counter=0)

    return over_the_network(parties, work, operations, scores, more=opening.messages(*scores.shape))


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("classes", [2, 3, 9])
def test_classes_are_opened_to_one_holder(parties, classes):
    scores = random_words(4096, classes) >> 41
    results, network = classes_opened(parties, scores, "h1")
    best = scores.max(dim=1, keepdim=True).values
    assert torch.equal(scores.gather(1, results[1].unsqueeze(1)), best)
    assert [result is None for result in results] == [name != "h1" for name in list(SEEDS)[:parties]]
    links = {link: sent for link, sent in network.seen.items() if link[0] == CLASSES}
    assert {receiver for _, _, receiver in links} == {"h1"}
    for (sent,) in links.values():
        assert sent.numel() == 4096 * classes // 8


@pytest.mark.parametrize("classes", [2, 3])
def test_what_the_label_holder_gets_of_each_other_holder_is_uniform(classes):
    scores = torch.arange(classes).repeat(16384, 1)
    _, network = classes_opened(3, scores, "h0")
    for name in ("h1", "h2"):
        assert looks_random(network.seen[CLASSES, name, "h0"])


def test_the_sharing_of_zero_hides_shares_that_are_not_fresh(monkeypatch):
    """h1 has the one-hot rows as they are, all others zeros: without the sharing h0 would see whose they are."""
    holders, rows = tuple(SEEDS)[:3], 16384
    opening, zero = ClassOpening(holders, "h0", CLASSES), zero_sharings(holders)
    bits = torch.tensor([[0, 1, 0]], dtype=BITS).repeat(rows, 1)

    def work(arithmetic, channel):
        own = bits if channel.party == "h1" else torch.zeros_like(bits)
        return opening.open(channel, own, zero[channel.party], counter=0)

    results, network = over_the_network(3, work, [], more=opening.messages(rows, 3))
    assert torch.equal(results[0], ones(rows))
    assert looks_random(network.seen[CLASSES, "h1", "h0"])
    monkeypatch.setattr(ZeroSharing, "hide", lambda self, share, counter: share)
    _, network = over_the_network(3, work, [], more=opening.messages(rows, 3))
    assert not looks_random(network.seen[CLASSES, "h1", "h0"])


def test_rows_without_one_class_are_refused():
    holders = tuple(SEEDS)[:2]
    opening, zero = ClassOpening(holders, "h0", CLASSES), zero_sharings(holders)
    rows = torch.tensor([[0, 1, 0], [1, 1, 0]], dtype=BITS)

    def work(arithmetic, channel):
        own = rows if channel.party == "h1" else torch.zeros_like(rows)
        return opening.open(channel, own, zero[channel.party], counter=0)

    with pytest.raises(ProtocolError, match="1 of 2 rows") as refused:
        over_the_network(2, work, [], more=opening.messages(2, 3))
    assert "2" not in refused.value.what  # peers hear this part only
