"""Products of a matrix that one holder has with a matrix that all holders share, any number of holders.

X_k [nodes, p_k] is private to holder k; B_k = sum_j <B_k>_j is shared. Each holder runs one of these objects.
Forward, shares of sum_k X_k B_k:
  1. j -> k: F_j = <B_k>_j - V_j                                        p_k d words, uniform to k
  2. k: X_k (<B_k>_k + sum_j F_j) + sum_j Z_kj                          one sparse product
  3. j: E_k V_j + C_j, with E_k = X_k - U_k and C_j = U_k V_j - Z_kj    needs no secret of the step: computed ahead
  X F + E V + U V = X B, exactly in the ring.
Backward, shares of X_k^T B for each k, is the mirror image: F is [nodes, d], E_k^T V and U_k^T V.
Rounds: one each. Bytes: sum over k of 8 p_k d (forward) or 8 nodes d (backward) per sender, and one correction each.
Without masks (`insecure_clear`) V, Z and C are absent, E_k is never sent, and the sums are the same words.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from vfgnn.agreement import DEALER
from vfgnn.channel import Channel
from vfgnn.messages import Kind
from vfgnn.mpc.correlations import Counters, Direction, Masks

AHEAD = 2  # products prepared before they are needed: bounds the memory to AHEAD x (nodes + sum p) x d words


Kinds = tuple[Kind, Kind]
"""Under which names a product's messages travel: the masked matrix, and the dealer's correction."""


class Matrix(Protocol):
    """X in words: sparse or dense, on a CPU or a GPU."""

    def times(self, w: torch.Tensor) -> torch.Tensor:
        """X w."""

    def transpose_times(self, g: torch.Tensor) -> torch.Tensor:
        """X^T g."""


@dataclass(frozen=True)
class Shape:
    """Public sizes: nodes, width (unless a product has its own), and each feature holder's columns."""

    nodes: int
    dim: int
    columns: Mapping[str, int]


@dataclass(frozen=True, repr=False)
class Prepared:
    """What a holder can compute before a product: masks V, and the parts of its shares that need no secret of the step.

    Backward: E^T V for every other owner, and the sum of its masks Z for itself. Forward: the sum of all of these.
    """

    v: dict[str, torch.Tensor]
    parts: dict[str, torch.Tensor]
    correction: torch.Tensor | None = None  # None: it is still to come from the dealer

    @property
    def bytes(self) -> int:
        """That it takes in memory."""
        dealt = 0 if self.correction is None else self.correction.nbytes
        return dealt + sum(words.nbytes for words in (*self.v.values(), *self.parts.values()))


