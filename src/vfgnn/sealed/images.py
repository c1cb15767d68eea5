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
    """K p / 2^h of some rows, LONG, and the part of the primal weights that it comes from, LONG + lift."""

    values: torch.Tensor
    weights: dict[str, torch.Tensor]


class Images(Protocol):
    """One holder's side."""

    train: RowSet  # among the rows of `values`
    val: RowSet
    complete: bool  # whether `values` has all nodes
    lift: int  # bits that weights have beyond LONG

    def expand(self, number: int) -> None:
        """One block of columns over the graph (order of features)."""

    def of(self, p: torch.Tensor) -> Image:
        """Of a vector over the training rows [training rows, columns], LONG."""

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
        self.lift, self._cut = sizes.lift, sizes.guard

    def expand(self, number: int) -> None:
        """There are no such blocks."""

    def of(self, p: torch.Tensor) -> Image:
        """S p, Phi^T (S p), which is its part of the weights, Phi of it, S of that."""
        spread = self._kernel.spread(self._computation, p << self.lift, self.train)
        weights = self._features.to_columns(self._computation, spread)
        return Image(self._gathered(weights, cut=self._cut + self.lift), weights)

    def scores(self, weights: Blocks) -> torch.Tensor:
        """Phi W, gathered."""
        return self._gathered(weights, cut=self._cut)

    def _gathered(self, weights: Blocks, *, cut: int) -> torch.Tensor:
        at_nodes = self._features.to_nodes(self._computation, weights)
        return self._kernel.gather(self._computation, at_nodes, cut=cut)


class FeatureImages:
    """The order of features. `own`: this holder's columns, LONG; those of others are 0 in its share."""

    complete = False
    lift = 0

    def __init__(
        self,
        computation: Computation,
        kernel: SharedKernel,
        features: SharedFeatures,
        sizes: SealedSizes,
        rows: tuple[RowSet, RowSet],
        own: torch.Tensor,
    ) -> None:
        self._computation, self._kernel, self._features = computation, kernel, features
        (train, val), self._sizes, self._own = rows, sizes, own
        self._wanted = train.then(val)
        self.train = RowSet(torch.arange(len(train)))
        self.val = RowSet(torch.arange(len(train), len(self._wanted)))
        self._cut = sizes.guard
        self._expanded: list[list[torch.Tensor]] = []  # of each block of columns, one matrix for each hop
        self._psi: Blinded | None = None
        self._transposed: Blinded | None = None

    def expand(self, number: int) -> None:
        """Psi of one block of columns, at the rows that are wanted, SHORT. The last one is followed by the blinding."""
        width = self._sizes.columns_at_once
        whole = self._kernel.expand(self._computation, self._own[:, number * width : (number + 1) * width].contiguous())
        (short,) = self._computation.truncate(self._wanted.pick(whole), bits=FACTOR)
        self._expanded.append(list(short.chunk(self._sizes.blocks, dim=1)))
        if number + 1 == self._sizes.column_blocks:
            hops = [torch.cat(parts, dim=1) for parts in zip(*self._expanded, strict=True)]
            psi = torch.cat(hops, dim=1)
            self._expanded = []
            transposed = self.train.pick(psi).t().contiguous()
            self._psi, self._transposed = self._computation.blind(psi, transposed)

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
