"""What came after training: every prediction and service with a run's model, from the message logs of each.

A part of the page of `vfgnn report`, checked as the run's own log is: chain, seal, schedule, both ends of each link.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from vfgnn.common_programs import PASS
from vfgnn.files import FederationFile
from vfgnn.party.programs import of_model
from vfgnn.party.trained import PREDICTIONS, SERVING
from vfgnn.report import charts
from vfgnn.report.html import Html, list_of, markup, table_of, tag
from vfgnn.report.run.audit import Audit, audit, disagreements
from vfgnn.report.run.records import entries_of, over_one_node

COMMANDS = {PREDICTIONS: "predict", SERVING: "serve"}
SPLIT = (
    "In each pass the server saw the rows of all common nodes of every holder, and the label holder z_L of all of "
    "them, whoever was asked for."
)
SEALED = "Each pass opened the rows that were asked for to the label holder, and nothing to anybody else."
HEADINGS = ("party", "command", "began, UTC", "passes", "messages", "bytes", "outside the schedule", "log")


def afterwards(folders: Mapping[str, Path], file: FederationFile) -> Html:
    """By party; nothing if the model was never asked again."""
    logs = {party: _logs(folder) for party, folder in folders.items()}
    if not any(logs.values()):
        return Html()
    programs, rows = of_model(over_one_node(file)), []
    for party, found in logs.items():
        for log in found:
            deque(entries_of(log / "messages.jsonl", file.parties), maxlen=0)  # refused here if it cannot be read
            rows.append(_row(log, audit(log, party, programs, file.parties[party].certificate)))
    told = SEALED if file.agreement.sealed else SPLIT
    table = table_of(HEADINGS, rows, (3, 4, 5, 6))
    return markup(tag("h2", "After training"), tag("p", told), table, both_ends(disagreements(logs)))


def _row(log: Path, one: Audit) -> tuple[object, ...]:
    command = COMMANDS[log.parent.name]
    outside = tag("span", one.outside, look="bad" if one.outside else "good")
    size = charts.size(sum(line.bytes for line in one.lines))
    when = "-" if one.began is None else f"{datetime.fromtimestamp(one.began, UTC):%Y-%m-%d %H:%M:%S}"
    return one.party, command, when, _passes(one, command), f"{one.entries:,}", size, outside, one.sealed


def both_ends(found: Sequence[tuple[str, str, int]]) -> Html:
    """How the logs of each two parties compare."""
    items = [f"{one} and {other}: {count or 'no'} disagreement{'s' * (count != 1)}" for one, other, count in found]
    return markup(tag("p", "Both ends of each link, digest by digest:"), list_of(items)) if items else Html()


def _logs(folder: Path) -> list[Path]:
    found = [log.parent for kind in COMMANDS for log in (folder / kind).glob("*/messages.jsonl")]
    return sorted(found, key=lambda log: log.name)  # by time


def _passes(one: Audit, command: str) -> int:
    """A service's parties are told of each pass; a prediction is one."""
    told = [line.messages for line in one.lines if line.kind == PASS]
    return max(told, default=int(command == "predict" and one.entries > 0))
