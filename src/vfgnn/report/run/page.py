"""`vfgnn report`: one page about a run, from the run folders of one or several of its parties.

Self-contained: figures are drawn into the page, nothing is fetched, no script runs. A party that makes a page from its
own folder shows what it knows; whoever is given several folders sees them side by side.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from vfgnn.agreement import Agreement
from vfgnn.errors import DataError
from vfgnn.files import FederationFile
from vfgnn.party.programs import of_run
from vfgnn.report import charts
from vfgnn.report.html import Html, card_of, list_of, markup, page_of, table_of, tag
from vfgnn.report.run.afterwards import afterwards, both_ends
from vfgnn.report.run.audit import Audit, audit, disagreements
from vfgnn.report.run.records import Kept, LinkRecord, NoisedPart, over_one_node

LEAKS = resources.files("vfgnn.report") / "leaks.json"  # of a benchmark graph: tools/measure_leaks.py writes it
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
    return page_of(f"vfgnn run {kept[0].about.run}", parts)


def _head(kept: Sequence[Kept]) -> Html:
    first, file = kept[0].about, kept[0].file
    leader = next((one for one in kept if one.about.outcome is not None), None)
    cards: list[tuple[str, object]] = [
        ("holders", len(file.holders)),
        ("nodes", f"{first.nodes or file.nodes or 0:,}"),
        ("epochs", len(leader.metrics) - 1 if leader is not None else "-"),
        ("sent by these parties", charts.size(sum(_sent(one) for one in kept))),
    ]
    if leader is not None and leader.about.outcome is not None:
        scores = leader.about.outcome.scores
        cards = [*((SCORES.get(name, name), f"{value:.3f}") for name, value in scores.items()), *cards]
    states = ", ".join(f"{one.party} ({one.about.state})" for one in kept)
    told = f"began {first.began}, vfgnn {first.program}, federation "
    return markup(
        tag("h1", f"Run {first.run}"),
        tag("p", told, tag("code", file.digest[:16]), f"; from the records of {states}", look="soft"),
        tag("div", *(card_of(value, name) for name, value in cards), look="cards"),
    )


def _sent(one: Kept) -> int:
    return sum(link.bytes for link in one.traffic if link.sender == one.party)


def _curves(kept: Sequence[Kept]) -> Html:
    leader = next((one for one in kept if one.metrics), None)
    if leader is None:
        known = tag("p", "Loss and accuracy are known to the label holder only.", look="soft")
    else:
        known = _figure(charts.curves(leader.metrics))
    return markup(tag("h2", "Learning"), known)


def _figure(drawn: Html) -> Html:
    return tag("div", drawn, look="figure")


def _traffic(kept: Sequence[Kept]) -> Html:
    """What crossed each link by its sender's record, or by the receiver's where the sender's is not here."""
    here = {one.party for one in kept}
    found: dict[tuple[str, str], list[LinkRecord]] = defaultdict(list)
    waited: dict[tuple[str, str], float] = defaultdict(float)
    for one in kept:
        for link in one.traffic:
            ends = link.sender, link.receiver
            found[ends] += [link] if link.sender == one.party or link.sender not in here else []
            waited[ends] += link.waited_s if link.receiver == one.party else 0.0
    sizes = {ends: sum(link.bytes for link in links) for ends, links in found.items()}
    rows = [
        (" → ".join(ends), f"{sum(link.messages for link in found[ends]):,}", charts.size(sizes[ends]),
         f"{waited[ends]:.1f} s")
        for ends in sorted(sizes, key=lambda ends: -sizes[ends])
    ]  # fmt: skip
    table = table_of(("link", "messages", "payload", "receiver waited"), rows, (1, 2, 3))
    figure = charts.links({" → ".join(ends): count for ends, count in sizes.items()})
    return markup(tag("h2", "Traffic"), _figure(figure), table)


