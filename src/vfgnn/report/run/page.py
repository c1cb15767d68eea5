"""`vfgnn report`: one page about a run, from the run folders of one or several of its parties.

Self-contained: figures are drawn into the page, nothing is fetched, no script runs. A party that makes a page from its
own folder shows what it knows; whoever is given several folders sees them side by side.
"""

from collections.abc import Sequence
from pathlib import Path

from vfgnn.errors import DataError
from vfgnn.files import FederationFile
from vfgnn.party.programs import of_run
from vfgnn.party.session import AnyProgram
from vfgnn.report import charts
from vfgnn.report.html import Html, card_of, figure_of, list_of, markup, page_of, table_of, tag
from vfgnn.report.run import sealed, split
from vfgnn.report.run.afterwards import afterwards, both_ends
from vfgnn.report.run.audit import Audit, audit, disagreements
from vfgnn.report.run.records import Kept, over_one_node

SCORES = {"accuracy": "test accuracy", "f1": "F1", "auc": "AUC", "average_precision": "average precision"}


def make_page(folders: Sequence[Path]) -> str:
    """The whole page."""
    kept = [Kept.read(folder) for folder in folders]
    if len({(one.about.run, one.file.digest) for one in kept}) != 1:
        raise DataError("folders of different runs", expected="run folders of the parties of one run")
    if len({one.party for one in kept}) != len(kept):
        raise DataError("several folders of one party", expected="one run folder of each party")
    programs = of_run(over_one_node(kept[0].file))
    audits = [
        audit(one.folder, one.party, programs, one.file.parties[one.party].certificate)
        for one in kept
        if one.entries is not None
    ]
    file = kept[0].file
    parts = [
        _head(kept),
        _worth(kept),
        *_of_protocol(kept),
        _saw(kept, audits, programs),
        afterwards({one.party: one.folder for one in kept}, file),
        _configuration(file),
    ]
    return page_of(f"vfgnn run {kept[0].about.run}", parts)


def _of_protocol(kept: Sequence[Kept]) -> list[Html]:
    """What was learnt, sent and shown."""
    if kept[0].file.agreement.sealed:
        return [sealed.opened(kept), sealed.progress(kept), sealed.traffic(kept), _timeline(kept, "A step")]
    return [
        split.opened(kept),
        split.curves(kept),
        split.traffic(kept),
        _timeline(kept, "An epoch"),
        split.leaks(kept),
        split.privacy(kept),
    ]


def _head(kept: Sequence[Kept]) -> Html:
    first, file = kept[0].about, kept[0].file
    leader = next((one for one in kept if one.about.outcome is not None), None)
    cards: list[tuple[str, object]] = [
        ("holders", len(file.holders)),
        ("nodes", f"{first.nodes or file.nodes or 0:,}"),
        _length(file, leader),
        *([] if first.rounds is None else [("rounds", f"{first.rounds:,}")]),
        ("sent by these parties", charts.size(sum(_sent(one) for one in kept))),
    ]
    if leader is not None and leader.about.outcome is not None:
        scores = leader.about.outcome.scores
        cards = [*((SCORES.get(name, name), f"{value:.3f}") for name, value in scores.items()), *cards]
    states = ", ".join(f"{one.party} ({one.about.state})" for one in kept)
    protocol = "sealed" if file.agreement.sealed else "split, the paper's"
    told = f"protocol {protocol}; began {first.began}, vfgnn {first.program}, federation "
    return markup(
        tag("h1", f"Run {first.run}"),
        tag("p", told, tag("code", file.digest[:16]), f"; from the records of {states}", look="soft"),
        tag("div", *(card_of(value, name) for name, value in cards), look="cards"),
    )


