"""The sealed protocol's model on one holding, in the clear: what a holder gets alone, and what pooling would give.

The same settings, and the same choice of a ridge by the classes of validation rows. For comparisons; a federation never
runs this.
"""

import numpy as np
import scipy.sparse as sp
import torch

from vfgnn.data.holdings import Holding, Labels
from vfgnn.model import metrics
from vfgnn.model.propagated_kernels import SPREAD, make_kernel
from vfgnn.model.propagated_ridge import RidgeFit, RidgeModel, choose, fit_by_kernel, make_targets
from vfgnn.model.propagation import neighbours
from vfgnn.model.used_columns import used_columns
from vfgnn.records import EpochMetrics, Outcome
from vfgnn.settings import Settings


def train_ridge(holding: Holding, labels: Labels, settings: Settings) -> Outcome:
    """Train, choose the ridge on validation rows, report it on test rows."""
    model, y = ridge_model(settings), labels.y.numpy()
    adjacency = neighbours(holding.edge_index.numpy(), holding.nodes)
    features = sp.csr_array(used_columns(holding.x, settings.sealed.columns).double().numpy())
    kernel = make_kernel(features, adjacency, name=model.kernel, hops=model.hops, teleport=model.teleport)
    fit = fit_by_kernel(kernel, make_targets(y, labels.train.numpy(), labels.classes), model)
    return _outcome(fit, labels, model.steps)


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


def _outcome(fit: RidgeFit, labels: Labels, steps: int) -> Outcome:
    scores = torch.from_numpy(fit.scores[choose(fit, labels.y.numpy(), labels.val.numpy(), metric="accuracy")])
    found = metrics.scores(scores[labels.test], labels.y[labels.test])
    reached = float(np.mean((scores[labels.val].argmax(dim=1) == labels.y[labels.val]).numpy()))
    history = tuple(EpochMetrics(step + 1, None, None) for step in range(steps))
    return Outcome(steps, reached, found["accuracy"], history, found)
