"""The sealed protocol beside the paper's own, each holder alone and pooled data: tables and a picture."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from vfgnn.experiments.claims import NAMES
from vfgnn.experiments.sealed import Compared, SealedRow
from vfgnn.report.charts import BLUE, ORANGE
from vfgnn.report.figures import INK, THEIRS, save
from vfgnn.report.grid import Grid

LOOKS: dict[Compared, tuple[str, str]] = {
    "sealed": (BLUE, "sealed"),
    "split": (ORANGE, "split: the paper's protocol, preset best"),
    "isolated": (INK, "each holder alone"),
}
HEADINGS = ("holders", "sealed", "split (preset best)", "alone (mean)", "paper, VFGNN")


def sealed_grids(rows: Sequence[SealedRow]) -> list[Grid]:
    """A table for each data set, and one of other draws of training nodes."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    grids = [_of_dataset(dataset, [row for row in rows if row.dataset == dataset]) for dataset in datasets]
    drawn = [row for row in rows if row.split == "draws"]
    if drawn:
        cells = tuple((NAMES.get(row.dataset, row.dataset), row.protocol, _shown(row)) for row in drawn)
        draws = f"{drawn[0].n} other draws of 20 training nodes a class, 2 holders"
        grids.append(Grid(draws, ("", "protocol", "accuracy"), cells, 2))
    return grids


def _of_dataset(dataset: str, rows: Sequence[SealedRow]) -> Grid:
    found = {(row.protocol, row.holders): row for row in rows if row.split == "public"}
    counts = sorted({row.holders for row in found.values() if row.protocol != "pooled"})
    pooled = found.get(("pooled", 1))
    cells = []
    for count in counts:
        ours = [found.get((protocol, count)) for protocol in LOOKS]
        printed = next((row.paper for row in ours if row is not None and row.paper is not None), None)
        cells.append((str(count), *(_shown(row) for row in ours), _figure(printed)))
    seeds = max((row.n for row in found.values()), default=0)
    title = f"{NAMES.get(dataset, dataset)}, {seeds} seeds"
    if pooled is not None:
        title += f"; pooled {_shown(pooled)}, the paper's {_figure(pooled.paper)}"
    return Grid(title, HEADINGS, tuple(cells))


def _shown(row: SealedRow | None) -> str:
    if row is None:
        return "-"
    return f"{row.mean:.3f}" if row.n == 1 else f"{row.mean:.3f} ± {row.std:.3f}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def sealed_figure(rows: Sequence[SealedRow], path: Path) -> None:
    """Accuracy by the number of holders, one panel per data set; lines across: pooled, ours and the paper's."""
    public = [row for row in rows if row.split == "public"]
    datasets = list(dict.fromkeys(row.dataset for row in public))
    figure, axes = plt.subplots(1, len(datasets), figsize=(1.0 + 3.0 * len(datasets), 3.6), squeeze=False)
    for dataset, axis in zip(datasets, axes[0], strict=True):
        _draw_panel(axis, [row for row in public if row.dataset == dataset])
        axis.set_title(NAMES.get(dataset, dataset), fontsize=10)
    axes[0][0].set_ylabel("test accuracy")
    figure.tight_layout()
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3)
    save(figure, path)


def _draw_panel(axis: Axes, rows: Sequence[SealedRow]) -> None:
    counts = sorted({row.holders for row in rows if row.protocol != "pooled"})
    for protocol, (colour, label) in LOOKS.items():
        mine = sorted((row for row in rows if row.protocol == protocol), key=lambda row: row.holders)
        places = [counts.index(row.holders) for row in mine]
        means, spread = [row.mean for row in mine], [row.std for row in mine]
        axis.errorbar(places, means, yerr=spread, fmt="o-", color=colour, label=label, ms=5, capsize=2.5)
    for row in (row for row in rows if row.protocol == "pooled"):
        axis.axhline(row.mean, color=BLUE, ls=":", lw=1.2, zorder=0, label="pooled, the sealed model in the clear")
        if row.paper is not None:
            axis.axhline(row.paper, color=INK, ls="--", lw=1, zorder=0, label="pooled, the paper's (insecure)")
    axis.set_xticks(range(len(counts)), [str(count) for count in counts])
    axis.set_xlabel("holders")
    axis.grid(axis="y", color=THEIRS, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)
