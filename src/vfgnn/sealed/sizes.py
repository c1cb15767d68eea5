"""The public numbers of a sealed training: what the agreement says, and how many rows train and validate.

Everything that travels follows from them. Nothing private goes in.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from vfgnn.agreement import Agreement
from vfgnn.sealed.formats import ROW_NORM, feature_bits, lift, range_guard


@dataclass(frozen=True)
class SealedSizes:
    """Hashable, so that what follows from them is worked out once."""

    agreement: Agreement
    train: int
    val: int

    @property
    def nodes(self) -> int:
        """Of the union graph."""
        return self.agreement.nodes

    @property
    def width(self) -> int:
        """C - 1: columns of centred labels sum to 0, so the last one follows."""
        return self.agreement.classes - 1

    @cached_property
    def feature_bits(self) -> dict[str, int]:
        """Fraction bits of each feature holder's columns."""
        return {holder.name: feature_bits(integer=holder.integer) for holder in self.agreement.feature_holders}

    @cached_property
    def columns(self) -> dict[str, int]:
        """Of each feature holder."""
        return {holder.name: holder.features for holder in self.agreement.feature_holders}

    @cached_property
    def entry_bounds(self) -> dict[str, int]:
        """Of each holder: the directed entries that it declared, 0 without edges."""
        return {holder.name: holder.entry_bound for holder in self.agreement.holders}

    @property
    def kernel(self) -> Literal["smooth", "hops"]:
        """As set."""
        return self.agreement.settings.sealed.kernel

    @property
    def hops(self) -> int:
        """K."""
        return self.agreement.settings.sealed.depth

    @property
    def blocks(self) -> int:
        """Matrices [nodes, columns] side by side in the kernel's middle."""
        return 1 if self.kernel == "smooth" else self.hops + 1

    @property
    def order(self) -> Literal["labels", "features"]:
        """As set, or what sends fewer columns over the graph: 2 t (C - 1) K, or (p + C - 1) K."""
        settings = self.agreement.settings.sealed
        if settings.order != "auto":
            return settings.order
        return "labels" if 2 * self.steps * self.width <= self.agreement.columns + self.width else "features"

    @property
    def steps(self) -> int:
        """Vectors of the basis: t."""
        return self.agreement.settings.sealed.steps

    @property
    def columns_at_once(self) -> int:
        """In the order of features."""
        return self.agreement.settings.sealed.columns_at_once

    @property
    def column_blocks(self) -> int:
        """That travel one after the other in the order of features; in that of labels none."""
        return -(-self.agreement.columns // self.columns_at_once) if self.order == "features" else 0

    @property
    def units(self) -> int:
        """Steps of the program: blocks of columns, then vectors."""
        return self.column_blocks + self.steps

    @property
    def row_norm(self) -> float:
        """About the squared norm of a row: scaled columns have 1 each."""
        scaled = self.agreement.settings.sealed.scaled
        return max(ROW_NORM, float(self.agreement.columns * self.blocks)) if scaled else ROW_NORM

    @property
    def guard(self) -> int:
        """Bits that images are cut by, so that sums over many training rows stay in the ring."""
        return range_guard(self.train, self.row_norm)

    @property
    def lift(self) -> int:
        """Bits by which vectors are longer on their way out. `hops` would cut them in a round of its own."""
        return lift(self.train, self.row_norm) if self.kernel == "smooth" else 0

    @property
    def score_guard(self) -> int:
        """Bits that are cut from what trained weights give a node, where they were not cut before: its image's."""
        return self.guard if self.order == "labels" else 0

    @property
    def weighted(self) -> bool:
        """Whether training rows count by their class; how much, only the label holder knows."""
        return self.agreement.settings.class_weights == "balanced"

    @property
    def ridges(self) -> tuple[float, ...]:
        """The path that validation chooses from."""
        return self.agreement.settings.sealed.ridges

    @property
    def scalars(self) -> int:
        """Inner products that the label holder learns: of p_0 and q_0, and of the whole basis."""
        return 3 + (self.steps + 1) * (self.steps + 2) // 2


def trained_steps(agreement: Agreement) -> int:
    """How many steps a training has: the number of rows has no part in it."""
    return SealedSizes(agreement, 1, 0).units
