"""Scores of predictions, against figures worked out by hand."""

import pytest
import torch

from vfgnn.model.metrics import accuracy, score, scores


def logits_of(likely):
    """Two classes with these probabilities of the second one."""
    likely = torch.tensor(likely)
    return torch.stack([torch.log1p(-likely), likely.log()], dim=1)


def test_two_classes():
    found = scores(logits_of([0.9, 0.8, 0.7, 0.2, 0.1]), torch.tensor([1, 0, 1, 0, 0]))
    assert found["accuracy"] == pytest.approx(0.8)
    assert found["f1"] == pytest.approx(0.8)  # precision 2/3, recall 1
    assert found["auc"] == pytest.approx(5 / 6)  # of six pairs one is the wrong way round
    assert found["average_precision"] == pytest.approx((1 + 2 / 3) / 2)


def test_several_classes_are_averaged():
    logits = torch.eye(3)[torch.tensor([0, 1, 2, 0])] * 5
    y = torch.tensor([0, 1, 2, 1])
    assert accuracy(logits, y) == 0.75
    assert score(logits, y, "f1") == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert 0.5 < score(logits, y, "auc") <= 1


def test_what_is_not_defined_is_left_out():
    assert set(scores(logits_of([0.9, 0.2]), torch.tensor([0, 0]))) == {"accuracy", "f1"}
