"""Who saw what, checked: a party's message log against its seal, against the schedule, and against its peers' logs."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from vfgnn.chain import FIRST
from vfgnn.errors import LogRefused
from vfgnn.message_log import Seal, read_entries, seal_path
from vfgnn.program import Program
from vfgnn.shown import shown
from vfgnn.transport import certificates

Told = tuple[str, str, str, int | None, str]


@dataclass(frozen=True)
class Line:
    """All messages of one kind on one link, as one party logged them."""

    sender: str
    receiver: str
    kind: str
    declared: bool  # whether the schedule has this kind on this link
    messages: int
    bytes: int


@dataclass(frozen=True)
class Audit:
    """One party's log."""

    party: str
    began: float | None  # seconds since 1970, by the party's clock; None: nothing was sent
    entries: int
    starts: int
    sealed: str  # what its signature says
    lines: tuple[Line, ...]

    @property
    def outside(self) -> int:
        """Messages that the schedule does not name: there should be none."""
        return sum(line.messages for line in self.lines if not line.declared)


def audit(folder: Path, party: str, programs: Iterable[Program[Any]], certificate: str | None) -> Audit:
    """Read one party's log and check it against what its programs may send; an altered one is refused."""
    declared = {
        (message.sender, message.receiver, str(message.kind)) for program in programs for message in program.messages()
    }
    counts, sizes = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    starts, began, head = set[str](), None, FIRST
    for entry in read_entries(folder / "messages.jsonl"):
        link = entry.sender, entry.receiver, entry.kind
        counts[link] += 1
        sizes[link] += entry.bytes
        starts.add(entry.run)
        began, head = began or entry.at, entry.hash
    return Audit(
        party=party,
        began=began,
        entries=counts.total(),
        starts=len(starts),
        sealed=_seal(folder, counts.total(), head, certificate),
        lines=tuple(Line(*link, link in declared, counts[link], sizes[link]) for link in sorted(counts)),
    )


def _seal(folder: Path, entries: int, head: str, listed: str | None) -> str:
    path = seal_path(folder / "messages.jsonl")
    if not path.is_file():
        return "not sealed: it did not end"
    seal = _read_seal(path)
    content = json.dumps({"entries": entries, "head": head}, sort_keys=True).encode()
    certificate = certificates.parse(seal.certificate, str(path))
    if listed is not None and certificates.parse(listed, "the federation file") != certificate:
        raise LogRefused(
            "a seal of somebody else", expected="the certificate that the federation lists", where=str(path)
        )
    if not certificates.verify(content, bytes.fromhex(seal.signature), certificate):
        raise LogRefused("a seal that does not fit its log", where=str(path), hint="the log was altered after the run")
    return f"signed by {certificates.name_of(certificate)}, certificate {certificates.fingerprint(certificate)[:23]}…"


def _read_seal(path: Path) -> Seal:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Seal)
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise LogRefused("a seal that cannot be read", got=shown(str(error), most=120), where=str(path)) from None


def disagreements(logs: Mapping[str, Iterable[Path]]) -> list[tuple[str, str, int]]:
    """Every pair of parties, and how many messages between the two their logs do not tell alike, by digest.

    `logs`: the folders of each. A killed party may lack its last message.
    """
    told = {party: _told(party, folders) for party, folders in logs.items()}
    found = []
    for one, other in combinations(logs, 2):
        mine, theirs = told[one][other], told[other][one]
        found.append((one, other, ((mine - theirs) + (theirs - mine)).total()))
    return found


def _told(party: str, folders: Iterable[Path]) -> dict[str, Counter[Told]]:
    """What a party tells of each peer."""
    told: dict[str, Counter[Told]] = defaultdict(Counter)
    for folder in folders:
        for entry in read_entries(folder / "messages.jsonl"):
            peer = entry.receiver if entry.sender == party else entry.sender
            told[peer][entry.run, entry.sender, entry.kind, entry.step, entry.digest] += 1
    return told
