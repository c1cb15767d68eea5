"""What the parties must have accepted before a run may give it away: features by h0, published rows by z_L.

How much of a holder's features the reveals of h0 give to the other holders with edges (docs/protocol.md, 5).

Every reveal of h0 = X W shows d more linear combinations of the columns of X. After R + 1 reveals they span at most
(R + 1) d dimensions; when that reaches the rank of X_j, the others may hold the whole column space of X_j. This is a
property of the paper's protocol, not of its implementation. Each holder meters its own features; nothing leaves.
Whose published rows z_L gives to the label holder follows from public numbers alone (`Agreement.exposed_publishers`).
"""

from dataclasses import dataclass

import torch

from vfgnn.agreement import Agreement
from vfgnn.errors import PolicyRefused


@dataclass(frozen=True)
class LeakMeter:
    """One holder's meter."""

    holder: str
    revealed_dimensions: int
    rank: int
    columns: int
    dim: int

    @property
    def share(self) -> float:
        """(R + 1) d / rank(X_j); from 1 on nothing of the column space need be hidden."""
        return self.revealed_dimensions / self.rank if self.rank else 0.0

    def explain(self) -> str:
        """One sentence for people."""
        text = f"{self.holder}: {self.revealed_dimensions} dimensions revealed, rank {self.rank}: {self.share:.0%}"
        if 0 < self.columns <= self.dim:
            text += f"; one reveal and {self.columns} known rows give all other rows exactly (d >= p)"
        return text


def rank(x: torch.Tensor) -> int:
    """Of a feature matrix, through the eigenvalues of its smaller Gram matrix.

    Squaring loses half of the digits, so a nearly dependent column counts as dependent: the meter then shows more.
    """
    x = x.double()
    if not x.numel():
        return 0
    gram = x.t() @ x if x.shape[1] <= x.shape[0] else x @ x.t()
    values = torch.linalg.eigvalsh(gram)
    threshold = float(values.max()) * max(x.shape) * torch.finfo(torch.float64).eps
    return int((values > threshold).sum())


def meter(agreement: Agreement, holder: str, x: torch.Tensor, *, steps: int | None = None) -> LeakMeter | None:
    """After `steps` (None: the whole run), or None where no other holder sees h0 or X has no columns."""
    learners = [name for name in agreement.publishers if name != holder]
    if not agreement.collaborative or not learners or not x.shape[1]:
        return None
    revealed = agreement.revealed_dimensions(steps)
    return LeakMeter(holder, revealed, rank(x), int(x.shape[1]), agreement.settings.dim)


def refuse_leak(agreement: Agreement, holder: str, x: torch.Tensor) -> None:
    """Refuse a run that would reveal as many dimensions as the features have, unless all parties accepted that."""
    if agreement.settings.accept_h0_leak:
        return
    planned = meter(agreement, holder, x)
    if planned is not None and planned.share > 1:
        raise PolicyRefused(
            "the joint layer would reveal too much",
            expected="fewer revealed dimensions than the rank of the features (100 %)",
            got=planned.explain(),
            hint="lower joint_layer_epochs or dim, use initial_embedding = individual, or set accept_h0_leak = true",
        )


def refuse_row_leak(agreement: Agreement) -> None:
    """Refuse a run whose z_L would let the label holder rebuild others' rows, unless all parties accepted that."""
    exposed, settings = agreement.exposed_publishers, agreement.settings
    if not exposed or settings.accept_row_leak:
        return
    raise PolicyRefused(
        f"{agreement.label_holder} could rebuild the published rows of {', '.join(exposed)} from z_L",
        expected="a hidden layer between the published rows and the label holder",
        got=f"hidden_layers = 0, combine = {settings.combine}, {len(agreement.publishers)} holder(s) that publish",
        hint="set hidden_layers = 1, noise the rows (row_epsilon), or set accept_row_leak = true",
    )
