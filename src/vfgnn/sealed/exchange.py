"""How every start of a sealed training begins, and every pass with its model: seeds, masked features, permutations.

Runs at each holder. Reveals: nothing; features are masked, permutations split, all masks are of this start alone.
"""

from dataclasses import dataclass

import torch

from vfgnn.agreement import DEALER, Agreement
from vfgnn.channel import Channel
from vfgnn.model.contribution import HolderContribution
from vfgnn.model.ring_matrix import ring_matrix
from vfgnn.mpc.correlations import Masks
from vfgnn.mpc.material import DealtMaterial
from vfgnn.mpc.products import PrivateProducts, Shape
from vfgnn.mpc.sharing import ZeroSharing, exchange_pair_seeds
from vfgnn.mpc.sparse import PrivateGraphs
from vfgnn.sealed.joint_computation import Means
from vfgnn.sealed.program import GRAPH_KINDS, MASKED_FEATURES, MATERIAL_SEED, PAIR_SEED, graph_shape
from vfgnn.sealed.supply import Supply


@dataclass(frozen=True, repr=False)
class OwnMatrices:
    """A holder's private ones."""

    features: torch.Tensor  # X_k, ring words
    entries: torch.Tensor  # of A_i [2, entries]


def exchange(agreement: Agreement, channel: Channel, own: HolderContribution, matrices: OwnMatrices) -> Means:
    """All that a holder computes with. Reveals: nothing."""
    me, names = channel.party, agreement.holder_names
    seed = bytes(channel.receive(DEALER, MATERIAL_SEED).tolist())
    pair_seeds = exchange_pair_seeds(channel, names, seed=own.seed, run=own.run, kind=PAIR_SEED)
    columns = {holder.name: holder.features for holder in agreement.feature_holders}
    supply = Supply()
    products = PrivateProducts(
        channel,
        Shape(agreement.nodes, agreement.classes - 1, columns),
        ring_matrix(matrices.features, own.device) if me in columns else None,
        holders=names,
        masks=Masks(seed, run=own.run, holder=me),
        device=own.device,
        next_prepared=supply.next_product,
    )
    products.exchange_features(matrices.features, lambda masked: ring_matrix(masked, own.device), kind=MASKED_FEATURES)
    graphs = PrivateGraphs(
        channel,
        graph_shape(agreement),
        matrices.entries,
        seed=own.seed,
        dealer_seed=seed,
        run=own.run,
        kinds=GRAPH_KINDS,
    )
    graphs.exchange()
    correct = supply.next_correction if me == names[-1] else None
    material = DealtMaterial(seed, run=own.run, holder=me, next_correction=correct)
    return Means(supply, material, graphs, products, ZeroSharing(me, names, pair_seeds), own.account)
