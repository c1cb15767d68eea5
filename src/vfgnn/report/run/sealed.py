"""The parts of a run's page that only the sealed protocol has: what was opened to whom, and what crossed links when.

A step has no loss and no accuracy: nobody could see one. So there are no curves, but bytes over time.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

from vfgnn.agreement import DEALER, SERVER
from vfgnn.files import FederationFile
from vfgnn.message_log import Entry
from vfgnn.report import benchmark, charts
from vfgnn.report.html import Html, figure_of, list_of, markup, table_of, tag
from vfgnn.report.opened import opened_grid
from vfgnn.report.run.records import Kept, LinkRecord, OpenedPart
from vfgnn.report.run.traffic import added, ends_of, once
from vfgnn.sealed.record import PARTS, part_of
from vfgnn.sealed.training import QUOTIENT

MEANS = {
    "setup": "seeds, masked features, permutations: once",
    "offline": "to and from the dealer: what needs nobody's data, and may be sent ahead",
    "online": "among the holders: masked values, and what is opened to the label holder",
}
MEANT = ("protocol", "class_weights", "select_by", "feature_bound")  # the other settings are the paper's protocol's


def openings(kept: Sequence[Kept]) -> list[tuple[str, str]]:
    """To whom what was opened, in words, by the record of whoever has one."""
    found = _opened(kept)
    if found is None:
        return []
    told = (
        f"{found.what} of {_nodes(found):,} rows, {found.validation_rows:,} validation classes, "
        f"{found.scalars} inner products"
    )
    return [(f"{found.to} (label holder)", told), ("everybody else", "nothing")]


def _opened(kept: Sequence[Kept]) -> OpenedPart | None:
    return next((one.about.opened for one in kept if one.about.opened is not None), None)


def _nodes(found: OpenedPart) -> int:
    return max(0, found.rows - found.validation_rows)


def opened(kept: Sequence[Kept]) -> Html:
    """Who learnt what, and what can be made of it."""
    title, found = tag("h2", "What was opened, and to whom"), _opened(kept)
    if found is None:
        return markup(
            title, tag("p", "No record here says so: the run did not end, or the holders have it.", look="soft")
        )
    leader, file = f"{found.to} (label holder)", kept[0].file
    rows = [
        (leader, f"the predicted {found.what}", f"{_nodes(found):,} rows"),
        (leader, "predicted classes of validation rows, for each ridge", f"{found.validation_rows:,} rows"),
        (leader, "inner products of the training", f"{found.scalars} numbers"),
        ("every other holder", "which rows train and which validate; else uniform words", "nothing opened"),
        (DEALER, "sizes, and how many rows train and validate; else uniform words", "nothing opened"),
    ]
    if SERVER in file.parties:
        rows.append((SERVER, "tokens of ids, while ids were aligned; it took no part in training", "nothing opened"))
    return markup(
        title,
        table_of(("who", "learnt", ""), rows, (2,)),
        *_warnings(kept, found),
        tag("p", "What that allows:"),
        list_of(found.allows),
        *_measured(),
        tag("p", "docs/sealed.md, section 5, tells more. Dealer and any one holder together could undo every mask.",
            look="soft"),
    )  # fmt: skip


def _measured() -> list[Html]:
    """On public benchmarks."""
    measured = benchmark.leaks()
    told = (
        "Learnt from its own edges. The protocol adds nothing to what the pooled model's outputs tell. Measured on "
        f"{measured.date} with "
    )
    return [opened_grid(measured).to_html(), tag("p", told, tag("code", measured.command), look="soft")]


def _warnings(kept: Sequence[Kept], found: OpenedPart) -> list[Html]:
    """Where the records do not tell the same, or more was opened than one training opens."""
    told = []
    others = [one.party for one in kept if one.about.opened not in (None, found)]
    if others:
        told.append(f"The record of {' and '.join(others)} says otherwise.")
    starts = {entry.run for entry in _entries(kept) if entry.kind == QUOTIENT}
    if len(starts) > 1:
        told.append(f"The training was begun {len(starts)} times: each start may have told {found.to} as much.")
    return [tag("p", text, look="bad") for text in told]


def _entries(kept: Sequence[Kept]) -> list[Entry]:
    """Each message once: as its sender logged it, or its receiver where the sender's log is not here."""
    here = {one.party for one in kept if one.entries is not None}
    logged = chain.from_iterable(((one.party, entry) for entry in one.entries or ()) for one in kept)
    return [entry for party, entry in logged if entry.sender == party or entry.sender not in here]


def progress(kept: Sequence[Kept]) -> Html:
    """Bytes over time, of the last start."""
    entries = _entries(kept)
    if not entries:
        return Html()
    last = max(entries, key=lambda entry: entry.at).run
    entries = sorted((entry for entry in entries if entry.run == last), key=lambda entry: entry.at)
    sent: dict[str, list[tuple[float, int]]] = {part: [] for part in PARTS}
    steps = dict[int, float]()
    for entry in entries:
        part = part_of(entry.phase, entry.sender, entry.receiver)
        if part is not None:
            sent[part].append((entry.at - entries[0].at, entry.bytes))
        if part == "online" and entry.step is not None:
            steps.setdefault(entry.step, entry.at - entries[0].at)
    told = (
        "Bytes as they were sent, from the parties' own logs and clocks; dotted: where a step begins, counted from 0."
    )
    return markup(
        tag("h2", "Training"), tag("p", told, look="soft"), figure_of(charts.progress(sent, sorted(steps.items())))
    )


def traffic(kept: Sequence[Kept]) -> Html:
    """Setup, offline and online: in all, and on each link."""
    links = once(kept)
    by_part, by_link = added(links, _part), added(links, ends_of)
    rows = [
        (part, MEANS[part], f"{by_part[part].messages:,}", charts.size(by_part[part].bytes))
        for part in PARTS
        if part in by_part
    ]
    parts = {ends: added((link for link in links if ends_of(link) == ends), _part) for ends in by_link}
    per_link = [
        (ends, *(_size(parts[ends], part) for part in PARTS), f"{link.messages:,}", f"{link.waited_s:.1f} s")
        for ends, link in by_link.items()
    ]
    headings = ("link", *PARTS, "messages", "receiver waited")
    sizes = {ends: {part: float(link.bytes) for part, link in found.items()} for ends, found in parts.items()}
    return markup(
        tag("h2", "Traffic"),
        table_of(("part", "", "messages", "payload"), rows, (2, 3)),
        figure_of(charts.parts_of_links(sizes)) if by_part else Html(),
        table_of(headings, per_link, (1, 2, 3, 4, 5)),
    )


def _part(link: LinkRecord) -> str | None:
    return part_of(link.phase, link.sender, link.receiver)


def _size(parts: Mapping[str, LinkRecord], part: str) -> str:
    return charts.size(parts[part].bytes) if part in parts else "-"


def settings_of(file: FederationFile) -> list[tuple[str, object]]:
    """Those that mean something here."""
    settings = file.settings
    meant: dict[str, object] = {key: getattr(settings, key) for key in MEANT}
    chosen = settings.sealed.model_dump() | {"hops": settings.sealed.depth}
    listed = {key: ", ".join(map(str, value)) if isinstance(value, tuple) else value for key, value in chosen.items()}
    return list(meant.items()) + [(f"sealed.{key}", value) for key, value in listed.items()]
