"""Pictures of benchmarks, and of a reproduction: ours filled, with deviations; the paper's hollow; no open rows.

Each drawing is a figure, for a page to take in or for `save` to write to a file.
"""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vfgnn.bench.scale import ScaleBenchmark
from vfgnn.bench.serve import ServeBenchmark
from vfgnn.experiments.baseline import Timing
from vfgnn.experiments.catalogue import BEST
from vfgnn.experiments.claims import NAMES
from vfgnn.experiments.privacy import Noise
from vfgnn.experiments.tables import TableRow, show_proportion
from vfgnn.report.charts import BLUE, ORANGE
from vfgnn.writing import write_whole

OURS, THEIRS, INK = BLUE, "#c9ced6", "#5a6678"
MODELS = {"VFGNN_C": ORANGE, "VFGNN_M": "#2c7a7b", "VFGNN_R": "#b83280", BEST: OURS}
DATASETS = {"cora": OURS, "citeseer": ORANGE, "pubmed": "#2c7a7b", "arxiv": INK, "arxiv_text": INK}


def save(figure: Figure, path: Path) -> None:
    """As PNG or SVG, by its name; PNG if the name does not tell."""
    path = path if path.suffix else path.with_name(f"{path.name}.png")
    kind = path.suffix.removeprefix(".")
    metadata = {"Date": None, "Creator": None} if kind == "svg" else None
    write_whole(
        path,
        lambda temporary: figure.savefig(temporary, format=kind, dpi=150, bbox_inches="tight", metadata=metadata),
        for_others=True,
    )
    plt.close(figure)


def compare_figure(rows: Sequence[TableRow], path: Path) -> None:
    """Table 2, to a file."""
    save(draw_compare(rows), path)


def privacy_figure(rows: Sequence[TableRow], path: Path) -> None:
    """Table 5, to a file."""
    save(draw_privacy(rows), path)


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
    save(figure, path)


def serve_figure(result: ServeBenchmark, path: Path) -> None:
    """Half of the answers, and all but a hundredth, within so many milliseconds; a bare web server's beside them."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.4), sharey=True)
    places = np.arange(len(result.served))
    for axis, name, label in ((axes[0], "p50_ms", "p50"), (axes[1], "p99_ms", "p99")):
        for loads, side, colour, who in (
            (result.served, -0.2, OURS, "vfgnn serve"),
            (result.floor, 0.2, THEIRS, "the same web server, a fixed answer"),
        ):
            values = [getattr(load, name) for load in loads]
            drawn = axis.bar(places + side, values, 0.38, color=colour, label=who)
            axis.bar_label(drawn, [f"{value:,.3g}" for value in values], padding=2, fontsize=8)
        axis.set_xticks(places, [f"{load.at_a_time:,}" for load in result.served])
        axis.set(yscale="log", xlabel="callers at a time", title=label)
        axis.yaxis.set_major_formatter("{x:,g}")
        axis.margins(y=0.15)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("milliseconds, log scale")
    figure.tight_layout()
    _legend(figure, axes[0])
    save(figure, path)


def draw_compare(rows: Sequence[TableRow]) -> Figure:
    """Accuracy of each model, one panel per data set; both readings of how edges are split, if there are two."""
    models = list(dict.fromkeys(row.model for row in rows))
    looks = {"undirected": (OURS, 0.0), "directed": (ORANGE, 0.22)}
    both = len({row.edge_split for row in rows}) > 1
    figure, panels = _panels(rows, models)
    for dataset, axis in panels.items():
        mine = [row for row in rows if row.dataset == dataset]
        printed = {models.index(row.model): row.paper for row in mine if row.paper is not None}
        axis.plot(list(printed.values()), list(printed), "D", mfc="white", mec=INK, ms=6, label="paper")
        for reading, (colour, shift) in looks.items():
            under = [row for row in mine if row.edge_split == reading]
            places = [models.index(row.model) + shift for row in under]
            if under:
                _draw(axis, places, under, "o", colour, f"ours, edges {reading}" if both else "ours", across=True)
        if all(row.mean is None for row in mine):
            axis.set_title(f"{NAMES.get(dataset, dataset)} (open)", fontsize=10, color=INK)
    _legend(figure, next(iter(panels.values())))
    return figure


def draw_aggregators(rows: Sequence[TableRow]) -> Figure:
    """Accuracy of each aggregator, with the paper's head and without a hidden layer, one panel per data set."""
    gnns = list(dict.fromkeys(row.variation.gnn for row in rows if row.variation.gnn is not None))
    figure, panels = _panels(rows, gnns)
    looks = {"paper": (ORANGE, "preset paper: one hidden layer"), "best": (OURS, "preset best: no hidden layer")}
    for dataset, axis in panels.items():
        for preset, (colour, label) in looks.items():
            points = {
                float(gnns.index(gnn)): row
                for row in rows
                if (row.dataset, row.preset) == (dataset, preset) and (gnn := row.variation.gnn) is not None
            }
            _draw(axis, list(points), list(points.values()), "o", colour, label, across=True)
    _legend(figure, next(iter(panels.values())))
    return figure


