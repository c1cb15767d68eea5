"""Figures of a run as SVG, to be drawn into a page.

matplotlib escapes the texts of a figure. A figure has no style of its own: the page's policy would not let it count.
"""

import io
import re
import warnings
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from vfgnn.message_log import Entry
from vfgnn.report.html import Html
from vfgnn.report.run.records import Epoch
from vfgnn.shown import shown

if TYPE_CHECKING:  # what looks at tables needs torch
    from vfgnn.data.profile import Histogram

plt.switch_backend("Agg")
plt.rcParams["svg.fonttype"] = "none"  # text stays text: it scales, and can be found in the page
plt.rcParams["text.parse_math"] = False  # a name with dollars is a name
plt.rcParams["svg.hashsalt"] = "vfgnn"  # the same figure is the same text
LINES = 'stroke-linejoin="round" stroke-linecap="butt"'  # what matplotlib says in the style that is left out
DRAWN = 1e30  # a loss from here on, and one that is no number, leaves a gap
BLUE, ORANGE, GREY = "#2b6cb0", "#dd6b20", "#a0aec0"
PARTS = {"setup": GREY, "offline": BLUE, "online": ORANGE}  # of a sealed training's traffic
DRAWN_POINTS, MOST_STEPS = 200, 12  # of a line, and that are named
WORD = 28  # characters of a word beside its bar


