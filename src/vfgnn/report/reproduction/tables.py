"""The tables of a reproduction: each is defined once, for terminals, Markdown and pages alike.

One column per data set where the paper prints nothing to compare with; elsewhere the paper's figure and the difference
stand beside ours.
"""

from collections.abc import Callable, Sequence

from rich.console import Console

from vfgnn.experiments.baseline import Timing
from vfgnn.experiments.catalogue import BEST
from vfgnn.experiments.claims import NAMES, QUESTIONS, Claim
from vfgnn.experiments.reproduction import Work
from vfgnn.experiments.tables import Mark, TableRow, show_proportion
from vfgnn.report.grid import Grid

Column = tuple[str, Callable[[TableRow], str]]


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _epsilon(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


MODEL: Column = ("model", lambda row: row.model)
USE: Column = ("", lambda row: row.model)
EMBEDDING: Column = ("initial embedding", lambda row: row.model)
AGGREGATOR: Column = ("aggregator", lambda row: row.model)
NOISED: Column = ("noised", lambda row: row.model)
SHARES: Column = ("shares", lambda row: show_proportion(row.proportion))
HOLDERS: Column = ("holders", lambda row: str(row.holders))
EPOCHS: Column = ("joint_layer_epochs", lambda row: str(row.variation.joint_layer_epochs))
ACCURACY: Column = ("accuracy", lambda row: row.shown)
PAPER: tuple[Column, ...] = (
    ACCURACY,
    ("paper", lambda row: _shown(row.paper, ".3f")),
    ("ours - paper", lambda row: _shown(row.difference, "+.3f")),
)
TOTALS: tuple[Column, ...] = (
    ("exact total", lambda row: _epsilon(row.epsilon_total)),
    ("by the theorem", lambda row: _epsilon(row.theorem)),
)
EACH: Column = ("epsilon of a release", lambda row: "none" if row.epsilon is None else f"{row.epsilon:g}")


def _lines(title: str, rows: Sequence[TableRow], *columns: Column, numbers: int) -> Grid:
    """One line per row; those of preset `best` stand out."""
    cells = tuple(tuple(show(row) for _, show in columns) for row in rows)
    ours = frozenset(i for i, row in enumerate(rows) if row.model == BEST)
    return Grid(title, tuple(heading for heading, _ in columns), cells, numbers, ours)


def _across(title: str, rows: Sequence[TableRow], first: Column) -> Grid:
    """One line per label of the first column, and a column for each data set."""
    heading, label = first
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    found = {(label(row), row.dataset): row.shown for row in rows}
    cells = tuple(
        (name, *(found.get((name, dataset), "-") for dataset in datasets)) for name in dict.fromkeys(map(label, rows))
    )
    return Grid(title, (heading, *(NAMES.get(dataset, dataset) for dataset in datasets)), cells)


def _seeds(rows: Sequence[TableRow]) -> str:
    count = max(row.n for row in rows)
    return f"{count} seed{'s' * (count != 1)}" if count else "open"


def _compare(rows: Sequence[TableRow]) -> list[Grid]:
    grids = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        mine = [row for row in rows if row.dataset == dataset]
        title = f"Table 2, {NAMES.get(dataset, dataset)}, {mine[0].holders} holders ({_seeds(mine)})"
        grids.append(_lines(title, mine, MODEL, *PAPER, numbers=1))
    return grids


def _modes(rows: Sequence[TableRow]) -> list[Grid]:
    frozen = [row for row in rows if row.variation.joint_layer_epochs is not None]
    modes = [row for row in rows if row.variation.joint_layer_epochs is None]
    seeds = _seeds(rows)
    grids = [_across(f"Initial embeddings, 2 holders ({seeds})", modes, EMBEDDING)] if modes else []
    title = f"Joint layer trained for the first epochs only, preset best, 2 holders ({seeds})"
    return [*grids, _across(title, frozen, EPOCHS)] if frozen else grids


def _aggregators(rows: Sequence[TableRow]) -> list[Grid]:
    return [_across(f"Aggregators, 2 holders ({_seeds(rows)})", rows, AGGREGATOR)]


def _sensitivity(rows: Sequence[TableRow]) -> list[Grid]:
    ordered = sorted(rows, key=lambda row: (row.variation.layers or 0, row.variation.dim or 0))  # d first, then K
    return [_across(f"Width d and depth K of VFGNN_M, 2 holders ({_seeds(rows)})", ordered, USE)]


def _simple(title: str, *columns: Column, numbers: int = 1) -> Callable[[Sequence[TableRow]], list[Grid]]:
    return lambda rows: [_lines(f"{title} ({_seeds(rows)})", rows, *columns, numbers=numbers)]


TABLES = {
    "compare": _compare,
    "baseline": _simple("Accuracy on PubMed, 2 holders", MODEL, *PAPER),
    "proportions": _simple("Table 3, Cora, 2 holders", SHARES, MODEL, *PAPER, numbers=2),
    "holders": _simple("Table 4, Cora, even shares", HOLDERS, MODEL, *PAPER, numbers=2),
    "privacy": _simple("Table 5, Cora, 2 holders: noise on every release of a row", USE, EACH, *PAPER, *TOTALS),
    "privacy variants": _simple("The same noise, otherwise used", USE, EACH, ACCURACY, *TOTALS),
    "privacy of inputs": _simple("Noise on the inputs, once", NOISED, ("epsilon of the run", EACH[1]), ACCURACY),
    "aggregators": _aggregators,
    "modes": _modes,
    "sensitivity": _sensitivity,
    "new nodes": _simple("A tenth of Cora's nodes, 2 holders: accuracy on them", MODEL, ACCURACY),
}


def grids_of(rows: Sequence[TableRow]) -> list[Grid]:
    """All tables that there are rows of."""
    found = {name: [row for row in rows if row.table == name] for name in TABLES}
    return [grid for name, mine in found.items() if mine for grid in TABLES[name](mine)]


def claims_grid(claims: Sequence[Claim], title: str) -> Grid:
    """What the paper claims, what was found, and the verdict."""
    rows = tuple((claim.mark, claim.name, claim.says, claim.found) for claim in claims)
    return Grid(title, ("", "claim", "what it says", "what was found"), rows, numbers=4)


def summary_grid(claims: Sequence[Claim]) -> Grid:
    """How many of each question's claims hold, preset `best` apart."""
    rows = []
    for question, about in QUESTIONS.items():
        for best in (False, True):
            marks = [claim.mark for claim in claims if claim.question == question and claim.of_best is best]
            shown = (f"{question}, preset best", "the same of VFGNN_best") if best else (question, about)
            rows += [(*shown, *(str(marks.count(mark) or "-") for mark in Mark))] if marks else []
    return Grid("Claims of the paper: reproduced?", ("", "it claims", "yes", "no", "open"), tuple(rows), numbers=2)


def timings_grid(timings: Sequence[Timing], title: str) -> Grid:
    """What an epoch takes."""
    rows = tuple(
        (
            NAMES.get(one.dataset, one.dataset) + (", generated" if one.features == "generated" else ""),
            one.model,
            one.publish,
            f"{one.seconds:.3g} s",
            "-" if one.paper is None else f"{one.paper:g} s",
            f"{one.bytes_per_epoch / 1e6:,.1f} MB",
        )
        for one in timings
    )
    headings = ("features", "model", "publish", "an epoch", "paper", "on all links")
    return Grid(title, headings, rows or (("not measured", *"-----"),), numbers=3)


def work_grid(work: Sequence[Work]) -> Grid:
    """What each part took."""
    rows = tuple(
        (
            one.part,
            f"{one.trainings:,}",
            f"{one.cpu_seconds / 60:,.1f} min",
            span(one.first, one.last),
            ", ".join(one.versions) or "-",
        )
        for one in work
    )
    headings = ("part", "trainings", "of one core", "ended (UTC)", "vfgnn")
    return Grid("Trainings, two at a time, each on one core", headings, rows)


def span(first: str, last: str) -> str:
    """From one moment to another, for people; the day once if it is the same."""
    if not first or not last:
        return "-"
    end = last[11:16] if last[:10] == first[:10] else last[:16].replace("T", " ")
    return f"{first[:16].replace('T', ' ')} to {end}"


def show_tables(console: Console, rows: Sequence[TableRow], seeds: int) -> None:
    """All their tables in a terminal."""
    title = f"test accuracy, mean and deviation over {seeds} seed{'s' * (seeds != 1)}"
    console.print(title, style="bold", highlight=False)
    for grid in grids_of(rows):
        console.print(grid.to_rich())


def markdown_tables(rows: Sequence[TableRow]) -> str:
    """All their tables for README and docs."""
    return "\n".join(grid.to_markdown() for grid in grids_of(rows))
