"""The batched search trains what the product trains.

Tolerance: 12 epochs in float64 from the same initial weights, without dropout. What differs is the order of sums (below
1e-12 an epoch: tests/protocol/test_equals_autograd.py) and the joint layer's fixed point: features that are not whole
are rounded on both sides alike, and updates have 26 fraction bits, so h0 is off by at most n p 2^-27 < 1e-5.
"""

import subprocess
import sys

import numpy as np
import pytest
import torch

from tests.protocol.test_equals_autograd import joint_weights
from vfgnn.data.holdings import Holding
from vfgnn.data.partition import partition
from vfgnn.experiments.batched.jobs import Curve, Job
from vfgnn.experiments.batched.main import Finals, train_all
from vfgnn.experiments.batched.ranking import by_point, ranked, read_results
from vfgnn.experiments.batched.surroundings import place_of
from vfgnn.experiments.batched.training import Training
from vfgnn.experiments.search import USED, Wanted, arrays_of
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import build
from vfgnn.model.central import CentralTraining
from vfgnn.model.epoch_choice import EpochChoice
from vfgnn.model.task import Evaluation
from vfgnn.randomness import insecure_seed
from vfgnn.settings import make_settings
from vfgnn.split.joint_layer import draw_weight_share

EPOCHS, CLOSE, SEED = 12, 1e-5, 3
COMMON = {
    "precision": "float64",
    "dim": 8,
    "epochs": EPOCHS,
    "evaluate_every": EPOCHS + 1,  # the weights that are left are the last ones
    "dropout": 0.0,
    "learning_rate": 0.01,
    "weight_decay": 0.001,
    "joint_learning_rate": 0.5,
    "joint_weight_decay": 0.001,
    "joint_layer": "insecure_clear",
    "accept_h0_leak": True,
    "accept_row_leak": True,
}
WIDE = {"row_scale": 4.0, "head_scale": 4.0, "output_scale": 2.0}
POINTS = [
    {"combine": "concat", "layers": 3, "embedding_activation": "tanh"},
    {"combine": "mean", "layers": 2, "feature_scaling": "row", **WIDE},
    {"combine": "regression", "layers": 2, "joint_momentum": 0.0},
    {"combine": "confidence", "gnn": "appnp", "layers": 4, "teleport": 0.2, "hidden_layers": 0},
]
CENTRAL = [
    {"layers": 2, "initial_embedding": "individual", "feature_scaling": "row"},
    {"layers": 3, "initial_embedding": "collaborative", **WIDE},
]


def job_of(settings, row, number=0):
    values = settings.model_dump()
    return Job("random", "undirected", row, None, SEED, number, {name: values[name] for name in USED})


@pytest.fixture
def folder(tmp_path, graph):
    for seed in (SEED, SEED + 1):
        np.savez(tmp_path / f"random-{seed}.npz", **arrays_of(graph, seed))
    return tmp_path


def batch(folder, jobs, place):
    data = place_of(folder / f"random-{SEED}.npz", "undirected", place)
    return Training(data, jobs, torch.float64, torch.device("cpu"))


def pairs(training, at, gnns, network, output):
    """The product's weights beside the views of the batch that stand for them, at place `at` of the batch."""
    views = {name: view[at] for name, view in training.weights(training.rest).items()}
    found = [(output.linear.weight.t(), views["output"]), (output.linear.bias, views["output_bias"])]
    for layer in network.hidden:
        found += [(layer.weight.t(), views["hidden"]), (layer.bias, views["hidden_bias"])]
    if hasattr(network.combine, "weight"):
        found.append((network.combine.weight[:, 0], views["combine"]))
    for i, gnn in enumerate(gnns):
        if gnn.linear is not None:
            found.append((gnn.linear.weight.t(), views["linear"][i]))
            continue
        for k, one in enumerate(gnn.convolutions):
            found += [(one.lin_l.weight.t(), views["neighbours"][i, k]), (one.lin_l.bias, views["bias"][i, k])]
            found.append((one.lin_r.weight.t(), views["self"][i, k]))
    return found


def put(found):
    with torch.no_grad():
        for weight, view in found:
            view.zero_()  # a mean leaves the places of a concatenation free
            view[tuple(slice(size) for size in weight.shape)] = weight


def largest_difference(found):
    differences = [weight.detach() - view[tuple(slice(size) for size in weight.shape)] for weight, view in found]
    return max(float(difference.abs().max()) for difference in differences)


def first_weights(parties):
    shares = [draw_weight_share(parties.agreement, holder.joint._seed) for holder in parties.holders]
    return torch.cat([sum(share[name] for share in shares) for name in shares[0]])


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point["combine"])
def test_a_point_is_trained_as_the_federation_trains_it(folder, graph, point):
    # Prepare: the same weights at the start; beside the point another one, which must not disturb it.
    settings = make_settings({**COMMON, **point}, where="test")
    other = settings.model_copy(update={"learning_rate": 1.0, "joint_learning_rate": 1e6})
    jobs = [job_of(settings, point["combine"]), job_of(other, point["combine"], 1)]
    parties = build(partition(graph.x, graph.edge_index, holders=2, seed=SEED), split_labels(graph), settings, seed=5)
    training = batch(folder, jobs, "federated")
    gnns = [holder.gnn for holder in parties.holders]
    found = pairs(training, 0, gnns, parties.parties["server"].network, parties.label_holder.output)
    put(found)
    training.first.weights[0][:, 0] = first_weights(parties)
    # Execute.
    outcome = parties.train()
    for _ in range(EPOCHS):
        training.step()
    # Assert: all weights, then the accuracy that they reach.
    assert largest_difference(found) < CLOSE
    assert float((joint_weights(parties) - training.first.weights[0][:, 0]).abs().max()) < CLOSE
    training.step()
    assert training.curves()[0].accuracies[-1] == pytest.approx(outcome.val_accuracy)


