"""The same model in the clear, on pooled or on isolated data: what a federation is compared with.

GraphSAGE_A and GraphSAGE_B are a holder's own columns and edges (with the labels), GraphSAGE_A+B is all of it in one
place. The same layers, head, optimisers and choice of epoch as the federated model, in one autograd graph. For
experiments; a federation never runs this.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from vfgnn import randomness
from vfgnn.data.holdings import Holding, Labels
from vfgnn.model.cg1_edges import LocalGnn, LocalGraph, OwnModule
from vfgnn.model.cg1_features import IndividualEmbedding, scaled_rows
from vfgnn.model.cg2_server import OwnCombine, ServerNetwork
from vfgnn.model.cg3_labels import OutputLayer
from vfgnn.model.epoch_choice import EpochChoice
from vfgnn.model.optimisers import LocalOptimiser
from vfgnn.model.task import Evaluation, NodeClassification
from vfgnn.records import EpochMetrics, Outcome
from vfgnn.settings import Settings


class CentralModel(nn.Module):
    """CG1, CG2 and CG3 for a single holder of everything."""

    def __init__(
        self,
        holding: Holding,
        classes: int,
        settings: Settings,
        device: torch.device,
        *,
        own: OwnModule | None = None,
        own_combine: OwnCombine | None = None,
        sparse: bool | None = None,
    ) -> None:
        super().__init__()
        holding = replace(holding, x=scaled_rows(holding.x, settings.feature_scaling))
        self.features = IndividualEmbedding(holding, settings.dim, settings.dtype, device, sparse=sparse)
        self.gnn = LocalGnn(settings, own)
        self.network = ServerNetwork(settings, 1, own_combine)
        self.output = OutputLayer(settings, settings.dim, classes)

    def h0(self) -> torch.Tensor:
        """X W [nodes, d]."""
        return self.features.embed()

    def logits(self, h_local: torch.Tensor, dropout: torch.Generator | None) -> torch.Tensor:
        """Logits [rows, classes], with dropout if a generator is given."""
        kept = [] if dropout is None else self.network.draw_dropout(len(h_local), dropout)
        logits: torch.Tensor = self.output(self.network(h_local[None], kept))
        return logits


class CentralTraining:
    """Full-batch training of a central model, step by step."""

    def __init__(
        self,
        holding: Holding,
        labels: Labels,
        settings: Settings,
        *,
        seed: bytes,
        own: OwnModule | None = None,
        own_combine: OwnCombine | None = None,
        device: torch.device | None = None,
        sparse: bool | None = None,
    ) -> None:
        device = device or torch.device("cpu")
        self._labels, self._settings = labels, settings
        self._y = labels.y.to(device)
        self._task = NodeClassification(settings, labels.classes, noised=False)
        self._class_weights = self._task.class_weights(self._y[labels.train])
        with randomness.initialising(seed):
            model = CentralModel(
                holding, labels.classes, settings, device, own=own, own_combine=own_combine, sparse=sparse
            )
        self.model = model.to(device)
        self._dropout = randomness.generator(seed, "dropout")
        self._sampling = randomness.generator(seed, "sampled neighbours")
        self._graph = LocalGraph(holding.edge_index, holding.size, settings, device, holding.edge_weight)
        needed = settings.publish == "needed"
        self._train_around = self._graph.around(labels.train.to(device) if needed else None)
        self._val_around = self._graph.around(labels.val.to(device) if needed else None)
        first = [self.model.features.weight] if settings.initial_embedding == "collaborative" else []
        rest = [weight for weight in self.model.parameters() if not any(weight is joint for joint in first)]
        self._optimiser = LocalOptimiser(rest, settings)
        self._joint_optimiser = (
            torch.optim.SGD(
                first,
                lr=settings.joint_learning_rate,
                momentum=settings.joint_momentum,
                weight_decay=settings.joint_weight_decay,
                nesterov=settings.joint_nesterov,
            )
            if first
            else None
        )

    def train(self, on_epoch: Callable[[EpochMetrics], None] | None = None) -> Outcome:
        """Train, choose the epoch on validation rows, report it on test rows."""
        settings, history, best = self._settings, list[EpochMetrics](), self.model.state_dict()
        choice = EpochChoice(patience=settings.patience)
        for t in range(settings.epochs + 1):
            reached, loss, last = None, None, t == settings.epochs
            h0 = self.model.h0()
            if last or (t > 0 and t % settings.evaluate_every == 0):
                found = self._evaluate(h0)
                reached = found.accuracy
                if choice.hear(t, found):
                    best = {name: weight.clone() for name, weight in self.model.state_dict().items()}
                last = last or choice.lost_patience(t)
            if not last:
                loss = self.learn(h0)
            history.append(EpochMetrics(t, loss, reached))
            if on_epoch is not None:
                on_epoch(history[-1])
            if last:
                break
        self.model.load_state_dict(best)
        scores = self._task.scores(self.predict()[self._labels.test], self._y[self._labels.test])
        return Outcome(choice.best_epoch, choice.best_accuracy, scores["accuracy"], tuple(history), scores)

    def learn(self, h0: torch.Tensor) -> float:
        """One step of all weights; the training loss before it."""
        train, needed = self._labels.train, self._settings.publish == "needed"
        around = self._train_around
        if self._graph.sampled:
            around = self._graph.around(train.to(self._y.device) if needed else None, self._sampling)
        logits = self.model.logits(self.model.gnn(h0, around), self._dropout)
        loss = self._task.loss(logits if needed else logits[train], self._y[train], weights=self._class_weights)
        if self._joint_optimiser is not None:
            self._joint_optimiser.zero_grad()
        self._optimiser.descend(loss)
        if self._joint_optimiser is not None:
            self._joint_optimiser.step()
        return float(loss.detach())

    def _evaluate(self, h0: torch.Tensor) -> Evaluation:
        """On the validation rows."""
        val = self._labels.val
        with torch.no_grad():
            logits = self.model.logits(self.model.gnn(h0, self._val_around), None)
        logits = logits if self._settings.publish == "needed" else logits[val]
        return self._task.evaluate(logits, self._y[val])

    def predict(self) -> torch.Tensor:
        """Logits of all nodes."""
        with torch.no_grad():
            return self.model.logits(self.model.gnn(self.model.h0(), self._graph.around(None)), None)
