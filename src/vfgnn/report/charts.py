"""Figures of a run as SVG text, to be drawn into a page."""

import io
import re
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from vfgnn.message_log import Entry

plt.switch_backend("Agg")
plt.rcParams["svg.fonttype"] = "none"  # text stays text: it scales, and can be found in the page
plt.rcParams["svg.hashsalt"] = "vfgnn"  # the same figure is the same text
BLUE, ORANGE, GREY = "#2b6cb0", "#dd6b20", "#a0aec0"


def size(count: float) -> str:
    """Bytes for people."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count:.0f} B"


def svg(figure: Figure, name: str) -> str:
    """As part of a page: no size of its own, and names of parts that no other figure of the page has."""
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    return re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"|(<svg[^>]*?) height="[^"]*"', r"\1\2", text, count=1)


def curves(metrics: Sequence[Mapping[str, float | None]]) -> str:
    """Loss and validation accuracy over the epochs; label holder only."""
    figure, loss_axis = plt.subplots(figsize=(8, 3))
    losses = [(m["epoch"], m["loss"]) for m in metrics if m["loss"] is not None]
    reached = [(m["epoch"], m["val_accuracy"]) for m in metrics if m["val_accuracy"] is not None]
    loss_axis.plot(*zip(*losses, strict=True), color=ORANGE, label="training loss")
    loss_axis.set_xlabel("epoch")
    loss_axis.set_ylabel("training loss", color=ORANGE)
    loss_axis.set_ylim(bottom=0)
    axis = loss_axis.twinx()
    if reached:
        axis.plot(*zip(*reached, strict=True), color=BLUE, label="validation accuracy")
    axis.set_ylabel("validation accuracy", color=BLUE)
    axis.set_ylim(0, 1)
    for one in (loss_axis, axis):
        one.spines[["top"]].set_visible(False)
    return svg(figure, "curves")


def links(sizes: Mapping[str, float]) -> str:
    """Payload of each link."""
    ordered = sorted(sizes.items(), key=lambda item: item[1])
    figure, axis = plt.subplots(figsize=(8, 0.6 + 0.32 * max(1, len(ordered))))
    bars = axis.barh([name for name, _ in ordered], [count / 1e6 for _, count in ordered], color=BLUE, height=0.6)
    axis.bar_label(bars, [size(count) for _, count in ordered], padding=4, fontsize=8)
    axis.set_xlabel("MB sent in the whole run")
    axis.margins(x=0.12)
    axis.spines[["top", "right"]].set_visible(False)
    return svg(figure, "links")


def timeline(entries: Sequence[tuple[str, Entry]]) -> str:
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
