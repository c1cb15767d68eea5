"""The orderings that the paper claims, checked against our own rows.

An ordering is reproduced if the means are ordered so; where a difference is smaller than its standard error, the
finding says it. A claim whose rows are open or missing is neither reproduced nor refuted, and stays in the list.
Beside the paper's own rows, Q1, Q2, Q4 and Q5 are checked of preset `best` too.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from vfgnn.experiments.baseline import DATASET, PAPER_ACCURACY, PAPER_SECONDS, Timing
from vfgnn.experiments.catalogue import PAPER_TABLE_2
from vfgnn.experiments.privacy import PAPER_TABLE_5, PRINTED
from vfgnn.experiments.studies import COMBINES, PAPER_TABLE_3, PAPER_TABLE_4
from vfgnn.experiments.tables import TableRow

QUESTIONS = {
    "Q1": "VFGNN is more accurate than each holder alone",
    "Q2": "VFGNN is nearly as accurate as the pooled model",
    "Q3": "VFGNN is as accurate as SecureGNN, and faster",
    "Q4": "Regression is best for uneven shares, Mean for even ones; accuracy falls towards even shares",
    "Q5": "accuracy falls with the number of holders",
    "Q6": "James-Stein is better than Gaussian; accuracy grows with epsilon",
}
NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "arxiv": "arXiv"}
NEAR = 0.01
"""Near joint: no further below it than the paper's own row of the same data set, and this."""
SECURE_NEAR = 0.03
"""SecureGNN trains: no further below VFGNN than this."""
OPEN = "open: features not available"
BEST = "VFGNN_best"

Named = tuple[str, TableRow | None]  # what a finding calls a row, and the row if there is one


@dataclass(frozen=True)
class Claim:
    """One ordering."""

    name: str  # where the paper says it, e.g. "Q1, Cora, VFGNN_C"
    says: str
    found: str  # our numbers
    reproduced: bool | None  # None: the rows that it needs are open, or missing

    @property
    def question(self) -> str:
        """Q1 to Q6."""
        return self.name.split(",")[0]

    @property
    def of_best(self) -> bool:
        """Whether it is about preset `best`, not about a row that the paper has."""
        return self.name.endswith(BEST)

    @property
    def mark(self) -> str:
        """The verdict for people."""
        return {True: "reproduced", False: "not reproduced", None: "open"}[self.reproduced]


def _list(printed: Iterable[float]) -> str:
    return ", ".join(f"{accuracy:.3f}" for accuracy in printed)


class Rows:
    """Rows by what tells them apart in their table."""

    def __init__(self, rows: Sequence[TableRow]) -> None:
        self._rows = {(row.table, row.dataset, row.model, _detail(row)): row for row in rows}

    def get(self, table: str, model: str, detail: object = None, *, dataset: str = "cora", name: str = "") -> Named:
        """One of them, if it is there."""
        return name or model, self._rows.get((table, dataset, model, detail))


def _detail(row: TableRow) -> object:
    of_table: dict[str, object] = {"proportions": row.proportion, "privacy": row.epsilon}
    of_table |= {"compare": row.holders, "holders": row.holders}
    return of_table.get(row.table)


def check_claims(rows: Sequence[TableRow], timings: Sequence[Timing]) -> list[Claim]:
    """All of them, each with our numbers."""
    known = Rows(rows)
    return [
        *_above_isolated(known),
        *_near_joint(known),
        *_secure(known),
        *_faster(timings),
        *_proportions(known),
        *_holders(known),
        *_privacy(known),
    ]


def _ordered(name: str, says: str, pairs: Sequence[tuple[Named, Named]], least: float | None = None) -> Claim:
    """The first of each pair above its second; with `least`, above or no further below it than that."""
    named = dict(one for pair in pairs for one in pair)
    missing = [label for label, row in named.items() if row is None]
    if missing:
        return Claim(name, says, f"missing: no row for {', '.join(missing)}", None)
    rows = {label: row for label, row in named.items() if row is not None}
    means = {label: row.mean for label, row in rows.items() if row.mean is not None}
    if len(means) < len(rows):
        return Claim(name, says, OPEN, None)
    gaps = {(high, low): means[high] - means[low] for (high, _), (low, _) in pairs}
    numbers = ", ".join(f"{label} {row.shown}" for label, row in rows.items())
    noise = _noise([(gap, rows[high], rows[low]) for (high, low), gap in gaps.items()], least or 0.0)
    smallest = f"{'smallest ' if len(gaps) > 1 else ''}difference {min(gaps.values()):+.3f}"
    held = min(gaps.values()) > 0 if least is None else min(gaps.values()) >= least - 1e-9
    return Claim(name, says, f"{numbers}; {smallest}{noise}", held)


def _noise(gaps: Sequence[tuple[float, TableRow, TableRow]], limit: float) -> str:
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


def _above_isolated(rows: Rows) -> Iterator[Claim]:
    for dataset in NAMES:
        printed = PAPER_TABLE_2[dataset]
        for model in (*COMBINES, BEST):
            alone = [f"{'APPNP' if model == BEST else 'GraphSAGE'}_{holder}" for holder in "AB"]
            gap = printed[model] - max(printed["GraphSAGE_A"], printed["GraphSAGE_B"])
            mine = rows.get("compare", model, 2, dataset=dataset)
            yield _ordered(
                f"Q1, {NAMES[dataset]}, {model}",
                f"above {alone[0]} and {alone[1]}"
                + (" (the same model, one holder's data)" if model == BEST else f" (paper: by {gap:.3f} or more)"),
                [(mine, rows.get("compare", other, 2, dataset=dataset)) for other in alone],
            )