def _timeline(kept: Sequence[Kept]) -> Html:
    entries = [(one.party, entry) for one in kept for entry in one.entries or ()]
    steps = sorted({entry.step for _, entry in entries if entry.step is not None})
    if len(steps) < 3:
        return Html()
    chosen = steps[len(steps) // 2]
    of_step = [(party, entry) for party, entry in entries if entry.step == chosen]
    last = of_step[-1][1].run  # a step that was done again after a kill: its last time
    of_step = [(party, entry) for party, entry in of_step if entry.run == last]
    return markup(
        tag("h2", "An epoch"),
        tag("p", f"The messages of step {chosen}, as each party logged them, by its own clock.", look="soft"),
        _figure(charts.timeline(of_step)),
    )


def _leaks(kept: Sequence[Kept]) -> Html:
    settings, rows = kept[0].file.settings, []
    for one in kept:
        meter = one.about.leak_meter
        if meter is not None:
            rows.append((one.party, meter.revealed, meter.rank, f"{meter.share:.0%}"))
    measured = json.loads(LEAKS.read_text())
    value = {name: leak["value"] for name, leak in measured["leaks"]["cora"].items()}
    told: list[str] = [
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
        text = "The joint layer ran without masks (insecure_clear): the holders saw each other's shares."
        told.append(tag("b", text))
    headings = ("holder", "dimensions revealed", "rank of its features", "leak meter")
    table = table_of(headings, rows, (1, 2, 3)) if rows else Html()
    when, command = f"Measured on {measured['date']} with ", tag("code", measured["command"])
    return markup(
        tag("h2", "What can be inferred all the same"),
        table,
        list_of(told),
        tag("p", when, command, ", without noise; docs/threat_model.md tells more.", look="soft"),
    )


def _rebuilt(agreement: Agreement, value: dict[str, float]) -> str:
    """What the label holder can make of z_L."""
    leader, exposed = agreement.label_holder, ", ".join(agreement.exposed_publishers)
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


def _privacy(kept: Sequence[Kept]) -> Html:
    """What was noised, what it came to by each holder's ledger, and what it does not cover."""
    title = tag("h2", "Differential privacy")
    if kept[0].file.settings.privacy.off:
        return markup(title, tag("p", "None was used in this run: nothing was noised."))
    rows, notes, uncovered = [], list[str](), list[str]()
    for one in kept:
        if one.about.privacy is not None:
            uncovered = one.about.privacy.not_covered
            rows += [(one.party, *_noised(part)) for part in one.about.privacy.guarantees]
            notes += [f"{one.party}, {part.what}: {part.note}" for part in one.about.privacy.guarantees if part.note]
    if not rows:
        return markup(title, tag("p", "Ledgers are at the holders.", look="soft"))
    headings = ("holder", "what", "unit", "mechanism", "noise multiplier", "releases", "ε each", "total ε at δ")
    table = table_of(headings, rows, (4, 6, 7))
    return markup(title, table, list_of(notes), tag("p", "Not covered:"), list_of(uncovered))


def _noised(part: NoisedPart) -> tuple[str, ...]:
    """Cell by cell."""
    multiplier = part.noise_multiplier
    return (
        part.what,
        part.unit,
        part.mechanism + (f"; {part.adjacency}, {part.calibration}" if multiplier else ""),
        "-" if multiplier is None else f"{multiplier:.4f}",
        ", ".join(f"{count} {name}" for name, count in part.releases.items()),
        f"{part.epsilon_per_release:.4g}",
        f"{part.epsilon_total:.4g} at {part.delta:g}",
    )


def _saw(kept: Sequence[Kept], audits: Sequence[Audit]) -> Html:
    if not audits:
        return Html()
    rows = []
    for one in audits:
        for line in one.lines:
            mark = tag("span", "declared", look="good") if line.declared else tag("span", "not declared", look="bad")
            way = f"sent to {line.receiver}" if line.sender == one.party else f"received from {line.sender}"
            rows.append((one.party, way, tag("code", line.kind), f"{line.messages:,}", charts.size(line.bytes), mark))
    seals = [
        f"{one.party}: {one.entries:,} messages in {one.starts} start{'s' * (one.starts > 1)}, "
        f"{one.outside} outside the schedule; {one.sealed}"
        for one in audits
    ]
    logs = {one.party: [one.folder] for one in kept if one.entries is not None}
    table = table_of(("party", "", "what", "messages", "bytes", "schedule"), rows, (3, 4))
    return markup(
        tag("h2", "Who saw what"),
        tag("p", "Every message, from each party's own hash-chained log; contents are not in it."),
        list_of(seals),
        both_ends(disagreements(logs)),
        tag("details", tag("summary", "all kinds of message"), table),
    )


def _configuration(file: FederationFile) -> Html:
    settings = [(tag("code", key), value) for key, value in file.settings.model_dump().items()]
    holders = [
        (holder.name, holder.features, "yes" if holder.edges else "no",
         "label holder" if holder.name == file.label_holder else "")
        for holder in file.holders
    ]  # fmt: skip
    return markup(
        tag("h2", "Configuration"),
        table_of(("holder", "columns", "edges", ""), holders, (1,)),
        tag("details", tag("summary", "settings"), table_of(("setting", "value"), settings)),
    )
