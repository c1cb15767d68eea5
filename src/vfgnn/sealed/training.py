"""A sealed training in the order of labels, as every holder goes through it.

  prepare   the union graph's degrees through a one-time table; the factors that the kernel scales with
  step      one vector of the Krylov space (by_labels.py); t times
  finish    inner products to the label holder; predictions of the validation rows for every ridge, and of all rows
            by the ridge that it chooses; what is left are shares of the primal weights
Reveals, to the label holder alone: inner products, and classes (or scores) of validation rows and of all rows.
Holders run it with each other (joint_computation.py); the program runs it with sizes alone (rehearsal.py).
"""

from typing import Protocol

import torch

from vfgnn.messages import Kind
from vfgnn.mpc.blinding import Blinded
from vfgnn.rows import RowSet
from vfgnn.sealed.by_labels import GRAM_BITS, KrylovTraining
from vfgnn.sealed.computation import Computation
from vfgnn.sealed.features import SharedFeatures
from vfgnn.sealed.formats import FACTOR, SHORT, factor_word
from vfgnn.sealed.kernel import DegreeFactors, HopsOnShares, SharedKernel, SmoothOnShares, degree_table
from vfgnn.sealed.sizes import Sizes

QUOTIENT = Kind("quotient", "two inner products of centred labels and their first image, from the sum of all shares")
INNER_PRODUCTS = Kind("inner_products", "inner products of the basis over the training rows, from the sum of shares")
VALIDATION_CLASSES = Kind("validation_classes", "the predicted class of each validation row, for each ridge")
PREDICTED_CLASSES = Kind("predicted_classes", "the predicted class of each row that it asked for")
PREDICTED_SCORES = Kind("predicted_scores", "the scores of each row that it asked for (by consent of every holder)")


class Leader(Protocol):
    """What only the label holder knows, and decides. Words are LONG, factors have FACTOR bits."""

    def labels(self) -> torch.Tensor:
        """Centred labels of the training rows [training rows, C - 1]."""

    def priors(self) -> torch.Tensor:
        """The share of each class among the training rows [1, C - 1]."""

    def steps(self, products: torch.Tensor) -> torch.Tensor:
        """The two factors of the recurrence, from inner products [2, 2]."""

    def path(self, products: torch.Tensor) -> torch.Tensor:
        """Coefficients [ridges, steps], from inner products [steps + 1, steps + 1]."""

    def choose(self, predicted: torch.Tensor) -> torch.Tensor:
        """The coefficients [steps] that do best, from classes of validation rows [ridges, rows]."""

    def hear(self, predicted: torch.Tensor) -> None:
        """Classes of all rows [rows], or scores [rows, C] with SHORT bits."""


