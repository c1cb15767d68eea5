"""The network of many points at once: weights stacked along the first dimension, [points, ...].

Runs wherever the search runs. The same layers as `model/` has, written out: GraphSAGE with means or APPNP, unit rows,
combine, at most one sigmoid hidden layer, the output layer. Rows of nodes are [nodes, points, d] where edges are
followed, and [points, rows, d] elsewhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from vfgnn.experiments.batched.jobs import Job, Value
from vfgnn.experiments.batched.surroundings import Around

TINY = 1e-12


@dataclass(frozen=True)
class StackShape:
    """What the points have in common."""

    gnn: str
    layers: int
    dim: int
    hidden_layers: int
    holders: int
    columns: int
    classes: int

    @property
    def wide(self) -> int:
        """Of what goes into the head: room for a concatenation."""
        return self.dim * self.holders

    def weights(self) -> dict[str, tuple[int, ...]]:
        """The shape of everything but W, for one point."""
        d, holders = self.dim, self.holders
        head: dict[str, tuple[int, ...]] = {"combine": (holders, d)}
        if self.gnn == "appnp":
            head["linear"] = (holders, d, d)
        else:
            head["neighbours"] = head["self"] = (holders, self.layers, d, d)
            head["bias"] = (holders, self.layers, d)
        if self.hidden_layers:
            head["hidden"], head["hidden_bias"] = (self.wide, d), (d,)
        head["output"] = (d if self.hidden_layers else self.wide, self.classes)
        return head | {"output_bias": (self.classes,)}


class Points:
    """What the points differ in: a tensor for each value, [points, 1, 1]."""

    def __init__(self, jobs: Sequence[Job], dtype: torch.dtype, device: torch.device) -> None:
        self.jobs, self._place = jobs, (dtype, device)
        self.scaled = sum(job.values["feature_scaling"] == "row" for job in jobs)  # these come last
        self.rows = [job.row for job in jobs]

    def number(self, name: str) -> torch.Tensor:
        """A number of each point."""
        return self._tensor([job.values[name] for job in self.jobs])

    def whether(self, name: str, value: Value) -> torch.Tensor:
        """1 where a choice was made so, else 0."""
        return self._tensor([float(job.values[name] == value) for job in self.jobs])

    def is_row(self, row: str) -> torch.Tensor:
        """1 where a point is of this row."""
        return self._tensor([float(one == row) for one in self.rows])

    def _tensor(self, values: Sequence[Value]) -> torch.Tensor:
        dtype, device = self._place
        return torch.tensor(values, dtype=dtype, device=device)[:, None, None]


class StackedNetwork:
    """Logits of some rows, for all points."""

    def __init__(self, shape: StackShape, points: Points) -> None:
        self._shape, self._points = shape, points
        self._tanh = points.whether("embedding_activation", "tanh")[None, :, :, 0] > 0
        self._teleport = points.number("teleport")[None, :, :, 0]
        self._row_scale, self._keep = points.number("row_scale"), 1 - points.number("dropout")
        self._confidence, self._degree = points.is_row("confidence") > 0, points.number("confidence_degree")
        self._concat, self._regression = points.is_row("concat"), points.is_row("regression") > 0
        mean = (1 - self._concat) / shape.holders
        self._fixed = [self._concat + mean if i == 0 else mean for i in range(shape.holders)]

    def rows_of(self, holder: int, h0: torch.Tensor, around: Around, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        """Unit rows of one holder [points, rows, d] from h0 [nodes, points, d]."""
        x = torch.where(self._tanh, h0.tanh(), h0)
        x = (
            self._propagated(holder, x, around, weights)
            if self._shape.gnn == "appnp"
            else self._convolved(holder, x, around, weights)
        )
        return F.normalize(x, dim=2)

    def _convolved(
        self, holder: int, x: torch.Tensor, around: Around, weights: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        out = x
        layers = [weights[name][:, holder].unbind(1) for name in ("neighbours", "self", "bias")]
        for k, (near, own, bias) in enumerate(zip(*layers, strict=True)):
            if k:
                x = out.transpose(0, 1).contiguous()
            size = around.sizes[k]
            heard = around.layers[k](x.flatten(1)).view(size, *x.shape[1:])
            out = torch.baddbmm(bias[:, None], heard.transpose(0, 1), near)
            out = torch.baddbmm(out, x[:size].transpose(0, 1), own).tanh()
        return out

    def _propagated(
        self, holder: int, x: torch.Tensor, around: Around, weights: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        begin = torch.bmm(x.transpose(0, 1), weights["linear"][:, holder]).transpose(0, 1).contiguous()
        x = begin
        for step in around.layers:
            x = (1 - self._teleport) * step(x.flatten(1)).view(x.shape) + self._teleport * begin
        return x[: len(around.degree)].transpose(0, 1).tanh()

    def logits(
        self, rows: list[torch.Tensor], degrees: list[torch.Tensor], weights: dict[str, torch.Tensor], *, drops: bool
    ) -> torch.Tensor:
        """From the holders' unit rows."""
        z = self._combined(rows, degrees, weights) * self._row_scale
        if self._shape.hidden_layers:
            z = self._dropped(z) if drops else z
            z = torch.baddbmm(weights["hidden_bias"][:, None], z, weights["hidden"]).sigmoid()
        z = self._dropped(z) if drops else z
        return torch.baddbmm(weights["output_bias"][:, None], z, weights["output"])

    def _dropped(self, z: torch.Tensor) -> torch.Tensor:
        return z * (torch.rand_like(z) < self._keep) / self._keep

    def _combined(
        self, rows: list[torch.Tensor], degrees: list[torch.Tensor], weights: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        """[points, rows, holders d]: a sum fills the first d and leaves the others 0."""
        learnt = weights["combine"]
        shares = [torch.where(self._regression, learnt[:, i, None], fixed) for i, fixed in enumerate(self._fixed)]
        parts = [sum(share * one for share, one in zip(shares, rows, strict=True))]
        if "confidence" in self._points.rows:
            parts = [torch.where(self._confidence, self._by_confidence(rows, degrees), parts[0])]
        parts += [one * self._concat for one in rows[1:]]
        return torch.cat([part for part in parts if isinstance(part, torch.Tensor)], dim=2)

    def _by_confidence(self, rows: list[torch.Tensor], degrees: list[torch.Tensor]) -> torch.Tensor:
        full = self._degree
        scales = [(degree[None, :, None].clamp_max(full) + 0.5) / (full + 0.5) for degree in degrees]
        weighted = [scale * one for scale, one in zip(scales, rows, strict=True)]
        total = sum(torch.linalg.vector_norm(one.detach(), dim=2, keepdim=True) for one in weighted)
        whole = torch.stack(weighted).sum(0)
        return whole / total.clamp_min(TINY) if isinstance(total, torch.Tensor) else whole


def initial(shape: StackShape, points: Points, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Everything but W, drawn as torch and PyG draw their linear layers: uniform within 1 / sqrt(inputs)."""
    count, device, dtype = len(points.jobs), generator.device, points.number("row_scale").dtype
    concat = points.is_row("concat")
    inputs = shape.dim + concat * (shape.wide - shape.dim)  # of the layer after the combine
    narrow, head, output = 1 / math.sqrt(shape.dim), inputs.rsqrt(), points.number("output_scale")
    scales = {"hidden": head * points.number("head_scale"), "hidden_bias": head, "output": output * narrow}
    if not shape.hidden_layers:
        scales |= {"output": output * head, "output_bias": head}
    drawn = dict[str, torch.Tensor]()
    for name, size in shape.weights().items():
        unit = torch.rand(count, math.prod(size), generator=generator, device=device, dtype=dtype) * 2 - 1
        bound = scales[name][:, :, 0] if name in scales else narrow
        drawn[name] = (unit * bound).view(count, *size)
    drawn["combine"].fill_(1 / shape.holders)
    return drawn
