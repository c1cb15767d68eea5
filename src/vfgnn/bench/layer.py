"""Seconds of one joint layer, forward and backward: the real protocol beside plaintext float32 in the same run.

X has the data set's own shape and density and generated values, split evenly over the holders; d = 64. One refresh is
X^T Q and X P for all holders, with its reveal. `online`: from the moment when everything that can be computed ahead is
there to the last holder's h0. `total`: refreshes back to back, nothing ahead, dealer included: the whole work on this
machine's cores. `plaintext`: X W and X^T G in float32.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
import torch

from vfgnn.agreement import DEALER, Agreement, HolderShape, make_agreement
from vfgnn.contribution import Contribution
from vfgnn.data.holdings import FeatureMatrix
from vfgnn.data.partition import check_proportions, deal, holder_names
from vfgnn.errors import ConfigError
from vfgnn.messages import total_bytes
from vfgnn.party.device import choose_device
from vfgnn.randomness import insecure_seed
from vfgnn.settings import Settings
from vfgnn.split import program
from vfgnn.split.dealer import Dealer
from vfgnn.split.joint_layer import JointLayer
from vfgnn.transport.memory import InMemoryNetwork

DIM, ROUNDS, WARM_UP = 64, 8, 2


@dataclass(frozen=True)
class Size:
    """A data set's public sizes: nodes, columns, share of entries that are not 0, whether they are whole numbers."""

    nodes: int
    columns: int
    density: float
    integer: bool


SIZES = {
    "cora": Size(2_708, 1_433, 0.0127, integer=True),
    "citeseer": Size(3_327, 3_703, 0.0085, integer=True),
    "pubmed": Size(19_717, 500, 0.1002, integer=False),
    "arxiv": Size(169_343, 128, 1.0, integer=False),
}


@dataclass(frozen=True)
class LayerBenchmark:
    """What `vfgnn bench layer` prints and writes; bytes are those of one refresh on all links, setup once per run."""

    shape: str
    holders: int
    device: str
    plaintext_dense_s: float
    plaintext_csr_s: float
    online_s: float
    total_s: float
    bytes_online: int
    bytes_offline: int
    bytes_setup: int


def bench_layer(shape: str, *, holders: int, device: str = "cpu") -> LayerBenchmark:
    """Measure plaintext and protocol in one run; only their ratios mean anything on a noisy machine."""
    if shape not in SIZES:
        raise ConfigError("unknown shape", expected=f"one of {', '.join(SIZES)}", got=shape)
    if holders < 2:
        raise ConfigError("too few holders", expected="at least two: one has nothing to hide", got=str(holders))
    size, where = SIZES[shape], choose_device(device)
    x = generated_features(size)
    run = _Refreshes(x, size, holders, where)
    refresh = program.joint_refresh(run.agreement)
    return LayerBenchmark(
        shape=shape,
        holders=holders,
        device=device,
        plaintext_dense_s=_plaintext(x, where, sparse=False),
        plaintext_csr_s=_plaintext(x, where, sparse=True),
        online_s=run.median_seconds(ahead=True),
        total_s=_Refreshes(x, size, holders, where).median_seconds(ahead=False),
        bytes_online=total_bytes(message for message in refresh if message.sender != DEALER),
        bytes_offline=total_bytes(message for message in refresh if message.sender == DEALER),
        bytes_setup=total_bytes(program.setup_messages(run.agreement)),
    )


def generated_features(size: Size) -> torch.Tensor:
    """Random values at random places."""
    rng = np.random.default_rng(0)
    there = rng.random((size.nodes, size.columns), dtype=np.float32) < size.density
    values = 1.0 if size.integer else rng.random((size.nodes, size.columns), dtype=np.float32)
    return torch.from_numpy((there * values).astype(np.float32))


def _plaintext(x: torch.Tensor, device: torch.device, *, sparse: bool) -> float:
    matrix = FeatureMatrix(x, sparse=sparse).to(torch.float32, device)
    w, g = torch.randn(x.shape[1], DIM, device=device), torch.randn(x.shape[0], DIM, device=device)
    seconds = []
    for _ in range(WARM_UP + ROUNDS):
        began = time.perf_counter()
        matrix.times(w)
        matrix.transpose_times(g)
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return median(seconds[WARM_UP:])


class _Refreshes:
    """Holders and dealer on the in-memory channel, doing nothing but refreshing h0."""

    def __init__(self, x: torch.Tensor, size: Size, holders: int, device: torch.device) -> None:
        names = holder_names(holders)
        columns = deal(size.columns, check_proportions(None, holders), np.random.default_rng(0))
        parts = [x[:, torch.from_numpy(mine)] for mine in columns]
        shapes = [
            HolderShape(name=name, features=part.shape[1], edges=True, integer=size.integer)
            for name, part in zip(names, parts, strict=True)
        ]
        settings = Settings(dim=DIM, epochs=WARM_UP + ROUNDS, publish="all")
        self.agreement: Agreement = make_agreement(
            nodes=size.nodes, classes=2, holders=shapes, label_holder=names[0], settings=settings
        )
        self._network = InMemoryNetwork()
        self._channels = {name: self._network.channel(name) for name in (*names, DEALER)}
        self._layers = {
            name: JointLayer(
                self.agreement, self._channels[name], part, run="bench", seed=insecure_seed(i), device=device
            )
            for i, (name, part) in enumerate(zip(names, parts, strict=True))
        }
        self._dealer = Dealer(self.agreement, self._channels[DEALER], Contribution(run="bench", seed=insecure_seed(99)))
        self._together = threading.Barrier(holders + 1)
        self._ticks: list[float] = []

    def median_seconds(self, *, ahead: bool) -> float:
        """Of one refresh; `ahead`: begin each when all that can be computed before it has been."""
        work: dict[str, Callable[[], object]] = {name: partial(self._holder, name, ahead) for name in self._layers}
        work[DEALER] = partial(self._deal, ahead)
        self._network.run(work)
        pairs = list(zip(self._ticks[::2], self._ticks[1::2], strict=True))
        if ahead:
            return median(end - begin for begin, end in pairs[WARM_UP:])
        return (pairs[-1][1] - pairs[WARM_UP][0]) / ROUNDS

    def _holder(self, name: str, ahead: bool) -> None:
        layer, channel = self._layers[name], self._channels[name]
        first = name == self.agreement.label_holder
        channel.enter("setup", program.setup_messages(self.agreement))
        layer.initialise()
        layer.momentum.q.copy_(torch.randn_like(layer.momentum.q) * 1e-4)
        for number in range(WARM_UP + ROUNDS):
            channel.enter("refresh", program.joint_refresh(self.agreement), step=number)
            if ahead:
                wait(layer.prepared())
                self._together.wait()
            if first:
                self._ticks.append(time.perf_counter())
            layer.refresh()
            if ahead:
                self._together.wait()
            if first:
                self._ticks.append(time.perf_counter())
        layer.close()

    def _deal(self, ahead: bool) -> None:
        self._channels[DEALER].enter("setup", program.setup_messages(self.agreement))
        self._dealer.set_up(self._dealer.known)
        for number in range(1, WARM_UP + ROUNDS + 1):
            self._channels[DEALER].enter("refresh", program.joint_refresh(self.agreement), step=number)
            self._dealer.refresh(self._dealer.known)
            if ahead:
                self._dealer.wait()
                self._together.wait()
                self._together.wait()
        self._dealer.close()
