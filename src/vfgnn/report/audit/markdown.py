"""The tables of an audit for documents: from what `--json` wrote, one table for each protocol and number of holders.

In a file with marks (`<!-- audit -->`, `<!-- mitigations -->`, `<!-- opened -->`; `<!-- end -->`) they take the place
of what is between.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from vfgnn.audit.statistics import LEAKS, UNKNOWN
from vfgnn.report.benchmark import Benchmark
from vfgnn.report.grid import Grid
from vfgnn.report.opened import opened_grid

BEGIN, MITIGATIONS, OPENED, END = "<!-- audit -->", "<!-- mitigations -->", "<!-- opened -->", "<!-- end -->"
Row = Mapping[str, Any]


def tables(content: Mapping[str, Any]) -> str:
    """All of them; a leak is bold, and each figure has its interval and its best baseline beside it."""
    runs, rows = content["runs"], content["rows"]
    kinds = dict.fromkeys((run["protocol"], run["holders"], run["opens"]) for run in runs)
    grids = []
    for kind in kinds:
        of_kind = [run for run in runs if (run["protocol"], run["holders"], run["opens"]) == kind]
        grids.append(_grid(_title(*kind), of_kind, rows, content["attacks"]))
    return "\n".join(grid.to_markdown() for grid in grids)


def put_into(document: str, content: Mapping[str, Any]) -> str:
    """Between the marks; a document without them becomes the tables alone."""
    begin = MITIGATIONS if content["defended"] else BEGIN
    made = _marked(begin, content, defended(content) if content["defended"] else tables(content))
    if begin not in document:
        return f"{made}\n"
    document = re.sub(f"{begin}.*?{END}", lambda _: made, document, flags=re.S)
    if OPENED not in document or content["defended"]:
        return document
    opened = _marked(OPENED, content, opened_grid(Benchmark(content)).to_markdown())
    return re.sub(f"{OPENED}.*?{END}", lambda _: opened, document, flags=re.S)


def _marked(begin: str, content: Mapping[str, Any], text: str) -> str:
    return f"{begin}\n{content['date']}, vfgnn {content['version']}:\n\n{text}{END}"


def _title(protocol: str, holders: int, opens: str | None) -> str:
    return f"{protocol}, {holders} holders{', scores opened' if opens == 'scores' else ''}"


def _grid(title: str, runs: Sequence[Row], rows: Sequence[Row], attacks: Sequence[Row]) -> Grid:
    """A line for each role and attack, a column for each data set."""
    titles = {run["dataset"]: run["run"] for run in runs}
    mine = [row for row in rows if row["protocol"] == runs[0]["protocol"] and row["run"] in titles.values()]
    about = {one["name"]: one for one in attacks}
    lines = []
    for role, name in dict.fromkeys((row["role"], row["attack"]) for row in mine):
        found = [row for row in mine if (row["role"], row["attack"]) == (role, name)]
        if all("auc" not in row for row in found):
            continue
        cells = [_cell([row for row in found if row["run"] == run]) for run in titles.values()]
        lines.append((role, name, about[name]["target"], *cells, about[name]["helps"]))
    reached = (f"{run['dataset']} (accuracy {run['test_accuracy']:.3f})" for run in runs)
    return Grid(title, ("who", "attack", "after", *reached, "what helps"), tuple(lines), 5 + len(runs))


def _cell(rows: Sequence[Row]) -> str:
    """Of several parties and secrets the one that is furthest above its baseline."""
    measured = [row for row in rows if "auc" in row]
    if not measured:
        return "-"
    worst = max(measured, key=lambda row: row["difference"][0])
    figure = f"{worst['auc']:.3f}"
    shown = f"**{figure}**" if worst["verdict"] == LEAKS else figure
    shown += f" [{worst['low']:.3f}, {worst['high']:.3f}], baseline {worst['baseline']:.3f}"
    if worst["pooled_auc"] is not None:
        shown += f", pooled {worst['pooled_auc']:.3f}"
    return shown + (" (not decided)" if worst["verdict"].startswith(UNKNOWN) else "")


def defended(content: Mapping[str, Any]) -> str:
    """What each mitigation does to attacks and to accuracy: whoever finds out most of each target."""
    rows = content["rows"]
    targets = list(dict.fromkeys(row["target"] for row in rows if "auc" in row))
    lines = []
    for run in content["runs"]:
        mine = [row for row in rows if row["run"] == run["run"]]
        cells = (_worst([row for row in mine if row["target"] == target]) for target in targets)
        lines.append((run["run"], f"{run['test_accuracy']:.3f}", *cells))
    return Grid("mitigations", ("settings", "accuracy", *targets), tuple(lines)).to_markdown()


def _worst(rows: Sequence[Row]) -> str:
    measured = [row for row in rows if "auc" in row]
    if not measured:
        return "-"
    worst = max(measured, key=lambda row: row["difference"][0])
    shown = f"**{worst['auc']:.3f}**" if worst["verdict"] == LEAKS else f"{worst['auc']:.3f}"
    return f"{shown} ({worst['baseline']:.3f})"
