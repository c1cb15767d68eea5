"""What a holder and the label holder keep (state.py has the others'): they name the holder's own parts of the model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch

from vfgnn.agreement import Agreement
from vfgnn.checkpoint import RoleState, State
from vfgnn.model.cg1_features import EmbeddingSnapshot
from vfgnn.split.joint_layer import JointState
from vfgnn.split.state import ReleasedRows, SplitState


@dataclass(frozen=True, repr=False)
class HolderSnapshot(RoleState):
    """The best epoch's."""

    modules: State
    embedding: EmbeddingSnapshot | None  # collaborative mode, where h0 is revealed
    released: ReleasedRows | None  # under row noise: what was sent with these weights
    output: State  # the label holder's output layer


@dataclass(frozen=True, repr=False, kw_only=True)
class HolderState(SplitState):
    """A holder's."""

    modules: State
    optimiser: State
    h0: torch.Tensor | None
    joint: JointState | None  # collaborative mode
    best: HolderSnapshot | None
    union: torch.Tensor | None  # everybody's noised edges (`publish_noised_edges`)
    releases: int  # lines of its privacy ledger
    sampling: torch.Tensor  # the state of its generator

    def over(self, places: torch.Tensor, agreement: Agreement) -> Self:
        """h0 and the best epoch's are of the nodes that there were; what was released of a node stays with it."""
        best, joint = self.best, self.joint
        if best is not None:
            released = None if best.released is None else best.released.over(places, agreement)
            best = replace(best, embedding=None, released=released)
        return replace(self, h0=None, best=best, joint=None if joint is None else joint.over(places, agreement))

    @property
    def released(self) -> ReleasedRows | None:
        """With the best epoch's weights."""
        return None if self.best is None else self.best.released

    def with_releases(self, releases: Sequence[torch.Tensor | None]) -> Self:
        """With what was released in passes after training, by node."""
        best = self.best
        if best is None or best.released is None:
            return self
        return replace(self, best=replace(best, released=best.released.plus(releases)))


@dataclass(frozen=True, repr=False, kw_only=True)
class LabelHolderState(HolderState):
    """The label holder's."""

    output: State
    output_optimiser: State
    history: torch.Tensor  # [epochs, 3]: epoch, loss, validation accuracy; NaN: none
    best_so_far: torch.Tensor  # of its choice of epoch
    scores: torch.Tensor | None  # of the test nodes, at the very end
