"""The joint first layer (paper 3.2 and Algorithm 3): h0 = [X_1 | ... | X_I] W with W additively shared.

Runs among the holders, with the dealer's masks. What leaves a holder is uniform to its receiver, except the reveal: the
holders with edges learn h0, and nothing else. Nothing goes to the server or to the dealer.
Setup   1. seeds from the dealer; E_k = X_k - U_k to all other holders, once
        2. shares of H_0 = X W_0 (products.forward)                        3. reveal H_0
Refresh 1. shares of P_k = X_k^T Q for each k (products.backward)
        2. shares of X P (products.forward)                                3. reveal X P; h0 = a H_0 - X P
W itself is never computed: W_t = a_t W_0 - X^T Q_t (optimisers.SharedMomentum), so nothing is ever truncated.
`insecure_clear` is the same arithmetic without masks, the same words in the end: for experiments only.
"""

from concurrent.futures import Future
from dataclasses import dataclass

import torch

from vfgnn.agreement import DEALER, Agreement
from vfgnn.channel import Channel
from vfgnn.checkpoint import RoleState
from vfgnn.errors import Overflow
from vfgnn.h0_bound import H0_BITS, H0_BOUND, weight_share_bound
from vfgnn.model.optimisers import MomentumState, SharedMomentum
from vfgnn.model.ring_matrix import ring_matrix
from vfgnn.mpc.correlations import Masks
from vfgnn.mpc.fixed_point import FixedPoint, feature_bits, update_bits, weight_bits
from vfgnn.mpc.products import Prepared, PrivateProducts, Shape
from vfgnn.mpc.sharing import ZeroSharing, exchange_pair_seeds, reveal
from vfgnn.randomness import Stream
from vfgnn.split.program import (
    CORRECTION_BACKWARD,
    CORRECTION_FORWARD,
    DEALER_SEED,
    H0_SHARE,
    JOINT_PRODUCT,
    JOINT_UPDATE,
    JOINT_WEIGHTS,
    MASKED_FEATURES,
    PAIR_SEED,
)

WEIGHT_BOUND = 16.0  # of a share of W_0: Glorot's bound is far below
H0 = FixedPoint(H0_BITS, H0_BOUND)


def draw_weight_share(agreement: Agreement, seed: bytes) -> dict[str, torch.Tensor]:
    """One holder's share of W_0, by feature holder; W_0 is the sum of all holders' shares, and nobody knows it."""
    dim = agreement.settings.dim
    bound = weight_share_bound(agreement.columns, dim, len(agreement.holders))
    stream = Stream(seed, "share of W_0")
    return {owner.name: stream.uniform(owner.features, dim, bound=bound) for owner in agreement.feature_holders}


@dataclass(frozen=True, repr=False)
class JointState(RoleState):
    """What a holder's side of the joint layer goes on from."""

    weight_share: dict[str, torch.Tensor]
    momentum: MomentumState
    refreshes: int

    def over(self, places: torch.Tensor, agreement: Agreement) -> "JointState":
        """The weights do not count nodes; Q_i does.

        Masks are drawn anew with each start, so any number of refreshes will do; after the last but one nobody works
        ahead.
        """
        refreshes = max(0, agreement.settings.trained_joint_epochs - 1)
        return JointState(self.weight_share, self.momentum.over(places, agreement), refreshes)