@pytest.mark.parametrize("point", CENTRAL, ids=lambda point: point["initial_embedding"])
def test_a_point_is_trained_as_one_table_is(folder, graph, point):
    # Prepare: a batch in which the other point's first weights go the other way.
    settings = make_settings({**COMMON, **point}, where="test")
    other = "individual" if point["initial_embedding"] == "collaborative" else "collaborative"
    jobs = [job_of(settings, "pooled"), job_of(settings.model_copy(update={"initial_embedding": other}), "pooled", 1)]
    whole = Holding(x=graph.x.double(), edge_index=graph.edge_index)
    central = CentralTraining(whole, split_labels(graph), settings, seed=insecure_seed(5))
    training, model = batch(folder, jobs, "pooled"), central.model
    found = pairs(training, 0, [model.gnn], model.network, model.output)
    put(found)
    training.first.weights[0][:, 0] = model.features.weight.detach()
    # Execute: the last evaluation leaves the weights as they are.
    outcome = central.train()
    for _ in range(EPOCHS):
        training.step()
    # Assert.
    assert largest_difference(found) < CLOSE
    assert float((model.features.weight.detach() - training.first.weights[0][:, 0]).abs().max()) < CLOSE
    training.step()
    assert training.curves()[0].accuracies[-1] == pytest.approx(outcome.val_accuracy)


@pytest.mark.parametrize("patience", [None, 1, 3, 5])
def test_the_epoch_is_chosen_as_in_training(patience):
    accuracies = [0.9, 0.2, 0.5, 0.5, 0.4, 0.3, 0.2, 0.7, 0.1]
    choice = EpochChoice(patience=patience)
    for epoch, reached in enumerate(accuracies[1:], start=1):
        choice.hear(epoch, Evaluation(reached, reached))
        if choice.lost_patience(epoch):
            break
    found = Curve(None, tuple(accuracies), 1.0).best(patience)
    assert found == (choice.best_accuracy, choice.best_epoch)


def test_a_search_that_was_stopped_goes_on_and_judges_the_best_once_more(folder):
    settings = make_settings({**COMMON, "epochs": 3}, where="test")
    jobs = [
        job_of(settings.model_copy(update={"learning_rate": rate}), "mean", i) for i, rate in enumerate((0.1, 0.01))
    ]
    out, trained = folder / "results.jsonl", []
    how = {"on_group": lambda found, _: trained.extend(curve.job.point for curve in found)}
    train_all(jobs[:1], folder, out, torch.device("cpu"), **how)
    with out.open("a") as file:
        file.write('{"job": {"data')  # as a process leaves it that is killed
    out.write_text(out.read_text() + "\n")
    train_all(jobs, folder, out, torch.device("cpu"), **how)
    assert trained == [0, 1]
    last = Finals((SEED,), (SEED + 1,), 1, None).jobs(out)
    assert [job.seed for job in last] == [SEED + 1]
    train_all(last, folder, out, torch.device("cpu"), **how)
    (points,) = by_point(read_results(out, None)).values()
    assert ranked(points)[0] == last[0].point  # judged on more partitions than any other
    assert len(points[last[0].point]) == 2


def test_what_a_search_sees_has_no_test_label(graph):
    arrays, labels = arrays_of(graph, SEED), split_labels(graph)
    known = set(arrays["train"].tolist()) | set(arrays["val"].tolist())
    assert not known & set(labels.test.tolist())
    assert {len(arrays["y_train"]), len(arrays["y_val"])} == {len(labels.train), len(labels.val)}
    assert not [name for name in arrays if "test" in name or name == "y"]


def test_rows_have_equal_budgets():
    wanted = Wanted("paper", ("cora",), ("undirected", "directed"), 200)
    counts = {(job.reading, job.row): set() for job in wanted.jobs}
    for job in wanted.jobs:
        counts[job.reading, job.row].add(job.point)
    assert {len(points) for points in counts.values()} == {200}


def test_the_batch_needs_numpy_and_torch_alone():
    foreign = ("pydantic", "msgspec", "numba", "typer", "rich", "scipy", "sklearn", "cryptography", "torch_geometric")
    code = f"import sys; sys.modules.update(dict.fromkeys({foreign!r})); import vfgnn.experiments.batched.main"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_points_of_one_shape_only_are_one_computation(folder):
    settings = make_settings(COMMON, where="test")
    assert job_of(settings, "mean").shape == job_of(settings, "concat").shape
    assert job_of(settings, "mean").shape != job_of(settings, "pooled").shape
    assert job_of(settings, "mean").shape != job_of(settings.model_copy(update={"dim": 16}), "mean").shape