def _near_joint(rows: Rows) -> Iterator[Claim]:
    for dataset in NAMES:
        printed = PAPER_TABLE_2[dataset]
        for model in (*COMBINES, BEST):
            joint = "APPNP_A+B" if model == BEST else "GraphSAGE_A+B"
            gap = printed["GraphSAGE_A+B"] - printed[model]
            yield _ordered(
                f"Q2, {NAMES[dataset]}, {model}",
                f"near {joint}: at most {gap + NEAR:.3f} below it (the paper's gap {gap:.3f} plus {NEAR})",
                [(rows.get("compare", model, 2, dataset=dataset), rows.get("compare", joint, 2, dataset=dataset))],
                least=-(gap + NEAR),
            )


def _secure(rows: Rows) -> Iterator[Claim]:
    ours, secure = (rows.get("baseline", model, dataset=DATASET) for model in PAPER_ACCURACY)
    printed = " against ".join(f"{accuracy:.3f}" for accuracy in PAPER_ACCURACY.values())
    yield _ordered(
        "Q3, accuracy", f"VFGNN_M at least as accurate as SecureGNN (paper: {printed})", [(ours, secure)], least=0.0
    )
    yield _ordered(
        "Q3, SecureGNN trains",
        f"SecureGNN at most {SECURE_NEAR} below VFGNN_M, the same network",
        [(secure, ours)],
        least=-SECURE_NEAR,
    )


def _faster(timings: Sequence[Timing]) -> Iterator[Claim]:
    ratio = PAPER_SECONDS["SecureGNN"] / PAPER_SECONDS["VFGNN_M"]
    for publish in ("all", "needed"):
        name = f"Q3, time, publish {publish}"
        says = f"an epoch of VFGNN_M faster than one of SecureGNN (paper: {ratio:.1f} times)"
        seconds = {one.model: one.seconds for one in timings if (one.dataset, one.publish) == (DATASET, publish)}
        missing = [model for model in PAPER_SECONDS if model not in seconds]
        if missing:
            yield Claim(name, says, f"missing: no time of {', '.join(missing)}", None)
            continue
        ours, secure = (seconds[model] for model in PAPER_SECONDS)
        found = f"VFGNN_M {ours:.3g} s, SecureGNN {secure:.3g} s: {secure / ours:.1f} times"
        yield Claim(name, says, found, ours < secure)


def _proportions(rows: Rows) -> Iterator[Claim]:
    for proportion, shares in PAPER_TABLE_3.items():
        concat, mean, regression = (rows.get("proportions", model, proportion) for model in COMBINES)
        yield _ordered(
            f"Q4, uneven, {proportion}",
            f"VFGNN_R the best of the three, or level with it (paper: C, M, R {_list(shares.values())})",
            [(regression, concat), (regression, mean)],
            least=0.0,
        )
    for dataset in NAMES:
        printed = PAPER_TABLE_2[dataset]
        concat, mean, regression = (rows.get("compare", model, 2, dataset=dataset) for model in COMBINES)
        accuracies = {model: printed[model] for model in COMBINES}
        if max(accuracies.values()) == printed["VFGNN_M"]:  # not on PubMed, in the paper's own table
            yield _ordered(
                f"Q4, even, {NAMES[dataset]}",
                f"VFGNN_M the best of the three (paper: C, M, R {_list(accuracies.values())})",
                [(mean, concat), (mean, regression)],
            )
    for model in (*COMBINES, BEST):
        steps = [rows.get("proportions", model, proportion, name=proportion) for proportion in PAPER_TABLE_3]
        says = "tends to fall from 9:1 to 7:3: is higher at 9:1"
        if model != BEST:
            says += f" (paper: {_list(shares[model] for shares in PAPER_TABLE_3.values())})"
        yield _ordered(f"Q4, over shares, {model}", says, [(steps[0], steps[-1])])


def _holders(rows: Rows) -> Iterator[Claim]:
    for model in (*COMBINES, BEST):
        steps = [rows.get("holders", model, holders, name=f"{holders} holders") for holders in PAPER_TABLE_4]
        says = "falls from 2 over 3 to 4 holders"
        if model != BEST:
            says += f" (paper: {_list(printed[model] for printed in PAPER_TABLE_4.values())})"
        yield _ordered(f"Q5, {model}", says, list(pairwise(steps)))


def _privacy(rows: Rows) -> Iterator[Claim]:
    for epsilon in PRINTED:
        gap = PAPER_TABLE_5["James-Stein"][epsilon] - PAPER_TABLE_5["Gaussian"][epsilon]
        pair = (rows.get("privacy", "James-Stein", epsilon), rows.get("privacy", "Gaussian", epsilon))
        yield _ordered(
            f"Q6, James-Stein, epsilon {epsilon:g}", f"James-Stein above Gaussian (paper: by {gap:.3f})", [pair]
        )
    for model, printed in PAPER_TABLE_5.items():
        steps = [rows.get("privacy", model, epsilon, name=f"epsilon {epsilon:g}") for epsilon in reversed(PRINTED)]
        says = f"accuracy grows with epsilon (paper, from 64 down to 4: {_list(reversed(printed.values()))})"
        yield _ordered(f"Q6, {model} over epsilon", says, list(pairwise(steps)))