def _worth(kept: Sequence[Kept]) -> Html:
    """What the federation reached beside the label holder's own data, by its record."""
    leader = next((one for one in kept if one.about.alone is not None and one.about.outcome is not None), None)
    if leader is None or leader.about.alone is None or leader.about.outcome is None:
        return Html()
    title, alone, reached = tag("h2", "Was it worth it?"), leader.about.alone, leader.about.outcome.scores
    if not alone.scores:
        return markup(title, tag("p", f"No model of {leader.party}'s data alone to compare: {alone.reason}."))
    rows = [
        (SCORES.get(name, name), f"{alone.scores[name]:.4f}", f"{value:.4f}", f"{value - alone.scores[name]:+.4f}")
        for name, value in reached.items()
        if name in alone.scores
    ]
    told = (
        f"The same model over {leader.party}'s own columns and edges, trained at {leader.party} after the run, on the "
        "same training nodes; on test nodes. A small difference may be chance."
    )
    headings = ("", f"{leader.party} alone", "federation", "difference")
    return markup(title, tag("p", told), table_of(headings, rows, (1, 2, 3)))


def _length(file: FederationFile, leader: Kept | None) -> tuple[str, object]:
    """Of the training, as the label holder counted it: an epoch more is the evaluation at the end."""
    name, more = ("steps", 0) if file.agreement.sealed else ("epochs", 1)
    return name, "-" if leader is None else len(leader.metrics) - more


def _sent(one: Kept) -> int:
    return sum(link.bytes for link in one.traffic if link.sender == one.party)


def _timeline(kept: Sequence[Kept], title: str) -> Html:
    entries = [(one.party, entry) for one in kept for entry in one.entries or ()]
    steps = sorted({entry.step for _, entry in entries if entry.step is not None})
    if len(steps) < 3:
        return Html()
    chosen = steps[len(steps) // 2]
    of_step = [(party, entry) for party, entry in entries if entry.step == chosen]
    last = of_step[-1][1].run  # a step that was done again after a kill: its last time
    of_step = [(party, entry) for party, entry in of_step if entry.run == last]
    return markup(
        tag("h2", title),
        tag("p", f"The messages of step {chosen}, as each party logged them, by its own clock.", look="soft"),
        figure_of(charts.timeline(of_step)),
    )


def _saw(kept: Sequence[Kept], audits: Sequence[Audit], programs: Sequence[AnyProgram]) -> Html:
    """Every kind of message: who had it, and what its receiver learns."""
    if not audits:
        return Html()
    tells = {str(message.kind): message.kind.tells for program in programs for message in program.messages()}
    rows = []
    for one in audits:
        for line in one.lines:
            mark = tag("span", "declared", look="good") if line.declared else tag("span", "not declared", look="bad")
            way = f"sent to {line.receiver}" if line.sender == one.party else f"received from {line.sender}"
            kind, learnt = tag("code", line.kind), tells.get(line.kind, "-")
            rows.append((one.party, way, kind, learnt, f"{line.messages:,}", charts.size(line.bytes), mark))
    seals = [
        f"{one.party}: {one.entries:,} messages in {one.starts} start{'s' * (one.starts > 1)}, "
        f"{one.outside} outside the schedule; {one.sealed}"
        for one in audits
    ]
    logs = {one.party: [one.folder] for one in kept if one.entries is not None}
    headings = ("party", "", "what", "its receiver learns", "messages", "bytes", "schedule")
    table = table_of(headings, rows, (4, 5))
    return markup(
        tag("h2", "Who saw what"),
        tag("p", "Every message, from each party's own hash-chained log; contents are not in it."),
        list_of(seals),
        both_ends(disagreements(logs)),
        tag("details", tag("summary", "all kinds of message"), table),
    )


def _configuration(file: FederationFile) -> Html:
    is_sealed = file.agreement.sealed
    settings = sealed.settings_of(file) if is_sealed else list(file.settings.model_dump().items())
    declared = ["directed edges, at most"] * is_sealed
    holders = [
        (holder.name + " (label holder)" * (holder.name == file.label_holder),
         "yes" if holder.edges else "no", f"{holder.features:,}", *[f"{holder.entry_bound:,}"] * is_sealed)
        for holder in file.holders
    ]  # fmt: skip
    shown = [(tag("code", key), value) for key, value in settings]
    return markup(
        tag("h2", "Configuration"),
        table_of(("holder", "edges", "columns", *declared), holders, (2, 3)),
        tag("details", tag("summary", "settings"), table_of(("setting", "value"), shown)),
    )
