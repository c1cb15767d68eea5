"""CG2, the server (paper 3.4, Algorithm 2 lines 11-16): combine the holders' rows, then the hidden layers.

Runs at the server. It sees the published rows and the gradient of z_L; what leaves is z_L to the label holder, and to
each holder the gradient of its own rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from vfgnn.errors import ModuleError
from vfgnn.model.initialisation import widen
from vfgnn.model.own_modules import check_combine, combined
from vfgnn.settings import Combine, Settings

OwnCombine = Callable[[int, int], nn.Module]
"""A user's own combine: called with the number of holders that publish and the width d, gives a module
rows [holders, rows, d] -> [rows, d]."""

TINY = 1e-12


@dataclass(frozen=True)
class CombineSpecification:
    """What the server must know of a combine. A new one is an entry in `COMBINES` and a name in `config.Combine`.

    With every combine of ours, a row that is 0 at all holders stays 0.
    """

    make: Callable[[Settings, int, OwnCombine | None], nn.Module]  # rows r_i [holders, rows, d] -> h_global
    widens: bool = False  # to [rows, holders d], as `Agreement.hidden_dim` must know; else [rows, d]


class CombineByRule(nn.Module):
    """A combine that learns nothing."""

    def __init__(self, rule: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self._rule = rule

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """[holders, rows, d] -> h_global."""
        return self._rule(rows)


class CombineByRegression(nn.Module):
    """sum w_i * r_i with a learnt vector w_i per holder; it begins as the mean."""

    def __init__(self, settings: Settings, holders: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((holders, 1, settings.dim), 1 / holders, dtype=settings.dtype))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """[holders, rows, d] -> [rows, d]."""
        return torch.einsum("hod,hrd->rd", self.weight, rows)


class CombineByOwnModule(nn.Module):
    """A module that the server's operator brings, of width d, so that the schedule knows it."""

    def __init__(self, settings: Settings, holders: int, own: OwnCombine | None) -> None:
        super().__init__()
        if own is None:
            raise ModuleError("combine = own needs a module", expected="the server's own module", hint="give one")
        self.own = check_combine(own(holders, settings.dim), holders=holders, dim=settings.dim, dtype=settings.dtype)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """[holders, rows, d] -> [rows, d]."""
        return combined(self.own, rows)


def concatenated(rows: torch.Tensor) -> torch.Tensor:
    """[r_1 | ... | r_I]."""
    return torch.cat(list(rows), dim=1)


def averaged(rows: torch.Tensor) -> torch.Tensor:
    """The mean: sum r_i / I."""
    return rows.mean(dim=0)


def weighted_by_length(rows: torch.Tensor) -> torch.Tensor:
    """The sum r_i / sum |r_i|: a holder scaled its unit rows by how much it knows of the node (cg1_edges)."""
    # The norms are the holders' public scale factors, not functions of their weights: no gradient there.
    scale = torch.linalg.vector_norm(rows.detach(), dim=2, keepdim=True).sum(dim=0)
    return torch.div(rows.sum(dim=0), scale.clamp_min(TINY))


COMBINES: Mapping[Combine, CombineSpecification] = {
    "concat": CombineSpecification(lambda *_: CombineByRule(concatenated), widens=True),
    "mean": CombineSpecification(lambda *_: CombineByRule(averaged)),
    "regression": CombineSpecification(lambda settings, holders, _: CombineByRegression(settings, holders)),
    "confidence": CombineSpecification(lambda *_: CombineByRule(weighted_by_length)),
    "own": CombineSpecification(CombineByOwnModule),
}


class ServerNetwork(nn.Module):
    """Combine, then `hidden_layers` of width d with sigmoids; dropout before each layer and before z_L."""

    def __init__(self, settings: Settings, holders: int, own: OwnCombine | None = None) -> None:
        super().__init__()
        self._dropout, self._row_scale = settings.dropout, settings.row_scale
        specification = COMBINES[settings.combine]
        self.combine = specification.make(settings, holders, own)
        self._widths = [settings.dim * (holders if specification.widens else 1)]
        self._widths += [settings.dim] * settings.hidden_layers
        pairs = zip(self._widths, self._widths[1:], strict=False)
        layers = [nn.Linear(before, after) for before, after in pairs]
        widen([layer.weight for layer in layers[:1]], settings.head_scale)
        self.hidden = nn.ModuleList(layers)
        self.to(settings.dtype)

    def draw_dropout(self, rows: int, generator: torch.Generator) -> list[torch.Tensor]:
        """What each layer keeps of `rows` rows.

        torch's own dropout draws from one generator of the whole process (and takes four times as long); here each
        party has its own, and can come back to a mask.
        """
        if self._dropout == 0:
            return []
        return [torch.rand(rows, width, generator=generator) >= self._dropout for width in self._widths]

    def forward(self, rows: torch.Tensor, dropout: list[torch.Tensor]) -> torch.Tensor:
        """z_L of the rows [holders, rows, d]; an empty `dropout` keeps everything."""
        z: torch.Tensor = self.combine(rows)
        if self._row_scale != 1:
            z = z * self._row_scale
        for k in range(len(self._widths)):
            if k > 0:
                z = torch.sigmoid(self.hidden[k - 1](z))
            if dropout:
                z = z * dropout[k].to(z.device) / (1 - self._dropout)
        return z


class ReleaseAverage:
    """A moving average over the noised releases of each row (post-processing: it costs no privacy).

    Weights move slowly, noise is drawn anew each time: an average has less noise than any of the rows in it. After k
    releases the weights 1, m, m^2, ... of the last, the one before, ... are scaled to add up to 1.
    """

    def __init__(self, memory: float, shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device) -> None:
        self._memory = memory
        self._sum = torch.zeros(shape, dtype=dtype, device=device)  # [holders, nodes, d]
        self._weight = torch.zeros(shape[1], dtype=dtype, device=device)

    def add(self, rows: torch.Tensor, released: torch.Tensor) -> torch.Tensor:
        """Average `released` [holders, rows, d] of the nodes `rows` with what came before."""
        self._sum[:, rows] = self._memory * self._sum[:, rows] + released
        self._weight[rows] = self._memory * self._weight[rows] + 1
        return self._sum[:, rows] / self._weight[rows, None]

    def where_known(self, released: torch.Tensor) -> torch.Tensor:
        """The average of every node that has one, and `released` [holders, nodes, d] for the others."""
        known = self._weight > 0
        return torch.where(known[:, None], self._sum / self._weight.clamp_min(1)[:, None], released)

    def state(self) -> dict[str, torch.Tensor]:
        """A copy of it."""
        return {"sum": self._sum.clone(), "weight": self._weight.clone()}

    def load(self, state: dict[str, torch.Tensor]) -> None:
        """Go on from it."""
        self._sum.copy_(state["sum"])
        self._weight.copy_(state["weight"])
