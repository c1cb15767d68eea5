"""ROC curves on axes in decades: what an attack gets where it may be wrong rarely (Carlini et al. 2022)."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from vfgnn.audit.result import AuditRow
from vfgnn.audit.statistics import Measured
from vfgnn.report.charts import BLUE, GREY, ORANGE, svg
from vfgnn.report.html import Html

COLOURS = (BLUE, ORANGE, "#2c7a7b", "#b83280", "#805ad5", "#718096")
MOST = 6  # curves in one figure
LEAST = 1e-3  # of both rates: what is below is drawn there


def draw(rows: Sequence[AuditRow]) -> Figure | None:
    """The curves of an attack, and of its best baseline dashed; None: it is no ranking."""
    ranked = [row for row in rows if row.finding is not None and row.finding.measured.attack.roc]
    if not ranked:
        return None
    figure, axis = plt.subplots(figsize=(8, 3.6))
    ranked.sort(key=lambda row: -(row.excess or 0.0))
    for row, colour in zip(ranked[:MOST], COLOURS, strict=False):
        if row.finding is None:
            continue
        measured = row.finding.measured
        name, best = measured.best
        who = f"{row.protocol}, {row.party}, about {row.finding.about}"
        axis.step(*_points(measured.attack), where="post", color=colour, label=who)
        axis.step(*_points(best), where="post", color=colour, ls="--", lw=1, label=f"its baseline: {name}")
    axis.plot([LEAST, 1], [LEAST, 1], color=GREY, ls=":", lw=1, label="guessing")
    axis.set(xscale="log", yscale="log", xlim=(LEAST, 1), ylim=(LEAST, 1.05))
    for one in (axis.xaxis, axis.yaxis):
        one.set_major_formatter("{x:g}")
    axis.set_xlabel("false positive rate")
    axis.set_ylabel("true positive rate")
    axis.grid(color=GREY, alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def svg_of(figure: Figure, name: str) -> Html:
    """For the page."""
    return svg(figure, name)


def _points(one: Measured) -> tuple[list[float], list[float]]:
    points = one.roc or ()
    return [max(false, LEAST) for false, _ in points], [max(true, LEAST) for _, true in points]
