"""The label holder (CG3): a holder that also owns the labels and the output layer, and leads the run.

Sees, beyond what a holder sees: z_L. What leaves, beyond what a holder sends: which rows train and validate, dL/dz_L
of the training rows to the server, `keep` and `stop` to everyone. Labels, loss, accuracy and predictions stay here.
"""

import math
from dataclasses import fields, replace
from functools import cached_property

import torch

from vfgnn import randomness
from vfgnn.agreement import SERVER, Agreement
from vfgnn.channel import Channel
from vfgnn.checkpoint import copied
from vfgnn.errors import CheckpointRefused
from vfgnn.model.cg3_labels import OutputLayer
from vfgnn.model.contribution import HolderContribution
from vfgnn.model.epoch_choice import EpochChoice
from vfgnn.model.metrics import METRICS
from vfgnn.model.optimisers import LocalOptimiser
from vfgnn.model.task import NodeClassification
from vfgnn.privacy.ledger import ALL
from vfgnn.privacy.ledger import TRAIN as TRAINING
from vfgnn.records import EpochMetrics, Outcome, Result
from vfgnn.split.decision import Decision
from vfgnn.split.holder import Holder
from vfgnn.split.holder_state import HolderSnapshot, HolderState, LabelHolderState
from vfgnn.split.program import CONTROL, HIDDEN, HIDDEN_EVALUATED, HIDDEN_GRADIENT, ROW_ROLES
from vfgnn.split.steps import TRAIN, VAL, Moment, Rows, Step