class LabelsTraining:
    """One holder's side; `leader` is given at the label holder alone."""

    def __init__(
        self, computation: Computation, sizes: Sizes, train: RowSet, val: RowSet, leader: Leader | None = None
    ) -> None:
        self._computation, self._sizes, self._train, self._val, self._leader = computation, sizes, train, val, leader
        self._krylov: KrylovTraining | None = None
        self._steps: list[Blinded] = []
        self._priors: torch.Tensor | None = None
        self.weights: dict[str, torch.Tensor] = {}

    def prepare(self, own_degrees: torch.Tensor) -> None:
        """From this holder's own degrees [nodes]: the sum over holders is looked up, and never opened."""
        computation, sizes, leader = self._computation, self._sizes, self._leader
        kernel = make_kernel(computation, sizes, own_degrees, self._train)
        self._krylov = KrylovTraining(computation, kernel, SharedFeatures(sizes.feature_bits), self._train)
        labels, priors = (None, None) if leader is None else (leader.labels(), leader.priors())
        self._krylov.begin(computation.from_leader(labels, (sizes.train, sizes.width)))
        self._priors = computation.from_leader(priors, (1, sizes.width))

    def step(self, number: int) -> None:
        """Labels over the graph, to all columns, and back. Reveals, in the first step, a quotient (label holder)."""
        krylov = self.krylov
        krylov.spread()
        krylov.multiply()
        krylov.gather()
        if number + 1 == self._sizes.steps:
            return
        if number == 0:
            told = self._products(krylov.quotient(), QUOTIENT)
            self._steps = self._factors(None if told is None else self._deciding.steps(told), 2)
        krylov.recur(self._steps[0 if number == 0 else 1])

    def finish(self) -> None:
        """Reveals, to the label holder: inner products; classes of validation rows for every ridge, and of all rows."""
        chosen = self._choose()
        (combined,) = self.krylov.combine([chosen], RowSet.all(self._sizes.nodes))
        scores = self._scores(combined)
        if self._sizes.agreement.settings.sealed.opens == "scores":
            found = self._computation.tell(scores, PREDICTED_SCORES)
        else:
            found = self._computation.tell_classes(self._computation.classes(scores), PREDICTED_CLASSES)
        if found is not None:
            self._deciding.hear(found)
        self.weights = self.krylov.weights(chosen)

    def _choose(self) -> list[Blinded]:
        """The coefficients of the ridge that does best on validation rows. Reveals: their classes for every ridge."""
        sizes, told = self._sizes, self._products(self.krylov.inner_products(), INNER_PRODUCTS)
        ridges, steps = len(sizes.ridges), sizes.steps
        factors = self._factors(None if told is None else self._deciding.path(told), ridges * steps)
        path = [factors[r * steps : (r + 1) * steps] for r in range(ridges)]
        scores = torch.cat([self._scores(combined) for combined in self.krylov.combine(path, self._val)])
        found = self._computation.tell_classes(self._computation.classes(scores), VALIDATION_CLASSES)
        by_ridge = None if found is None else found.reshape(ridges, len(self._val))
        return self._factors(None if by_ridge is None else self._deciding.choose(by_ridge), steps)

    @property
    def _deciding(self) -> Leader:
        if self._leader is None:
            raise RuntimeError("only the label holder hears and decides anything")
        return self._leader

    @property
    def krylov(self) -> KrylovTraining:
        """What all steps go on from."""
        if self._krylov is None:
            raise RuntimeError("prepare() comes first")
        return self._krylov

    def _products(self, share: torch.Tensor, kind: Kind) -> torch.Tensor | None:
        told = self._computation.tell(share, kind)
        return None if told is None else told.double() * 2.0**-GRAM_BITS

    def _factors(self, words: torch.Tensor | None, count: int) -> list[Blinded]:
        """Secret scalars of the label holder."""
        share = self._computation.from_leader(None if words is None else words.reshape(count, 1), (count, 1))
        return self._computation.blind(*(share[i : i + 1] for i in range(count)))

    def _scores(self, combined: torch.Tensor) -> torch.Tensor:
        """Of all classes [rows, C], SHORT: plus the class's share of the training rows; all classes add up to 1."""
        if self._priors is None:
            raise RuntimeError("prepare() comes first")
        (known,) = self._computation.truncate(combined + self._priors, bits=FACTOR)
        last = self._computation.plus_public(-known.sum(dim=1, keepdim=True), 1 << SHORT)
        return torch.cat([known, last], dim=1)


def make_kernel(computation: Computation, sizes: Sizes, own_degrees: torch.Tensor, start: RowSet) -> SharedKernel:
    """The degrees' factors, blinded once; those that meet the `start` rows are blinded for these rows alone.

    The dealer knows how many rows train and not which, so it could not pick them from what it knows.
    """
    smooth, teleport = sizes.kernel == "smooth", sizes.agreement.settings.sealed.teleport
    table = degree_table(sizes.agreement.settings.sealed.degree_bits, smooth=smooth, teleport=teleport)
    degrees = computation.plus_public(own_degrees, 1) if smooth else own_degrees
    root = computation.look_up(degrees, table).reshape(-1, 1)
    if not smooth:
        inverse, started = computation.blind(root, start.pick(root))
        factors = DegreeFactors(root=inverse, inverse=inverse, start=(started,))
        return HopsOnShares(factors, nodes=sizes.nodes, hops=sizes.hops)
    (inverse_share,) = computation.truncate(computation.multiply(root, root), bits=FACTOR)
    shares = [root, inverse_share, start.pick(root)]
    if teleport:
        (stays,) = computation.truncate(root * factor_word(teleport), bits=FACTOR)
        shares += [stays, start.pick(stays)]
    root_factor, inverse, *rest = computation.blind(*shares)
    stay_factor = rest[1] if teleport else None
    factors = DegreeFactors(root_factor, inverse, stay_factor, (rest[0], *rest[2:]))
    return SmoothOnShares(factors, nodes=sizes.nodes, hops=sizes.hops, teleport=teleport)
