"""The orderings that the paper claims, checked against our own rows.

An ordering is reproduced if the means are ordered so; where a difference is smaller than its standard error, the
finding says it. A claim whose rows are open or missing is neither reproduced nor refuted, and stays in the list.
Beside the paper's own rows, Q1, Q2, Q4 and Q5 are checked of preset `best` too. All are checked under one reading of
how edges are split, then under the other: no reading is chosen claim by claim.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from vfgnn.data.partition import EdgeSplit
from vfgnn.experiments.baseline import DATASET, PAPER_ACCURACY, PAPER_SECONDS, PUBLISH, Timing
from vfgnn.experiments.catalogue import BEST, COMPARE, PAPER_TABLE_2, READINGS, Model, Where
from vfgnn.experiments.findings import Finding, Rows, judged_on, ordered
from vfgnn.experiments.privacy import PAPER_TABLE_5, PRINTED, Noise
from vfgnn.experiments.reasons import reason_for
from vfgnn.experiments.studies import COMBINES, PAPER_TABLE_3, PAPER_TABLE_4
from vfgnn.experiments.tables import Mark, TableRow, show_proportion

Question = Literal["Q1", "Q2", "Q3", "Q4", "Q5", "Q6"]
QUESTIONS: dict[Question, str] = {
    "Q1": "VFGNN is more accurate than each holder alone",
    "Q2": "VFGNN is nearly as accurate as the pooled model",
    "Q3": "VFGNN is as accurate as SecureGNN, and faster",
    "Q4": "Regression is best for uneven shares, Mean for even ones; accuracy falls towards even shares",
    "Q5": "accuracy falls with the number of holders",
    "Q6": "James-Stein is better than Gaussian; accuracy grows with epsilon",
}
CLAIMED = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "arxiv": "arXiv"}
NAMES = CLAIMED | {"arxiv_text": "arXiv, features of texts"}
NEAR = 0.01
"""Near joint: no further below it than the paper's own row of the same data set, and this."""
SECURE_NEAR = 0.03
"""SecureGNN trains: no further below VFGNN than this."""
PRINTED_TABLES = ("compare", "baseline", "proportions", "holders", "privacy")
FEDERATED = tuple(model for model in COMPARE if model.where == "federated")


@dataclass(frozen=True)
class Claim:
    """One ordering."""

    question: Question
    subject: str  # what of the question, e.g. "Cora, VFGNN_C"
    says: str
    found: str  # our numbers
    reproduced: bool | None  # None: the rows that it needs are open, or missing
    of_best: bool = False  # whether it is about preset `best`, not about a row that the paper has
    judged_on: str | None = None  # another data set than the one that it is about
    reading: EdgeSplit = "undirected"

    @property
    def id(self) -> str:
        """For programs: the same in every record, under every reading."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.question}, {self.subject}"

    @property
    def mark(self) -> Mark:
        """The verdict."""
        return {True: Mark.REPRODUCED, False: Mark.NOT_REPRODUCED, None: Mark.OPEN}[self.reproduced]

    @property
    def reason(self) -> str | None:
        """Why it is not reproduced, if it is not and we know."""
        return reason_for(self.id) if self.reproduced is False else None

    @property
    def told(self) -> str:
        """What was found, and the reason."""
        return self.found if self.reason is None else f"{self.found}. Why: {self.reason}"

    def to_json(self) -> dict[str, object]:
        """With its name in full, for people, and the parts of the name that programs ask for."""
        verdict = {"id": self.id, "reading": self.reading, "verdict": self.mark.value, "judged_on": self.judged_on}
        found = {"says": self.says, "found": self.found, "reproduced": self.reproduced, "reason": self.reason}
        return {**verdict, "name": self.name, **found, "question": self.question, "of_best": self.of_best}


def _list(printed: Iterable[float]) -> str:
    return ", ".join(f"{accuracy:.3f}" for accuracy in printed)


def check_claims(rows: Sequence[TableRow], timings: Sequence[Timing], reading: EdgeSplit = READINGS[0]) -> list[Claim]:
    """All of them under one reading, each with our numbers. Times do not depend on the reading."""
    known = Rows(rows, reading)
    claims = [
        *_above_isolated(known),
        *_near_joint(known),
        *_secure(known),
        *_faster(timings),
        *_proportions(known),
        *_holders(known),
        *_privacy(known),
    ]
    return [replace(claim, reading=reading) for claim in claims]


def readings_of(rows: Iterable[TableRow]) -> list[EdgeSplit]:
    """Those that rows of the paper's tables were trained under; the first if there are none."""
    found = {row.edge_split for row in rows if row.table in PRINTED_TABLES}
    return [reading for reading in READINGS if reading in found] or [READINGS[0]]


