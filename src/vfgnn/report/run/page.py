"""`vfgnn report`: one page about a run, from the run folders of one or several of its parties.

Self-contained: figures are drawn into the page, nothing is fetched, no script runs. A party that makes a page from its
own folder shows what it knows; whoever is given several folders sees them side by side.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from vfgnn.agreement import Agreement
from vfgnn.errors import DataError
from vfgnn.files import FederationFile
from vfgnn.message_log import Entry, read_entries
from vfgnn.party.programs import of_run
from vfgnn.report import charts
from vfgnn.report.html import escape as _
from vfgnn.report.html import page_of, table_of
from vfgnn.report.run.afterwards import afterwards, both_ends
from vfgnn.report.run.audit import Audit, audit, disagreements

LEAKS = resources.files("vfgnn.report") / "leaks.json"  # of a benchmark graph: tools/measure_leaks.py writes it


@dataclass(frozen=True)
class Kept:
    """One party's run folder."""

    folder: Path
    about: dict[str, object]
    file: FederationFile
    traffic: list[dict[str, object]]
    metrics: list[dict[str, float | None]]

    @property
    def party(self) -> str:
        """Whose it is."""
        return str(self.about["party"])

    @staticmethod
    def read(folder: Path) -> "Kept":
        """A run folder, or a DataError that says what is missing."""
        try:
            about = json.loads((folder / "run.json").read_text())
            file = FederationFile.model_validate_json((folder / "federation.json").read_text())
            traffic = json.loads((folder / "traffic.json").read_text()) if (folder / "traffic.json").is_file() else []
        except (OSError, ValueError) as error:
            raise DataError(
                "not a run folder", expected="run.json and federation.json", got=str(error), where=str(folder)
            ) from None
        lines = (folder / "metrics.jsonl").read_text().splitlines() if (folder / "metrics.jsonl").is_file() else []
        return Kept(folder, about, file, traffic, [json.loads(line) for line in lines])


def make_page(folders: Sequence[Path]) -> str:
    """The whole page."""
    kept = [Kept.read(folder) for folder in folders]
    if len({(one.about["run"], one.file.digest) for one in kept}) != 1:
        raise DataError("folders of different runs", expected="run folders of the parties of one run")
    programs = of_run(kept[0].file)
    audits = [
        audit(one.folder, one.party, programs, one.file.parties[one.party].certificate)
        for one in kept
        if (one.folder / "messages.jsonl").is_file()
    ]
    parts = [
        _head(kept),
        _curves(kept),
        _traffic(kept),
        _timeline(kept),
        _leaks(kept),
        _privacy(kept),
        _saw(kept, audits),
        afterwards({one.party: one.folder for one in kept}, kept[0].file),
        _configuration(kept[0].file),
    ]
    return page_of(f"vfgnn run {kept[0].about['run']}", parts)


def _head(kept: Sequence[Kept]) -> str:
    first, file = kept[0], kept[0].file
    leader = next((one for one in kept if "outcome" in one.about), None)
    cards = [
        ("holders", len(file.holders)),
        ("nodes", f"{int(str(first.about.get('nodes') or file.nodes or 0)):,}"),
        ("epochs", len(leader.metrics) - 1 if leader is not None else "-"),
        ("sent by these parties", charts.size(sum(_sent(one) for one in kept))),
    ]
    if leader is not None:
        outcome = leader.about["outcome"]
        if isinstance(outcome, dict):
            names = {"accuracy": "test accuracy", "f1": "F1", "auc": "AUC", "average_precision": "average precision"}
            cards = [*((names[name], f"{value:.3f}") for name, value in outcome["scores"].items()), *cards]
    shown = "".join(f'<div class="card"><b>{_(value)}</b>{_(name)}</div>' for name, value in cards)
    states = ", ".join(f"{_(one.party)} ({_(one.about['state'])})" for one in kept)
    return (
        f"<h1>Run {_(first.about['run'])}</h1>"
        f'<p class="soft">began {_(first.about["began"])}, vfgnn {_(first.about["program"])}, federation '
        f"<code>{_(file.digest[:16])}</code>; from the records of {states}</p>"
        f'<div class="cards">{shown}</div>'
    )


def _sent(one: Kept) -> int:
    return sum(int(str(link["bytes"])) for link in one.traffic if link["sender"] == one.party)


def _curves(kept: Sequence[Kept]) -> str:
    leader = next((one for one in kept if one.metrics), None)
    if leader is None:
        return '<h2>Learning</h2><p class="soft">Loss and accuracy are known to the label holder only.</p>'
    return f'<h2>Learning</h2><div class="figure">{charts.curves(leader.metrics)}</div>'


