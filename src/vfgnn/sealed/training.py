"""A sealed training, as every holder goes through it.

  prepare   the union graph's degrees through a one-time table; the factors that the kernel scales with
  step      in the order of features: first each block of columns over the graph; then, in both orders (images.py),
            one vector of the Krylov space (basis.py) at a time
  finish    four parts: the inner products of the basis; predictions of the validation rows for every ridge; those of
            all rows by the ridge that the label holder chooses; they are told. What is left are shares of the weights
Whatever is told is made at the end of one step or part, and told at the beginning of the next. In between every holder
has its share of it on the disk (`state`): a training that was interrupted goes on from there, and tells the same again.
Reveals, to the label holder alone: inner products, and classes (or scores) of validation rows and of all rows.
Holders run it with each other (joint_computation.py); the program runs it with sizes alone (rehearsal.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
from vfgnn.sealed.prediction import class_scores, predicted, tell_predictions
from vfgnn.sealed.sizes import FINISHING, SealedSizes
from vfgnn.sealed.state import BasisState, TrainingState

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
    """What a holder brings; `leader`: at the label holder alone; `known`: what it goes on from."""

    degrees: torch.Tensor  # [nodes]
    columns: torch.Tensor  # [nodes, all holders' columns], LONG, 0 in those of others; [nodes, 0] where none travel
    train: RowSet
    val: RowSet
    leader: Leader | None = None
    known: TrainingState = field(default_factory=TrainingState)


class SealedTraining:
    """One holder's side."""

    def __init__(self, computation: Computation, sizes: SealedSizes, own: HolderInputs) -> None:
        self._computation, self._sizes, self._own = computation, sizes, own
        known = own.known
        self._number, self._coming = known.number, known.coming
        self._images: Images | None = None
        self._krylov: KrylovBasis | None = None
        self._steps: list[Blinded] = []
        self._priors: torch.Tensor | None = None
        self._heard = dict(known.heard)
        self.weights = dict(known.weights)
        self.offset = known.offset  # [1, C - 1], SCORE: what is added to what the weights give a node

    def prepare(self) -> None:
        """The sum of all holders' degrees is looked up, and never opened. Factors that are known are blinded anew."""
        computation, sizes, own = self._computation, self._sizes, self._own
        if self._is_made:
            return
        by_labels = sizes.order == "labels"
        kernel = make_kernel(computation, sizes, own.degrees, own.train if by_labels else None)
        features, rows = SharedFeatures(sizes.feature_bits), (own.train, own.val)
        if by_labels:
            self._images = LabelImages(computation, kernel, features, sizes, rows)
        else:
            made, blocks = own.known.columns, min(self._number, sizes.column_blocks)
            self._images = FeatureImages(computation, kernel, features, sizes, rows, own.columns, made, blocks=blocks)
        labels, priors = (None, None) if own.leader is None else (own.leader.labels(), own.leader.priors())
        vector = computation.from_leader(labels, (sizes.train, sizes.width))
        guard, weights = product_guard(sizes.train, sizes.row_norm), self._row_weights()
        self._krylov = KrylovBasis(
            computation, self._images, vector, guard=guard, row_weights=weights, known=self._known_basis
        )
        self._priors = computation.from_leader(priors, (1, sizes.width))
        self._decide_again()

    @property
    def _is_made(self) -> bool:
        """Whether nothing is left but to tell."""
        return self._number >= self._sizes.units + FINISHING - 1

    @property
    def _known_basis(self) -> BasisState | None:
        """With its holders in the common order, whoever kept them."""
        basis = self._own.known.basis
        columns = self._sizes.columns
        return None if basis is None else replace(basis, weights={owner: basis.weights[owner] for owner in columns})

    def _decide_again(self) -> None:
        """Where the quotient has been told before: what the label holder made of it, and of what it heard later."""
        if self._number <= self._sizes.column_blocks + 1:
            return
        leader, heard = self._own.leader, self._heard
        words = None if leader is None else leader.steps(_decoded(heard[QUOTIENT], QUOTIENT_BITS))
        self._steps = self._factors(words, 2)
        if leader is not None and INNER_PRODUCTS in heard:
            leader.path(_decoded(heard[INNER_PRODUCTS], self.krylov.told_bits))

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
        """A block of columns, or a vector. Reveals, to the label holder, before the second: the first quotient."""
        vector = number - self._sizes.column_blocks
        if self._images is not None and vector < 0:
            self._images.expand(number)
        else:
            self._apply(vector)
        self._number = number + 1

    def _apply(self, vector: int) -> None:
        if vector == 1:
            self._hear_quotient()
        if vector:
            self.krylov.recur(self._steps[0 if vector == 1 else 1])
        self.krylov.apply()
        if vector == 0:
            self._coming = self.krylov.quotient()

    def finish(self, part: int) -> None:
        """Reveals, to the label holder: what the part before has made, as `told` says."""
        parts: tuple[Callable[[], None], ...] = (self._multiply, self._try_ridges, self._predict, self._tell)
        parts[part]()
        self._number = self._sizes.units + part + 1

    def _multiply(self) -> None:
        """Inner products of the basis. Reveals, if there is one vector alone: its quotient."""
        if self._sizes.steps == 1:
            self._hear_quotient()
        self._coming = self.krylov.inner_products(self._steps[1])

    def _try_ridges(self) -> None:
        """Classes of the validation rows for every ridge. Reveals: the inner products."""
        sizes, krylov = self._sizes, self.krylov
        told = self._products(INNER_PRODUCTS, bits=krylov.told_bits)
        ridges, steps = len(sizes.ridges), sizes.steps
        factors = self._factors(None if told is None else self._deciding.path(told), ridges * steps)
        path = [factors[r * steps : (r + 1) * steps] for r in range(ridges)]
        priors, combinations = self._known_priors, krylov.at_validation(path)
        scores = torch.cat([class_scores(self._computation, combined + priors) for combined in combinations])
        self._coming = self._computation.classes(scores)

    def _predict(self) -> None:
        """All rows by the ridge that does best on validation rows. Reveals: their classes for every ridge."""
        sizes = self._sizes
        found = self._computation.tell_classes(self._made, VALIDATION_CLASSES)
        by_ridge = None if found is None else found.reshape(len(sizes.ridges), sizes.val)
        chosen = self._factors(None if by_ridge is None else self._deciding.choose(by_ridge), sizes.steps)
        solution = self.krylov.solution(chosen)
        self.weights, self.offset = solution.weights, self._known_priors - solution.mean
        scores = class_scores(self._computation, self.krylov.everywhere(solution) + self._known_priors)
        self._coming = predicted(self._computation, sizes, scores)

    def _tell(self) -> None:
        """Reveals: classes (or scores) of all rows."""
        found = tell_predictions(self._computation, self._sizes, self._made)
        self._coming = None
        if found is not None:
            self._deciding.hear(found)

    def state(self) -> TrainingState:
        """What it can go on from; before the first step nothing, because that is as good as a new start.

        Where it has just gone on, what it went on from: shares that were blinded anew do not fit the others' of before.
        """
        if self._number == self._own.known.number:
            return self._own.known
        made = self._is_made
        return TrainingState(
            number=self._number,
            coming=self._coming,
            columns=None if made or self._images is None else self._images.kept(),
            basis=None if made else self.krylov.state(),
            weights=self.weights,
            offset=self.offset,
            heard=self._heard,
        )

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

    @property
    def _made(self) -> torch.Tensor:
        """This holder's share of what is told now."""
        if self._coming is None:
            raise RuntimeError("there is nothing to tell")
        return self._coming

    def _hear_quotient(self) -> None:
        told = self._products(QUOTIENT, bits=QUOTIENT_BITS)
        self._steps = self._factors(None if told is None else self._deciding.steps(told), 2)

    def _products(self, kind: Kind, *, bits: int) -> torch.Tensor | None:
        told = self._computation.tell(self._made, kind)
        self._coming = None
        if told is None:
            return None
        self._heard[kind] = told
        return _decoded(told, bits)

    def _factors(self, words: torch.Tensor | None, count: int) -> list[Blinded]:
        """Secret scalars of the label holder."""
        share = self._computation.from_leader(None if words is None else words.reshape(count, 1), (count, 1))
        return self._computation.blind(*(share[i : i + 1] for i in range(count)))

    @property
    def _known_priors(self) -> torch.Tensor:
        if self._priors is None:
            raise RuntimeError("prepare() comes first")
        return self._priors


def _decoded(words: torch.Tensor, bits: int) -> torch.Tensor:
    return words.double() * 2.0**-bits
