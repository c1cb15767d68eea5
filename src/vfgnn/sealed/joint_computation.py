"""The holders' own computation: each step of the algorithm (computation.py) done with the others, on shares.

Runs at every holder. What leaves is masked, and uniform to its receiver; `tell` and `tell_bits` alone reveal anything,
to the label holder, under a fresh sharing of zero. What the dealer deals is received ahead (supply.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from vfgnn.agreement import Agreement
from vfgnn.channel import Channel
from vfgnn.messages import Kind
from vfgnn.mpc.beaver import gram, products
from vfgnn.mpc.blinding import Blinded, blind, fixed_products
from vfgnn.mpc.comparison import argmax
from vfgnn.mpc.lookup import look_up
from vfgnn.mpc.material import DealtMaterial
from vfgnn.mpc.opening import ChannelOpening, ClassOpening
from vfgnn.mpc.products import PrivateProducts
from vfgnn.mpc.scaling import Scaled, scale
from vfgnn.mpc.shared import Arithmetic, Shape
from vfgnn.mpc.sharing import ZeroSharing, reveal
from vfgnn.mpc.sparse import PrivateGraphs
from vfgnn.mpc.truncation import truncate
from vfgnn.privacy.openings import Account
from vfgnn.sealed.computation import Blocks
from vfgnn.sealed.program import COLUMNS_KINDS, NODES_KINDS, names_of
from vfgnn.sealed.rehearsal import factor_label
from vfgnn.sealed.supply import Supply


@dataclass(frozen=True, repr=False)
class Means:
    """What a holder computes with."""

    supply: Supply
    material: DealtMaterial
    graphs: PrivateGraphs
    products: PrivateProducts
    zeros: ZeroSharing
    account: Account | None = None  # of what is opened; None: nobody counts


class JointComputation:
    """One holder's side."""

    def __init__(self, agreement: Agreement, channel: Channel, means: Means) -> None:
        self._agreement, self._channel, self._means = agreement, channel, means
        self._leads = channel.party == agreement.label_holder
        opening = ChannelOpening(channel, names_of(agreement))
        self._arithmetic = Arithmetic(opening, means.material, leads=self._leads)
        self._factors = self._multiplied = self._told = 0

    def from_leader(self, words: torch.Tensor | None, shape: Shape) -> torch.Tensor:
        """The label holder's share is the secret, all others' are 0: whatever leaves is masked first."""
        return torch.zeros(shape, dtype=torch.int64) if words is None else words.reshape(shape)

    def plus_public(self, share: torch.Tensor, words: torch.Tensor | int) -> torch.Tensor:
        """One of the holders adds it."""
        return self._arithmetic.plus_public(share, words)

    def hop(self, share: torch.Tensor, *, self_loops: bool) -> torch.Tensor:
        """Reveals: nothing; shares of u travel under masks."""
        return self._means.graphs.times(share.contiguous(), self._means.supply.next_hop(), self_loops=self_loops)

    def to_columns(self, by_owner: Blocks) -> dict[str, torch.Tensor]:
        """Reveals: nothing; shares of u travel under masks."""
        (width,) = {share.shape[1] for share in by_owner.values()}
        there, products = self._on_device(by_owner), self._means.products
        senders, number = self._agreement.holder_names, self._next_product()
        found = products.backward(there, kinds=COLUMNS_KINDS, senders=senders, counter=number, dim=width)
        return {owner: share.cpu() for owner, share in found.items()}

    def to_nodes(self, blocks: Blocks) -> torch.Tensor:
        """Reveals: nothing; shares of W travel under masks."""
        (width,) = {block.shape[1] for block in blocks.values()}
        there, products = self._on_device(blocks), self._means.products
        senders, number = self._agreement.holder_names, self._next_product()
        return products.forward(there, kinds=NODES_KINDS, senders=senders, counter=number, dim=width).cpu()

    def _on_device(self, blocks: Blocks) -> dict[str, torch.Tensor]:
        """Where the products are computed; everything else stays in the memory of the CPU."""
        return {owner: share.to(self._means.products.device).contiguous() for owner, share in blocks.items()}

    def _next_product(self) -> int:
        self._multiplied += 1
        return self._multiplied

    def truncate(self, *shares: torch.Tensor, bits: int) -> list[torch.Tensor]:
        """Reveals: nothing."""
        return truncate(self._arithmetic, *shares, bits=bits)

    def multiply(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Reveals: nothing."""
        return products(self._arithmetic, (x, y))[0]

    def blind(self, *shares: torch.Tensor) -> list[Blinded]:
        """Reveals: nothing."""
        labels = [factor_label(self._factors + i) for i in range(len(shares))]
        self._factors += len(shares)
        return blind(self._arithmetic, *zip(labels, shares, strict=True))

    def multiply_fixed(self, matrix: Blinded, share: torch.Tensor) -> torch.Tensor:
        """Reveals: nothing."""
        return fixed_products(self._arithmetic, (matrix, share.contiguous()))[0]

    def scale(self, *work: tuple[torch.Tensor, Sequence[Blinded]], bits: int) -> list[Scaled]:
        """Reveals: nothing."""
        return scale(self._arithmetic, *work, bits=bits)

    def look_up(self, share: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        """Reveals: nothing."""
        return look_up(self._arithmetic, share, table)

    def gram(self, share: torch.Tensor) -> torch.Tensor:
        """Reveals: nothing."""
        return gram(self._arithmetic, share)

    def classes(self, scores: torch.Tensor, *, cut: int) -> torch.Tensor:
        """Reveals: nothing."""
        return argmax(self._arithmetic, scores, cut=cut)

    def tell(self, share: torch.Tensor, kind: Kind) -> torch.Tensor | None:
        """Reveals: the secret to the label holder."""
        self._charge()
        hidden = self._means.zeros.hide(share, self._told)
        leader = self._agreement.label_holder
        found = reveal(self._channel, hidden, holders=self._agreement.holder_names, to=(leader,), name=kind)
        return found[0] if found else None

    def tell_classes(self, bits: torch.Tensor, kind: Kind) -> torch.Tensor | None:
        """Reveals: the class of each row to the label holder."""
        self._charge()
        opening = ClassOpening(self._agreement.holder_names, self._agreement.label_holder, kind)
        return opening.open(self._channel, bits, self._means.zeros, counter=self._told)

    def _charge(self) -> None:
        """Count what is told, and have it on the disk before any of it leaves."""
        self._told += 1
        if self._means.account is not None:
            self._means.account.charge()
