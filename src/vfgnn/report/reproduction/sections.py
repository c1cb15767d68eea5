"""What the report of a reproduction tells, section by section: text, figures, tables and claims.

A section keeps its text and its claims where its rows are missing, and says so.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from matplotlib.figure import Figure

from vfgnn.experiments.baseline import DATASET, STEPS, Timing
from vfgnn.experiments.catalogue import ARXIV, ARXIV_TEXT, READINGS
from vfgnn.experiments.claims import Question
from vfgnn.experiments.privacy import DELTA, PRINTED, width
from vfgnn.experiments.reproduction import Reproduction
from vfgnn.experiments.shrinkage import shrinkage
from vfgnn.experiments.tables import TableRow
from vfgnn.report.figures import (
    draw_aggregators,
    draw_compare,
    draw_holders,
    draw_privacy,
    draw_proportions,
    draw_refreshes,
    draw_times,
)
from vfgnn.report.grid import Grid
from vfgnn.report.reproduction.tables import claims_grid, grids_of, shrinkage_grid, timings_grid, work_grid

Found = TypeVar("Found", TableRow, Timing)


@dataclass(frozen=True)
class Picture:
    """A figure, and what is seen in it."""

    name: str
    figure: Figure
    caption: str


@dataclass(frozen=True)
class Section:
    """One of them; in what is told, code stands between backticks."""

    name: str
    topic: str  # its title in a list of sections
    about: str  # the rest of its title
    told: str
    pictures: tuple[Picture, ...]
    grids: tuple[Grid, ...]

    @property
    def title(self) -> str:
        """In full."""
        return f"{self.topic}: {self.about}" if self.about else self.topic


def sections_of(reproduction: Reproduction) -> Iterator[Section]:
    """All of them, in the paper's order."""
    yield _compared(reproduction)
    yield _secure(reproduction)
    yield _proportions(reproduction)
    yield _holders(reproduction)
    yield _private(reproduction)
    yield _promised(reproduction)
    yield _arxiv(reproduction)
    told = (
        "Trainings of each part; one that two parts share counts in both. Measurements of time are not in it, and "
        "arXiv's trainings are in no sum."
    )
    yield Section("work", "What it took", "", told, (), (work_grid([*reproduction.work, reproduction.total]),))


def _compared(reproduction: Reproduction) -> Section:
    rows = reproduction.of("compare")
    return Section(
        "q1",
        "Q1 and Q2",
        "against isolated and pooled data (Table 2)",
        "Two holders with half of the columns and half of the edges each. "
        "`GraphSAGE_A` and `_B` have one holder's data, `GraphSAGE_A+B` all of it in one place; `VFGNN_C`, `_M` and "
        "`_R` combine rows by concatenation, mean and regression. All these are the paper's model with one sigmoid "
        "hidden layer. `APPNP_A`, `APPNP_B` and `APPNP_A+B` are the model of `VFGNN_best`, with values chosen for "
        "one holder's data and for pooled data." + _lacking(reproduction, "compare"),
        _picture("compare", draw_compare, rows, "Test accuracy of every model of Table 2; bars: deviation over seeds"),
        (*grids_of(rows), _claims(reproduction, "Q1"), _claims(reproduction, "Q2")),
    )


def _secure(reproduction: Reproduction) -> Section:
    timings = [one for one in reproduction.timings if one.dataset == DATASET]
    return Section(
        "q3",
        "Q3",
        "against SecureGNN, all layers on shares",
        "The same network at both, that of `VFGNN_M`; SecureGNN has a Taylor polynomial for its sigmoid. Times are "
        f"those of real processes over TLS on one machine, the median of {STEPS} training steps. `publish = all` "
        "sends every row in every epoch, as the paper does, `needed` those that the step needs. Elsewhere only "
        "ratios mean something. The paper gives 0.809 for VFGNN on PubMed here, and at most 0.782 in its Table 2."
        + _lacking(reproduction, "baseline"),
        _picture(
            "times", draw_times, timings, "Time of an epoch on PubMed, ours and the paper's, on different machines"
        ),
        (
            *grids_of(reproduction.of("baseline")),
            timings_grid(timings, "An epoch on PubMed, 2 holders"),
            _claims(reproduction, "Q3"),
        ),
    )


def _proportions(reproduction: Reproduction) -> Section:
    rows = reproduction.of("proportions")
    even = [row for row in reproduction.of("compare") if row.dataset == "cora" and row.holders == 2]
    shown = [*rows, *(row for row in even if row.edge_split in {one.edge_split for one in rows})]
    caption = "Test accuracy by shares of columns and edges; dashed and hollow: the paper's"
    return Section(
        "q4",
        "Q4",
        "uneven shares (Table 3)",
        "One holder has nine, eight or seven tenths of columns and edges; the even shares in the figure are those of "
        "Table 2. That Mean is best for even shares is checked where the paper's own figures have it so: not on "
        "PubMed, where they have Regression 0.001 above." + _lacking(reproduction, "proportions"),
        _by_reading("proportions", draw_proportions, shown, caption),
        (*grids_of(rows), _claims(reproduction, "Q4")),
    )


