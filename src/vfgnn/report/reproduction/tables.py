"""The tables of a reproduction: each is defined once, for terminals, Markdown and pages alike.

One column per data set where the paper prints nothing to compare with; elsewhere the paper's figure and the difference
stand beside ours. Rows of both readings of how edges are split stand side by side.
"""

from collections.abc import Callable, Sequence

from rich.console import Console

from vfgnn.data.partition import EdgeSplit
from vfgnn.experiments.baseline import Timing
from vfgnn.experiments.catalogue import BEST
from vfgnn.experiments.claims import NAMES, QUESTIONS, Claim
from vfgnn.experiments.reproduction import Work
from vfgnn.experiments.shrinkage import Shrinkage
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


def _readings(rows: Sequence[TableRow]) -> list[EdgeSplit]:
    return list(dict.fromkeys(row.edge_split for row in rows))


def _with_paper(title: str, rows: Sequence[TableRow], *labels: Column) -> Grid:
    """Ours and the paper's: of one reading with the difference; of several one column each, and the paper's once."""
    readings = _readings(rows)
    if len(readings) < 2:
        under = "" if readings == ["undirected"] else ", edges split " + "".join(readings)
        return _lines(title + under, rows, *labels, *PAPER, numbers=len(labels))
    lines: dict[tuple[str, ...], dict[EdgeSplit, TableRow]] = {}
    for row in rows:
        lines.setdefault(tuple(show(row) for _, show in labels), {})[row.edge_split] = row
    cells = tuple(
        (
            *label,
            *(found[reading].shown if reading in found else "-" for reading in readings),
            _shown(next(iter(found.values())).paper, ".3f"),
        )
        for label, found in lines.items()
    )
    ours = frozenset(i for i, label in enumerate(lines) if BEST in label)
    headings = (*(heading for heading, _ in labels), *(f"edges {reading}" for reading in readings), "paper")
    return Grid(title, headings, cells, len(labels), ours)


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
        grids.append(_with_paper(title, mine, MODEL))
    return grids


def _noised(rows: Sequence[TableRow]) -> list[Grid]:
    grids = []
    for reading in _readings(rows):
        mine = [row for row in rows if row.edge_split == reading]
        under = "" if reading == "undirected" else f", edges split {reading}"
        title = f"Table 5, Cora, 2 holders{under}: noise on every release of a row ({_seeds(mine)})"
        grids.append(_lines(title, mine, USE, EACH, *PAPER, *TOTALS, numbers=1))
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


def _printed(title: str, *labels: Column) -> Callable[[Sequence[TableRow]], list[Grid]]:
    return lambda rows: [_with_paper(f"{title} ({_seeds(rows)})", rows, *labels)]


def _simple(title: str, *columns: Column, numbers: int = 1) -> Callable[[Sequence[TableRow]], list[Grid]]:
    return lambda rows: [_lines(f"{title} ({_seeds(rows)})", rows, *columns, numbers=numbers)]


TABLES = {
    "compare": _compare,
    "baseline": _printed("Accuracy on PubMed, 2 holders", MODEL),
    "proportions": _printed("Table 3, Cora, 2 holders", SHARES, MODEL),
    "holders": _printed("Table 4, Cora, even shares", HOLDERS, MODEL),
    "privacy": _noised,
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
    """What the paper claims, what was found, and the verdict; with several readings one line each."""
    readings = list(dict.fromkeys(claim.reading for claim in claims))
    names = list(dict.fromkeys(claim.name for claim in claims))
    ordered = sorted(claims, key=lambda claim: (names.index(claim.name), readings.index(claim.reading)))
    if len(readings) < 2:
        rows = tuple((claim.mark, claim.name, claim.says, claim.told) for claim in ordered)
        return Grid(title, ("", "claim", "what it says", "what was found"), rows, numbers=4)
    both = tuple((claim.mark, claim.reading, claim.name, claim.says, claim.told) for claim in ordered)
    return Grid(title, ("", "edges", "claim", "what it says", "what was found"), both, numbers=5)


def summary_grid(claims: Sequence[Claim]) -> Grid:
    """How many of each question's claims hold under each reading, preset `best` and other features apart."""
    readings = list(dict.fromkeys(claim.reading for claim in claims))
    rows = []
    for question, about in QUESTIONS.items():
        for best in (False, True):
            mine = [one for one in claims if (one.question, one.of_best) == (question, best) and not one.judged_on]
            shown = (f"{question}, preset best", "the same of VFGNN_best") if best else (question, about)
            rows += [(*shown, *_counts(mine, readings))] if mine else []
    others = [claim for claim in claims if claim.judged_on]
    rows += [("arXiv", "all of it, on features of texts", *_counts(others, readings))] if others else []
    marks = ("yes", "no", "open") if len(readings) < 2 else tuple(f"{one}: yes / no / open" for one in readings)
    return Grid("Claims of the paper: reproduced?", ("", "it claims", *marks), tuple(rows), numbers=2)


def _counts(claims: Sequence[Claim], readings: Sequence[EdgeSplit]) -> list[str]:
    marks = [[claim.mark for claim in claims if claim.reading == reading] for reading in readings]
    counts = [[str(of_one.count(mark) or "-") for mark in Mark] for of_one in marks]
    return counts[0] if len(readings) < 2 else [" / ".join(of_one) for of_one in counts]


def shrinkage_grid(found: Sequence[Shrinkage]) -> Grid:
    """What James-Stein does to a noised row: nearer to it, and less of it to read."""
    rows = tuple(
        (
            f"{one.epsilon:g}",
            f"{one.error_gaussian:.3g}",
            f"{one.error_james_stein:.3g}",
            f"{one.turned:.0%}",
            f"{one.kept:.2f}",
        )
        for one in found
    )
    headings = ("epsilon", "error, Gaussian", "error, James-Stein", "rows turned round", "signal to noise kept")
    return Grid(f"A noised unit row of {found[0].dim} values", headings, rows, numbers=0)


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
