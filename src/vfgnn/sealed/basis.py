"""A Krylov space of the kernel on shares, from centred labels: one training for any strength of the ridge.

  p_0 = centred labels of the training rows;  q_s = K p_s / 2^h, less its mean over the training rows (images.py)
  p_1 = (2 / B) q_0 - p_0,  p_(s+1) = (4 / B) q_s - 2 p_s - p_(s-1): shifted Chebyshev polynomials on [0, B]
The steps 2 / B and 4 / B are secret: the label holder makes them of the first Rayleigh quotient. In the end it learns
the inner products of all p_s and of the last q_s, and from them the best combination for any ridge (ridge_path.py).
Runs at the holders; the rehearsal follows it with sizes alone. h, and what keeps
inner products in the ring: formats.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from vfgnn.mpc.blinding import Blinded
from vfgnn.sealed.computation import Computation
from vfgnn.sealed.formats import FACTOR, LONG, MEAN_BITS, SCORE, SHORT, gram_bits, row_bits
from vfgnn.sealed.images import Image, Images

QUOTIENT_BITS = 2 * SHORT - 16  # of the two inner products that the first step follows from
LOW_BITS = 12  # of inner products that nobody learns


@dataclass(frozen=True, repr=False)
class RowWeights:
    """What each training row counts, known to the label holder alone; on average 1."""

    root: Blinded  # [training rows, 1]
    whole: Blinded


@dataclass(frozen=True, repr=False)
class Solution:
    """The basis, combined."""

    weights: dict[str, torch.Tensor]  # the primal ones, LONG, by feature holder
    mean: torch.Tensor  # of sum over s of c_s K p_s over the training rows [1, columns], SCORE
    values: torch.Tensor | None  # all nodes' sum over s of c_s q_s, SCORE, where the images have all nodes


class KrylovBasis:
    """One holder's side. With row weights w, vectors are those of w^1/2 K w^1/2, and means are weighted."""

    def __init__(
        self,
        computation: Computation,
        images: Images,
        labels: torch.Tensor,
        *,
        guard: int,
        row_weights: RowWeights | None = None,
    ) -> None:
        """`labels`: a share of p_0 [training rows, columns], LONG; `guard`: formats.product_guard."""
        self._computation, self._images, self._row_weights = computation, images, row_weights
        self._guard = guard
        self._vectors = [labels]
        self._taken = labels  # the last image at the training rows, as a vector
        self._kept: list[Image] = []
        self._means: list[torch.Tensor] = []

    def apply(self) -> None:
        """K to the last vector."""
        image = self._images.of(self._weighted(self._vectors[-1], whole=False))
        mean = self._mean(self._weighted(self._images.train.pick(image.values), whole=True))
        self._kept.append(Image(image.values - mean, image.weights))
        self._means.append(mean)
        self._taken = self._weighted(self._images.train.pick(self._kept[-1].values), whole=False)

    def _weighted(self, rows: torch.Tensor, *, whole: bool) -> torch.Tensor:
        """The training rows, each times its weight or the root of it, LONG."""
        if self._row_weights is None:
            return rows
        factor = self._row_weights.whole if whole else self._row_weights.root
        (scaled,) = self._computation.scale((rows, [factor]), bits=FACTOR)
        return scaled.by[0]

    def _mean(self, values: torch.Tensor) -> torch.Tensor:
        """Over the training rows [1, columns]. The sum is cut by as many bits as 1 / L has, so it is LONG with it."""
        bits = MEAN_BITS + row_bits(len(values))
        (total,) = self._computation.truncate(values.sum(dim=0, keepdim=True), bits=bits)
        return total * round(2.0**bits / len(values))

    def quotient(self) -> torch.Tensor:
        """A share of the inner products of p_0 and q_0 [2, 2], QUOTIENT_BITS."""
        (image,) = self._computation.truncate(self._taken, bits=FACTOR + self._guard)
        labels = self._vectors[0] >> FACTOR  # the label holder's share is the secret, so each holder cuts its own
        products = self._inner_products([labels, image], cut=2 * SHORT - QUOTIENT_BITS)
        back = torch.tensor([1, 1 << self._guard], device=products.device)
        return products * back * back[:, None]

    def recur(self, step: Blinded) -> None:
        """The next vector, from the secret 2 / B after the first, and 4 / B later."""
        ahead = self._stepped(step) - self._vectors[-1]
        if len(self._vectors) > 1:
            ahead = ahead - self._vectors[-1] - self._vectors[-2]
        self._vectors.append(ahead)

    def _stepped(self, step: Blinded) -> torch.Tensor:
        """The last image at the training rows, times a step: of the size of a vector."""
        (scaled,) = self._computation.scale((self._taken, [step]), bits=FACTOR)
        return scaled.by[0]

    def inner_products(self, step: Blinded) -> torch.Tensor:
        """A share of those of p_0, ..., p_(t-1) and (4 / B) q_(t-1) [t + 1, t + 1], `told_bits`."""
        vectors = [*self._vectors, self._stepped(step)]
        cut = self._computation.truncate(*vectors, bits=LONG - self._bits)
        return self._inner_products(cut, cut=LOW_BITS)

    @property
    def told_bits(self) -> int:
        """Fraction bits of `inner_products`."""
        return 2 * self._bits - LOW_BITS

    @property
    def _bits(self) -> int:
        rows, columns = self._vectors[0].shape
        return gram_bits(rows * (columns + 1))

    def _inner_products(self, vectors: Sequence[torch.Tensor], *, cut: int) -> torch.Tensor:
        """Over the columns of all classes, so that none is special; those of a row add up to 0."""
        whole = [torch.cat([vector, -vector.sum(dim=1, keepdim=True)], dim=1).reshape(-1) for vector in vectors]
        (products,) = self._computation.truncate(self._computation.gram(torch.stack(whole)), bits=cut)
        return products

    def at_validation(self, paths: Sequence[Sequence[Blinded]]) -> list[torch.Tensor]:
        """The validation rows' sum over s of c_s q_s, SCORE, for each list of c."""
        return self._combine([self._images.val.pick(image.values) for image in self._kept], paths)

    def solution(self, path: Sequence[Blinded]) -> "Solution":
        """Everything that is combined with the chosen coefficients, in one round; weights are cut in another one."""
        owners, complete = list(self._kept[0].weights), self._images.complete
        parts = [
            [*(image.weights[owner] for owner in owners), mean, *([image.values] if complete else [])]
            for image, mean in zip(self._kept, self._means, strict=True)
        ]
        work = [(part, [c]) for c, each in zip(path, parts, strict=True) for part in each]
        products, width = [one.by[0] for one in self._computation.scale(*work, bits=FACTOR)], len(parts[0])
        sums = [_sum(products[i::width]) for i in range(width)]
        cut = self._computation.truncate(*sums[: len(owners)], bits=SCORE - LONG + self._images.lift)
        return Solution(dict(zip(owners, cut, strict=True)), sums[len(owners)], sums[-1] if complete else None)

    def everywhere(self, solution: "Solution") -> torch.Tensor:
        """All nodes' sum over s of c_s q_s, SCORE: from the images where they have all nodes, else by the weights."""
        if solution.values is not None:
            return solution.values
        return (self._images.scores(solution.weights) << (SCORE - LONG)) - solution.mean

    def _combine(self, values: Sequence[torch.Tensor], paths: Sequence[Sequence[Blinded]]) -> list[torch.Tensor]:
        work = [(value, [path[s] for path in paths]) for s, value in enumerate(values)]
        scaled = self._computation.scale(*work, bits=FACTOR)
        return [_sum([one.by[r] for one in scaled]) for r in range(len(paths))]


def _sum(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total