def _traffic(kept: Sequence[Kept]) -> str:
    total: dict[tuple[str, str], dict[str, float]] = {}
    for one in kept:
        for link in one.traffic:
            ends = str(link["sender"]), str(link["receiver"])
            if link["sender"] == one.party or ends[0] not in {other.party for other in kept}:
                found = total.setdefault(ends, {"messages": 0, "bytes": 0, "waited_s": 0})
                found["messages"] += float(str(link["messages"]))
                found["bytes"] += float(str(link["bytes"]))
            if link["receiver"] == one.party:
                total.setdefault(ends, {"messages": 0, "bytes": 0, "waited_s": 0})["waited_s"] += float(
                    str(link["waited_s"])
                )
    rows = [
        (
            _(f"{sender} → {receiver}"),
            f"{link['messages']:,.0f}",
            charts.size(link["bytes"]),
            f"{link['waited_s']:.1f} s",
        )
        for (sender, receiver), link in sorted(total.items(), key=lambda item: -item[1]["bytes"])
    ]
    table = table_of(("link", "messages", "payload", "receiver waited"), rows, (1, 2, 3))
    figure = charts.links({f"{a} → {b}": link["bytes"] for (a, b), link in total.items()})
    return f'<h2>Traffic</h2><div class="figure">{figure}</div>{table}'