class JointLayer:
    """One holder's side of the joint layer."""

    def __init__(
        self, agreement: Agreement, channel: Channel, x: torch.Tensor, *, run: str, seed: bytes, device: torch.device
    ) -> None:
        self._agreement, self._channel, self.device = agreement, channel, device
        self._run, self._seed = run, seed
        settings = agreement.settings
        whole = settings.feature_scaling == "none"  # what is divided needs fraction bits
        self._bits = {one.name: feature_bits(integer=one.integer and whole) for one in agreement.feature_holders}
        me = channel.party
        features = FixedPoint(self._bits.get(me, 0), settings.feature_bound)
        self._x_ring = features.encode(x, f"the features of {me}")
        self._updates = {
            owner: FixedPoint(update_bits(bits), settings.update_bound) for owner, bits in self._bits.items()
        }
        self.reveals = me in agreement.publishers
        self._first: torch.Tensor | None = None  # H_0
        nodes, dim = agreement.nodes, settings.dim
        q = torch.zeros((nodes, dim) if self.reveals else (0, 0), dtype=torch.float64, device=device)
        self.momentum = SharedMomentum(q, settings)
        self._weight_share = draw_weight_share(agreement, seed)
        self._products: PrivateProducts | None = None
        self._zeros: ZeroSharing | None = None
        self._refreshes = 0

    def initialise(self) -> torch.Tensor | None:
        """H_0 = X W_0 at the holders with edges, None at the others.

        Reveals: H_0 to the holders with edges.
        """
        agreement = self._agreement
        products = self._products = self._set_up_products()
        blocks = {
            owner: FixedPoint(weight_bits(self._bits[owner]), WEIGHT_BOUND).encode(
                share.to(self.device), "a share of W_0"
            )
            for owner, share in self._weight_share.items()
        }
        kinds = JOINT_WEIGHTS, CORRECTION_FORWARD
        share = products.forward(blocks, kinds=kinds, senders=agreement.holder_names, counter=0)
        self._prepare_next(products)
        self._first = self._reveal(share)
        return None if self._first is None else self._first.clone()

    def refresh(self) -> torch.Tensor | None:
        """h0 = a H_0 - X X^T Q after the last steps.

        Reveals: h0 to the holders with edges.
        """
        products = self._products
        if products is None:
            raise RuntimeError("initialise() comes first")
        self._refreshes += 1
        senders, counter = self._agreement.publishers, self._refreshes
        kinds = JOINT_UPDATE, CORRECTION_BACKWARD
        blocks = products.backward(self._encoded_updates(), kinds=kinds, senders=senders, counter=counter)
        # Without masks P_k is all at k: nobody else has a share of it to send.
        with_shares = senders if self._agreement.dealt else ()
        kinds = JOINT_PRODUCT, CORRECTION_FORWARD
        share = products.forward(blocks, kinds=kinds, senders=with_shares, counter=counter)
        self._prepare_next(products)
        moved = self._reveal(share)
        if moved is None or self._first is None:
            return None
        return moved.neg_().add_(self._first, alpha=self.momentum.a)

    def state(self) -> JointState:
        """Its share of W_0, its part of the updates, and how often h0 was refreshed. Masks are not part of it."""
        return JointState(self._weight_share, self.momentum.state(), self._refreshes)

    def load(self, state: JointState) -> None:
        """Go on from it; `initialise` then computes the same H_0 under fresh masks."""
        self._weight_share, self._refreshes = state.weight_share, state.refreshes
        self.momentum.load(state.momentum)

    def prepared(self) -> list[Future[Prepared]]:
        """What is being computed ahead."""
        return [] if self._products is None else self._products.ahead

    def close(self) -> None:
        """End what runs in the background."""
        if self._products is not None:
            self._products.close()

    def _set_up_products(self) -> PrivateProducts:
        """Seeds from the dealer and for each pair, then the masked features."""
        agreement, channel, me = self._agreement, self._channel, self._channel.party
        masks, pair_seeds = None, dict[str, bytes]()
        if agreement.dealt:
            seed = bytes(channel.receive(DEALER, DEALER_SEED).tolist())
            masks = Masks(seed, run=self._run, holder=me)
            pair_seeds = exchange_pair_seeds(
                channel, agreement.holder_names, seed=self._seed, run=self._run, kind=PAIR_SEED
            )
        self._zeros = ZeroSharing(me, agreement.holder_names, pair_seeds)
        columns = {holder.name: holder.features for holder in agreement.feature_holders}
        products = PrivateProducts(
            channel,
            Shape(agreement.nodes, agreement.settings.dim, columns),
            ring_matrix(self._x_ring, self.device) if me in columns else None,
            holders=agreement.holder_names,
            masks=masks,
            device=self.device,
        )
        products.exchange_features(self._x_ring, lambda masked: ring_matrix(masked, self.device), kind=MASKED_FEATURES)
        return products

    def _encoded_updates(self) -> dict[str, torch.Tensor] | None:
        """The whole Q_i in the words that each X_k^T wants; None at a holder without edges."""
        if not self.reveals:
            return None
        by_bits = dict[int, torch.Tensor]()
        for encoding in self._updates.values():
            if encoding.fraction_bits not in by_bits:
                by_bits[encoding.fraction_bits] = encoding.encode(self.momentum.q, "an update of W")
        return {owner: by_bits[encoding.fraction_bits] for owner, encoding in self._updates.items()}

    def _prepare_next(self, products: PrivateProducts) -> None:
        """Let the next refresh's masks and E V be computed while this step goes on."""
        if self._refreshes < self._agreement.settings.trained_joint_epochs:
            for direction in ("backward", "forward"):
                products.prepare(direction, self._refreshes + 1, self._agreement.publishers)

    def _reveal(self, share: torch.Tensor) -> torch.Tensor | None:
        """Sum of all holders' shares at the holders with edges, as float64.

        Reveals: the sum, to the holders with edges. A share alone tells nothing: it is hidden by a sharing of zero.
        """
        agreement, me = self._agreement, self._channel.party
        if self._zeros is not None:
            share = self._zeros.hide(share, self._refreshes)
        opened = reveal(self._channel, share, holders=agreement.holder_names, to=agreement.publishers, name=H0_SHARE)
        if not opened:
            return None
        h0 = H0.decode(opened[0])
        smallest, largest = torch.aminmax(h0)
        if float(largest) > H0_BOUND or float(smallest) < -H0_BOUND:
            raise Overflow(
                "h0 is too large for the ring",
                expected=f"at most {H0_BOUND:g}",
                where=f"party {me}, reveal {self._refreshes}",
                hint="lower joint_learning_rate, or scale the features",
            )
        return h0
