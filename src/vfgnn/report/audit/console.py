"""An audit in a terminal: the matrix, then every finding."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from vfgnn.audit.attack import Target
from vfgnn.audit.result import Audit, AuditRow, Cell, by_run, matrix
from vfgnn.audit.statistics import HARMLESS, LEAKS, Measured

STYLES = {LEAKS: "bold red", HARMLESS: "green"}


def show_audit(console: Console, audit: Audit) -> None:
    """Who finds out what, and by which attack."""
    for result in audit.results:
        reached = "" if result.accuracy is None else f"; test accuracy {result.accuracy:.3f}"
        console.print(f"[bold]{result.case.protocol}[/]: {result.case.title}{reached}", highlight=False)
    rows = audit.rows
    console.print(_findings([row for row in rows if row.finding is not None]))
    for row in rows:
        if row.finding is None:
            told = f"{row.protocol}, {row.party}: {row.attack.name}: {row.verdict}"
            console.print(told, style="dim", highlight=False)
    if audit.defended:
        console.print(_defended(audit))
        return
    for run in dict.fromkeys(row.run for row in rows):
        console.print(_matrix(run, [row for row in rows if row.run == run]))


def _defended(audit: Audit) -> Table:
    rows = audit.rows
    targets, cells = targets_of(rows), by_run(rows)
    table = Table(title="whoever finds out most, and the best baseline")
    for heading in ("mitigation", "accuracy", *targets):
        table.add_column(heading)
    for result in audit.results:
        found, reached = cells.get(result.case.title, {}), result.accuracy
        shown = "" if reached is None else f"{reached:.3f}"
        table.add_row(result.case.title, shown, *(_cell(found.get(target)) for target in targets))
    return table


def _matrix(run: str, rows: Sequence[AuditRow]) -> Table:
    table = Table(title=f"{run}: the best attack of each role, and its best baseline")
    targets = targets_of(rows)
    for heading in ("protocol", "who", *targets):
        table.add_column(heading)
    for (_, protocol, role), cells in matrix(rows).items():
        table.add_row(protocol, role, *(_cell(cells.get(target)) for target in targets))
    return table


def targets_of(rows: Sequence[AuditRow]) -> list[Target]:
    """Those that anybody was after, in their own order."""
    found = {row.attack.target for row in rows}
    return [target for target in Target if target in found]


def _cell(cell: Cell | None) -> str:
    worst = None if cell is None else cell.worst
    if cell is None or worst is None or worst.finding is None:
        return "" if cell is None else "[dim]not measured[/]"
    style, measured = STYLES.get(cell.verdict, "yellow"), worst.finding.measured
    return f"[{style}]{figure(measured.attack)}[/] [dim]{figure(measured.best[1])}[/]"


def _findings(rows: Sequence[AuditRow]) -> Table:
    table = Table()
    for heading in ("protocol", "who", "attack", "about", "n", "found", "baseline", "pooled", "verdict"):
        table.add_column(heading, justify="right" if heading == "n" else "left")
    for row in rows:
        if row.finding is None:
            continue
        measured, pooled = row.finding.measured, row.finding.pooled
        table.add_row(
            row.protocol,
            row.party,
            row.attack.name,
            row.finding.about,
            f"{measured.attack.n:,}",
            with_interval(measured.attack),
            figure(measured.best[1]),
            "" if pooled is None else figure(pooled),
            row.verdict,
            style=STYLES.get(row.verdict, "yellow"),
        )
    return table


def figure(one: Measured) -> str:
    """As a table has it."""
    return f"{one.value:.3f}"


def with_interval(one: Measured) -> str:
    """Beside its interval."""
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
