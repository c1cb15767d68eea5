"""Sealed trainings for tests: made small, recorded call by call, and done again by an integer twin.

The twin is a `Computation` on plain words: what the holders' shares add up to. Truncation is random on shares, and the
random number is the sum of all holders' masks; the twin draws them again, from the seeds and the numbers of operations
alone. So every result of every call has to be equal, word by word.
"""

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from vfgnn import randomness
from vfgnn.agreement import DEALER
from vfgnn.data.holdings import Holding, Labels
from vfgnn.errors import DataError
from vfgnn.lab.federation import Federation
from vfgnn.lab.simulate import build
from vfgnn.mpc.blinding import Blinded
from vfgnn.mpc.comparison import argmax_operations
from vfgnn.mpc.scaling import Scaled
from vfgnn.mpc.sharing import reconstruct
from vfgnn.party.roles import known_seed
from vfgnn.randomness import Stream
from vfgnn.rows import RowSet
from vfgnn.sealed.formats import LONG
from vfgnn.sealed.joint_computation import JointComputation
from vfgnn.sealed.sizes import FINISHING, SealedSizes
from vfgnn.sealed.state import TrainingState
from vfgnn.sealed.training import HolderInputs, SealedTraining
from vfgnn.settings import Settings
from vfgnn.transport.memory import SIMULATION

TOLD = ("tell", "tell_classes")


def settings_of(*, class_weights="none", **sealed):
    """`protocol` and [settings.sealed]; everything else as it comes."""
    return Settings.model_validate({"protocol": "sealed", "class_weights": class_weights, "sealed": sealed})


def benchmark(name, holders):
    """A public graph dealt out; a test that needs one which is not here skips and says so."""
    try:
        return Federation.split(name, holders=holders, seed=0)
    except DataError as missing:
        if "was not found" not in missing.what:
            raise
        pytest.skip(f"{name} is not here: set VFGNN_DATA")


def labels_of(y, classes, train, val):
    """The rest are test rows."""
    rows = torch.arange(len(y))
    return Labels(y, rows[:train], rows[train : train + val], rows[train + val :], classes)