def _holders(reproduction: Reproduction) -> Section:
    rows = reproduction.of("holders")
    caption = "Test accuracy by the number of holders; dashed and hollow: the paper's"
    return Section(
        "q5",
        "Q5",
        "more holders (Table 4)",
        "Even shares of columns and edges; 5 and 8 holders are beyond the paper." + _lacking(reproduction, "holders"),
        _by_reading("holders", draw_holders, rows, caption),
        (*grids_of(rows), _claims(reproduction, "Q5")),
    )


def _private(reproduction: Reproduction) -> Section:
    rows = reproduction.of("privacy", "privacy variants", "privacy of inputs")
    return Section(
        "q6",
        "Q6",
        "differential privacy (Table 5)",
        "Preset `best`, rows combined by mean. The paper quotes the epsilon of one release of a row. The exact total "
        "is what all releases of a run come to at delta 1e-4; by the theorem it is the paper's sqrt(T) epsilon, its "
        "constant left out. Beyond the paper: the same noise otherwise used, and inputs noised once at a total. "
        "James-Stein brings a noised row nearer to the true one, as the paper's theorem says, and at small epsilon "
        "turns many rows round: it loses most of what a model can read of their directions. The last table draws it."
        + _lacking(reproduction, "privacy", "privacy variants", "privacy of inputs"),
        _picture("privacy", draw_privacy, rows, "Test accuracy by the total epsilon of a run"),
        (*grids_of(rows), _shrunk(), _claims(reproduction, "Q6")),
    )


def _shrunk() -> Grid:
    """At the width of Table 5's rows."""
    return shrinkage_grid([shrinkage(epsilon, width(), DELTA) for epsilon in PRINTED])


def _promised(reproduction: Reproduction) -> Section:
    aggregators, modes = reproduction.of("aggregators"), reproduction.of("modes")
    frozen = "Test accuracy when the joint layer is frozen after some epochs; all: never"
    return Section(
        "promised",
        "Beyond",
        "what the paper promises without printing it",
        "Aggregators side by side, LSTM on Cora only, with K = 2 and d = 64; initial embeddings from the columns of "
        "all holders, under secret sharing (collaborative), or from each holder's own (individual); the joint layer "
        "trained in the first epochs only, then frozen, which reveals less and costs less; width d and depth K. The "
        "paper has no figures for these." + _lacking(reproduction, "aggregators", "modes", "sensitivity"),
        (
            *_picture("aggregators", draw_aggregators, aggregators, "Test accuracy by aggregator, combined by mean"),
            *_picture("joint_layer_epochs", draw_refreshes, modes, frozen),
        ),
        tuple(grids_of([*aggregators, *modes, *reproduction.of("sensitivity")])),
    )


def _arxiv(reproduction: Reproduction) -> Section:
    timings = [one for one in reproduction.timings if one.dataset == ARXIV]
    trained = any(row.dataset == ARXIV_TEXT for row in reproduction.of("compare"))
    told = (
        "OGB's features are not available here. Instead the rows were trained by `vfgnn reproduce arxiv` on features "
        "made from texts, in which a language model explained its guess of each paper's class. They carry that guess: "
        "accuracies cannot be compared with the paper's, orderings between models on the same features can. The claims "
        "of arXiv are judged on them, say so, and are counted apart. GraphSAGE has batches with sampled neighbours. "
        if trained
        else "Its features are not available here: its accuracies and claims stay open, and the paper's figures stand "
        "alone in its table above. "
    )
    return Section(
        "arxiv",
        "arXiv",
        "on features of texts" if trained else "open",
        f"{told}What an epoch costs is measured on its real graph with generated features.",
        (),
        (timings_grid(timings, "An epoch on arXiv, 2 holders, generated features"),),
    )


def _claims(reproduction: Reproduction, question: Question) -> Grid:
    return claims_grid([one for one in reproduction.claims if one.question == question], f"Claims of {question}")


def _lacking(reproduction: Reproduction, *tables: str) -> str:
    missing = [table for table in tables if not reproduction.of(table)]
    return f" Not in this record: {', '.join(missing)}." if missing else ""


def _by_reading(
    name: str, draw: Callable[[Sequence[TableRow]], Figure], rows: Sequence[TableRow], caption: str
) -> tuple[Picture, ...]:
    """One for each reading of how edges are split."""
    readings = [reading for reading in READINGS if any(row.edge_split == reading for row in rows)]
    pictures: list[Picture] = []
    for reading in readings:
        mine = [row for row in rows if row.edge_split == reading]
        named = name if reading == READINGS[0] else f"{name}_{reading}"
        pictures += _picture(named, draw, mine, f"{caption}; edges {reading}" if len(readings) > 1 else caption)
    return tuple(pictures)


def _picture(
    name: str, draw: Callable[[Sequence[Found]], Figure], found: Sequence[Found], caption: str
) -> tuple[Picture, ...]:
    """One, if there is something to draw."""
    return (Picture(name, draw(found), caption),) if found else ()
