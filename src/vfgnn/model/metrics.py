"""How good predictions are: accuracy, and what counts where one class is rare.

Runs at the label holder, on its own labels; nothing leaves. With two classes the last one (the larger in the order of
the classes: 1, true, yes) is the one that is looked for; with more, scores are means over the classes that occur.
"""

import math
from typing import Literal

import torch
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

Metric = Literal["accuracy", "f1", "auc", "average_precision"]
METRICS: tuple[Metric, ...] = ("accuracy", "f1", "auc", "average_precision")


def probabilities(logits: torch.Tensor) -> torch.Tensor:
    """Of each class, in float64 [rows, classes]."""
    return logits.detach().double().softmax(dim=1)


def predictions(logits: torch.Tensor) -> torch.Tensor:
    """The class with the largest logit [rows]."""
    return logits.argmax(dim=1)


def accuracy(logits: torch.Tensor, y: torch.Tensor) -> float:
    """The share of rows whose largest logit is that of their class."""
    return float((predictions(logits) == y).double().mean())


def score(logits: torch.Tensor, y: torch.Tensor, metric: Metric) -> float:
    """One figure; NaN where it is not defined because only one class occurs."""
    if metric == "accuracy":
        return accuracy(logits, y)
    truth, classes = y.cpu().numpy(), logits.shape[1]
    if metric == "f1":
        predicted = predictions(logits).cpu().numpy()
        if classes == 2:
            return float(f1_score(truth, predicted, zero_division=0.0))
        return float(f1_score(truth, predicted, average="macro", zero_division=0.0))
    likely = probabilities(logits).cpu().numpy()
    measure = roc_auc_score if metric == "auc" else average_precision_score
    looked_for = [1] if classes == 2 else sorted(set(truth.tolist()))
    found = [
        float(measure(truth == one, likely[:, one])) for one in looked_for if 0 < int((truth == one).sum()) < len(truth)
    ]
    return sum(found) / len(found) if found else float("nan")


def scores(logits: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
    """All that are defined, by name."""
    found = {metric: score(logits, y, metric) for metric in METRICS}
    return {str(metric): value for metric, value in found.items() if not math.isnan(value)}
