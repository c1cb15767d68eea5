"""Pictures of results."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from vfgnn.bench.scale import ScaleBenchmark
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


def privacy_figure(rows: Sequence[TableRow], path: Path) -> None:
    """Accuracy against the TOTAL epsilon of a run: noise on every release of a row, and noise on the inputs, once."""
    lines = {
        ("privacy", "Gaussian"): ("noise on rows, Gaussian", "#2b6cb0", "o-"),
        ("privacy", "James-Stein"): ("noise on rows, James-Stein", "#63b3ed", "o--"),
        ("privacy variants", "server averages releases"): ("noise on rows, averaged by the server", "#2c7a7b", "o-"),
        ("privacy of inputs", "edges"): ("noised edges, once", "#dd6b20", "s-"),
        ("privacy of inputs", "labels"): ("noised labels, once", "#b83280", "s-"),
        ("privacy of inputs", "edges and labels"): ("both, once", "#744210", "s-"),
    }
    figure, axis = plt.subplots(figsize=(7.2, 4.2))
    for (table, model), (label, colour, style) in lines.items():
        found = [row for row in rows if (row.table, row.model) == (table, model) and row.epsilon_total is not None]
        totals = [row.epsilon_total or 0.0 for row in found]
        means, deviations = [row.mean for row in found], [row.std for row in found]
        axis.errorbar(totals, means, yerr=deviations, fmt=style, color=colour, label=label, ms=4, capsize=2)
    for row in rows:
        if row.model == "no noise":
            axis.axhline(row.mean, color=THEIRS, zorder=0)
            axis.text(16, row.mean + 0.008, "no noise, combined by mean", color="#5a6678", fontsize=8)
    axis.set_xscale("log")
    axis.set_xlabel("total epsilon of a run (rows: at delta 1e-4; a row, an edge and a label are different units)")
    axis.set_ylabel("test accuracy, Cora, 2 holders")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def scale_figure(result: ScaleBenchmark, path: Path) -> None:
    """Seconds and memory of an epoch against nodes + edges, both axes logarithmic, beside a line of slope 1."""
    size = np.array([point.nodes + point.edges for point in result.points])
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.6))
    seconds = {"one epoch": [point.epoch_s for point in result.points]}
    memory = {
        name: [point.peak_bytes[name] / 2**30 for point in result.points] for name in result.points[-1].peak_bytes
    }
    for axis, lines, label in ((axes[0], seconds, "seconds"), (axes[1], memory, "peak memory, GiB")):
        for name, values in lines.items():
            axis.plot(size, values, "o-", ms=4, label=name)
        last = max(values[-1] for values in lines.values())
        axis.plot(size, last * size / size[-1], "--", color=THEIRS, zorder=0, label="linear")
        axis.set(xscale="log", yscale="log", xlabel="nodes + edges", ylabel=label)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
