"""A holder in the sealed protocol.

Holds its columns, its edges, and a share of everything that is computed. Sees: which rows train and validate, and
uniform words. What leaves: masked values and permutations' factors, uniform to their receivers, and shares of what is
opened to the label holder, each under a fresh sharing of zero.
"""

from dataclasses import dataclass

import torch

from vfgnn import logs
from vfgnn.agreement import DEALER, Agreement
from vfgnn.channel import Channel
from vfgnn.checkpoint import RoleState
from vfgnn.model.contribution import HolderContribution
from vfgnn.model.ring_matrix import ring_matrix
from vfgnn.mpc.correlations import Masks
from vfgnn.mpc.fixed_point import FixedPoint
from vfgnn.mpc.material import DealtMaterial
from vfgnn.mpc.products import PrivateProducts, Shape
from vfgnn.mpc.sharing import ZeroSharing, exchange_pair_seeds
from vfgnn.mpc.slots import check_edges
from vfgnn.mpc.sparse import PrivateGraphs
from vfgnn.rows import RowSet
from vfgnn.sealed.formats import LONG, feature_bits
from vfgnn.sealed.joint_computation import JointComputation, Means
from vfgnn.sealed.own_edges import entries_of, refuse_unusable
from vfgnn.sealed.program import (
    GRAPH_KINDS,
    MASKED_FEATURES,
    MATERIAL_SEED,
    PAIR_SEED,
    ROW_ROLES,
    SealedMoment,
    graph_shape,
    largest,
)
from vfgnn.sealed.sizes import SealedSizes
from vfgnn.sealed.supply import HolderOffline, Supply
from vfgnn.sealed.training import HolderInputs, Leader, SealedTraining

TRAIN, VAL = 1, 2  # codes in ROW_ROLES; 0 is every other row


@dataclass(frozen=True, repr=False)
class SealedState(RoleState):
    """What is left of a training: this party's share of the primal weights, by feature holder."""

    weights: dict[str, torch.Tensor]


class SealedHolder:
    """One holder's part in a sealed training."""

    result = None  # it learns nothing
    state_type = SealedState
    leader: Leader | None = None

    def __init__(self, agreement: Agreement, channel: Channel, own: HolderContribution) -> None:
        refuse_unusable(own.holding)
        self.agreement, self.channel, self._own = agreement, channel, own
        me, quota = channel.party, agreement.degree_quota
        self._entries = entries_of(own.holding.edge_index, agreement.nodes, quota=quota)
        everything = entries_of(own.holding.edge_index, agreement.nodes, quota=agreement.nodes)
        if dropped := everything.shape[1] - self._entries.shape[1]:
            logs.event("edges dropped", directed_entries=dropped, quota_per_node=quota)
        shape = next(holder for holder in agreement.holders if holder.name == me)
        # Here, before anything is sent; `PrivateGraphs` looks again when seeds are there.
        check_edges(self._entries, nodes=agreement.nodes, declared=shape.entry_bound, holder=me)
        features = FixedPoint(feature_bits(integer=shape.integer), agreement.settings.feature_bound)
        self._x_ring = features.encode(own.holding.x, f"the features of {me}")
        self._moment = largest(agreement)
        self._means: Means | None = None
        self.offline: HolderOffline | None = None
        self._training: SealedTraining | None = None
        self._weights: dict[str, torch.Tensor] = {}
        self.rows = (RowSet.all(0), RowSet.all(0))  # train, val

    @property
    def known(self) -> SealedMoment:
        """All rows, until the label holder has announced which ones train and validate."""
        return self._moment

    def set_up(self, moment: SealedMoment) -> None:
        """Hear which rows count; seeds; masked features; permutations.

        Reveals: nothing; features are masked, permutations split.
        """
        agreement, channel, own = self.agreement, self.channel, self._own
        self._learn_rows()
        me, names = channel.party, agreement.holder_names
        seed = bytes(channel.receive(DEALER, MATERIAL_SEED).tolist())
        pair_seeds = exchange_pair_seeds(channel, names, seed=own.seed, run=own.run, kind=PAIR_SEED)
        columns = {holder.name: holder.features for holder in agreement.feature_holders}
        supply = Supply()
        products = PrivateProducts(
            channel,
            Shape(agreement.nodes, agreement.classes - 1, columns),
            ring_matrix(self._x_ring, own.device) if me in columns else None,
            holders=names,
            masks=Masks(seed, run=own.run, holder=me),
            device=own.device,
            next_correction=supply.next_product,
        )
        products.exchange_features(self._x_ring, lambda masked: ring_matrix(masked, own.device), kind=MASKED_FEATURES)
        graphs = PrivateGraphs(
            channel,
            graph_shape(agreement),
            self._entries,
            seed=own.seed,
            dealer_seed=seed,
            run=own.run,
            kinds=GRAPH_KINDS,
        )
        graphs.exchange()
        correct = supply.next_correction if me == names[-1] else None
        material = DealtMaterial(seed, run=own.run, holder=me, next_correction=correct)
        self._means = Means(supply, material, graphs, products, ZeroSharing(me, names, pair_seeds))
        computation = JointComputation(agreement, channel, self._means)
        train, val = self.rows
        sizes = SealedSizes(agreement, len(train), len(val))
        self._moment = SealedMoment(len(train), len(val))
        own_part = HolderInputs(self._degrees, self._columns_long(sizes), train, val, self.leader)
        self._training = SealedTraining(computation, sizes, own_part)
        self.offline = HolderOffline(agreement, channel.beside((DEALER,)), self._moment, supply, graphs)

    @property
    def _degrees(self) -> torch.Tensor:
        return torch.bincount(self._entries[0], minlength=self.agreement.nodes)

    def _columns_long(self, sizes: SealedSizes) -> torch.Tensor:
        """Its columns among all holders', LONG, for the order of features."""
        if sizes.order == "labels":
            return torch.empty((sizes.nodes, 0), dtype=torch.int64)
        whole = torch.zeros((sizes.nodes, self.agreement.columns), dtype=torch.int64)
        first = 0
        for owner, count in sizes.columns.items():
            if owner == self.channel.party:
                whole[:, first : first + count] = self._x_ring << (LONG - sizes.feature_bits[owner])
            first += count
        return whole

    def _learn_rows(self) -> None:
        roles = self.channel.receive(self.agreement.label_holder, ROW_ROLES)
        self._keep_rows(roles)

    def _keep_rows(self, roles: torch.Tensor) -> None:
        train, val = (RowSet((roles == code).nonzero()[:, 0]) for code in (TRAIN, VAL))
        self.rows = (train, val)

    def prepare(self, moment: SealedMoment) -> None:
        """Degrees. Reveals: nothing."""
        self._on_shares.prepare()

    def step(self, moment: SealedMoment) -> None:
        """Reveals, in the first step: the first quotient, to the label holder."""
        self._on_shares.step(moment.number or 0)

    def finish(self, moment: SealedMoment) -> None:
        """Reveals, to the label holder: inner products; classes of validation rows; classes or scores of all rows."""
        self._on_shares.finish()
        self._weights = self._on_shares.weights
        self.close()

    @property
    def _on_shares(self) -> SealedTraining:
        if self._training is None:
            raise RuntimeError("set_up() comes first")
        return self._training

    def state(self) -> SealedState:
        """Its share of the weights."""
        return SealedState(self._weights)

    def load(self, state: SealedState) -> None:
        """Take them up again."""
        self._weights = state.weights

    def close(self) -> None:
        """End what is computed ahead."""
        if self._means is not None:
            self._means.products.close()
