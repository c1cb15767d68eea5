"""The sealed protocol's model in the clear against conjugate gradients, the exact ridge, and itself in the other order.

All in float64 on graphs of 60 nodes. Where two ways of computing the same are compared, the tolerance is 1e-8: some
hundred products of 1e-16 each, times the condition of the Gram matrix of the basis, below 1e6 in these cases.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from vfgnn.errors import ConfigError, DataError
from vfgnn.model.propagated_kernels import make_kernel
from vfgnn.model.propagated_ridge import RidgeModel, choose, fit_by_columns, fit_by_kernel, make_targets
from vfgnn.model.propagation import NeighbourSums, Smoothing, neighbours, union

NODES, COLUMNS, CLASSES = 60, 9, 3
ROWS = np.arange(0, NODES, 3)
SMOOTH = RidgeModel(hops=5)
HOPS = RidgeModel(kernel="hops", hops=2)
TOLERANCE = 1e-8


def made_up(seed=0):
    draw = np.random.default_rng(seed)
    edges = draw.integers(0, NODES - 5, (2, 150))  # the last nodes are isolated
    x = draw.random((NODES, COLUMNS)) < 0.3
    y = np.argmax(x[:, :CLASSES] + 0.2 * draw.random((NODES, CLASSES)), axis=1)
    return edges, x.astype(np.float64), y


def kernel_of(edges, x, model):
    adjacency = union(edges, NODES)
    return make_kernel(
        sp.csr_array(x), adjacency, name=model.kernel, hops=model.hops, teleport=model.teleport, power=model.power
    )


def fitted(model, *, columns=COLUMNS, order=fit_by_kernel):
    edges, x, y = made_up()
    kernel = kernel_of([edges], x[:, :columns], model)
    targets = make_targets(y, ROWS, CLASSES, class_weights=model.class_weights)
    return kernel, targets, order(kernel if order is fit_by_kernel else kernel.columns(), targets, model)


def inner_kernel(kernel, targets):
    """Kc [L, L], from its definition."""
    psi = kernel.columns()
    psi = psi[targets.rows] - np.average(psi[targets.rows], axis=0, weights=targets.weight)
    psi *= np.sqrt(targets.weight)[:, None]
    return psi @ psi.T


def exact(kernel, targets, ridge):
    """Weighted ridge regression with an intercept, by the normal equations."""
    psi, weight = kernel.columns(), np.diag(targets.weight)
    inner = psi[targets.rows]
    hot = targets.b / np.sqrt(targets.weight)[:, None] + targets.mean
    penalty = ridge * np.eye(psi.shape[1] + 1)
    penalty[-1, -1] = 0
    inner = np.column_stack([inner, np.ones(len(inner))])
    found = np.linalg.solve(inner.T @ weight @ inner + penalty, inner.T @ weight @ hot)
    return np.column_stack([psi, np.ones(NODES)]) @ found


def conjugate_gradients(matrix, b, steps):
    """One step size for all columns, as inner products over all of them give it."""
    x, r = np.zeros_like(b), b.copy()
    p = r.copy()
    for _ in range(steps):
        product = matrix @ p
        alpha = (r * r).sum() / (p * product).sum()
        x, before = x + alpha * p, (r * r).sum()
        r = r - alpha * product
        p = r + (r * r).sum() / before * p
    return x


@pytest.mark.parametrize("model", [SMOOTH, HOPS])
@pytest.mark.parametrize("class_weights", ["none", "balanced"])
def test_the_kernel_minimum_is_conjugate_gradients(model, class_weights):
    model = replace(model, minimum="kernel", class_weights=class_weights)
    kernel, targets, fit = fitted(model)
    inner = inner_kernel(kernel, targets)
    unit = fit.basis.bound / model.spread
    assert unit == pytest.approx((targets.b * (inner @ targets.b)).sum() / (targets.b**2).sum(), rel=TOLERANCE)
    for ridge, scores in zip(model.ridge, fit.scores, strict=True):
        p = conjugate_gradients(inner + ridge * unit * np.eye(len(inner)), targets.b, model.steps)
        q = kernel.scores(kernel.weights(targets.spread_out(p, NODES)))
        assert np.abs(targets.centred(q) + targets.mean - scores).max() < TOLERANCE


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("name", ["smooth", "hops"])
def test_the_weights_minimum_is_conjugate_gradients_on_the_weights(name, steps):
    model = RidgeModel(kernel=name, hops=3, steps=steps)
    kernel, targets, fit = fitted(model)
    psi = targets.taken(targets.centred(kernel.columns()))
    unit = fit.basis.bound / model.spread
    for ridge, weights in zip(model.ridge, fit.weights, strict=True):
        gram = psi.T @ psi + ridge * unit * np.eye(psi.shape[1])
        assert np.abs(conjugate_gradients(gram, psi.T @ targets.b, steps) - weights).max() < TOLERANCE


@pytest.mark.parametrize("model", [SMOOTH, replace(HOPS, hops=1)])
@pytest.mark.parametrize("minimum", ["kernel", "weights"])
@pytest.mark.parametrize("class_weights", ["none", "balanced"])
def test_as_many_steps_as_the_rank_are_the_exact_ridge(model, minimum, class_weights):
    columns = 4 if model.kernel == "smooth" else 2
    rank = columns if model.kernel == "smooth" else columns * (model.hops + 1)
    # One more step for what the features do not reach; with many steps the bound has to be one of all eigenvalues.
    model = replace(model, steps=rank + 1, spread=4.0, minimum=minimum, class_weights=class_weights)
    kernel, targets, fit = fitted(model, columns=columns)
    for ridge, scores in zip(model.ridge, fit.scores, strict=True):
        # The last vectors of the basis nearly depend on the others: half of the digits are left.
        assert np.abs(exact(kernel, targets, ridge * fit.basis.bound / model.spread) - scores).max() < 1e-6


@pytest.mark.parametrize("model", [SMOOTH, replace(SMOOTH, teleport=0.0, hops=2), HOPS])
@pytest.mark.parametrize("class_weights", ["none", "balanced"])
def test_both_orders_give_one_model(model, class_weights):
    model = replace(model, class_weights=class_weights)
    _, _, by_kernel = fitted(model)
    _, _, by_columns = fitted(model, order=fit_by_columns)
    assert by_columns.basis.bound == pytest.approx(by_kernel.basis.bound, rel=TOLERANCE)
    for one, other in zip(by_kernel.scores, by_columns.scores, strict=True):
        assert np.abs(one - other).max() < TOLERANCE


@pytest.mark.parametrize("model", [SMOOTH, HOPS])
def test_the_primal_weights_reproduce_the_scores(model):
    kernel, _, fit = fitted(model)
    for weights, offset, scores in zip(fit.weights, fit.offsets, fit.scores, strict=True):
        assert np.abs(kernel.scores(weights) + offset - scores).max() < TOLERANCE
        assert np.abs(scores.sum(axis=1) - 1).max() < TOLERANCE  # as one-hot labels do


@pytest.mark.parametrize("model", [SMOOTH, HOPS])
def test_it_does_not_matter_who_has_what(model):
    edges, x, y = made_up()
    edges = np.unique(np.sort(edges, axis=0), axis=1)
    targets = make_targets(y, ROWS, CLASSES)
    alone = fit_by_kernel(kernel_of([edges], x, model), targets, model)
    order = np.random.default_rng(1).permutation(COLUMNS)
    parts = [edges[:, :20], np.zeros((2, 0), dtype=np.int64), edges[::-1, 20:]]
    split = fit_by_kernel(kernel_of(parts, x[:, order], model), targets, model)
    assert np.abs(split.scores[0] - alone.scores[0]).max() < TOLERANCE


def test_an_edge_of_two_holders_counts_twice_and_one_of_one_holder_once():
    edges = np.array([[0, 1, 1, 2], [1, 0, 0, 2]])
    assert neighbours(edges, 3).toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert union([edges, edges[:, :1]], 3).toarray()[0].tolist() == [0, 2, 0]


@pytest.mark.parametrize("teleport", [0.0, 0.15])
def test_smoothing_is_symmetric_and_the_power_of_the_normalised_matrix(teleport):
    adjacency = union([made_up()[0]], NODES)
    s = Smoothing(adjacency, hops=4, teleport=teleport).apply(np.eye(NODES))
    assert np.abs(s - s.T).max() < 1e-14  # four products of numbers up to 1
    root = 1 / np.sqrt(1 + adjacency.sum(axis=1))
    m = root[:, None] * (adjacency.toarray() + np.eye(NODES)) * root
    powers = [np.linalg.matrix_power((1 - teleport) * m, hop) for hop in range(5)]
    assert np.abs(s - powers[4] - teleport * sum(powers[:4])).max() < 1e-14


def test_neighbour_sums_have_their_power_and_their_transpose():
    adjacency = union([made_up()[0]], NODES)
    degrees = adjacency.sum(axis=1)
    for power in (1.0, 0.5):
        sums = NeighbourSums(adjacency, power=power)
        r, transposed = sums.apply(np.eye(NODES)), sums.transposed(np.eye(NODES))
        assert (transposed == r.T).all()
        assert r.sum(axis=1) == pytest.approx(degrees ** (1 - power) * (degrees > 0))
        assert degrees[-1] == 0 and r[-1].sum() == 0  # an isolated node has no neighbours


def test_balanced_classes_count_alike():
    y = np.array([0] * 15 + [1] * 5)
    targets = make_targets(y, np.arange(20), 2, class_weights="balanced")
    assert targets.weight[y == 0].sum() == pytest.approx(targets.weight[y == 1].sum()) == pytest.approx(10)
    assert targets.mean == pytest.approx([0.5, 0.5])


def test_of_equals_the_strongest_ridge_is_chosen():
    _, _, fit = fitted(SMOOTH)
    y = np.asarray(fit.scores[2]).argmax(axis=1)
    same = replace(fit, scores=(fit.scores[2], fit.scores[2], -fit.scores[2]))
    assert choose(same, y, np.arange(NODES), metric="accuracy") == 1


def test_features_that_say_nothing_are_refused_by_name():
    edges, x, y = made_up()
    with pytest.raises(DataError, match="features say nothing"):
        fit_by_kernel(kernel_of([edges], 0 * x, SMOOTH), make_targets(y, ROWS, CLASSES), SMOOTH)
    with pytest.raises(ConfigError, match="cannot be trained"):
        RidgeModel(steps=0)
