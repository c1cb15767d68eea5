"""Training in the order of labels: a Krylov space of the kernel, from columns of labels, on shares.

  p_0 = centred labels of the training rows;  q_s = K p_s / 2^h for ALL nodes, less its mean over the training rows
  p_1 = (2 / B) q_0 - p_0,  p_(s+1) = (4 / B) q_s - 2 p_s - p_(s-1): shifted Chebyshev polynomials on [0, B]
Steps 2 / B and 4 / B are secret: the label holder makes them of the first Rayleigh quotient. In the end it learns the
inner products of all p_s and of the last q_s, and from them the best combination for any strength of the ridge
(ridge_path.py): one training, many ridges. h, and what keeps inner products in the ring: formats.py.
Rounds: 4 K + 7 a step for whole-number features. Runs at the holders; the rehearsal follows it with sizes alone.
"""

from collections.abc import Sequence

import torch

from vfgnn.mpc.blinding import Blinded
from vfgnn.rows import RowSet
from vfgnn.sealed.computation import Computation
from vfgnn.sealed.features import SharedFeatures
from vfgnn.sealed.formats import FACTOR, MEAN_BITS, SHORT, product_guard, range_guard, row_bits
from vfgnn.sealed.kernel import SharedKernel

GRAM_BITS = 2 * SHORT - 16  # of the inner products that the label holder learns


class KrylovTraining:
    """One holder's side; what it keeps of each step: p_s, q_s of all nodes, and X^T S p_s of each feature holder."""

    def __init__(self, computation: Computation, kernel: SharedKernel, features: SharedFeatures, train: RowSet) -> None:
        self._computation, self._kernel, self._features, self._train = computation, kernel, features, train
        self._basis: list[torch.Tensor] = []
        self._short: list[torch.Tensor] = []
        self._spread: torch.Tensor | None = None
        self._at_nodes: torch.Tensor | None = None
        self.images: list[torch.Tensor] = []
        self.columns: list[dict[str, torch.Tensor]] = []

    def begin(self, labels: torch.Tensor) -> None:
        """From a share of p_0 [training rows, columns]."""
        self._basis = [labels]

    def spread(self) -> None:
        """S p_s."""
        entered = self._kernel.spread(self._computation, self._basis[-1], self._train)
        self._spread = entered.spread
        self._short.append(entered.short)

    def multiply(self) -> None:
        """Phi^T (S p_s), which is the step's part of the primal weights, and Phi of it."""
        if self._spread is None:
            raise RuntimeError("spread() comes first")
        self.columns.append(self._features.to_columns(self._computation, self._spread))
        self._at_nodes = self._features.to_nodes(self._computation, self.columns[-1])
        self._spread = None

    def gather(self) -> None:
        """q_s, centred."""
        if self._at_nodes is None:
            raise RuntimeError("multiply() comes first")
        q = self._kernel.gather(self._computation, self._at_nodes, cut=range_guard(len(self._train)))
        self.images.append(q - self._mean(q))
        self._at_nodes = None

    def _mean(self, q: torch.Tensor) -> torch.Tensor:
        """Over the training rows. Cut before it meets 1 / L: 62 bits have room for both."""
        rows, bits = len(self._train), row_bits(len(self._train))
        total = self._train.pick(q).sum(dim=0, keepdim=True)
        (total,) = self._computation.truncate(total, bits=SHORT)
        total = total * round(2.0 ** (MEAN_BITS + bits) / rows)
        (mean,) = self._computation.truncate(total, bits=MEAN_BITS + bits - SHORT)
        return mean

    def quotient(self) -> torch.Tensor:
        """A share of the inner products of p_0 and q_0 [2, 2], GRAM_BITS."""
        return self._inner_products([self._short[0], self._last_image()])

    def inner_products(self) -> torch.Tensor:
        """A share of those of p_0, ..., p_(t-1) and q_(t-1) [t + 1, t + 1], GRAM_BITS."""
        return self._inner_products([*self._short, self._last_image()])

    def _last_image(self) -> torch.Tensor:
        """Divided by 2^g, g the guard of inner products."""
        image, guard = self._train.pick(self.images[-1]), product_guard(len(self._train))
        (short,) = self._computation.truncate(image, bits=FACTOR + guard)
        return short

    def _inner_products(self, vectors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Over the columns of all classes, so that none is special; those of a row add up to 0."""
        whole = [torch.cat([vector, -vector.sum(dim=1, keepdim=True)], dim=1).reshape(-1) for vector in vectors]
        products = self._computation.gram(torch.stack(whole))
        (cut,) = self._computation.truncate(products, bits=2 * SHORT - GRAM_BITS)
        back = cut.new_ones(len(whole))
        back[-1] = 1 << product_guard(len(self._train))  # the last one is the image
        return cut * back * back[:, None]

    def recur(self, step: Blinded) -> None:
        """p_(s+1), from the secret 2 / B in the first step and 4 / B later."""
        image = self._train.pick(self.images[-1])
        (scaled,) = self._computation.scale((image, [step]), bits=FACTOR)
        ahead = scaled.by[0] - self._basis[-1]
        if len(self._basis) > 1:
            ahead = ahead - self._basis[-1] - self._basis[-2]
        self._basis = [self._basis[-1], ahead]

    def combine(self, coefficients: Sequence[Sequence[Blinded]], rows: RowSet) -> list[torch.Tensor]:
        """Sum over s of c_s q_s at some rows [rows, columns], LONG: one result for each list of coefficients."""
        work = [(rows.pick(image), [path[s] for path in coefficients]) for s, image in enumerate(self.images)]
        scaled = self._computation.scale(*work, bits=FACTOR)
        return [_sum([one.by[r] for one in scaled]) for r in range(len(coefficients))]

    def weights(self, coefficients: Sequence[Blinded]) -> dict[str, torch.Tensor]:
        """The primal weights: sum over s of c_s Phi^T S p_s, LONG, by feature holder."""
        owners = list(self.columns[0])
        work = [(block[owner], [c]) for c, block in zip(coefficients, self.columns, strict=True) for owner in owners]
        products = [one.by[0] for one in self._computation.scale(*work, bits=FACTOR)]
        return {owner: _sum(products[i :: len(owners)]) for i, owner in enumerate(owners)}


def _sum(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total