class LabelHolder(Holder):
    """The holder whose labels the federation learns to predict."""

    state_type = LabelHolderState

    def __init__(self, agreement: Agreement, channel: Channel, own: HolderContribution) -> None:
        super().__init__(agreement, channel, own)
        self._labels, self._on_epoch = own.known_labels, own.on_epoch
        with randomness.initialising(randomness.derive_key(own.seed, "output layer")):
            self.output = self._make_output().to(self._device)
        self._output_optimiser = LocalOptimiser(self.output.parameters(), agreement.settings)
        self._history: list[EpochMetrics] = []
        self._task = NodeClassification(agreement.settings, agreement.classes, noised=True)
        self._choice = EpochChoice(patience=agreement.settings.patience)
        self._val_accuracy: float | None = None
        self._z: torch.Tensor | None = None
        self._evaluated: torch.Tensor | None = None
        self._loss = 0.0  # of the epoch so far

    def _make_output(self) -> OutputLayer:
        agreement = self.agreement
        return OutputLayer(agreement.settings, agreement.hidden_dim, agreement.classes)

    def _hidden(self) -> torch.Tensor:
        """z_L of the training rows."""
        return self.channel.receive(SERVER, HIDDEN)

    def _hidden_evaluated(self) -> torch.Tensor:
        """z_L of the rows that are evaluated or predicted."""
        return self.channel.receive(SERVER, HIDDEN_EVALUATED)

    def _return_gradient(self, gradient: torch.Tensor) -> None:
        """Reveals: dL/dz_L of the training rows to the server."""
        self.channel.send(SERVER, HIDDEN_GRADIENT, gradient)

    @cached_property
    def _y(self) -> torch.Tensor:
        """The labels that training and validation see; test labels judge the result and act on nothing.

        Noised, and charged, when training asks for them: a prediction with a trained model needs none.
        """
        labels = self._labels
        used = torch.cat([labels.train, labels.val])
        if self._rank is not None:  # an order that is the same in every run
            used = used[torch.argsort(self._rank[used])]
        names = used if self._rank is None else self._rank[used]
        y = labels.y.clone()
        y[used] = self.publisher.labels(labels.y[used], labels.classes, names)
        return y.to(self._device)

    @cached_property
    def _class_weights(self) -> torch.Tensor | None:
        return self._task.class_weights(self._y[self._labels.train])

    def set_up(self, moment: Moment) -> None:
        """Noise the labels if they have to be, then as every holder."""
        _ = self._y
        super().set_up(moment)

    def _learn_rows(self) -> None:
        """Reveals: the rows that train and validate, to the server and the publishing holders (`needed` only)."""
        if self.agreement.settings.publish == "all":
            return
        roles = torch.zeros(self.agreement.nodes, dtype=torch.uint8)
        roles[self._labels.train], roles[self._labels.val] = TRAIN, VAL
        for reader in self.agreement.row_readers:
            self.channel.send(reader, ROW_ROLES, roles)
        self.rows = Rows.from_roles(roles)

    def forward(self, moment: Moment) -> None:
        """CG1 as every holder, then receive z_L.

        Reveals: h_local of the step's rows to the server.
        """
        super().forward(moment)
        if not moment.step.last:
            self._z = self._hidden().to(self._device)
        if moment.step.evaluates:
            self._evaluated = self._hidden_evaluated().to(self._device)

    def decide(self, moment: Moment) -> bool:
        """Evaluate the weights of now on the validation rows, and lead; whether this was the last step.

        Reveals: one bit `improved` and one bit `stop`, to everyone.
        """
        z, step, rows = self._evaluated, moment.step, moment.rows
        if z is None:
            raise RuntimeError("forward() comes first")
        val = self._labels.val if rows.everything else rows.val.numbers
        with torch.no_grad():
            logits = self.output(z[val] if rows.everything else z)
        found = self._task.evaluate(logits, self._y[val])
        improved = self._choice.hear(step.number, found)
        decision = Decision(improved=improved, stop=step.last or self._choice.lost_patience(step.number))
        self._val_accuracy = found.accuracy
        if decision.stop:
            self._note(step, loss=None)
        for party in self.agreement.others:
            self.channel.send(party, CONTROL, decision.encode())
        if decision.improved:
            self.keep_best()
        self._evaluated = None
        return decision.stop

    def backward(self, moment: Moment) -> None:
        """CG3: the loss over the batch's training rows, a step of the output layer, then CG1 as every holder.

        Reveals: dL/dz_L of the training rows to the server (from which a curious server can infer labels).
        """
        if self._z is None:
            return
        z, step, everything = self._z.requires_grad_(), moment.step, moment.rows.everything
        ordered = self._labels.train if everything else moment.rows.train.numbers
        logits = self.output(z[ordered] if everything else z)
        loss = self._task.loss(logits, self._y[ordered], weights=self._class_weights)
        self._output_optimiser.descend(loss)
        if z.grad is not None:
            classes = (ALL,) if everything else (TRAINING,) * step.opens
            nodes = moment.rows.train.numbers
            gradient = self.publisher.gradient(z.grad, classes, step.number, nodes=nodes, train_rows=len(ordered))
            self._return_gradient(gradient)
        self._z = None
        self._loss = step.share * float(loss.detach()) + (0.0 if step.opens else self._loss)
        if step.closes:
            self._note(step, loss=self._loss)
        super().backward(moment)

    def _note(self, step: Step, *, loss: float | None) -> None:
        metrics = EpochMetrics(step.number, loss, self._val_accuracy)
        self._val_accuracy = None
        self._history.append(metrics)
        if self._on_epoch is not None:
            self._on_epoch(metrics)

    def _snapshot(self) -> HolderSnapshot:
        return replace(super()._snapshot(), output=copied(self.output.state_dict()))

    def restore_best(self, moment: Moment) -> None:
        """Go back to it."""
        super().restore_best(moment)
        if self._best is not None:
            self.output.load_state_dict(self._best.output)

    def predict(self, moment: Moment) -> None:
        """Logits of all nodes and, once, the test accuracy of the epoch that validation chose. Nothing more leaves."""
        super().predict(moment)
        with torch.no_grad():
            logits = self.output(self._hidden_evaluated().to(self._device))
        if self.result is None:  # a trained model has its own; labels of today may leave nothing to test
            test = self._labels.test
            truth = self._labels.y[test].to(self._device)
            self.result = Result(self._outcome(self._task.scores(logits[test], truth)))
        self.result = Result(self.result.outcome, logits)

    def state(self) -> LabelHolderState:
        """Also the output layer, the metrics so far and, at the very end, the test scores."""
        held = super().state()
        rows = [[m.epoch, _number(m.loss), _number(m.val_accuracy)] for m in self._history]
        scores = None
        if self.result is not None:
            found = self.result.outcome.scores
            scores = torch.tensor([_number(found.get(name)) for name in METRICS], dtype=torch.float64)
        return LabelHolderState(
            **{one.name: getattr(held, one.name) for one in fields(held)},
            output=copied(self.output.state_dict()),
            output_optimiser=self._output_optimiser.state(),
            history=torch.tensor(rows, dtype=torch.float64).reshape(-1, 3),
            best_so_far=self._choice.state(),
            scores=scores,
        )

    def load(self, state: HolderState) -> None:
        """Go on from it."""
        super().load(state)
        if not isinstance(state, LabelHolderState):
            raise CheckpointRefused("a checkpoint of another role", expected="the label holder's")
        self.output.load_state_dict(state.output)
        self._output_optimiser.load(state.output_optimiser)
        self._history = [
            EpochMetrics(int(epoch), _known(loss), _known(reached)) for epoch, loss, reached in state.history.tolist()
        ]
        self._choice.load(state.best_so_far)
        if state.scores is not None:
            known = zip(METRICS, state.scores.tolist(), strict=True)
            self.result = Result(self._outcome({str(name): value for name, value in known if not math.isnan(value)}))

    def _outcome(self, test_scores: dict[str, float]) -> Outcome:
        return Outcome(
            best_epoch=self._choice.best_epoch,
            val_accuracy=self._choice.best_accuracy,
            test_accuracy=test_scores["accuracy"],
            history=tuple(self._history),
            scores=test_scores,
        )


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number