def draw_holders(rows: Sequence[TableRow]) -> Figure:
    """Accuracy by the number of holders."""
    counts = sorted({row.holders for row in rows})
    figure, axis = _frame("holders (Cora, even shares)", [str(count) for count in counts])
    _models(axis, rows, [float(counts.index(row.holders)) for row in rows])
    return figure


def draw_proportions(rows: Sequence[TableRow]) -> Figure:
    """Accuracy by the shares of columns and edges; rows of Table 2 give the even ones."""
    proportions = sorted({row.proportion for row in rows}, reverse=True)
    ticks = [show_proportion(proportion) for proportion in proportions]
    figure, axis = _frame("shares of columns and edges (Cora, 2 holders)", ticks)
    _models(axis, rows, [float(proportions.index(row.proportion)) for row in rows])
    return figure


def draw_refreshes(rows: Sequence[TableRow]) -> Figure:
    """Accuracy against the epochs that the joint layer is trained for; dotted: individual initial embeddings."""
    counts = sorted({epochs for row in rows if (epochs := row.variation.joint_layer_epochs) is not None})
    ticks = [*(str(count) for count in counts), "all"]
    figure, axis = _frame("joint_layer_epochs (preset best, 2 holders; dotted: individual initial embeddings)", ticks)
    for dataset in dict.fromkeys(row.dataset for row in rows):
        mine = [row for row in rows if row.dataset == dataset and row.preset == "best"]
        colour, label = DATASETS.get(dataset, INK), NAMES.get(dataset, dataset)
        frozen = [(epochs, row) for row in mine if (epochs := row.variation.joint_layer_epochs) is not None]
        points = {float(counts.index(epochs)): row for epochs, row in frozen}
        points |= {float(len(counts)): row for row in mine if row.variation.initial_embedding == "collaborative"}
        _draw(axis, list(points), list(points.values()), "o-", colour, label)
        for row in mine:
            if row.variation.initial_embedding == "individual" and row.mean is not None:
                axis.axhline(row.mean, color=colour, ls=":", lw=1.2, zorder=0)
    _outside(axis)
    return figure


