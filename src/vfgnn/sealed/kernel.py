"""The two kernels of the sealed model on shares: how the union of all graphs acts on a matrix [nodes, columns].

smooth  K = S Phi Phi^T S; S = APPNP over D^-1/2 (A + I) D^-1/2 with teleport alpha, K hops. With y = s z and
        s = sqrt(1 - alpha) D^-1/2:  y_0 = s z_0;  y <- s^2 (A + I) y + alpha s z_0;  last, z = s (A + I) y + alpha z_0.
hops    K = sum_h R^h Phi Phi^T (R^T)^h, R = D^-1/2 A, no self-loops. Out: P_h = A (D^-1/2 P_(h-1)), side by side.
        Back, by Horner: Q = G_0 + R (G_1 + R (G_2 + ...)).
Both: K hops each way, an opening for the product and one for scaling and truncation. Between hops values are LONG.
Runs at the holders; the rehearsal follows it with sizes alone. Nothing is revealed.
"""

from dataclasses import dataclass
from typing import Protocol

import torch

from vfgnn.mpc.blinding import Blinded
from vfgnn.rows import RowSet
from vfgnn.sealed.computation import Computation
from vfgnn.sealed.formats import FACTOR, factor_word
from vfgnn.sealed.sizes import SealedSizes


class SharedKernel(Protocol):
    """One holder's side. `blocks`: how many matrices [nodes, columns] stand side by side after `spread`."""

    blocks: int

    def spread(self, computation: Computation, z: torch.Tensor, rows: RowSet) -> torch.Tensor:
        """Z, given at some rows and 0 elsewhere, over the graph: S z, or P_0, P_1, ... side by side."""

    def gather(self, computation: Computation, g: torch.Tensor, *, cut: int) -> torch.Tensor:
        """The way back [nodes, columns], divided by 2^cut; `cut` may be below 0."""

    def expand(self, computation: Computation, x: torch.Tensor) -> torch.Tensor:
        """The features that a primal model has: S x, or x, R x, R^2 x, ... side by side."""


@dataclass(frozen=True, repr=False)
class DegreeFactors:
    """Of the union graph's degrees, which nobody knows; `start`: the factors at the rows where a spread begins."""

    root: Blinded  # smooth: s
    inverse: Blinded  # smooth: s^2; hops: d^-1/2
    teleport: Blinded | None = None  # alpha s
    start: tuple[Blinded, ...] = ()


def degree_table(bits: int, *, smooth: bool, teleport: float) -> torch.Tensor:
    """What is looked up for each degree: s for smooth, d^-1/2 for hops; 0 at degree 0, which smooth never has."""
    degrees = torch.arange(2**bits, dtype=torch.float64)
    degrees[0] = torch.inf
    values = ((1 - teleport if smooth else 1.0) / degrees).sqrt()
    return (values * 2.0**FACTOR).round().to(torch.int64)


def longer(share: torch.Tensor, bits: int) -> torch.Tensor:
    """Times 2^bits, if there are any."""
    return share << max(0, bits)


def placed(rows: RowSet, values: torch.Tensor, nodes: int) -> torch.Tensor:
    """A matrix over all nodes that is 0 elsewhere."""
    if rows.everything:
        return values
    whole = values.new_zeros(nodes, values.shape[1])
    whole[rows.numbers] = values
    return whole


class SmoothOnShares:
    """S Phi Phi^T S."""

    blocks = 1

    def __init__(self, factors: DegreeFactors, *, nodes: int, hops: int, teleport: float) -> None:
        self._factors, self._nodes, self._hops, self._teleport = factors, nodes, hops, teleport

    def spread(self, computation: Computation, z: torch.Tensor, rows: RowSet) -> torch.Tensor:
        """S z. One more opening than hops ask for: s meets z at its rows alone."""
        return self._propagate(computation, z, rows, self._factors.start, cut=0)

    def gather(self, computation: Computation, g: torch.Tensor, *, cut: int) -> torch.Tensor:
        """S g / 2^cut."""
        return self._from_everywhere(computation, longer(g, -cut), cut=max(0, cut))

    def expand(self, computation: Computation, x: torch.Tensor) -> torch.Tensor:
        """S x."""
        return self._from_everywhere(computation, x, cut=0)

    def _from_everywhere(self, computation: Computation, z: torch.Tensor, *, cut: int) -> torch.Tensor:
        factors = self._factors
        entering = (factors.root,) if factors.teleport is None else (factors.root, factors.teleport)
        return self._propagate(computation, z, RowSet.all(self._nodes), entering, cut=cut)

    def _propagate(
        self, computation: Computation, z: torch.Tensor, rows: RowSet, entering: tuple[Blinded, ...], *, cut: int
    ) -> torch.Tensor:
        (entered,) = computation.scale((z, entering), bits=FACTOR + cut)
        y, *stays = (placed(rows, product, self._nodes) for product in entered.by)
        for _ in range(self._hops - 1):
            y = self._hop(computation, y, self._factors.inverse)
            y = y + stays[0] if stays else y
        z = self._hop(computation, y, self._factors.root)
        if stays:
            z = z + placed(rows, entered.plain, self._nodes) * factor_word(self._teleport)
        return z

    def _hop(self, computation: Computation, y: torch.Tensor, factor: Blinded) -> torch.Tensor:
        (scaled,) = computation.scale((computation.hop(y, self_loops=True), [factor]), bits=FACTOR)
        return scaled.by[0]