def _same_preset(model: Model, where: Where) -> list[str]:
    """The models of Table 2 that one is compared with: the same preset, trained on other data."""
    return [one.name for one in COMPARE if one.where == where and one.preset == model.preset]


def _above_isolated(rows: Rows) -> Iterator[Claim]:
    for dataset in CLAIMED:
        printed, judging = PAPER_TABLE_2[dataset], rows.judging(dataset)
        for model in FEDERATED:
            alone = _same_preset(model, "isolated")
            mine = rows.get("compare", model.name, 2, dataset=judging)
            of_best = model.name == BEST
            if of_best:
                by = "the same model, one holder's data"
            else:
                by = f"paper: by {printed[model.name] - max(printed[one] for one in alone):.3f} or more"
            finding = ordered([(mine, rows.get("compare", one, 2, dataset=judging)) for one in alone])
            yield Claim(
                "Q1",
                f"{CLAIMED[dataset]}, {model.name}",
                f"above {' and '.join(alone)} ({by})",
                *judged_on(judging, dataset, finding),
                of_best=of_best,
                judged_on=judging if judging != dataset else None,
            )


def _near_joint(rows: Rows) -> Iterator[Claim]:
    for dataset in CLAIMED:
        printed, judging = PAPER_TABLE_2[dataset], rows.judging(dataset)
        for model in FEDERATED:
            [joint] = _same_preset(model, "pooled")
            gap = printed["GraphSAGE_A+B"] - printed[model.name]
            mine, pooled = (rows.get("compare", name, 2, dataset=judging) for name in (model.name, joint))
            yield Claim(
                "Q2",
                f"{CLAIMED[dataset]}, {model.name}",
                f"near {joint}: at most {gap + NEAR:.3f} below it (the paper's gap {gap:.3f} plus {NEAR})",
                *judged_on(judging, dataset, ordered([(mine, pooled)], least=-(gap + NEAR))),
                of_best=model.name == BEST,
                judged_on=judging if judging != dataset else None,
            )


def _secure(rows: Rows) -> Iterator[Claim]:
    ours, secure = (rows.get("baseline", model, dataset=DATASET) for model in PAPER_ACCURACY)
    printed = " against ".join(f"{accuracy:.3f}" for accuracy in PAPER_ACCURACY.values())
    says = f"VFGNN_M at least as accurate as SecureGNN (paper: {printed})"
    yield Claim("Q3", "accuracy", says, *ordered([(ours, secure)], least=0.0))
    says = f"SecureGNN at most {SECURE_NEAR} below VFGNN_M, the same network"
    yield Claim("Q3", "SecureGNN trains", says, *ordered([(secure, ours)], least=-SECURE_NEAR))


def _faster(timings: Sequence[Timing]) -> Iterator[Claim]:
    ratio = PAPER_SECONDS["SecureGNN"] / PAPER_SECONDS["VFGNN_M"]
    says = f"an epoch of VFGNN_M faster than one of SecureGNN (paper: {ratio:.1f} times)"
    for publish in PUBLISH:
        seconds = {one.model: one.seconds for one in timings if (one.dataset, one.publish) == (DATASET, publish)}
        yield Claim("Q3", f"time, publish {publish}", says, *_times(seconds))