def size(count: float) -> str:
    """Bytes for people."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count:.0f} B"


def svg(figure: Figure, name: str) -> Html:
    """As part of a page: no size of its own, and names of parts that no other figure of the page has."""
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.S)
    text = re.sub(r' style="([^"]*)"', _attributes, text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    own_size = r'(<svg[^>]*?) width="[^"]*" height="[^"]*"|(<svg[^>]*?) height="[^"]*"'
    return Html(re.sub(own_size, rf"\1\2 {LINES}", text, count=1))


def _attributes(style: re.Match[str]) -> str:
    """The same as presentation attributes, which need no style."""
    pairs = (part.partition(":") for part in style[1].split(";") if part.strip())
    return "".join(f' {key.strip()}="{value.strip()}"' for key, _, value in pairs)


def curves(metrics: Sequence[Epoch]) -> Html:
    """Loss and validation accuracy over the epochs; label holder only."""
    figure, loss_axis = plt.subplots(figsize=(8, 3))
    axis = loss_axis.twinx()
    for drawn, points, colour, label in (
        (loss_axis, [(one.epoch, one.loss) for one in metrics], ORANGE, "training loss"),
        (axis, [(one.epoch, one.val_accuracy) for one in metrics], BLUE, "validation accuracy"),
    ):
        known = [(at, value) for at, value in points if value is not None and abs(value) < DRAWN]
        drawn.plot([at for at, _ in known], [value for _, value in known], color=colour, label=label)
        drawn.set_ylabel(label, color=colour)
        drawn.spines[["top"]].set_visible(False)
    loss_axis.set_xlabel("epoch")
    loss_axis.set_ylim(bottom=0)
    axis.set_ylim(0, 1)
    return svg(figure, "curves")


def links(sizes: Mapping[str, float]) -> Html:
    """Payload of each link."""
    ordered = sorted(sizes.items(), key=lambda item: item[1])
    figure, axis = plt.subplots(figsize=(8, 0.6 + 0.32 * max(1, len(ordered))))
    bars = axis.barh([name for name, _ in ordered], [count / 1e6 for _, count in ordered], color=BLUE, height=0.6)
    axis.bar_label(bars, [size(count) for _, count in ordered], padding=4, fontsize=8)
    axis.set_xlabel("MB sent in the whole run")
    axis.margins(x=0.12)
    axis.spines[["top", "right"]].set_visible(False)
    return svg(figure, "links")


def timeline(entries: Sequence[tuple[str, Entry]]) -> Html:
    """The messages of one step: a lane for each party, filled marks sent, hollow ones received."""
    parties = list(dict.fromkeys(party for party, _ in entries))
    begin = min(entry.at for _, entry in entries)
    figure, axis = plt.subplots(figsize=(8, 0.9 + 0.55 * len(parties)))
    for party, entry in entries:
        lane, sent = parties.index(party), entry.sender == party
        area = 12 + 60 * min(1.0, entry.bytes / 1e7)
        axis.scatter(
            (entry.at - begin) * 1e3, lane + (0.14 if sent else -0.14), s=area,
            facecolors=BLUE if sent else "white", edgecolors=BLUE if sent else ORANGE, linewidths=1.2,
        )  # fmt: skip
    axis.set_yticks(range(len(parties)), parties)
    axis.set_ylim(-0.6, len(parties) - 0.4)
    axis.set_xlabel("ms since the step's first message (blue: sent, orange: received; size: bytes)")
    axis.grid(axis="x", color=GREY, alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    return svg(figure, "timeline")


def parts_of_links(sizes: Mapping[str, Mapping[str, float]]) -> Html:
    """Payload of each link, in the colours of setup, offline and online."""
    ordered = sorted(sizes.items(), key=lambda item: sum(item[1].values()))
    figure, axis = plt.subplots(figsize=(8, 0.9 + 0.32 * max(1, len(ordered))))
    names, begin = [name for name, _ in ordered], [0.0] * len(ordered)
    for part, colour in PARTS.items():
        counts = [found.get(part, 0.0) / 1e6 for _, found in ordered]
        bars = axis.barh(names, counts, left=begin, color=colour, height=0.6, label=part)
        begin = [low + count for low, count in zip(begin, counts, strict=True)]
    axis.bar_label(bars, [size(1e6 * count) for count in begin], padding=4, fontsize=8)
    axis.set_xlabel("MB sent in the whole run")
    axis.margins(x=0.12)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    axis.spines[["top", "right"]].set_visible(False)
    return svg(figure, "links")


def progress(sent: Mapping[str, Sequence[tuple[float, int]]], steps: Sequence[tuple[int, float]]) -> Html:
    """Bytes so far over seconds, for setup, offline and online; `steps`: when each began."""
    figure, axis = plt.subplots(figsize=(8, 3))
    end = max(at for points in sent.values() for at, _ in [(0.0, 0), *points])
    for part, colour in PARTS.items():
        points = sent.get(part, ())
        at, so_far = [one for one, _ in points], list(accumulate(count / 1e6 for _, count in points))
        places = [end * i / DRAWN_POINTS for i in range(DRAWN_POINTS + 1)]
        reached = [bisect_right(at, place) for place in places]
        axis.plot(places, [so_far[n - 1] if n else 0.0 for n in reached], color=colour, label=part)
    for number, began in [one for i, one in enumerate(steps) if i % (1 + len(steps) // MOST_STEPS) == 0]:
        axis.axvline(began, color=GREY, ls=":", lw=1)
        axis.text(began, 1.02, f"step {number}", transform=axis.get_xaxis_transform(), fontsize=8, ha="center")
    axis.set_xlabel("seconds since the first message")
    axis.set_ylabel("MB sent so far")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, fontsize=8, loc="upper left")
    axis.spines[["top", "right"]].set_visible(False)
    return svg(figure, "progress")


def histogram(of: "Histogram", name: str, title: str) -> Html:
    """How the values of a column are spread: rows for each range of numbers, or for each word."""
    if of.words:
        figure, axis = plt.subplots(figsize=(6, 0.7 + 0.28 * len(of.words)))
        axis.barh(range(len(of.words)), of.counts, color=BLUE, height=0.7)
        axis.set_yticks(range(len(of.words)), [shown(word, most=WORD) for word in of.words])
        axis.invert_yaxis()
        axis.set_xlabel("rows")
    else:
        figure, axis = plt.subplots(figsize=(6, 2.2))
        axis.stairs(of.counts, of.edges, color=BLUE, fill=True)
        axis.set_xlabel(shown(title, most=2 * WORD))
        axis.set_ylabel("rows")
    axis.spines[["top", "right"]].set_visible(False)
    with warnings.catch_warnings():  # letters that matplotlib has no width of; the browser draws them
        warnings.filterwarnings("ignore", message="Glyph")
        return svg(figure, name)