class PrivateProducts:
    """One holder's side of all products of a run."""

    def __init__(
        self,
        channel: Channel,
        shape: Shape,
        x: Matrix | None,
        *,
        holders: Sequence[str],
        masks: Masks | None,
        device: torch.device | None = None,
        next_prepared: Callable[[], Prepared] | None = None,
    ) -> None:
        """`next_prepared`: where `prepared` lays what it makes; None: corrections come when they are needed."""
        self.device = device or torch.device("cpu")
        self._channel, self._shape, self._x = channel, shape, x
        self._holders, self._masks = holders, masks
        self._counters = Counters()
        self._next_prepared = next_prepared
        self._masked: dict[str, Matrix] = {}
        self._worker = ThreadPoolExecutor(1) if masks is not None and next_prepared is None else None
        self._ahead: dict[tuple[Direction, int], Future[Prepared]] = {}

    @property
    def _others(self) -> list[str]:
        return [owner for owner in self._shape.columns if owner != self._channel.party]

    def exchange_features(self, x_ring: torch.Tensor, wrap: Callable[[torch.Tensor], Matrix], *, kind: Kind) -> None:
        """Send E_k = X_k - U_k, receive the others'. `wrap` makes a received E ready for products.

        Reveals: nothing; E_k is uniform to everyone but k and the dealer.
        """
        me, channel = self._channel.party, self._channel
        if self._masks is None:
            return
        if me in self._shape.columns:
            masked = x_ring - self._masks.features(*x_ring.shape)
            for other in self._holders:
                if other != me:
                    channel.send(other, kind, masked)
        for owner in self._others:
            self._masked[owner] = wrap(channel.receive(owner, kind))

    def forward(
        self,
        blocks: Mapping[str, torch.Tensor],
        *,
        kinds: Kinds,
        senders: Sequence[str],
        counter: int,
        dim: int | None = None,
    ) -> torch.Tensor:
        """A share of sum_k X_k B_k [nodes, d] from shares `blocks` of B_k; the holders in `senders` have one."""
        kind, correction = kinds
        me, sends = self._channel.party, self._channel.party in senders
        prepared = self._claim("forward", counter, senders, dim)
        if sends:
            for owner in self._others:
                self._channel.send(owner, kind, _masked(blocks[owner], prepared.v.get(owner)))
        parts = list(prepared.parts.values())
        if self._x is not None:
            parts.append(self._x.times(self._plus_received(blocks[me], kind, senders)))
        if prepared.v:
            parts.append(self._correction(prepared, correction))
        size = (self._shape.nodes, dim or self._shape.dim)
        return _sum(parts) if parts else torch.zeros(size, dtype=torch.int64, device=self.device)

    def backward(
        self,
        encoded: Mapping[str, torch.Tensor] | None,
        *,
        kinds: Kinds,
        senders: Sequence[str],
        counter: int,
        dim: int | None = None,
    ) -> dict[str, torch.Tensor]:
        """Shares of X_k^T B for each k, from this holder's additive part of B in k's words (None: it has no part)."""
        me, (kind, correction) = self._channel.party, kinds
        prepared = self._claim("backward", counter, senders, dim)
        if encoded is not None:
            for owner in self._others:
                self._channel.send(owner, kind, _masked(encoded[owner], prepared.v.get(owner)))
        shares: dict[str, torch.Tensor] = {}
        if self._x is not None:
            own = None if encoded is None else encoded[me]
            product = self._x.transpose_times(self._plus_received(own, kind, senders))
            shares[me] = _sum([product, prepared.parts.get(me)])
        if prepared.v:
            dealt = self._correction(prepared, correction)
            parts = torch.split(dealt, [self._shape.columns[owner] for owner in self._others])
            for owner, part in zip(self._others, parts, strict=True):
                shares[owner] = prepared.parts[owner].add_(part)
        return shares

    def prepare(self, direction: Direction, counter: int, senders: Sequence[str], dim: int | None = None) -> None:
        """Begin to compute what a coming product needs in the background, if there is room."""
        if self._worker is not None and len(self._ahead) < 2 * AHEAD and (direction, counter) not in self._ahead:
            self._ahead[direction, counter] = self._worker.submit(self._prepare, direction, counter, senders, dim)

    @property
    def ahead(self) -> list[Future[Prepared]]:
        """What is being computed ahead."""
        return list(self._ahead.values())

    def _claim(self, direction: Direction, counter: int, senders: Sequence[str], dim: int | None) -> Prepared:
        """The masks of one product; its number is spent before they are used."""
        if self._masks is None:
            return Prepared({}, {})
        self._counters.take(direction, counter)
        if self._next_prepared is not None:
            return self._next_prepared()
        self.prepare(direction, counter, senders, dim)
        waiting = self._ahead.pop((direction, counter), None)
        return self._prepare(direction, counter, senders, dim) if waiting is None else waiting.result()

    def prepared(
        self, channel: Channel, direction: Direction, counter: int, kind: Kind, *, dim: int | None = None
    ) -> Prepared:
        """All that a product needs ahead, for a thread beside this one that has a `channel` with the dealer."""
        made = self._prepare(direction, counter, self._holders, dim)
        return replace(made, correction=channel.receive(DEALER, kind)) if made.v else made

    def _correction(self, prepared: Prepared, kind: Kind) -> torch.Tensor:
        dealt = prepared.correction
        return (self._channel.receive(DEALER, kind) if dealt is None else dealt).to(self.device)

    def _prepare(self, direction: Direction, counter: int, senders: Sequence[str], dim: int | None) -> Prepared:
        masks, me, shape = self._masks, self._channel.party, self._shape
        width = dim or shape.dim
        v, parts = dict[str, torch.Tensor](), dict[str, torch.Tensor]()
        if masks is None:
            return Prepared(v, parts)
        for owner in self._others if me in senders else ():
            rows = shape.columns[owner] if direction == "forward" else shape.nodes
            v[owner] = masks.operand(owner, direction, counter, (rows, width)).to(self.device)
            masked = self._masked[owner]
            parts[owner] = masked.times(v[owner]) if direction == "forward" else masked.transpose_times(v[owner])
        others = [other for other in senders if other != me]
        if me in shape.columns and others:
            size = (shape.nodes if direction == "forward" else shape.columns[me], width)
            parts[me] = _sum([masks.result(other, direction, counter, size).to(self.device) for other in others])
        if direction == "forward" and parts:
            parts = {me: _sum(list(parts.values()))}
        return Prepared(v, parts)

    def _plus_received(self, own: torch.Tensor | None, kind: Kind, senders: Sequence[str]) -> torch.Tensor:
        received = [self._receive(sender, kind) for sender in senders if sender != self._channel.party]
        return _sum([*received, own])

    def _receive(self, sender: str, kind: Kind) -> torch.Tensor:
        return self._channel.receive(sender, kind).to(self.device)

    def close(self) -> None:
        """End the background thread."""
        if self._worker is not None:
            self._worker.shutdown(wait=False, cancel_futures=True)


def _masked(part: torch.Tensor, v: torch.Tensor | None) -> torch.Tensor:
    """Part - V, in V's memory: a mask is used once. Without masks the part itself."""
    return part if v is None else torch.sub(part, v, out=v)


def _sum(parts: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """The sum; the first one's memory becomes the result, unless it is the only one."""
    there = [part for part in parts if part is not None]
    if len(there) == 1:
        return there[0]
    total = there[0]
    for part in there[1:]:
        total = total.add_(part)
    return total
