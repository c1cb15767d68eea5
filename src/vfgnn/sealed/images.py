"""What the kernel makes of a vector over the training rows, on shares, in two orders of computation.

labels    K p for all nodes: spread p over the graph, to all columns, back to the nodes, gather over the graph.
          2 K hops and two products with features for each vector; C - 1 columns travel.
features  the columns themselves travel, once: shares of Psi at the training and validation rows. Then K p is two small
          products with a matrix that stays, under a mask that is opened once.
Both give the same model; public sizes say which is cheaper (sizes.py). Runs at the holders; nothing is revealed.
"""

from dataclasses import dataclass
from typing import Protocol

import torch

from vfgnn.mpc.blinding import Blinded
from vfgnn.rows import RowSet
from vfgnn.sealed.computation import Blocks, Computation
from vfgnn.sealed.features import SharedFeatures
from vfgnn.sealed.formats import FACTOR, LONG, SHORT
from vfgnn.sealed.kernel import SharedKernel
from vfgnn.sealed.sizes import SealedSizes


@dataclass(frozen=True, repr=False)
class Image:
    """K p / 2^h of some rows, LONG, and the part of the primal weights that it comes from, LONG."""

    values: torch.Tensor
    weights: dict[str, torch.Tensor]


class Images(Protocol):
    """One holder's side."""

    train: RowSet  # among the rows of `values`
    val: RowSet
    complete: bool  # whether `values` has all nodes

    def expand(self, number: int) -> None:
        """One block of columns over the graph (order of features)."""

    def of(self, p: torch.Tensor) -> Image:
        """Of a vector over the training rows [training rows, columns], LONG."""

    def kept(self) -> torch.Tensor | None:
        """A share of what a training that goes on later needs of the columns."""

    def scores(self, weights: Blocks) -> torch.Tensor:
        """What trained weights give all nodes, in the unit of `values`."""


class LabelImages:
    """The order of labels."""

    complete = True

    def __init__(
        self,
        computation: Computation,
        kernel: SharedKernel,
        features: SharedFeatures,
        sizes: SealedSizes,
        rows: tuple[RowSet, RowSet],
    ) -> None:
        self._computation, self._kernel, self._features = computation, kernel, features
        self.train, self.val = rows
        self._cut = sizes.guard

    def expand(self, number: int) -> None:
        """There are no such blocks."""

    def kept(self) -> None:
        """Nothing."""

    def of(self, p: torch.Tensor) -> Image:
        """S p, Phi^T (S p), which is its part of the weights, Phi of it, S of that."""
        spread = self._kernel.spread(self._computation, p, self.train)
        weights = self._features.to_columns(self._computation, spread)
        return Image(self.scores(weights), weights)

    def scores(self, weights: Blocks) -> torch.Tensor:
        """Phi W, gathered."""
        at_nodes = self._features.to_nodes(self._computation, weights)
        return self._kernel.gather(self._computation, at_nodes, cut=self._cut)


class FeatureImages:
    """The order of features. `own`: this holder's columns, LONG; those of others are 0 in its share.

    `known`: its share of Psi, of which the first `blocks` have been made before.
    """

    complete = False

    def __init__(
        self,
        computation: Computation,
        kernel: SharedKernel,
        features: SharedFeatures,
        sizes: SealedSizes,
        rows: tuple[RowSet, RowSet],
        own: torch.Tensor,
        known: torch.Tensor | None = None,
        *,
        blocks: int = 0,
    ) -> None:
        self._computation, self._kernel, self._features = computation, kernel, features
        (train, val), self._sizes, self._own = rows, sizes, own
        self._wanted = train.then(val)
        self.train = RowSet(torch.arange(len(train)))
        self.val = RowSet(torch.arange(len(train), len(self._wanted)))
        self._cut = sizes.guard
        whole = (len(self._wanted), sizes.blocks * own.shape[1])
        self._made = own.new_zeros(whole) if known is None else known.clone()  # Psi, hop after hop
        self._psi: Blinded | None = None
        self._transposed: Blinded | None = None
        if blocks == sizes.column_blocks:
            self._blind()

    def expand(self, number: int) -> None:
        """Psi of one block of columns, at the rows that are wanted, SHORT. The last one is followed by the blinding."""
        total, width = self._own.shape[1], self._sizes.columns_at_once
        begin, end = number * width, min((number + 1) * width, total)
        whole = self._kernel.expand(self._computation, self._own[:, begin:end].contiguous())
        (short,) = self._computation.truncate(self._wanted.pick(whole), bits=FACTOR)
        for hop, part in enumerate(short.chunk(self._sizes.blocks, dim=1)):
            self._made[:, hop * total + begin : hop * total + end] = part
        if number + 1 == self._sizes.column_blocks:
            self._blind()

    def _blind(self) -> None:
        transposed = self.train.pick(self._made).t().contiguous()
        self._psi, self._transposed = self._computation.blind(self._made, transposed)
        self._made = self._made[:0]

    def kept(self) -> torch.Tensor:
        """Psi as far as it has come."""
        psi = self._psi
        return self._made.clone() if psi is None else self._computation.plus_public(psi.mask_share, psi.eps)

    def of(self, p: torch.Tensor) -> Image:
        """Psi_T^T p, and Psi of it."""
        computation = self._computation
        if self._psi is None or self._transposed is None:
            raise RuntimeError("expand() comes first")
        (short,) = computation.truncate(p, bits=FACTOR)
        products = computation.multiply_fixed(self._transposed, short)
        (columns,) = computation.truncate(products, bits=2 * SHORT - FACTOR + self._cut)
        values = computation.multiply_fixed(self._psi, columns)
        return Image(values, self._by_owner(columns << (LONG - FACTOR)))

    def _by_owner(self, columns: torch.Tensor) -> dict[str, torch.Tensor]:
        """From hop after hop, owner after owner, to a block for each owner with its hops side by side."""
        counts = list(self._sizes.columns.values())
        hops = [torch.split(hop, counts) for hop in columns.chunk(self._sizes.blocks)]
        parts = zip(self._sizes.columns, zip(*hops, strict=True), strict=True)
        return {owner: torch.cat(blocks, dim=1) for owner, blocks in parts}

    def scores(self, weights: Blocks) -> torch.Tensor:
        """Phi W, gathered: the graph's hops once more, for C - 1 columns."""
        at_nodes = self._features.to_nodes(self._computation, weights)
        return self._kernel.gather(self._computation, at_nodes, cut=0)
