"""What a holder keeps of a sealed training: at each step what it goes on from, in the end its shares of the model.

The dealer and a server keep nothing. Runs at each holder, on its own state; nothing leaves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import torch

from vfgnn.agreement import Agreement
from vfgnn.checkpoint import RoleState


@dataclass(frozen=True, repr=False)
class OpenedRows(RoleState):
    """Rows whose prediction has been opened to the label holder; at the label holder alone also what was opened."""

    rows: torch.Tensor
    values: torch.Tensor  # [rows, 1]: classes; [rows, C]: scores, SHORT; [rows, 0] at the other holders

    def over(self, places: torch.Tensor, agreement: Agreement) -> "OpenedRows":
        """Those of nodes that are still there, at their places."""
        moved = places[self.rows]
        return OpenedRows(moved[moved >= 0], self.values[moved >= 0])

    def plus(self, rows: torch.Tensor, values: torch.Tensor) -> "OpenedRows":
        """With rows that were opened later."""
        return OpenedRows(torch.cat([self.rows, rows]), torch.cat([self.values, values]))

    def with_copies(self, copies: Sequence[torch.Tensor | None]) -> "OpenedRows":
        """With what was opened in earlier passes, by node; those of training stay what they were."""
        known = set(self.rows.tolist())
        later = {row: one for row, one in enumerate(copies) if one is not None and row not in known}
        return self.plus(torch.tensor(list(later)), torch.stack(list(later.values()))) if later else self

    def among(self, asked: torch.Tensor) -> int:
        """How many of these rows have been opened."""
        return int(torch.isin(asked, self.rows).sum())


@dataclass(frozen=True, repr=False)
class BasisState(RoleState):
    """A holder's shares of the Krylov space so far (basis.py); each tensor has one matrix for each vector."""

    vectors: torch.Tensor
    values: torch.Tensor
    means: torch.Tensor
    weights: dict[str, torch.Tensor]
    taken: torch.Tensor  # the last image at the training rows


@dataclass(frozen=True, repr=False)
class TrainingState(RoleState):
    """A training that stands at the beginning of a step, or of a part of what comes after the steps (training.py).

    Shares alone: every factor is blinded anew when it goes on, and every mask is another one.
    """

    number: int = 0  # of the step
    rows: torch.Tensor | None = None  # the code of each (holder.py): they stay what they were
    coming: torch.Tensor | None = None  # this holder's share of what is opened next
    columns: torch.Tensor | None = None  # order of features: Psi as far as it has come
    basis: BasisState | None = None
    weights: dict[str, torch.Tensor] = field(default_factory=dict)  # as in the state that is left
    offset: torch.Tensor | None = None
    heard: dict[str, torch.Tensor] = field(default_factory=dict)  # label holder: inner products that it has been told


@dataclass(frozen=True, repr=False)
class AskedState(RoleState):
    """A prediction with a trained model, when nothing is left of it but to tell."""

    rows: torch.Tensor  # that are asked for
    made: torch.Tensor  # this holder's share of what is told of them


@dataclass(frozen=True, repr=False)
class SealedState(RoleState):
    """A holder's: its shares of the primal weights by feature holder, and of what is added to all scores.

    Empty, and None, until the training is through; until then it has `training`.
    """

    weights: dict[str, torch.Tensor] = field(default_factory=dict)  # LONG
    offset: torch.Tensor | None = None  # [1, C - 1], SCORE
    train_rows: int = 0  # how many rows trained: images are cut by that
    opened: OpenedRows | None = None
    training: TrainingState | None = None
    asked: AskedState | None = None

    def over(self, places: torch.Tensor, agreement: Agreement) -> Self:
        """Weights do not depend on the nodes."""
        return replace(self, opened=None if self.opened is None else self.opened.over(places, agreement))

    def with_copies(self, copies: Sequence[torch.Tensor | None]) -> Self:
        """With what was opened in earlier passes, by node."""
        return replace(self, opened=None if self.opened is None else self.opened.with_copies(copies))


@dataclass(frozen=True, repr=False)
class LabelHolderState(SealedState):
    """Also what it has found out about the model."""

    val_accuracy: float = 0.0
    scores: torch.Tensor | None = None  # of the test rows, as model/metrics.py orders them; NaN where there is none
