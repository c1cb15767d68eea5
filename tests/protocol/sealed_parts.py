"""All parts of the arithmetic on shares over an in-memory network: dealer and holders, every message declared."""

from collections import defaultdict
from functools import partial

import torch

from tests.shares import SEEDS, shared
from vfgnn.agreement import DEALER
from vfgnn.messages import Kind
from vfgnn.mpc.material import Corrections, DealtMaterial
from vfgnn.mpc.opening import ChannelOpening
from vfgnn.mpc.shared import Arithmetic, Names, messages
from vfgnn.mpc.sharing import ZeroSharing
from vfgnn.randomness import Stream, insecure_seed
from vfgnn.transport.memory import InMemoryNetwork

CORRECTION, OPENED, CLASSES = Kind("correction", "nothing"), Kind("opened", "nothing"), Kind("classes", "classes")


class Tapped(InMemoryNetwork):
    """Keeps a copy of everything that crosses a link."""

    def __init__(self):
        super().__init__()
        self.seen = defaultdict(list)

    def put(self, message, payload):
        self.seen[message.kind, message.sender, message.receiver].append(payload.clone())
        super().put(message, payload)


def zero_sharings(holders):
    seeds = {pair: insecure_seed(500 + i) for i, pair in enumerate((a, b) for a in holders for b in holders if a < b)}
    return {
        me: ZeroSharing(me, holders, {o: seeds[min(me, o), max(me, o)] for o in holders if o != me}) for me in holders
    }


def over_the_network(parties, work, operations, *inputs, more=()):
    """`work(arithmetic, channel, *shares)` at every holder; what each returned, and the network."""
    seeds = dict(list(SEEDS.items())[:parties])
    names, network = Names(tuple(seeds), CORRECTION, OPENED), Tapped()
    declared = [*messages(operations, names), *more]
    shares = [shared(x, parties, Stream(insecure_seed(8), "input", i)) for i, x in enumerate(inputs)]

    def deal():
        channel = network.channel(DEALER)
        channel.enter("test", declared)
        for correction in Corrections(seeds, run="run").compute(operations):
            channel.send(names.corrected, CORRECTION, correction)
        channel.finish()

    def hold(place, name):
        channel = network.channel(name)
        channel.enter("test", declared)
        wait = (lambda: channel.receive(DEALER, CORRECTION)) if name == names.corrected else None
        material = DealtMaterial(seeds[name], run="run", holder=name, next_correction=wait)
        arithmetic = Arithmetic(ChannelOpening(channel, names), material, leads=place == 0)
        results[name] = work(arithmetic, channel, *(each[place] for each in shares))
        channel.finish()

    results = {}
    holders = {name: partial(hold, place, name) for place, name in enumerate(seeds)}
    network.run({DEALER: deal, **holders})
    return [results[name] for name in seeds], network


def looks_random(sent):
    """Chi-square over bytes, as in test_secrecy: within 6 deviations of uniform."""
    payload = torch.cat([each.contiguous().view(torch.uint8).flatten() for each in sent])
    counts = torch.bincount(payload.long(), minlength=256).double()
    expected = counts.sum() / 256
    return abs(float(((counts - expected) ** 2 / expected).sum()) - 255) / 22.6 < 6
