"""A sealed training, as every holder goes through it.

  prepare   the union graph's degrees through a one-time table; the factors that the kernel scales with
  step      in the order of features: first each block of columns over the graph; then, in both orders (images.py),
            one vector of the Krylov space (basis.py) at a time
  finish    inner products to the label holder; predictions of the validation rows for every ridge, and of all rows
            by the ridge that it chooses; what is left are shares of the primal weights
Reveals, to the label holder alone: inner products, and classes (or scores) of validation rows and of all rows.
Holders run it with each other (joint_computation.py); the program runs it with sizes alone (rehearsal.py).
"""

from dataclasses import dataclass
from typing import Protocol

import torch

from vfgnn.messages import Kind
from vfgnn.mpc.blinding import Blinded
from vfgnn.rows import RowSet
from vfgnn.sealed.basis import QUOTIENT_BITS, KrylovBasis, RowWeights
from vfgnn.sealed.computation import Computation
from vfgnn.sealed.features import SharedFeatures
from vfgnn.sealed.formats import product_guard
from vfgnn.sealed.images import FeatureImages, Images, LabelImages
from vfgnn.sealed.kernel import make_kernel
from vfgnn.sealed.prediction import highest, tell_predictions
from vfgnn.sealed.sizes import SealedSizes

QUOTIENT = Kind("quotient", "two inner products of centred labels and their first image, from the sum of all shares")
INNER_PRODUCTS = Kind("inner_products", "inner products of the basis over the training rows, from the sum of shares")
VALIDATION_CLASSES = Kind("validation_classes", "the predicted class of each validation row, for each ridge")


