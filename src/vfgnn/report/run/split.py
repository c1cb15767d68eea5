"""The parts of a run's page that only the paper's protocol has: learning, traffic, what can be inferred, noise."""

import json
from collections.abc import Sequence
from importlib import resources

from vfgnn.agreement import SERVER, Agreement
from vfgnn.report import charts
from vfgnn.report.html import Html, figure_of, list_of, markup, table_of, tag
from vfgnn.report.run.records import WHICH_ROWS, Kept, NoisedPart, listed
from vfgnn.report.run.traffic import added, ends_of, once
from vfgnn.split.program import HIDDEN_GRADIENT, LOCAL_EMBEDDINGS, ROW_ROLES

LEAKS = resources.files("vfgnn.report") / "leaks.json"  # of a benchmark graph: tools/measure_leaks.py writes it


def openings(kept: Sequence[Kept]) -> list[tuple[str, str]]:
    """To whom what was shown, in words, and what can be made of it: from message logs, meters and public settings."""
    file = kept[0].file
    sent = {(entry.kind, entry.sender, entry.receiver) for one in kept for entry in one.entries or ()}
    rows = sorted(sender for kind, sender, _ in sent if kind == LOCAL_EMBEDDINGS)
    noised = "noised " if file.settings.privacy.noises_rows else ""
    server = [f"{noised}rows of {listed(rows)}, which tell edges"] * bool(rows)
    server += ["training labels can be inferred"] * any(kind == HIDDEN_GRADIENT for kind, *_ in sent)
    found = [(SERVER, "; ".join(server))]
    shares = [one.about.leak_meter.share for one in kept if one.about.leak_meter is not None]
    if shares:
        low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
        span = low if low == high else f"{low} to {high}"
        found.append(("holders", f"each other's features ({span}; from 100% on, possibly all)"))
    if exposed := file.agreement.exposed_publishers:
        found.append((f"{file.label_holder} (label holder)", f"can rebuild the rows of {listed(exposed)}"))
    if told := sorted(receiver for kind, _, receiver in sent if kind == ROW_ROLES):
        found.append((listed(told), WHICH_ROWS))
    return [(who, what) for who, what in found if what]


def opened(kept: Sequence[Kept]) -> Html:
    """Who was shown what, in short."""
    told = tag("p", "By the records that this page was made from.", look="soft")
    return markup(tag("h2", "What was opened, and to whom"), told, table_of(("who", "what"), openings(kept)))


def curves(kept: Sequence[Kept]) -> Html:
    """Loss and validation accuracy."""
    leader = next((one for one in kept if one.metrics), None)
    if leader is None:
        known = tag("p", "Loss and accuracy are known to the label holder only.", look="soft")
    else:
        known = figure_of(charts.curves(leader.metrics))
    return markup(tag("h2", "Learning"), known)


def traffic(kept: Sequence[Kept]) -> Html:
    """What crossed each link."""
    found = added(once(kept), ends_of)
    rows = [
        (ends, f"{link.messages:,}", charts.size(link.bytes), f"{link.waited_s:.1f} s") for ends, link in found.items()
    ]
    table = table_of(("link", "messages", "payload", "receiver waited"), rows, (1, 2, 3))
    figure = charts.links({ends: link.bytes for ends, link in found.items()})
    return markup(tag("h2", "Traffic"), figure_of(figure), table)


def leaks(kept: Sequence[Kept]) -> Html:
    """What whoever is curious can make of what it saw."""
    settings, rows = kept[0].file.settings, []
    for one in kept:
        meter = one.about.leak_meter
        if meter is not None:
            rows.append((one.party, f"{meter.revealed:,}", f"{meter.rank:,}", f"{meter.share:.0%}"))
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
            "100% of the rank on, possibly all of them. Where a holder has no more columns than the width, one reveal "
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


def privacy(kept: Sequence[Kept]) -> Html:
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
