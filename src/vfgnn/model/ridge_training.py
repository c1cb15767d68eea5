"""The sealed protocol's model in the clear: what a holder gets alone, and what pooling would give.

The same settings, and the same choice of a ridge by the classes of validation rows. For comparisons; a federation never
runs this.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch

from vfgnn.data.feature_maps import mapped
from vfgnn.data.holdings import Holding, Labels
from vfgnn.model import metrics
from vfgnn.model.propagated_kernels import SPREAD, make_kernel
from vfgnn.model.propagated_ridge import RidgeFit, RidgeModel, choose, fit_by_kernel, make_targets
from vfgnn.model.propagation import union
from vfgnn.records import EpochMetrics, Outcome
from vfgnn.settings import Settings


def train_ridge(holdings: Sequence[Holding], labels: Labels, settings: Settings) -> Outcome:
    """Of these holdings together: train, choose the ridge on validation rows, report it on test rows."""
    return _outcome(_pooled_fit(holdings, settings)(labels), labels, settings)


def pooled_scores(holdings: Sequence[Holding], settings: Settings) -> Callable[[Labels], torch.Tensor]:
    """What the model of these holdings together says for any labels: scores [nodes, classes] of the chosen ridge."""
    fit = _pooled_fit(holdings, settings)

    def scores(labels: Labels) -> torch.Tensor:
        return _chosen(fit(labels), labels, settings)

    return scores


def _pooled_fit(holdings: Sequence[Holding], settings: Settings) -> Callable[[Labels], RidgeFit]:
    """The kernel is made once."""
    model = ridge_model(settings)
    held = [mapped(holding, settings.sealed) for holding in holdings]
    adjacency = union((one.edge_index.numpy() for one in held), held[0].nodes)
    features = sp.csr_array(np.concatenate([one.x.double().numpy() for one in held], axis=1))
    kernel = make_kernel(features, adjacency, name=model.kernel, hops=model.hops, teleport=model.teleport)

    def fit(labels: Labels) -> RidgeFit:
        y, rows = labels.y.numpy(), labels.train.numpy()
        targets = make_targets(y, rows, labels.classes, class_weights=settings.class_weights)
        return fit_by_kernel(kernel, targets, model)

    return fit


def ridge_model(settings: Settings) -> RidgeModel:
    """What the settings say of it."""
    chosen = settings.sealed
    return RidgeModel(
        kernel=chosen.kernel,
        hops=chosen.depth,
        teleport=chosen.teleport,
        steps=chosen.steps,
        spread=SPREAD[chosen.kernel],
        ridge=chosen.ridges,
        minimum=chosen.minimum,
    )


def _chosen(fit: RidgeFit, labels: Labels, settings: Settings) -> torch.Tensor:
    """Chosen as on shares: by classes, so by F1 where the settings say so, else by accuracy."""
    metric: metrics.Metric = "f1" if settings.select_by == "f1" else "accuracy"
    classes = [np.eye(labels.classes)[scores.argmax(axis=1)] for scores in fit.scores]
    by_class = replace(fit, scores=tuple(classes))
    return torch.from_numpy(fit.scores[choose(by_class, labels.y.numpy(), labels.val.numpy(), metric=metric)])


def _outcome(fit: RidgeFit, labels: Labels, settings: Settings) -> Outcome:
    scores = _chosen(fit, labels, settings)
    found = metrics.scores(scores[labels.test], labels.y[labels.test])
    reached = metrics.accuracy(scores[labels.val], labels.y[labels.val])
    history = tuple(EpochMetrics(step + 1, None, None) for step in range(settings.sealed.steps))
    return Outcome(settings.sealed.steps, reached, found["accuracy"], history, found)