def draw_times(timings: Sequence[Timing]) -> Figure:
    """Seconds per epoch on a log scale, the paper's beside ours."""
    times = {f"{one.model}, publish {one.publish}": one.seconds for one in timings}
    printed = {f"{one.model}, in the paper": one.paper for one in timings if one.paper is not None}
    names, both = sorted([*times, *printed], reverse=True), {**times, **printed}
    figure, axis = plt.subplots(figsize=(7.8, 0.8 + 0.36 * len(names)))
    colours = [THEIRS if name in printed else OURS for name in names]
    drawn = axis.barh(names, [both[name] for name in names], color=colours)
    labels = [f"{both[name]:g} s" if name in printed else f"{both[name]:.3g} s" for name in names]
    axis.bar_label(drawn, labels, padding=4, fontsize=9)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_xlim(min(both.values()) / 4, max(both.values()) * 4)
    axis.set_xlabel("seconds per epoch, log scale")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_privacy(rows: Sequence[TableRow]) -> Figure:
    """Accuracy against the TOTAL epsilon of a run: noise on every release of a row, and noise on the inputs, once."""
    lines = {
        Noise.GAUSSIAN: ("noise on rows, Gaussian", OURS, "o-"),
        Noise.JAMES_STEIN: ("noise on rows, James-Stein", "#63b3ed", "o--"),
        Noise.AVERAGED: ("noise on rows, averaged by the server", "#2c7a7b", "o-"),
        Noise.EDGES: ("noised edges, once", ORANGE, "s-"),
        Noise.LABELS: ("noised labels, once", "#b83280", "s-"),
        Noise.EDGES_AND_LABELS: ("both, once", "#744210", "s-"),
    }
    rows = [row for row in rows if row.edge_split == "undirected"]
    figure, axis = plt.subplots(figsize=(9.6, 4.2))
    for noise, (label, colour, style) in lines.items():
        mine = [row for row in rows if row.model == noise and row.epsilon_total is not None]
        _draw(axis, [row.epsilon_total or 0.0 for row in mine], mine, style, colour, label)
    for row in rows:
        if row.epsilon is None and row.mean is not None:  # no noise
            axis.axhline(row.mean, color=THEIRS, zorder=0)
            axis.text(16, row.mean + 0.008, "no noise, combined by mean", color=INK, fontsize=8)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.set_xlabel("total epsilon of a run (rows: at delta 1e-4; a row, an edge and a label are different units)")
    axis.set_ylabel("test accuracy, Cora, 2 holders")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


def _draw(
    axis: Axes,
    places: Sequence[float],
    rows: Sequence[TableRow],
    style: str,
    colour: str,
    label: str,
    *,
    across: bool = False,
) -> None:
    """Means with deviations; `across`: accuracy on the horizontal axis."""
    known = [(place, row.mean, row.std or 0.0) for place, row in zip(places, rows, strict=True) if row.mean is not None]
    at, means, spread = [one[0] for one in known], [one[1] for one in known], [one[2] for one in known]
    if across:
        axis.errorbar(means, at, xerr=spread, fmt=style, color=colour, label=label, ms=5, capsize=2.5)
    else:
        axis.errorbar(at, means, yerr=spread, fmt=style, color=colour, label=label, ms=5, capsize=2.5)


def _panels(rows: Sequence[TableRow], models: Sequence[str]) -> tuple[Figure, dict[str, Axes]]:
    """One per data set, models from top to bottom."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    size = (1.6 + 2.1 * len(datasets), 0.9 + 0.3 * len(models))
    figure, axes = plt.subplots(1, len(datasets), figsize=size, sharey=True, squeeze=False)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        axis.set_title(NAMES.get(dataset, dataset), fontsize=10)
        axis.set_yticks(range(len(models)), models)
        axis.set_ylim(len(models) - 0.5, -0.5)
        axis.set_xlabel("test accuracy", fontsize=9)
        axis.grid(color=THEIRS, alpha=0.5)
        axis.margins(x=0.12)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure, dict(zip(datasets, axes[0], strict=True))


def _frame(label: str, ticks: Sequence[str]) -> tuple[Figure, Axes]:
    """Accuracy over a few named places."""
    figure, axis = plt.subplots(figsize=(8.4, 3.8))
    axis.set_xticks(range(len(ticks)), ticks)
    axis.set_xlabel(label)
    axis.set_ylabel("test accuracy")
    axis.grid(axis="y", color=THEIRS, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    return figure, axis


def _models(axis: Axes, rows: Sequence[TableRow], places: Sequence[float]) -> None:
    """A line per model, and the paper's dashed with hollow marks."""
    for model, colour in MODELS.items():
        mine = sorted((at, i) for i, at in enumerate(places) if rows[i].model == model)
        _draw(axis, [at for at, _ in mine], [rows[i] for _, i in mine], "o-", colour, model)
        if model != BEST:  # beside it would stand the best of the three once more
            printed = {at: accuracy for at, i in mine if (accuracy := rows[i].paper) is not None}
            x, y = list(printed), list(printed.values())
            axis.plot(x, y, "D--", color=colour, mfc="white", ms=5, lw=1)
    _outside(axis)


def _outside(axis: Axes) -> None:
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def _legend(figure: Figure, axis: Axes) -> None:
    """Below all panels."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3)
