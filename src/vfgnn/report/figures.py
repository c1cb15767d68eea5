"""Pictures of results."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from vfgnn.experiments.tables import TableRow

OURS, THEIRS = "#2b6cb0", "#c9ced6"


def compare_figure(rows: Sequence[TableRow], path: Path) -> None:
    """Accuracy of each model, ours with deviation beside the paper's, one panel per data set."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    figure, axes = plt.subplots(1, len(datasets), figsize=(4.6 * len(datasets), 3.6), sharey=True, squeeze=False)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        mine = [row for row in rows if row.dataset == dataset]
        place = np.arange(len(mine))
        axis.bar(place - 0.2, [row.mean for row in mine], 0.4, yerr=[row.std for row in mine], color=OURS, label="ours")
        axis.bar(place + 0.2, [row.paper or 0 for row in mine], 0.4, color=THEIRS, label="paper")
        axis.set_xticks(place, [row.model for row in mine], rotation=35, ha="right", fontsize=8)
        axis.set_title(dataset)
        axis.set_ylim(0.4, 0.9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("test accuracy")
    axes[0][-1].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
