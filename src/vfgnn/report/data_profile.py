"""A holder's tables as `vfgnn data check` shows them: on a terminal, and as a page with a histogram for each column.

Both are the holder's own: they have names of columns and classes, counts, and on the page words and ranges of values.
Neither has the value of an id, and columns that look like ids are not drawn.
"""

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vfgnn.data.dialect import Dialect
from vfgnn.data.faults import DataFinding
from vfgnn.data.profile import EdgesProfile, LabelsProfile, NodesProfile, Profile
from vfgnn.report.html import Html, card_of, figure_of, markup, page_of, table_of, tag

HEADINGS = ("column", "type", "becomes", "features", "missing", "different")
MARKS = {"error": "[bold red]error[/]", "warning": "[yellow]warning[/]"}


def show_profile(console: Console, profile: Profile) -> None:
    """On a terminal."""

    def tell(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    if profile.nodes is not None:
        for line in _node_lines(profile.nodes):
            tell(escape(line))
        console.print(_column_table(profile.nodes))
    for line in (*_edge_lines(profile.edges), *_label_lines(profile.labels)):
        tell(escape(line))
    for one in profile.findings:
        tell(f"{MARKS[one.level]} {one.code} {escape(_where(one))}: {escape(_found(one))}")
        if one.advice:
            tell(f"    to do: {escape(one.advice)}")
    tell(_summed_up(profile))


def _summed_up(profile: Profile) -> str:
    errors = len(profile.errors)
    warnings = len(profile.findings) - errors
    counted = f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
    return f"{counted}: {'mend the errors before a run' if errors else 'the tables can be used'}"


def _column_table(nodes: NodesProfile) -> Table:
    table = Table(title=f"{len(nodes.columns)} columns, {nodes.features} features", box=SIMPLE, title_justify="left")
    for heading in HEADINGS:
        right = heading in ("features", "missing", "different")
        table.add_column(heading, overflow="fold", justify="right" if right else "left")
    for one in nodes.columns:
        counts = (f"{count:,}" for count in (one.features, one.gaps, one.different))
        table.add_row(escape(one.name), one.kind, one.becomes, *counts)
    return table


def _node_lines(nodes: NodesProfile) -> list[str]:
    ids = nodes.ids
    told = [f"{ids.kind}, {ids.leading_zeros:,} with leading zeros"]
    told += [f"{count:,} {what}" for what, count in (("missing", ids.missing), ("repeated", ids.repeated)) if count]
    return [
        f"nodes: {nodes.rows:,} rows in {nodes.file}{_written(nodes.dialect)}",
        f"ids: column {ids.column}, {', '.join(told)}",
    ]


def _edge_lines(edges: EdgesProfile | None) -> list[str]:
    if edges is None:
        return []
    return [
        f"edges: {edges.rows:,} rows in {edges.file}{_written(edges.dialect)}",
        f"both ends known: {edges.known:,}; dropped: {edges.dropped:,}; loops: {edges.loops:,}; "
        f"repeated: {edges.repeated:,}; kept: {edges.kept:,} directed entries",
    ]


def _label_lines(labels: LabelsProfile | None) -> list[str]:
    if labels is None:
        return []
    classes = ", ".join(f"{name}: {count:,}" for name, count in labels.classes.items())
    splits = ", ".join(f"{name} {count:,}" for name, count in labels.splits.items())
    return [
        f"labels: {labels.file}{_written(labels.dialect)}",
        f"classes: {classes}; unknown ids: {labels.unknown:,}; without a label: {labels.empty:,}",
        f"split: {splits}",
    ]


def _written(dialect: Dialect | None) -> str:
    return "" if dialect is None else f" ({dialect})"


def _where(one: DataFinding) -> str:
    return one.file if one.column is None else f"{one.file}, column {one.column}"


def _found(one: DataFinding) -> str:
    counted = f"{one.count:,}"
    return f"{one.found} ({counted})" if one.count and counted not in one.found else one.found


def profile_page(profile: Profile) -> str:
    """The page: no script, nothing to fetch."""
    return page_of("vfgnn data check", [_head(profile), _findings(profile.findings), *_tables(profile)])


def _head(profile: Profile) -> Html:
    nodes, edges = profile.nodes, profile.edges
    cards: list[tuple[str, str]] = []
    if nodes is not None:
        cards += [("nodes", f"{nodes.rows:,}"), ("features", f"{nodes.features:,}")]
    if edges is not None:
        cards.append(("edges with known ends", f"{edges.known:,}"))
    if profile.labels is not None:
        cards.append(("labelled", f"{sum(profile.labels.classes.values()):,}"))
    return markup(
        tag("h1", "Data check"),
        tag("p", _summed_up(profile), look="bad" if profile.errors else "good"),
        tag("div", *(card_of(value, name) for name, value in cards), look="cards"),
        tag("p", "This page stays at home: it shows words and ranges of your columns, but no id.", look="soft"),
    )


def _findings(findings: Sequence[DataFinding]) -> Html:
    if not findings:
        return Html()
    rows = [
        (tag("span", one.level, look="bad" if one.level == "error" else "soft"), tag("code", one.code), _where(one),
         _found(one), one.advice)
        for one in findings
    ]  # fmt: skip
    return markup(tag("h2", "Findings"), table_of(("", "name", "where", "found", "to do"), rows))


def _tables(profile: Profile) -> list[Html]:
    parts = []
    if profile.nodes is not None:
        parts.append(_nodes(profile.nodes))
    for title, lines in (("Edges", _edge_lines(profile.edges)), ("Labels", _label_lines(profile.labels))):
        if lines:
            parts.append(markup(tag("h2", title), *(tag("p", line) for line in lines)))
    return parts


def _nodes(nodes: NodesProfile) -> Html:
    from vfgnn.report import charts  # matplotlib takes a second to load, and only a page needs it

    rows = [
        (one.name, one.kind, one.becomes, f"{one.features:,}", f"{one.gaps:,}", f"{one.different:,}")
        for one in nodes.columns
    ]
    drawn = [
        tag("div", tag("h3", one.name), figure_of(charts.histogram(one.histogram, f"column-{number}", one.name)))
        for number, one in enumerate(nodes.columns)
        if one.histogram is not None
    ]
    return markup(
        tag("h2", "Nodes"),
        *(tag("p", line) for line in _node_lines(nodes)),
        table_of(HEADINGS, rows, (3, 4, 5)),
        tag("h2", "Columns"),
        tag("p", "Numbers between the 1st and the 99th percentile; what lies beyond counts at the ends.", look="soft"),
        tag("div", *drawn, look="pair"),
    )
