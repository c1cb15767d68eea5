"""The label holder in the sealed protocol: a holder that also has the labels, and alone learns anything.

Sees, beyond uniform words: two inner products after the first step, those of the whole basis at the end, the predicted
classes of the validation rows for every ridge, and the classes (or scores) of all rows, which it keeps. What leaves,
beyond what a holder sends: which rows train and validate, or are asked for later, and how many. Labels, accuracies and
the chosen ridge stay here.
"""

import math
from dataclasses import replace
from functools import cached_property

import torch

from vfgnn.agreement import DEALER, Agreement
from vfgnn.channel import Channel
from vfgnn.data.holdings import Labels
from vfgnn.errors import CheckpointRefused, DataError
from vfgnn.model import metrics
from vfgnn.model.contribution import HolderContribution
from vfgnn.model.propagated_ridge import Targets, make_targets
from vfgnn.model.propagation import Floats
from vfgnn.records import EpochMetrics, Outcome, Result
from vfgnn.rows import RowSet
from vfgnn.sealed.formats import FACTOR, LONG, SCORE, SHORT
from vfgnn.sealed.holder import TRAIN, VAL, SealedHolder
from vfgnn.sealed.prediction import SealedPrediction
from vfgnn.sealed.program import ASKED_COUNTS, ASKED_ROWS, ROW_COUNTS, ROW_ROLES, SealedMoment
from vfgnn.sealed.ridge_path import Steps, path_words
from vfgnn.sealed.sizes import trained_steps
from vfgnn.sealed.state import LabelHolderState, SealedState
from vfgnn.sealed.training import SealedTraining


class SealedLabelHolder(SealedHolder):
    """The holder whose labels the federation learns to predict."""

    result: Result | None = None  # type: ignore[assignment]
    state_type = LabelHolderState
    _left: LabelHolderState

    def __init__(self, agreement: Agreement, channel: Channel, own: HolderContribution) -> None:
        super().__init__(agreement, channel, own)
        self._labels, self._on_epoch, self._wanted = own.known_labels, own.on_epoch, own.wanted
        if not self._labels.trained:
            _refuse_missing_classes(self._labels)
        self.leader = self
        self.heard = torch.empty(0)
        self.products: list[torch.Tensor] = []  # inner products that it has learnt
        self._steps: Steps | None = None
        self._path = torch.empty(0)
        self._val_accuracy = 0.0

    def _learn_rows(self) -> None:
        """Reveals: which rows train and validate to the holders; to the dealer how many."""
        roles = torch.zeros(self.agreement.nodes, dtype=torch.uint8)
        roles[self._labels.train], roles[self._labels.val] = TRAIN, VAL
        for reader in self.agreement.row_readers:
            self.channel.send(reader, ROW_ROLES, roles)
        begin = 0 if self._left.training is None else self._left.training.number
        counts = torch.tensor([len(self._labels.train), len(self._labels.val), begin])
        self.channel.send(DEALER, ROW_COUNTS, counts)
        self._keep_rows(roles)

    @cached_property
    def _targets(self) -> Targets:
        """Of the training rows, in the order of their numbers."""
        weights = self.agreement.settings.class_weights
        rows, y = self.rows[0].numbers.numpy(), self._labels.y.numpy()
        return make_targets(y, rows, self.agreement.classes, class_weights=weights)

    def labels(self) -> torch.Tensor:
        """Centred one-hot labels, each row times the root of its weight."""
        return _words(self._targets.b[:, :-1], LONG)

    def row_weights(self) -> tuple[torch.Tensor, torch.Tensor]:
        """By class."""
        weight = self._targets.weight[:, None]
        return _words(weight**0.5, FACTOR), _words(weight, FACTOR)

    def priors(self) -> torch.Tensor:
        """The (weighted) share of each class but the last."""
        return _words(self._targets.mean[None, :-1], SCORE)

    def steps(self, products: torch.Tensor) -> torch.Tensor:
        """From the first Rayleigh quotient."""
        self.products.append(products)
        self._steps = Steps.of(products, self.agreement.settings.sealed.kernel)
        return self._steps.words

    def path(self, products: torch.Tensor) -> torch.Tensor:
        """The best combination for each ridge."""
        self.products.append(products)
        if self._steps is None:
            raise RuntimeError("steps() comes first")
        sealed = self.agreement.settings.sealed
        self._path = path_words(products, self._steps, sealed.ridges, minimum=sealed.minimum)
        return self._path

    def choose(self, predicted: torch.Tensor) -> torch.Tensor:
        """By the validation rows' classes; of equal ones the strongest ridge, as the model in the clear has it."""
        truth = self._labels.y[self.rows[1].numbers]
        reached = [_class_score(own, truth, self.agreement) for own in predicted]
        best = max(range(len(reached)), key=lambda r: (reached[r], r))
        self._val_accuracy = float((predicted[best] == truth).double().mean())
        return self._path[best]

    def hear(self, predicted: torch.Tensor) -> None:
        """Keep them, so that nothing is asked for twice."""
        self.heard = predicted.reshape(len(predicted), -1)

    def _told(self, rows: int) -> torch.Tensor:
        return self.heard

    def _after(self, work: SealedTraining | SealedPrediction) -> LabelHolderState:
        """Training's predictions are judged on the test rows, once."""
        left = replace(self._left, **vars(super()._after(work)))
        if not isinstance(work, SealedTraining):
            return left
        logits, test = opened_predictions(left, self.agreement), self._labels.test
        found = metrics.scores(logits[test], self._labels.y[test])
        scored = self.agreement.settings.sealed.opens == "scores"
        reached = found if scored else {name: found[name] for name in ("accuracy", "f1")}
        scores = torch.tensor([reached.get(name, math.nan) for name in metrics.METRICS], dtype=torch.float64)
        left = replace(left, val_accuracy=self._val_accuracy, scores=scores)
        self.result = Result(self._outcome(left), logits)
        return left

    def _outcome(self, left: LabelHolderState) -> Outcome:
        steps, found = trained_steps(self.agreement), [] if left.scores is None else left.scores.tolist()
        pairs = zip(metrics.METRICS, found, strict=True)
        scores = {str(name): value for name, value in pairs if not math.isnan(value)}
        history = tuple(EpochMetrics(number + 1, None, None) for number in range(steps))
        return Outcome(steps, left.val_accuracy, scores["accuracy"], history, scores)

    def state(self) -> LabelHolderState:
        """Also which accuracy its choice of a ridge has."""
        return replace(self._left, **{**vars(super().state()), "val_accuracy": self._val_accuracy})

    def load(self, state: SealedState) -> None:
        """The model, and what was opened of it."""
        super().load(state)
        if not isinstance(state, LabelHolderState):
            raise CheckpointRefused("a checkpoint of another role", expected="the label holder's")
        self._val_accuracy = state.val_accuracy
        if state.scores is not None:
            self.result = Result(self._outcome(state))

    def _learn_asked(self) -> None:
        """Ask for rows that it wants and has no copy of. Reveals: which ones to the holders; to the dealer how many."""
        left, asked = self._left, torch.zeros(self.agreement.nodes, dtype=torch.uint8)
        if left.asked is not None:  # by a pass that was interrupted
            asked[left.asked.rows] = 1
        else:
            asked[slice(None) if self._wanted is None else self._wanted] = 1
            asked[[] if left.opened is None else left.opened.rows] = 0
        for reader in self.agreement.row_readers:
            self.channel.send(reader, ASKED_ROWS, asked)
        counts = torch.tensor([int(asked.sum()), left.train_rows, int(left.asked is not None)])
        self.channel.send(DEALER, ASKED_COUNTS, counts)
        self._asked = RowSet(asked.nonzero()[:, 0])

    def recall(self, moment: SealedMoment) -> None:
        """Everything that was opened of this model. Nothing leaves."""
        if self.result is None:
            raise CheckpointRefused("there is no trained model", expected="the state of a finished training")
        self.result = Result(self.result.outcome, opened_predictions(self._left, self.agreement))

    def step(self, moment: SealedMoment) -> None:
        """As every holder; a step has no loss, and nothing is evaluated before the last."""
        super().step(moment)
        if self._on_epoch is not None:
            self._on_epoch(EpochMetrics((moment.number or 0) + 1, None, None))


