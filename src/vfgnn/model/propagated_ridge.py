"""The sealed protocol's model, in the clear: ridge regression on one-hot labels with propagated columns of all holders.

Who sees all of this: only simulations and tests. It is the float twin of what the protocol computes on shares, and the
pooled model that it is compared with. Kernels: model/propagated_kernels.py. Solving: model/krylov.py.

Both orders give the same model. Kernel order: t times K applied to columns of labels. Primal order: Psi once, then t
cheap products with G = Psi_T^T Psi_T, for tables with few columns and many steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from vfgnn.errors import ConfigError
from vfgnn.model.krylov import Basis, Minimum, coefficients, grow_basis, rayleigh
from vfgnn.model.metrics import Metric, score
from vfgnn.model.propagated_kernels import Kernel, KernelName
from vfgnn.model.propagation import Floats, Integers

ClassWeights = Literal["none", "balanced"]


@dataclass(frozen=True)
class RidgeModel:
    """What is public about a model. The defaults were chosen on validation nodes (experiments/sealed_search.py)."""

    kernel: KernelName = "smooth"
    hops: int = 10
    teleport: float = 0.1  # of the smooth kernel
    power: float = 0.5  # of the degrees in the hops kernel
    steps: int = 4  # products with the kernel
    spread: float = 4.0  # the bound of the basis, in Rayleigh quotients of the labels
    ridge: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)  # in the same unit; validation chooses
    minimum: Minimum = "weights"
    class_weights: ClassWeights = "none"

    def __post_init__(self) -> None:
        if self.steps < 1 or self.spread <= 0 or not self.ridge or min(self.ridge) < 0:
            raise ConfigError(
                "a model that cannot be trained",
                expected="steps from 1, a positive spread, ridge strengths from 0",
                got=f"steps {self.steps}, spread {self.spread:g}, ridge {list(self.ridge)}",
            )


@dataclass(frozen=True, repr=False)
class Targets:
    """The label holder's side: centred one-hot labels of the training rows, each row weighted."""

    rows: Integers  # [L]
    b: Floats  # [L, C]: sqrt(weight) (y - mean)
    mean: Floats  # [C], the weighted mean of the one-hot labels
    weight: Floats  # [L], adds up to L

    def spread_out(self, p: Floats, nodes: int) -> Floats:
        """Centred columns for all nodes, 0 outside the training rows."""
        weighted = np.sqrt(self.weight)[:, None] * p
        placed = np.zeros((nodes, p.shape[1]))
        placed[self.rows] = weighted - self.weight[:, None] * (weighted.sum(axis=0) / self.weight.sum())
        return placed

    def centred(self, q: Floats) -> Floats:
        """Minus the weighted mean over the training rows."""
        return np.asarray(q - self.weight @ q[self.rows] / self.weight.sum())

    def taken(self, centred: Floats) -> Floats:
        """The training rows, weighted."""
        return np.asarray(np.sqrt(self.weight)[:, None] * centred[self.rows])


def make_targets(y: Integers, rows: Integers, classes: int, *, class_weights: ClassWeights = "none") -> Targets:
    """From the classes of the training rows; `y` has those of all nodes and is read in these rows only."""
    own = y[rows]
    weight = np.ones(len(rows))
    if class_weights == "balanced":
        counts = np.bincount(own, minlength=classes)
        weight = len(rows) / (counts[own] * np.count_nonzero(counts))
    hot = np.eye(classes)[own]
    mean = weight @ hot / weight.sum()
    return Targets(rows, np.sqrt(weight)[:, None] * (hot - mean), mean, weight)


@dataclass(frozen=True, repr=False)
class RidgeFit:
    """A trained model: of each ridge strength the weights of the columns of Psi, and what its scores add up to."""

    weights: tuple[Floats, ...]  # [columns of Psi, C] each
    offsets: tuple[Floats, ...]  # [C] each: class means minus the mean score of the training rows
    scores: tuple[Floats, ...]  # [nodes, C] each
    basis: Basis


def fit_by_kernel(kernel: Kernel, targets: Targets, model: RidgeModel) -> RidgeFit:
    """The order of columns of labels: what CG does on shares."""
    parts: list[tuple[Floats, Floats]] = []  # Psi^T p_s and K p_s of all nodes

    def times(p: Floats) -> Floats:
        weights = kernel.weights(targets.spread_out(p[:, :-1], kernel.nodes))
        parts.append((with_last(weights), with_last(kernel.scores(weights))))
        return targets.taken(targets.centred(parts[-1][1]))

    basis = grow_basis(times, targets.b, steps=model.steps, spread=model.spread)
    unit = basis.bound / model.spread
    found = [coefficients(basis.gram, basis.bound, r * unit, minimum=model.minimum) for r in model.ridge]
    weights = [sum(c * w for c, (w, _) in zip(of_ridge, parts, strict=True)) for of_ridge in found]
    scores = [sum(c * q for c, (_, q) in zip(of_ridge, parts, strict=True)) for of_ridge in found]
    return _fit(targets, weights, scores, basis)


def fit_by_columns(columns: Floats, targets: Targets, model: RidgeModel) -> RidgeFit:
    """The order of columns of features: Psi [nodes, columns] is there, and the rest happens on its Gram matrix.

    The vectors here are Psi_T^T p_s: their inner products are those of p_s with K in between.
    """
    if model.minimum != "weights":
        raise ConfigError("the primal order has the inner products of one minimum", expected='minimum = "weights"')
    inner = targets.taken(targets.centred(columns))
    gram, start = inner.T @ inner, inner.T @ targets.b
    unit = rayleigh(targets.b, inner @ start)
    first = float((start * (gram @ start)).sum() / (start * start).sum())
    basis = grow_basis(lambda w: gram @ w, start, steps=model.steps, spread=model.spread * unit / first)
    # (G + ridge) w = start: conjugate gradients here have the smallest objective of the regression.
    found = [coefficients(basis.gram, basis.bound, r * unit, minimum="kernel") for r in model.ridge]
    weights = [sum(c * w for c, w in zip(of_ridge, basis.vectors, strict=True)) for of_ridge in found]
    return _fit(targets, weights, [columns @ w for w in weights], basis)


def with_last(columns: Floats) -> Floats:
    """The columns of all classes: those of a row add up to 0, so the last one is not computed."""
    return np.concatenate([columns, -columns.sum(axis=1, keepdims=True)], axis=1)


def _fit(targets: Targets, weights: Sequence[Floats], raw: Sequence[Floats], basis: Basis) -> RidgeFit:
    offsets = [targets.mean - targets.weight @ q[targets.rows] / targets.weight.sum() for q in raw]
    scores = [q + offset for q, offset in zip(raw, offsets, strict=True)]
    return RidgeFit(tuple(weights), tuple(offsets), tuple(scores), basis)


def choose(fit: RidgeFit, y: Integers, val: Integers, *, metric: Metric) -> int:
    """The number of the ridge strength whose scores are best in the validation rows; of equals the last."""
    truth = torch.from_numpy(y[val])
    found = [score(torch.from_numpy(scores[val]), truth, metric) for scores in fit.scores]
    return max(range(len(found)), key=lambda i: (found[i], i))
