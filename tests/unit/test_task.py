"""What is learnt, against figures worked out by hand."""

import math

import pytest
import torch
import torch.nn.functional as F

from vfgnn.model.task import NodeClassification
from vfgnn.settings import make_settings


def task(classes=2, *, noised=True, **settings):
    return NodeClassification(make_settings(settings, where="test"), classes, noised=noised)


def test_balanced_weights_make_classes_count_the_same():
    y = torch.tensor([0] * 8 + [1] * 2)
    assert task(class_weights="balanced").class_weights(y).tolist() == [10 / 16, 10 / 4]
    assert task().class_weights(y) is None


def test_a_class_without_training_rows_has_a_weight_of_no_consequence():
    weights = task(3, class_weights="balanced").class_weights(torch.tensor([0, 0, 1, 1]))
    assert weights.tolist() == [1, 1, 2]  # 4 rows in 2 classes; the third counts as if it had one row


def test_the_loss_is_the_cross_entropy_by_hand():
    """Logits log(p) of p = (1/4, 3/4): a row costs log 4 if its class is 0, and log 4/3 if it is 1."""
    logits, y = torch.tensor([[0.25, 0.75]]).log().expand(2, 2), torch.tensor([0, 1])
    even = (math.log(4) + math.log(4 / 3)) / 2
    assert float(task().loss(logits, y, weights=None)) == pytest.approx(even)
    weighted = (3 * math.log(4) + math.log(4 / 3)) / 4
    assert float(task().loss(logits, y, weights=torch.tensor([3.0, 1.0]))) == pytest.approx(weighted)


def test_loss_correction_fits_the_true_distribution():
    """Where the best fit of noised labels is sought, the corrected loss finds the true class probabilities."""
    classes, truth = 3, torch.tensor([0.7, 0.2, 0.1])
    privacy = {"label_epsilon": math.log(3), "label_correction": True}
    keeps = 0.6  # e^epsilon / (e^epsilon + classes - 1)
    mixed = keeps * truth + (1 - keeps) / (classes - 1) * (1 - truth)
    y = torch.repeat_interleave(torch.arange(classes), (mixed * 1000).round().long())
    corrected, logits = task(classes, privacy=privacy), torch.zeros(classes, requires_grad=True)
    optimiser = torch.optim.Adam([logits], lr=0.05)
    for _ in range(400):
        optimiser.zero_grad()
        corrected.loss(logits.expand(len(y), classes), y, weights=None).backward()
        optimiser.step()
    # mixed * 1000 rounded: an error of 0.0005 in a class, times 1 / (keeps - 0.2) = 2.5; the rest is the optimiser's
    assert torch.allclose(logits.softmax(0), truth, atol=0.02)


@pytest.mark.parametrize(
    ("noised", "privacy"),
    [
        (False, {"label_epsilon": 1.0, "label_correction": True}),  # the pooled model's labels are the true ones
        (True, {"label_epsilon": 1.0}),
        (True, {}),
    ],
)
def test_the_loss_is_corrected_only_where_labels_are_noised_and_the_settings_say_so(noised, privacy):
    logits, y = torch.tensor([[1.0, -1.0], [0.5, 2.0]]), torch.tensor([1, 1])
    loss = task(noised=noised, privacy=privacy).loss(logits, y, weights=None)
    assert torch.equal(loss, F.cross_entropy(logits, y))


def test_an_evaluation_is_by_the_chosen_metric_and_by_accuracy_where_that_is_not_defined():
    logits = torch.tensor([[0.0, 3.0], [0.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
    found = task(select_by="auc").evaluate(logits, torch.tensor([1, 1, 0, 0]))
    assert (found.score, found.accuracy) == (1.0, 0.75)  # in the right order, one on the wrong side
    alone = task(select_by="auc").evaluate(logits, torch.tensor([1, 1, 1, 1]))  # one class: there is no AUC
    assert (alone.score, alone.accuracy) == (0.75, 0.75)


def test_predictions_are_the_likeliest_classes():
    likely = torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]], dtype=torch.float64)
    assert torch.allclose(task(3).probabilities(likely.log()), likely)
    assert task(3).probabilities(likely.float().log()).dtype == torch.float64
    assert task(3).predictions(likely.log()).tolist() == [1, 0]
