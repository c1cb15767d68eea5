"""What each role keeps: all that it needs in order to stand at the beginning of a step again, as types.

Each knows how it is taken over to nodes that were not there in training (GraphSAGE's inductive promise). Weights do not
depend on how many nodes there are; what does is a holder's part of the shared weights. Runs at each party, on its own
state; nothing leaves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch

from vfgnn.agreement import Agreement
from vfgnn.checkpoint import RoleState, State


@dataclass(frozen=True, repr=False)
class ReleasedRows(RoleState):
    """Rows that were released noised with certain weights, by node."""

    rows: torch.Tensor
    noised: torch.Tensor

    def over(self, places: torch.Tensor, agreement: Agreement) -> "ReleasedRows":
        """Those of nodes that are still there, at their places."""
        moved = places[self.rows]
        return ReleasedRows(moved[moved >= 0], self.noised[moved >= 0])

    def plus(self, releases: Sequence[torch.Tensor | None]) -> "ReleasedRows":
        """With the rows that were noised in an earlier pass, by node; those of training stay what they were."""
        known = set(self.rows.tolist())
        later = {row: one for row, one in enumerate(releases) if one is not None and row not in known}
        if not later:
            return self
        rows = torch.cat([self.rows, torch.tensor(list(later))])
        return ReleasedRows(rows, torch.cat([self.noised, torch.stack(list(later.values()))]))


class SplitState(RoleState):
    """Of any role; only holders have released anything."""

    @property
    def released(self) -> ReleasedRows | None:
        """Noised rows that are sent again as they were."""
        return None

    def with_releases(self, releases: Sequence[torch.Tensor | None]) -> Self:
        """With what was released in passes after training, by node."""
        return self


@dataclass(frozen=True, repr=False)
class DealerState(SplitState):
    """The dealer's; masks are drawn anew with every start."""

    refreshes: int  # that it has dealt for

    def over(self, places: torch.Tensor, agreement: Agreement) -> "DealerState":
        """As the holders' joint layers: after the last but one nobody works ahead."""
        return DealerState(max(0, agreement.settings.trained_joint_epochs - 1))


@dataclass(frozen=True, repr=False)
class ServerSnapshot(RoleState):
    """The best epoch's."""

    network: State
    average: State


@dataclass(frozen=True, repr=False)
class ServerState(SplitState):
    """The server's."""

    network: State
    optimiser: State
    average: State  # of the releases so far
    dropout: torch.Tensor  # the state of its generator
    best: ServerSnapshot | None