class HopsOnShares:
    """One weight per hop: [Phi, R Phi, ..., R^K Phi]."""

    def __init__(self, factors: DegreeFactors, *, nodes: int, hops: int) -> None:
        self._factors, self._nodes, self._hops = factors, nodes, hops
        self.blocks = hops + 1

    def spread(self, computation: Computation, z: torch.Tensor, rows: RowSet) -> torch.Tensor:
        """P_0, P_1, ..., P_K side by side. The first d^-1/2 meets z at its rows alone."""
        (entered,) = computation.scale((z, self._factors.start), bits=FACTOR)
        parts, divided = [placed(rows, z, self._nodes)], placed(rows, entered.by[0], self._nodes)
        for hop in range(self._hops):
            parts.append(computation.hop(divided, self_loops=False))
            if hop + 1 < self._hops:
                divided = self._divide(computation, parts[-1])
        return torch.cat(parts, dim=1)

    def gather(self, computation: Computation, g: torch.Tensor, *, cut: int) -> torch.Tensor:
        """Horner, from the farthest hop home."""
        if cut > 0:
            (g,) = computation.truncate(g, bits=cut)
        *nearer, q = longer(g, -cut).chunk(self.blocks, dim=1)
        for part in reversed(nearer):
            q = part + self._divide(computation, computation.hop(q.contiguous(), self_loops=False))
        return q

    def expand(self, computation: Computation, x: torch.Tensor) -> torch.Tensor:
        """x, R x, ..., R^K x side by side."""
        parts = [x]
        for _ in range(self._hops):
            parts.append(self._divide(computation, computation.hop(parts[-1], self_loops=False)))
        return torch.cat(parts, dim=1)

    def _divide(self, computation: Computation, u: torch.Tensor) -> torch.Tensor:
        (scaled,) = computation.scale((u, [self._factors.inverse]), bits=FACTOR)
        return scaled.by[0]


def make_kernel(
    computation: Computation, sizes: SealedSizes, own_degrees: torch.Tensor, start: RowSet | None
) -> SharedKernel:
    """The degrees' factors, blinded once; those that meet the `start` rows are blinded for these rows alone.

    The dealer knows how many rows train and not which, so it could not pick them from what it knows.
    """
    smooth, teleport = sizes.kernel == "smooth", sizes.agreement.settings.sealed.teleport
    table = degree_table(sizes.agreement.settings.sealed.degree_bits, smooth=smooth, teleport=teleport)
    degrees = computation.plus_public(own_degrees, 1) if smooth else own_degrees
    root = computation.look_up(degrees, table).reshape(-1, 1)
    shares, entering = [root], [root]
    if smooth:
        wide = [computation.multiply(root, root), *([root * factor_word(teleport)] if teleport else [])]
        cut = computation.truncate(*wide, bits=FACTOR)  # s^2, and alpha s where z stays
        shares += cut
        entering += cut[1:]
    shares += [start.pick(share) for share in entering] if start is not None else []
    blinded = computation.blind(*shares)
    if not smooth:
        factors = DegreeFactors(root=blinded[0], inverse=blinded[0], start=tuple(blinded[1:]))
        return HopsOnShares(factors, nodes=sizes.nodes, hops=sizes.hops)
    factors = DegreeFactors(
        root=blinded[0],
        inverse=blinded[1],
        teleport=blinded[2] if teleport else None,
        start=tuple(blinded[2 + bool(teleport) :]),
    )
    return SmoothOnShares(factors, nodes=sizes.nodes, hops=sizes.hops, teleport=teleport)
