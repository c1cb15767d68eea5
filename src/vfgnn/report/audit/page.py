"""The page of an audit: who finds out what, in one matrix; below it each attack, what it assumed, and what would help.

Made from an `Audit` alone. Names of parties and runs may be somebody else's text: they are escaped as on every page.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from vfgnn.audit.attack import Attack, Target
from vfgnn.audit.result import Audit, AuditRow, Cell, by_run, matrix
from vfgnn.audit.statistics import HARMLESS, LEAKS, MARGIN, RATES, UNKNOWN
from vfgnn.report import benchmark
from vfgnn.report.audit import roc
from vfgnn.report.audit.console import figure, targets_of, with_interval
from vfgnn.report.html import Html, card_of, figure_of, list_of, markup, page_of, table_of, tag
from vfgnn.report.opened import opened_grid

LOOKS = {LEAKS: "bad", HARMLESS: "good"}
WORDS = {LEAKS: "leaks", HARMLESS: "at the baseline", UNKNOWN: "not decided"}
READ = (
    "Each cell has the attack that is furthest above its best baseline: its figure (AUC, or a share), and below it the "
    "baseline, which is the same figure from what the party has without this protocol. An attack leaks if its whole "
    f"95 % interval is more than {MARGIN:g} above the baseline. It is at the baseline if its whole interval is not. "
    "Otherwise nothing is decided. A cleverer attack may find more. A green cell speaks of these attacks alone. "
    "`pooled model`: what the same attack finds in the outputs of the model that pooling everything would give."
)
WHOLE = "Everybody's data was here, so every party's whole view was attacked."
OWN = (
    "{who} audits itself: of the others' views only what {who} sent was here, and as the truth only the data of {who}. "
    "So it says what others can learn about {who} from these messages, not what they find out with their own data."
)


def make_page(audit: Audit) -> str:
    """The whole page."""
    rows = audit.rows
    attacks = sorted(
        {row.attack.name: row.attack for row in rows}.values(), key=lambda one: [*Target].index(one.target)
    )
    title = "What curious parties could have learnt"
    return page_of(
        title,
        [
            tag("h1", title),
            _runs(audit),
            tag("div", *(card_of(value, name) for name, value in _cards(audit, rows)), look="cards"),
            *_tables(audit, {attack.name: number for number, attack in enumerate(attacks)}),
            tag("p", READ, look="soft"),
            _benchmark(audit),
            *(_attack(number, attack, rows) for number, attack in enumerate(attacks)),
            _missing(rows),
        ],
    )


def _runs(audit: Audit) -> Html:
    told = []
    for result in audit.results:
        alone = result.case.by_itself
        told.append(f"{result.case.protocol}: {result.case.title}. {WHOLE if alone is None else OWN.format(who=alone)}")
    return list_of(told)


def _benchmark(audit: Audit) -> Html:
    """Of a real sealed run, what its label holder can make of predictions: no holder can measure that alone."""
    if not any(one.case.protocol == "sealed" and one.case.dataset is None for one in audit.results):
        return Html()
    measured = benchmark.leaks()
    told = f"Measured on public benchmarks on {measured.date} with "
    return markup(
        tag("h2", "What predictions tell"),
        opened_grid(measured).to_html(),
        tag("p", told, tag("code", measured.command), look="soft"),
    )


def _cards(audit: Audit, rows: Sequence[AuditRow]) -> list[tuple[str, object]]:
    counts = {what: sum(row.verdict.startswith(what) for row in rows) for what in WORDS}
    reached = [
        (f"test accuracy, {one.case.protocol}", f"{one.accuracy:.3f}")
        for one in audit.results
        if one.accuracy is not None
    ]
    return [*((WORDS[what], count) for what, count in counts.items()), *reached]


def _tables(audit: Audit, numbers: Mapping[str, int]) -> list[Html]:
    """Who finds out what; of mitigations first what each does to attacks and to accuracy."""
    rows = audit.rows
    whole = _matrix(rows, numbers)
    if not audit.defended:
        return [tag("h2", "Who finds out what"), whole]
    targets, cells = targets_of(rows), by_run(rows)
    lines = [tag("thead", tag("tr", tag("th"), tag("th", "accuracy"), *(tag("th", target) for target in targets)))]
    for result in audit.results:
        found, reached = cells.get(result.case.title, {}), tag("b", _shown(result.accuracy))
        line = (_cell(found.get(target), target, numbers) for target in targets)
        reached = tag("td", reached, look="none", **{"data-what": "accuracy"})
        lines.append(tag("tr", tag("th", result.case.title), reached, *line))
    table = tag("div", tag("table", *lines, look="matrix"), look="wide")
    told = "Whoever finds out most of something, in a federation with this mitigation; test accuracy beside it."
    return [
        tag("h2", "What each mitigation does"),
        table,
        tag("p", told, look="soft"),
        tag("details", tag("summary", "by role"), whole),
    ]


def _matrix(rows: Sequence[AuditRow], numbers: Mapping[str, int]) -> Html:
    """One row for each role of each protocol of each run. `numbers`: of the attacks, which cells lead to."""
    targets, found = targets_of(rows), matrix(rows)
    head = tag("tr", tag("th"), *(tag("th", target) for target in targets))
    parts, several = [tag("thead", head)], len({row.run for row in rows}) > 1
    for (run, protocol), group in groupby(found.items(), key=lambda one: one[0][:2]):
        title = f"{run}: {protocol}" if several else protocol
        lines = [tag("tr", tag("th", title, colspan=str(1 + len(targets)), look="of"))]
        for who, cells in group:
            line = (_cell(cells.get(target), target, numbers) for target in targets)
            lines.append(tag("tr", tag("th", who[-1]), *line))
        parts.append(tag("tbody", *lines))
    return tag("div", tag("table", *parts, look="matrix"), look="wide")


def _cell(cell: Cell | None, target: Target, numbers: Mapping[str, int]) -> Html:
    about = {"data-what": str(target)}
    if cell is None:
        return tag("td", "-", look="none", **about)
    worst = cell.worst
    if worst is None or worst.finding is None:
        return tag("td", tag("span", "not measured"), look="none", **about)
    measured = worst.finding.measured
    name, pooled = worst.attack.name, worst.finding.pooled
    shown = [tag("b", figure(measured.attack)), tag("span", f"baseline {figure(measured.best[1])}")]
    if pooled is not None:
        shown.append(tag("span", f"pooled model {figure(pooled)}"))
    said = tag("i", WORDS.get(cell.verdict, WORDS[UNKNOWN])), tag("a", name, href=f"#attack-{numbers[name]}")
    return tag("td", *shown, *said, look=f"cell {LOOKS.get(cell.verdict, 'open')}", **about)


def _attack(number: int, attack: Attack, rows: Sequence[AuditRow]) -> Html:
    found = [row for row in rows if row.attack == attack and row.finding is not None]
    if not found:
        return Html()
    curves = roc.draw(found)
    about = [
        ("after", attack.gets),
        ("who can do it", attack.who),
        ("assumed beyond its view", attack.needs),
        ("baseline", attack.baseline),
        ("what would help", attack.helps),
        ("literature", attack.literature),
    ]
    return markup(
        tag("h2", f"{attack.name} ", tag("span", attack.target, look="soft"), id=f"attack-{number}"),
        tag("dl", *(markup(tag("dt", name), tag("dd", value)) for name, value in about)),
        _figures(found),
        Html() if curves is None else figure_of(roc.svg_of(curves, f"roc-{number}")),
        _rates(found),
    )


def _figures(rows: Sequence[AuditRow]) -> Html:
    """What was found, beside the best baseline."""
    several = len({row.run for row in rows}) > 1
    pooled = any(row.finding is not None and row.finding.pooled is not None for row in rows)
    headings = [*["run"] * several, "view of", "about", "n", "found", "best baseline", "", "difference"]
    headings += [*["pooled model"] * pooled, ""]
    lines = []
    for row in rows:
        if row.finding is None:
            continue
        measured, twin = row.finding.measured, row.finding.pooled
        name, best = measured.best
        low, high = measured.difference
        cells: list[object] = [*[row.run] * several, f"{row.party} ({row.protocol})", row.finding.about]
        cells += [f"{measured.attack.n:,}", with_interval(measured.attack), with_interval(best), name]
        cells += [f"{low:+.3f} to {high:+.3f}", *["-" if twin is None else with_interval(twin)] * pooled]
        lines.append([*cells, tag("span", row.verdict, look=LOOKS.get(row.verdict, "soft"))])
    first = 2 + several
    return table_of(headings, lines, (first, first + 1, first + 2, first + 4, *[first + 5] * pooled))


def _rates(rows: Sequence[AuditRow]) -> Html:
    """Of rankings: true positives at few false ones; in brackets those of the best baseline."""
    ranked = [row for row in rows if row.finding is not None and row.finding.measured.attack.tpr is not None]
    if not ranked:
        return Html()
    headings = ("run", "view of", "about", "at 1 %", "at 0.1 %", "at 0 %", "advantage")
    lines = []
    for row in ranked:
        if row.finding is None:
            continue
        attack, best = row.finding.measured.attack, row.finding.measured.best[1]
        pairs = [((attack.tpr or {}).get(f"{rate:g}"), (best.tpr or {}).get(f"{rate:g}")) for rate in RATES]
        pairs.append((attack.advantage, best.advantage))
        shown = [f"{_shown(mine)} ({_shown(theirs)})" for mine, theirs in pairs]
        lines.append([row.run, f"{row.party} ({row.protocol})", row.finding.about, *shown])
    told = "True positive rate at this rate of false positives, thresholds from the other half; (best baseline)."
    return tag("details", tag("summary", "few false positives"), tag("p", told), table_of(headings, lines, range(3, 7)))


def _shown(rate: float | None) -> str:
    """None: too few cases for it."""
    return "-" if rate is None else f"{rate:.3f}"


def _missing(rows: Sequence[AuditRow]) -> Html:
    told = [f"{row.protocol}, view of {row.party}: {row.attack.name}: no {row.missing}" for row in rows if row.missing]
    if not told:
        return Html()
    return markup(tag("h2", "Not measured here"), list_of(told))