def _times(seconds: Mapping[str, float]) -> Finding:
    missing = [model for model in PAPER_SECONDS if model not in seconds]
    if missing:
        return f"missing: no time of {', '.join(missing)}", None
    ours, secure = (seconds[model] for model in PAPER_SECONDS)
    return f"VFGNN_M {ours:.3g} s, SecureGNN {secure:.3g} s: {secure / ours:.1f} times", ours < secure


def _proportions(rows: Rows) -> Iterator[Claim]:
    for proportion, shares in PAPER_TABLE_3.items():
        concat, mean, regression = (rows.get("proportions", model, proportion) for model in COMBINES)
        yield Claim(
            "Q4",
            f"uneven, {show_proportion(proportion)}",
            f"VFGNN_R the best of the three, or level with it (paper: C, M, R {_list(shares.values())})",
            *ordered([(regression, concat), (regression, mean)], least=0.0),
        )
    yield from _even(rows)
    for model in (*COMBINES, BEST):
        steps = [rows.get("proportions", model, one, name=show_proportion(one)) for one in PAPER_TABLE_3]
        says = "tends to fall from 9:1 to 7:3: is higher at 9:1"
        if model != BEST:
            says += f" (paper: {_list(shares[model] for shares in PAPER_TABLE_3.values())})"
        finding = ordered([(steps[0], steps[-1])])
        yield Claim("Q4", f"over shares, {model}", says, *finding, of_best=model == BEST)


def _even(rows: Rows) -> Iterator[Claim]:
    for dataset in CLAIMED:
        printed, judging = PAPER_TABLE_2[dataset], rows.judging(dataset)
        concat, mean, regression = (rows.get("compare", model, 2, dataset=judging) for model in COMBINES)
        accuracies = {model: printed[model] for model in COMBINES}
        if max(accuracies.values()) == printed["VFGNN_M"]:  # not on PubMed, in the paper's own table
            yield Claim(
                "Q4",
                f"even, {CLAIMED[dataset]}",
                f"VFGNN_M the best of the three (paper: C, M, R {_list(accuracies.values())})",
                *judged_on(judging, dataset, ordered([(mean, concat), (mean, regression)])),
                judged_on=judging if judging != dataset else None,
            )


def _holders(rows: Rows) -> Iterator[Claim]:
    for model in (*COMBINES, BEST):
        steps = [rows.get("holders", model, holders, name=f"{holders} holders") for holders in PAPER_TABLE_4]
        says = "falls from 2 over 3 to 4 holders"
        if model != BEST:
            says += f" (paper: {_list(printed[model] for printed in PAPER_TABLE_4.values())})"
        yield Claim("Q5", model, says, *ordered(list(pairwise(steps))), of_best=model == BEST)


def _privacy(rows: Rows) -> Iterator[Claim]:
    for epsilon in PRINTED:
        gap = PAPER_TABLE_5[Noise.JAMES_STEIN][epsilon] - PAPER_TABLE_5[Noise.GAUSSIAN][epsilon]
        pair = (rows.get("privacy", Noise.JAMES_STEIN, epsilon), rows.get("privacy", Noise.GAUSSIAN, epsilon))
        says = f"James-Stein above Gaussian (paper: by {gap:.3f})"
        yield Claim("Q6", f"James-Stein, epsilon {epsilon:g}", says, *ordered([pair]))
    for noise, printed in PAPER_TABLE_5.items():
        steps = [rows.get("privacy", noise, epsilon, name=f"epsilon {epsilon:g}") for epsilon in reversed(PRINTED)]
        says = f"accuracy grows with epsilon (paper, from 64 down to 4: {_list(reversed(printed.values()))})"
        yield Claim("Q6", f"{noise} over epsilon", says, *ordered(list(pairwise(steps))))