class Leader(Protocol):
    """What only the label holder knows, and decides, in words; formats.py has their fraction bits."""

    def labels(self) -> torch.Tensor:
        """Centred labels of the training rows [training rows, C - 1], LONG."""

    def row_weights(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Roots of the training rows' weights, and the weights [training rows, 1], FACTOR."""

    def priors(self) -> torch.Tensor:
        """The share of each class among the training rows [1, C - 1], SCORE."""

    def steps(self, products: torch.Tensor) -> torch.Tensor:
        """The two factors of the recurrence, FACTOR, from inner products [2, 2]."""

    def path(self, products: torch.Tensor) -> torch.Tensor:
        """Coefficients [ridges, steps], COEFFICIENT, from inner products [steps + 1, steps + 1]."""

    def choose(self, predicted: torch.Tensor) -> torch.Tensor:
        """The coefficients [steps] that do best, from classes of validation rows [ridges, rows]."""

    def hear(self, predicted: torch.Tensor) -> None:
        """Classes of all rows [rows], or scores [rows, C] with SHORT bits."""


@dataclass(frozen=True, repr=False)
class HolderInputs:
    """What a holder brings; `leader`: at the label holder alone."""

    degrees: torch.Tensor  # [nodes]
    columns: torch.Tensor  # [nodes, all holders' columns], LONG, 0 in those of others; [nodes, 0] where none travel
    train: RowSet
    val: RowSet
    leader: Leader | None = None


class SealedTraining:
    """One holder's side."""

    def __init__(self, computation: Computation, sizes: SealedSizes, own: HolderInputs) -> None:
        self._computation, self._sizes, self._own = computation, sizes, own
        self._images: Images | None = None
        self._krylov: KrylovBasis | None = None
        self._steps: list[Blinded] = []
        self._priors: torch.Tensor | None = None
        self.weights: dict[str, torch.Tensor] = {}
        self.offset: torch.Tensor | None = None  # [1, C - 1], SCORE: what is added to what the weights give a node

    def prepare(self) -> None:
        """The sum of all holders' degrees is looked up, and never opened."""
        computation, sizes, own = self._computation, self._sizes, self._own
        by_labels = sizes.order == "labels"
        kernel = make_kernel(computation, sizes, own.degrees, own.train if by_labels else None)
        features = SharedFeatures(sizes.feature_bits)
        if by_labels:
            self._images = LabelImages(computation, kernel, features, sizes, (own.train, own.val))
        else:
            self._images = FeatureImages(computation, kernel, features, sizes, (own.train, own.val), own.columns)
        labels, priors = (None, None) if own.leader is None else (own.leader.labels(), own.leader.priors())
        vector = computation.from_leader(labels, (sizes.train, sizes.width))
        guard = product_guard(sizes.train, sizes.row_norm)
        self._krylov = KrylovBasis(computation, self._images, vector, guard=guard, row_weights=self._row_weights())
        self._priors = computation.from_leader(priors, (1, sizes.width))

    def _row_weights(self) -> RowWeights | None:
        """The label holder's, blinded; None where every row counts the same."""
        sizes, leader = self._sizes, self._own.leader
        if not sizes.weighted:
            return None
        shape = (sizes.train, 1)
        roots, wholes = (None, None) if leader is None else leader.row_weights()
        shares = [self._computation.from_leader(words, shape) for words in (roots, wholes)]
        return RowWeights(*self._computation.blind(*shares))

    def step(self, number: int) -> None:
        """A block of columns, or a vector. Reveals, after the first vector: its quotient, to the label holder."""
        if self._images is not None and number < self._sizes.column_blocks:
            self._images.expand(number)
            return
        krylov, vector = self.krylov, number - self._sizes.column_blocks
        krylov.apply()
        if vector == 0:
            told = self._products(krylov.quotient(), QUOTIENT, bits=QUOTIENT_BITS)
            self._steps = self._factors(None if told is None else self._deciding.steps(told), 2)
        if vector + 1 < self._sizes.steps:
            krylov.recur(self._steps[0 if vector == 0 else 1])

    def finish(self) -> None:
        """Reveals, to the label holder: inner products; classes of validation rows for every ridge, and of all rows."""
        solution = self.krylov.solution(self._choose())
        self.weights, self.offset = solution.weights, self._known_priors - solution.mean
        scores = self.krylov.everywhere(solution) + self._known_priors
        found = tell_predictions(self._computation, self._sizes, scores)
        if found is not None:
            self._deciding.hear(found)

    def _choose(self) -> list[Blinded]:
        """The coefficients of the ridge that does best on validation rows. Reveals: their classes for every ridge."""
        sizes, krylov = self._sizes, self.krylov
        told = self._products(krylov.inner_products(self._steps[1]), INNER_PRODUCTS, bits=krylov.told_bits)
        ridges, steps = len(sizes.ridges), sizes.steps
        factors = self._factors(None if told is None else self._deciding.path(told), ridges * steps)
        path = [factors[r * steps : (r + 1) * steps] for r in range(ridges)]
        scores = torch.cat(krylov.at_validation(path)) + self._known_priors
        found = self._computation.tell_classes(highest(self._computation, scores), VALIDATION_CLASSES)
        by_ridge = None if found is None else found.reshape(ridges, sizes.val)
        return self._factors(None if by_ridge is None else self._deciding.choose(by_ridge), steps)

    @property
    def _deciding(self) -> Leader:
        if self._own.leader is None:
            raise RuntimeError("only the label holder hears and decides anything")
        return self._own.leader

    @property
    def krylov(self) -> KrylovBasis:
        """What all steps go on from."""
        if self._krylov is None:
            raise RuntimeError("prepare() comes first")
        return self._krylov

    def _products(self, share: torch.Tensor, kind: Kind, *, bits: int) -> torch.Tensor | None:
        told = self._computation.tell(share, kind)
        return None if told is None else told.double() * 2.0**-bits

    def _factors(self, words: torch.Tensor | None, count: int) -> list[Blinded]:
        """Secret scalars of the label holder."""
        share = self._computation.from_leader(None if words is None else words.reshape(count, 1), (count, 1))
        return self._computation.blind(*(share[i : i + 1] for i in range(count)))

    @property
    def _known_priors(self) -> torch.Tensor:
        if self._priors is None:
            raise RuntimeError("prepare() comes first")
        return self._priors