def _timeline(kept: Sequence[Kept]) -> str:
    entries: list[tuple[str, Entry]] = []
    for one in kept:
        if (one.folder / "messages.jsonl").is_file():
            entries += [(one.party, entry) for entry in read_entries(one.folder / "messages.jsonl")]
    steps = sorted({entry.step for _, entry in entries if entry.step is not None})
    if len(steps) < 3:
        return ""
    chosen = steps[len(steps) // 2]
    of_step = [(party, entry) for party, entry in entries if entry.step == chosen]
    last = of_step[-1][1].run  # a step that was done again after a kill: its last time
    of_step = [(party, entry) for party, entry in of_step if entry.run == last]
    return (
        f'<h2>An epoch</h2><p class="soft">The messages of step {chosen}, as each party logged them, by its own clock'
        ".</p>"
        f'<div class="figure">{charts.timeline(of_step)}</div>'
    )


def _leaks(kept: Sequence[Kept]) -> str:
    settings, rows = kept[0].file.settings, []
    for one in kept:
        meter = one.about.get("leak_meter")
        if isinstance(meter, dict):
            rows.append((_(one.party), meter["revealed"], meter["rank"], f"{meter['share']:.0%}"))
    measured = json.loads(LEAKS.read_text())
    value = {name: leak["value"] for name, leak in measured["leaks"]["cora"].items()}
    told = [
        "The server sees the published rows of every holder: ranked by similarity they give away edges "
        f"(measured: AUC {value['edges of B']:.2f}).",
        "The server, and every holder through the gradient of its own rows, can tell which training rows have the same "
        f"label without knowing one (measured: {value['label clusters, server']:.0%} pure), and all training labels "
        f"from one known label per class ({value['labels, server']:.0%}).",
        _rebuilt(kept[0].file.agreement, value),
    ]
    if settings.initial_embedding == "collaborative":
        told.append(
            "Each reveal of h0 gives the holders with edges more linear combinations of everybody's columns; from "
            "100 % of the rank on, possibly all of them. Where a holder has no more columns than the width, one reveal "
            f"gives its 0/1 columns away without a known row (measured: {value['0/1 columns']:.0%} of 20, exactly)."
        )
    if settings.tells_degrees:
        told.append(f"The server learns each holder's degrees up to {settings.confidence_degree}.")
    if settings.publish == "needed":
        told.append("Server and holders know which rows train and which validate.")
    if settings.joint_layer == "insecure_clear" and settings.initial_embedding == "collaborative":
        told.append("<b>The joint layer ran without masks (insecure_clear): the holders saw each other's shares.</b>")
    table = (
        table_of(("holder", "dimensions revealed", "rank of its features", "leak meter"), rows, (1, 2, 3))
        if rows
        else ""
    )
    items = "".join(f"<li>{text}</li>" for text in told)
    return (
        f"<h2>What can be inferred all the same</h2>{table}<ul>{items}</ul>"
        f'<p class="soft">Measured on {measured["date"]} with <code>{_(measured["command"])}</code>, without noise; '
        "docs/threat_model.md tells more.</p>"
    )


def _rebuilt(agreement: Agreement, value: dict[str, float]) -> str:
    """What the label holder can make of z_L."""
    leader, exposed = _(agreement.label_holder), ", ".join(_(name) for name in agreement.exposed_publishers)
    if exposed:
        return (
            f"{leader} can rebuild the published rows of {exposed} from z_L, and rank their edges (measured: "
            f"{value['rows from z_L']:.0%} of the rows, AUC {value['edges from z_L']:.2f}); all parties accepted it."
        )
    return (
        f"{leader} cannot rebuild another holder's rows, as they were before any noise, from z_L; similar rows of z_L "
        f"still tell edges (measured: AUC {value['edges from z_L, hidden layer']:.2f} behind a hidden layer, "
        f"{value['edges from z_L, three holders']:.2f} from the sum of two holders' rows)."
    )


def _privacy(kept: Sequence[Kept]) -> str:
    """What was noised, what it came to by each holder's ledger, and what it does not cover."""
    if kept[0].file.settings.privacy.off:
        return "<h2>Differential privacy</h2><p>None was used in this run: nothing was noised.</p>"
    rows, uncovered, notes = [], [], []
    for one in kept:
        stated = one.about.get("privacy")
        if not isinstance(stated, dict):
            continue
        uncovered = stated["not_covered"]
        for part in stated["guarantees"]:
            releases = ", ".join(f"{count} {name}" for name, count in part["releases"].items())
            multiplier = part["noise_multiplier"]
            how = _(part["mechanism"]) + (f"; {_(part['adjacency'])}, {_(part['calibration'])}" if multiplier else "")
            rows.append((_(one.party), _(part["what"]), _(part["unit"]), how,
                         "-" if multiplier is None else f"{multiplier:.4f}", _(releases),
                         f"{part['epsilon_per_release']:.4g}",
                         f"{part['epsilon_total']:.4g} at {part['delta']:g}"))  # fmt: skip
            notes += [f"{_(one.party)}, {_(part['what'])}: {_(part['note'])}"] if part["note"] else []
    if not rows:
        return '<h2>Differential privacy</h2><p class="soft">Ledgers are at the holders.</p>'
    headings = ("holder", "what", "unit", "mechanism", "noise multiplier", "releases", "ε each", "total ε at δ")
    told = "".join(f"<li>{note}</li>" for note in notes)
    missing = "".join(f"<li>{_(text)}</li>" for text in uncovered)
    return (
        f"<h2>Differential privacy</h2>{table_of(headings, rows, (4, 6, 7))}<ul>{told}</ul>"
        f"<p>Not covered:</p><ul>{missing}</ul>"
    )


def _saw(kept: Sequence[Kept], audits: Sequence[Audit]) -> str:
    if not audits:
        return ""
    rows = []
    for one in audits:
        for line in one.lines:
            mark = '<span class="good">declared</span>' if line.declared else '<span class="bad">not declared</span>'
            way = "sent to" if line.sender == one.party else "received from"
            peer = line.receiver if line.sender == one.party else line.sender
            rows.append((_(one.party), _(f"{way} {peer}"), f"<code>{_(line.kind)}</code>", f"{line.messages:,}",
                         charts.size(line.bytes), mark))  # fmt: skip
    seals = "".join(
        f"<li>{_(one.party)}: {one.entries:,} messages in {one.starts} start{'s' * (one.starts > 1)}, "
        f"{one.outside} outside the schedule; {_(one.sealed)}</li>"
        for one in audits
    )
    cross = both_ends(disagreements({one.party: [one.folder] for one in kept}))
    table = table_of(("party", "", "what", "messages", "bytes", "schedule"), rows, (3, 4))
    return (
        "<h2>Who saw what</h2><p>Every message, from each party's own hash-chained log; contents are not in it.</p>"
        f"<ul>{seals}</ul>{cross}<details><summary>all kinds of message</summary>{table}</details>"
    )


def _configuration(file: FederationFile) -> str:
    settings = [(f"<code>{_(key)}</code>", _(value)) for key, value in file.settings.model_dump().items()]
    holders = [
        (_(holder.name), holder.features, "yes" if holder.edges else "no",
         "label holder" if holder.name == file.label_holder else "")
        for holder in file.holders
    ]  # fmt: skip
    return (
        "<h2>Configuration</h2>"
        + table_of(("holder", "columns", "edges", ""), holders, (1,))
        + f"<details><summary>settings</summary>{table_of(('setting', 'value'), settings)}</details>"
    )
