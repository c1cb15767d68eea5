"""The parts of a run's page that only the paper's protocol has: learning, traffic, what can be inferred, noise."""

from collections.abc import Sequence

from vfgnn.agreement import SERVER, Agreement
from vfgnn.audit.case import PartyRole
from vfgnn.audit.columns_from_h0 import SPAN
from vfgnn.audit.labels_from_gradient import CLUSTERS, ONE_KNOWN
from vfgnn.audit.rows_from_hidden import EDGES
from vfgnn.report import benchmark, charts
from vfgnn.report.html import Html, figure_of, list_of, markup, table_of, tag
from vfgnn.report.run.records import Kept, NoisedPart
from vfgnn.report.run.traffic import added, ends_of, once
from vfgnn.split.program import HIDDEN_GRADIENT, LOCAL_EMBEDDINGS

LABEL_HOLDER = PartyRole.LABEL_HOLDER


def openings(kept: Sequence[Kept]) -> list[tuple[str, str]]:
    """To whom what was shown, in words, and what can be made of it: from message logs, meters and public settings."""
    file = kept[0].file
    sent = {(entry.kind, entry.sender, entry.receiver) for one in kept for entry in one.entries or ()}
    rows = sorted(sender for kind, sender, _ in sent if kind == LOCAL_EMBEDDINGS)
    noised = "noised " if file.settings.privacy.noises_rows else ""
    server = [f"{noised}rows of {' and '.join(rows)}, which tell edges"] * bool(rows)
    server += ["training labels can be inferred"] * any(kind == HIDDEN_GRADIENT for kind, *_ in sent)
    found = [(SERVER, "; ".join(server))]
    shares = [one.about.leak_meter.share for one in kept if one.about.leak_meter is not None]
    if shares:
        low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
        span = low if low == high else f"{low} to {high}"
        found.append(("holders", f"each other's features ({span}; from 100 % on, possibly all)"))
    if exposed := file.agreement.exposed_publishers:
        found.append((f"{file.label_holder} (label holder)", f"rows of {' and '.join(exposed)}, rebuilt"))
    return [(who, told) for who, told in found if told]


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
    file, rows = kept[0].file, []
    for one in kept:
        meter = one.about.leak_meter
        if meter is not None:
            rows.append((one.party, meter.revealed, meter.rank, f"{meter.share:.0%}"))
    headings = ("holder", "dimensions revealed", "rank of its features", "leak meter")
    table = table_of(headings, rows, (1, 2, 3)) if rows else Html()
    measured = benchmark.leaks()
    when, command = f"Measured on {measured.date} with ", tag("code", measured.command)
    how = tag("code", "vfgnn audit")
    return markup(
        tag("h2", "What can be inferred all the same"),
        table,
        list_of([*_inferred(file.agreement), *_shown(file.agreement)]),
        tag("p", when, command, ", without noise, Cora, two holders unless it says otherwise; docs/threat_model.md has "
            "all of it, and ", how, " attacks a run itself.", look="soft"),
    )  # fmt: skip


def _inferred(agreement: Agreement) -> list[str]:
    """By the same attacks on a benchmark."""
    worst = benchmark.leaks().worst
    edges, clusters = worst("server", "edges"), worst("server", "labels", attack=CLUSTERS.name)
    named = worst("server", "labels", attack=ONE_KNOWN.name)
    told = [
        "The server sees the published rows of every holder: ranked by similarity they give away edges "
        f"(measured: AUC {edges.value:.2f}).",
        "The server, and every holder through the gradient of its own rows, can tell which training rows have the same "
        f"label without knowing one (measured: {clusters.value:.0%} pure), and all training labels "
        f"from one known label per class ({named.value:.0%}).",
        _rebuilt(agreement),
    ]
    if agreement.settings.initial_embedding == "collaborative":
        space = worst("other holder", "features", attack=SPAN.name)
        told.append(
            "Each reveal of h0 gives the holders with edges more linear combinations of everybody's columns; from "
            f"100 % of the rank on, possibly all of them (measured: the space of {space.value:.0%} of the columns)."
        )
    return told


def _shown(agreement: Agreement) -> list[str]:
    """What settings tell somebody in so many words."""
    settings, told = agreement.settings, list[str]()
    if settings.tells_degrees:
        told.append(f"The server learns each holder's degrees up to {settings.confidence_degree}.")
    if settings.publish == "needed":
        told.append("Server and holders know which rows train and which validate.")
    if settings.joint_layer == "insecure_clear" and settings.initial_embedding == "collaborative":
        text = "The joint layer ran without masks (insecure_clear): the holders saw each other's shares."
        told.append(tag("b", text))
    return told


def _rebuilt(agreement: Agreement) -> str:
    """What the label holder can make of z_L."""
    worst, hidden = benchmark.leaks().worst, benchmark.mitigations().worst
    leader, exposed = agreement.label_holder, ", ".join(agreement.exposed_publishers)
    if exposed:
        rows, edges = (worst(LABEL_HOLDER, "rows"), worst(LABEL_HOLDER, "edges", attack=EDGES.name))
        return (
            f"{leader} can rebuild the published rows of {exposed} from z_L, and rank their edges (measured: "
            f"{rows.value:.0%} of the rows, AUC {edges.value:.2f}); all parties accepted it."
        )
    behind = hidden(LABEL_HOLDER, "edges", attack=EDGES.name, run="hidden_layers = 1")
    summed = worst(LABEL_HOLDER, "edges", attack=EDGES.name, holders=3)
    return (
        f"{leader} cannot rebuild another holder's rows, as they were before any noise, from z_L; similar rows of z_L "
        f"still tell edges (measured: AUC {behind.value:.2f} behind a hidden layer, {summed.value:.2f} from the sum of "
        "two holders' rows)."
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
