"""Parties that compute on shares in threads and meet at a table to open values: for all tests on shares."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from scipy.stats import chi2

from vfgnn.mpc.material import Corrections, DealtMaterial
from vfgnn.mpc.shared import Arithmetic, Payload
from vfgnn.mpc.sharing import BITS, reconstruct, split
from vfgnn.randomness import Stream, insecure_seed

SEEDS = {f"h{i}": insecure_seed(100 + i) for i in range(5)}


class Table:
    """Where the parties lay their shares; counts rounds and the words that each party sends to one other."""

    def __init__(self, parties):
        self._barrier = threading.Barrier(parties, timeout=60)
        self._shares = [[] for _ in range(parties)]
        self.opened, self.payloads, self.sent, self.sums = [], [], [], []

    def open(self, party, shares):
        self._shares[party] = [share.clone() for share in shares]
        if self._barrier.wait() == 0:
            self.opened.append([tuple(share.shape) for share in shares])
            self.payloads += [Payload(tuple(share.shape), share.dtype) for share in shares]
            self.sent += [each for own in self._shares for each in own]
        sums = [reconstruct(each) for each in zip(*self._shares, strict=True)]
        if self._barrier.wait() == 0:
            self.sums += [each.clone() for each in sums]
        return sums

    def leave(self):
        self._barrier.abort()

    @property
    def rounds(self):
        return len(self.opened)

    @property
    def words(self):
        return sum(torch.Size(shape).numel() for shapes in self.opened for shape in shapes)


class Seat:
    def __init__(self, table, party):
        self._table, self._party = table, party

    def open(self, *shares):
        return self._table.open(self._party, shares)


def run_parties(parties, work, materials, *inputs):
    """`work(arithmetic, *shares)` at every party on shares of the inputs; what each returned, and the table."""
    table = Table(parties)
    shares = [shared(secret, parties, Stream(insecure_seed(7), "input", i)) for i, secret in enumerate(inputs)]

    def one(party):
        torch.set_num_threads(1)
        arithmetic = Arithmetic(Seat(table, party), materials[party], leads=party == 0)
        try:
            return work(arithmetic, *(each[party] for each in shares))
        except BaseException:
            table.leave()
            raise

    with ThreadPoolExecutor(parties) as pool:
        futures = [pool.submit(one, party) for party in range(parties)]
    return [future.result() for future in futures], table


def shared(secret, parties, stream):
    """Words as sums; bits, each in a byte of its own, as XORs."""
    if secret.dtype != BITS:
        return split(secret, parties, stream)
    masks = [(stream.words(*secret.shape) & 1).to(BITS) for _ in range(parties - 1)]
    return [*masks, reconstruct([secret, *masks])]


def dealt(parties, operations, *, run="run"):
    """Every party's material; the last one is fed with the dealer's corrections."""
    seeds = dict(list(SEEDS.items())[:parties])
    corrections = Corrections(seeds, run=run).compute(operations)
    feed = iter(corrections).__next__
    last = list(seeds)[-1]
    return [
        DealtMaterial(seed, run=run, holder=name, next_correction=feed if name == last else None)
        for name, seed in seeds.items()
    ]


def run_dealt(parties, work, operations, *inputs):
    return run_parties(parties, work, dealt(parties, operations), *inputs)


def random_words(*shape, of="secret"):
    return Stream(insecure_seed(3), of).words(*shape)


def looks_uniform(words):
    """Chi-square of the top byte. Seeds are fixed: uniform words fail it for one choice of them in ten thousand."""
    counts = torch.bincount(((words >> 56) & 255).flatten(), minlength=256).double()
    expected = words.numel() / 256
    return float(((counts - expected) ** 2 / expected).sum()) < chi2.isf(1e-4, 255)
