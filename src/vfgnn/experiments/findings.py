"""What a claim is checked with: rows found by what tells them apart, and whether their means are ordered as claimed."""

import math
from collections.abc import Sequence

from vfgnn.data.partition import EdgeSplit
from vfgnn.experiments.catalogue import ARXIV, ARXIV_TEXT
from vfgnn.experiments.tables import TableRow

OPEN = "open: features not available"

Named = tuple[str, TableRow | None]  # what a finding calls a row, and the row if there is one
Finding = tuple[str, bool | None]  # our numbers, and whether they are ordered as claimed; None: open, or missing


class Rows:
    """Rows of one reading, by what tells them apart in their table; what is open is so under every reading."""

    def __init__(self, rows: Sequence[TableRow], reading: EdgeSplit) -> None:
        mine = [row for row in rows if row.edge_split == reading or row.mean is None]
        self._rows = {(row.table, row.dataset, row.model, _detail(row)): row for row in mine}
        self._trained = {row.dataset for row in mine if row.mean is not None}

    def get(self, table: str, model: str, detail: object = None, *, dataset: str = "cora", name: str = "") -> Named:
        """One of them, if it is there."""
        return name or model, self._rows.get((table, dataset, model, detail))

    def judging(self, dataset: str) -> str:
        """The data set that claims about `dataset` are judged on: arXiv's on other features, where there are none."""
        return (
            ARXIV_TEXT if dataset == ARXIV and ARXIV not in self._trained and ARXIV_TEXT in self._trained else dataset
        )


def _detail(row: TableRow) -> object:
    of_table: dict[str, object] = {"proportions": row.proportion, "privacy": row.epsilon}
    of_table |= {"compare": row.holders, "holders": row.holders}
    return of_table.get(row.table)


def ordered(pairs: Sequence[tuple[Named, Named]], least: float | None = None) -> Finding:
    """Whether the first of each pair is above its second; with `least`, above or no further below it than that."""
    named = dict(one for pair in pairs for one in pair)
    missing = [label for label, row in named.items() if row is None]
    if missing:
        return f"missing: no row for {', '.join(missing)}", None
    rows = {label: row for label, row in named.items() if row is not None}
    means = {label: row.mean for label, row in rows.items() if row.mean is not None}
    if len(means) < len(rows):
        return OPEN, None
    gaps = {(high, low): means[high] - means[low] for (high, _), (low, _) in pairs}
    numbers = ", ".join(f"{label} {row.shown}" for label, row in rows.items())
    noise = noise_of([(gap, rows[high], rows[low]) for (high, low), gap in gaps.items()], least or 0.0)
    smallest = f"{'smallest ' if len(gaps) > 1 else ''}difference {min(gaps.values()):+.3f}"
    held = min(gaps.values()) > 0 if least is None else min(gaps.values()) >= least - 1e-9
    return f"{numbers}; {smallest}{noise}", held


def noise_of(gaps: Sequence[tuple[float, TableRow, TableRow]], limit: float) -> str:
    """Whether a difference is closer to what decides than its standard error, seeds taken as independent."""
    if any(row.n < 2 for _, *pair in gaps for row in pair):
        return " (one seed: no standard error)"
    within = sum(
        abs(gap - limit) < math.sqrt((high.std or 0.0) ** 2 / high.n + (low.std or 0.0) ** 2 / low.n)
        for gap, high, low in gaps
    )
    if not within:
        return ""
    count = "" if len(gaps) == 1 else f"{within} of {len(gaps)} "
    return f" ({count}within one standard error{' of the limit' if limit else ''})"


def judged_on(dataset: str, about: str, finding: Finding) -> Finding:
    """A finding on `dataset`, which says so if the claim is about another one."""
    found, held = finding
    return (found if dataset == about else f"judged on {dataset}: {found}"), held