def small(holders=2, *, nodes=24, classes=3, columns=None, edges=30, real=(), seed=0, without_edges=()):
    """Random columns that say something about the class, and edges that mostly join nodes of a class.

    `columns`: of each holder; `real`: numbers of holders whose columns are no whole numbers.
    """
    draw = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (nodes,), generator=draw)
    y[:classes] = torch.arange(classes)
    held = []
    for number, count in enumerate(columns or [5] * holders):
        x = (torch.rand(nodes, count, generator=draw) < 0.3).double()
        if count:
            x[torch.arange(nodes), y % count] = 1.0
        if number in real:
            x = x + torch.randn(nodes, count, generator=draw).double() * 0.3
        ends = torch.randint(nodes, (2, 0 if number in without_edges else edges), generator=draw)
        alike = (y[ends[0]] == y[ends[1]]) | (torch.rand(ends.shape[1], generator=draw) < 0.3)
        held.append(Holding(x=x, edge_index=ends[:, alike]))
    return held, labels_of(y, classes, nodes // 2, nodes // 4)


def adjacency(holding):
    """A_i: symmetric, binary, without diagonal."""
    n, (source, target) = holding.nodes, holding.edge_index.numpy()
    pairs = {(int(a), int(b)) for a, b in zip(source, target, strict=True) if a != b}
    pairs |= {(b, a) for a, b in pairs}
    places = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    return sp.csr_array((np.ones(len(pairs), dtype=np.int64), tuple(places)), shape=(n, n))


@dataclass
class Trained:
    """A federation that has been trained, and what every call of every holder returned."""

    federation: object
    calls: dict

    @property
    def agreement(self):
        return self.federation.agreement

    @property
    def leader(self):
        return self.federation.label_holder

    @property
    def told(self):
        """Everything that was opened to the label holder, in order."""
        return [shares[0] for name, shares in self.calls[self.leader.channel.party] if name in TOLD]

    def joined(self):
        """Each call's name, and what the holders' shares of its results add up to, in order."""
        leads = self.leader.channel.party
        others = [calls for name, calls in self.calls.items() if name != leads]
        for (call, own), *made in zip(self.calls[leads], *others, strict=True):
            assert {call} == {name for name, _ in made} | {call}
            yield (
                call,
                own if call in TOLD else [reconstruct(each) for each in zip(own, *(s for _, s in made), strict=True)],
            )


class Recorder:
    """A computation that remembers what each call returned."""

    def __init__(self, inner, leads):
        self._inner, self._leads, self.calls = inner, leads, []

    def __getattr__(self, name):
        method = getattr(self._inner, name)

        def call(*arguments, **keywords):
            result = method(*arguments, **keywords)
            self.calls.append((name, [share.clone() for share in self._shares(result)]))
            return result

        return call

    def _shares(self, result):
        if result is None or isinstance(result, torch.Tensor):
            return [] if result is None else [result]
        if isinstance(result, Scaled):
            return [result.plain, *result.by]
        if isinstance(result, Blinded):  # eps is known to all, so it counts once
            return [result.mask_share + result.eps if self._leads else result.mask_share]
        each = [result[owner] for owner in sorted(result)] if isinstance(result, dict) else result
        return [share for one in each for share in self._shares(one)]


def train(holdings, labels, *, seed=0, network=None, record=True, **sealed):
    """The protocol over memory; `record`: keep what every call returned."""
    federation = build(holdings, labels, settings_of(**sealed), seed=seed, network=network)
    recorders = {}

    def recording(agreement, channel, means):
        made = Recorder(JointComputation(agreement, channel, means), channel.party == agreement.label_holder)
        recorders[channel.party] = made
        return made

    if not record:
        federation.train()
        return Trained(federation, {})
    with patch("vfgnn.sealed.holder.JointComputation", recording):
        federation.train()
    return Trained(federation, {name: made.calls for name, made in recorders.items()})


class Twin:
    """Plain words. `run`: the name of the start whose masks random rounding is done with."""

    def __init__(self, agreement, holdings, seed, run=SIMULATION):
        self._agreement, self._number, self._run = agreement, 0, run
        dealer = known_seed(seed, DEALER)
        self._seeds = {name: randomness.derive_key(dealer, "sealed", run, name) for name in agreement.holder_names}
        self._graph = sum(adjacency(holding) for holding in holdings)
        bits = self._bits = {shape.name: 0 if shape.integer else 16 for shape in agreement.holders}
        self._x = {
            name: sp.csr_array((holding.x.double() * 2.0 ** bits[name]).round().long().numpy())
            for name, holding in zip(agreement.holder_names, holdings, strict=True)
        }

    @property
    def degrees(self):
        return torch.from_numpy(self._graph.sum(axis=1))

    @property
    def columns(self):
        whole = [torch.from_numpy(x.toarray()) << (LONG - self._bits[name]) for name, x in self._x.items()]
        return torch.cat(whole, dim=1)

    def _mask(self, name, shape):
        """The sum of all holders' masks of the next operation."""
        number, self._number = self._number, self._number + 1
        drawn = [Stream(seed, self._run, "dealer", who, name, number) for who, seed in self._seeds.items()]
        return reconstruct([stream.words(*shape) for stream in drawn])

    def from_leader(self, words, shape):
        return words.reshape(shape)

    def plus_public(self, share, words):
        return share + words

    def hop(self, share, *, self_loops):
        product = torch.from_numpy(self._graph @ share.numpy())
        return product + share if self_loops else product

    def to_columns(self, by_owner):
        return {owner: torch.from_numpy(self._x[owner].T @ u.numpy()) for owner, u in by_owner.items()}

    def to_nodes(self, blocks):
        return sum(torch.from_numpy(self._x[owner] @ w.numpy()) for owner, w in blocks.items())

    def truncate(self, *shares, bits):
        return [self._shifted(v, self._mask("truncation", v.shape), bits) for v in shares]

    def _shifted(self, v, r, bits):
        """Python's integers, so that no rule of the ring is used to check the ring."""
        rounded = [
            ((int(value) + 2**62 + (int(mask) % 2**64)) >> bits) - ((int(mask) % 2**64) >> bits) - 2 ** (62 - bits)
            for value, mask in zip(v.flatten(), r.flatten(), strict=True)
        ]
        return torch.tensor(rounded, dtype=torch.int64).reshape(v.shape)

    def multiply(self, x, y):
        self._number += 1
        return x * y

    def multiply_fixed(self, matrix, share):
        self._number += 1
        return torch.from_numpy(matrix.eps.numpy() @ share.numpy())

    def blind(self, *shares):
        made = [Blinded(f"factor {self._number + i}", share, torch.zeros_like(share)) for i, share in enumerate(shares)]
        self._number += len(shares)
        return made

    def scale(self, *work, bits):
        plain = [self._shifted(v, self._mask("scaling", v.shape), bits) for v, _ in work]
        return [Scaled(p, [p * s.eps for s in factors]) for p, (_, factors) in zip(plain, work, strict=True)]

    def look_up(self, share, table):
        self._number += 1
        return table[share]

    def gram(self, share):
        self._number += 1
        return torch.tensor([[sum((a * b).tolist()) for b in share] for a in share], dtype=torch.int64)

    def classes(self, scores):
        self._number += len(argmax_operations(*scores.shape))
        best = scores.max(dim=1, keepdim=True).values
        first = (scores == best).to(torch.uint8).argmax(dim=1)  # of equal ones
        return torch.nn.functional.one_hot(first, scores.shape[1]).to(torch.uint8)

    def tell(self, share, kind):
        return share

    def tell_classes(self, bits, kind):
        return bits.long().argmax(dim=1)


def train_twin(holdings, labels, *, seed=0, make_training=SealedTraining, starts=((SIMULATION, 0),), **sealed):
    """The algorithm on plain words: its recorder, its training, and the label holder that it was done for.

    `starts`: the name of each, and the step that it went on from.
    """
    federation = build(holdings, labels, settings_of(**sealed), seed=seed)
    agreement, leader = federation.agreement, federation.label_holder
    return go_through(agreement, holdings, labels, leader, seed=seed, make_training=make_training, starts=starts)


def go_through(agreement, holdings, labels, leader, *, seed, starts, make_training=SealedTraining):
    """The same for parties that are there."""
    train_rows, val_rows = (RowSet(torch.sort(rows).values) for rows in (labels.train, labels.val))
    leader.rows = (train_rows, val_rows)
    sizes, training = SealedSizes(agreement, len(train_rows), len(val_rows)), None
    end = sizes.units + FINISHING
    for (run, begin), (_, until) in zip(starts, [*starts[1:], ("", end)], strict=True):
        twin, known = Twin(agreement, holdings, seed, run), TrainingState() if not begin else training.state()
        recorder = Recorder(twin, leads=True)
        own = HolderInputs(twin.degrees, twin.columns, train_rows, val_rows, leader, known)
        training = make_training(recorder, sizes, own)
        training.prepare()
        for number in range(begin, until):
            training.step(number) if number < sizes.units else training.finish(number - sizes.units)
    return recorder.calls, training, leader
