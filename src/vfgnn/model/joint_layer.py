"""The joint first layer (paper 3.2 and Algorithm 3): h0 = [X_1 | ... | X_I] W with W additively shared.

Runs among the holders. `insecure_clear` is plain float64 arithmetic with the messages of the protocol around it: the
holders see each other's shares of W, updates and partial products, so it is for experiments only. What leaves a holder:
those, to other holders; never X itself, its edges or labels, and nothing to the server.

Setup   1. each j -> each k with features: its share of W_k                [p_k, d]
        2. each k: X_k (sum of the shares of W_k) is its share of H_0
        3. reveal: each holder -> each holder with edges: its share         [nodes, d]
Refresh 1. each i with edges -> each k with features: Q_i                   [nodes, d]
        2. each k: P_k = X_k^T Q, X_k P_k is its share of X P
        3. reveal X P as above; h0 = a H_0 - X P                            [nodes, d]
"""

import math
from typing import TYPE_CHECKING

import torch

from vfgnn.channel import Channel
from vfgnn.config import Federation
from vfgnn.data.holdings import FeatureMatrix
from vfgnn.messages import WORD, Kind
from vfgnn.model.optimisers import SharedMomentum
from vfgnn.randomness import Stream

if TYPE_CHECKING:
    from vfgnn.mpc.kernels import CsrMatrix


def draw_weight_share(federation: Federation, seed: bytes) -> dict[str, torch.Tensor]:
    """One holder's share of W_0, by feature holder; W_0 is the sum of all holders' shares, and nobody knows it.

    Glorot's bound scaled by 1/sqrt(I), so that the sum has Glorot's variance.
    """
    dim, columns = federation.settings.dim, sum(holder.features for holder in federation.holders)
    bound = math.sqrt(6 / (columns + dim)) / math.sqrt(len(federation.holders))
    stream = Stream(seed, "share of W_0")
    return {owner.name: stream.uniform(owner.features, dim, bound=bound) for owner in federation.feature_holders}


def _products(x: torch.Tensor, device: torch.device) -> "CsrMatrix | FeatureMatrix":
    """X in words, for X w and X^T g: our kernels where X is sparse and on a CPU, torch's elsewhere."""
    matrix = FeatureMatrix(x)
    if not matrix.sparse or device.type != "cpu":
        return matrix.to(WORD, device)
    from vfgnn.mpc.kernels import CsrMatrix  # numba: a machine that computes on a GPU need not have it

    return CsrMatrix(x.to(WORD))


class ClearJointLayer:
    """One holder's side of the joint layer in plain arithmetic."""

    def __init__(
        self, federation: Federation, channel: Channel, x: torch.Tensor, *, seed: bytes, device: torch.device
    ) -> None:
        self._federation, self._channel, self._device = federation, channel, device
        self._x = _products(x, device)
        self._weight_share = draw_weight_share(federation, seed)
        self._shape = (federation.nodes, federation.settings.dim)
        self.reveals = channel.party in federation.publishers
        self._first: torch.Tensor | None = None  # H_0
        q = torch.zeros(self._shape if self.reveals else (0, 0), dtype=WORD, device=device)
        self.momentum = SharedMomentum(q, federation.settings)

    def initialise(self) -> torch.Tensor | None:
        """H_0 = X W_0 at the holders with edges, None at the others.

        Reveals: H_0 to the holders with edges; in the clear, the shares of W_k to k.
        """
        me, channel = self._channel.party, self._channel
        for owner, share in self._weight_share.items():
            if owner != me:
                channel.send(owner, Kind.JOINT_WEIGHTS, share)
        own: torch.Tensor | None = None
        if me in self._weight_share:
            own = self._x.times(self._plus_received(self._weight_share[me].to(self._device), Kind.JOINT_WEIGHTS))
        self._first = self._reveal(own)
        return None if self._first is None else self._first.clone()

    def refresh(self) -> torch.Tensor | None:
        """h0 = a H_0 - X X^T Q after the last steps.

        Reveals: h0 to the holders with edges; in the clear, Q_i to the holders with features.
        """
        me, channel = self._channel.party, self._channel
        if self.reveals:
            for owner in self._federation.feature_holders:
                if owner.name != me:
                    channel.send(owner.name, Kind.JOINT_UPDATE, self.momentum.q)
        own: torch.Tensor | None = None
        if me in self._weight_share:
            q = self._plus_received(self.momentum.q if self.reveals else None, Kind.JOINT_UPDATE)
            own = self._x.times(self._x.transpose_times(q))
        moved = self._reveal(own)
        if moved is None or self._first is None:
            return None
        return moved.neg_().add_(self._first, alpha=self.momentum.a)

    def _reveal(self, share: torch.Tensor | None) -> torch.Tensor | None:
        if share is None:
            share = torch.zeros(self._shape, dtype=WORD, device=self._device)
        for receiver in self._federation.publishers:
            if receiver != self._channel.party:
                self._channel.send(receiver, Kind.H0_SHARE, share)
        return self._plus_received(share, Kind.H0_SHARE) if self.reveals else None

    def _plus_received(self, own: torch.Tensor | None, kind: Kind) -> torch.Tensor:
        """`own` plus what every other sender of `kind` sends; the first message's memory becomes the sum."""
        senders = self._federation.publishers if kind == Kind.JOINT_UPDATE else self._federation.holder_names
        total: torch.Tensor | None = None
        for sender in senders:
            if sender != self._channel.party:
                came = self._channel.receive(sender, kind).to(self._device)
                total = came if total is None else total.add_(came)
        if total is None or own is None:
            return total if own is None and total is not None else own.clone()  # type: ignore[union-attr]
        return total.add_(own)
