"""A trained sealed model and nodes that came after training: K hops with the shares of the weights alone.

  prepare   the degrees of the union graph as it is now, as in training
  finish    Phi W, gathered over the graph, and what training adds to all scores; classes of the asked rows
Reveals, to the label holder alone: the class (or scores) of each row that it asked for.
Holders run it with each other (joint_computation.py); the program runs it with sizes alone (rehearsal.py).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from vfgnn.messages import Kind
from vfgnn.rows import RowSet
from vfgnn.sealed.computation import Blocks, Computation
from vfgnn.sealed.features import SharedFeatures
from vfgnn.sealed.formats import LONG, SCORE, SHORT
from vfgnn.sealed.kernel import SharedKernel, make_kernel
from vfgnn.sealed.sizes import SealedSizes

PREDICTED_CLASSES = Kind("predicted_classes", "the predicted class of each row that it asked for")
PREDICTED_SCORES = Kind("predicted_scores", "the scores of each row that it asked for (by consent of every holder)")


@dataclass(frozen=True, repr=False)
class TrainedInputs:
    """What a holder brings."""

    degrees: torch.Tensor  # [nodes], of its own edges
    weights: Blocks  # its share of the primal weights, LONG
    offset: torch.Tensor  # its share of what is added to all scores [1, C - 1], SCORE
    asked: RowSet
    hear: Callable[[torch.Tensor], None] | None = None  # the label holder's, for what is opened


class SealedPrediction:
    """One holder's side. `sizes`: of the nodes of now, and of the rows that trained."""

    def __init__(self, computation: Computation, sizes: SealedSizes, own: TrainedInputs) -> None:
        self._computation, self._sizes, self._own = computation, sizes, own
        self._kernel: SharedKernel | None = None

    def prepare(self) -> None:
        """The sum of all holders' degrees is looked up, and never opened."""
        self._kernel = make_kernel(self._computation, self._sizes, self._own.degrees, None)

    def finish(self) -> None:
        """Reveals, to the label holder: the class (or scores) of each row that it asked for."""
        if self._kernel is None:
            raise RuntimeError("prepare() comes first")
        computation, sizes, own = self._computation, self._sizes, self._own
        weights = {owner: own.weights[owner] for owner in sizes.columns}  # in the common order, whoever kept them
        at_nodes = SharedFeatures(sizes.feature_bits).to_nodes(computation, weights)
        reached = self._kernel.gather(computation, at_nodes, cut=sizes.score_guard)
        summed = (own.asked.pick(reached) << (SCORE - LONG)) + own.offset
        found = tell_predictions(computation, sizes, summed)
        if found is not None and own.hear is not None:
            own.hear(found)


def tell_predictions(computation: Computation, sizes: SealedSizes, summed: torch.Tensor) -> torch.Tensor | None:
    """From scores [rows, C - 1], SCORE.

    Reveals, to the label holder: the class of each row, or its scores where all holders have agreed to that.
    """
    if sizes.agreement.settings.sealed.opens == "scores":
        (known,) = computation.truncate(summed, bits=SCORE - SHORT)
        return computation.tell(with_last_class(computation, known, bits=SHORT), PREDICTED_SCORES)
    return computation.tell_classes(highest(computation, summed), PREDICTED_CLASSES)


def highest(computation: Computation, summed: torch.Tensor) -> torch.Tensor:
    """Shares of the bits that say which class is predicted [rows, C], from scores [rows, C - 1], SCORE."""
    return computation.classes(with_last_class(computation, summed, bits=SCORE), cut=SCORE - SHORT)


def with_last_class(computation: Computation, known: torch.Tensor, *, bits: int) -> torch.Tensor:
    """Scores of all classes [rows, C] from those of all but the last: those of a row add up to 1."""
    last = computation.plus_public(-known.sum(dim=1, keepdim=True), 1 << bits)
    return torch.cat([known, last], dim=1)