def opened_predictions(left: SealedState, agreement: Agreement) -> torch.Tensor:
    """Scores, or one-hot classes, of all nodes; not a number in rows that were never opened."""
    found = torch.full((agreement.nodes, agreement.classes), math.nan, dtype=torch.float64)
    if left.opened is not None:
        values, scored = left.opened.values, agreement.settings.sealed.opens == "scores"
        known = values.double() * 2.0**-SHORT if scored else _one_hot(values[:, 0], agreement.classes)
        found[left.opened.rows] = known
    return found


def _refuse_missing_classes(labels: Labels) -> None:
    """A class without a training row is allowed: its share of them is 0, and so are its scores."""
    known = labels.y[labels.y >= 0]
    missing = (torch.bincount(known, minlength=labels.classes) == 0).nonzero()[:, 0].tolist()
    if missing:
        raise DataError(
            "a class that no row has",
            expected=f"each of the classes 0 to {labels.classes - 1} in one row at least",
            got=f"no row of class {', '.join(map(str, missing))}",
            where="labels of the label holder",
            hint="declare fewer classes, or label a row of each",
        )
    if len(torch.unique(labels.y[labels.train])) < 2:
        raise DataError(
            "training rows of a single class",
            expected="two classes or more among the training rows",
            where="labels of the label holder",
            hint="label rows of another class, or put such rows into the train mask",
        )


def _words(values: Floats, bits: int) -> torch.Tensor:
    return torch.from_numpy(values * 2.0**bits).round().to(torch.int64)


def _one_hot(classes: torch.Tensor, count: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(classes.long(), count).double()


def _class_score(predicted: torch.Tensor, truth: torch.Tensor, agreement: Agreement) -> float:
    """What a ridge is chosen by: F1 if the settings say so, else accuracy; AUC and such need scores."""
    measure: metrics.Metric = "f1" if agreement.settings.select_by == "f1" else "accuracy"
    return metrics.score(_one_hot(predicted, agreement.classes), truth, measure)
