"""Carries out the attacks of the catalogue on the views of a run, and keeps each one's findings when it is done.

An audit that is stopped goes on from there. What was kept is found again by everything that determines it: the run and
its views, the attack and its code, and the seed.
"""

import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from torch import Generator

from vfgnn.audit.attack import AttackFinding
from vfgnn.audit.case import Attacked, Case, role_of
from vfgnn.audit.catalogue import Entry, entries_for
from vfgnn.audit.views import NotInView
from vfgnn.errors import DataError
from vfgnn.records import read_json
from vfgnn.version import __version__
from vfgnn.writing import write_whole

Kept = TypeVar("Kept")
HERE = "vfgnn.audit"
IMPORTED = re.compile(r"^from vfgnn\.audit\.(\w+) import", re.M)


@dataclass(frozen=True)
class Done:
    """What came of one entry of the catalogue on one party's view."""

    entry: str
    party: str
    findings: tuple[AttackFinding, ...]
    missing: str | None = None  # what the view or the truth lacks, where nothing could be measured
    seconds: float = 0.0


@dataclass(frozen=True)
class Job:
    """One entry, on one party's view."""

    entry: Entry
    party: str


@dataclass(frozen=True)
class Reached:
    """What the run itself came to."""

    accuracy: float | None


@dataclass(frozen=True)
class CaseResult:
    """All attacks on one run."""

    case: Case
    accuracy: float | None
    jobs: tuple[Job, ...]
    done: tuple[Done, ...]  # one for each job


class Store:
    """Findings on disk, by what determines them; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self, key: str, kind: type[Kept]) -> Kept | None:
        """What was kept before, if it can still be read."""
        path = None if self._folder is None else self._folder / f"{key}.json"
        if path is None or not path.is_file():
            return None
        try:
            return TypeAdapter(kind).validate_python(read_json(path))
        except (ValidationError, DataError):
            return None  # it is found out again

    def keep(self, key: str, found: object) -> None:
        """Whole or not there."""
        if self._folder is not None:
            write_whole(self._folder / f"{key}.json", TypeAdapter(type(found)).dump_json(found, indent=1))


def jobs_of(case: Case, parties: Collection[str] | None = None) -> list[Job]:
    """What is to be done. `parties`: whose views alone are attacked."""
    chosen = [party for party in case.parties if parties is None or party in parties]
    return [
        Job(entry, party) for party in chosen for entry in entries_for(case.protocol, role_of(case.agreement, party))
    ]


def attack(
    case: Case,
    jobs: Collection[Job],
    *,
    store: Store,
    seed: int = 0,
    on_done: Callable[[Job, Done], None] = lambda job, done: None,
) -> CaseResult:
    """All jobs, one after another; the run is made when the first of them needs it."""
    attacked = cache(case.make)
    case_key = _key(case.digest, seed)
    done = []
    for job in jobs:
        key = _key(case.digest, seed, job.entry.name, job.party, code_of(job.entry.carry_out.__module__))
        found = store.find(key, Done)
        if found is None:
            found = _attack(job, attacked(), seed)
            store.keep(key, found)
        done.append(found)
        on_done(job, found)
    reached = store.find(case_key, Reached)
    if reached is None:
        reached = Reached(attacked().accuracy)
        store.keep(case_key, reached)
    return CaseResult(case, reached.accuracy, tuple(jobs), tuple(done))


def _attack(job: Job, attacked: Attacked, seed: int) -> Done:
    began, name = time.perf_counter(), job.entry.name
    # Of its own: what an attack draws does not depend on what was attacked before.
    drawn = int.from_bytes(sha256(f"{seed} {name} {job.party}".encode()).digest()[:6])
    rng = Generator().manual_seed(drawn)
    try:
        findings, missing = job.entry.carry_out(attacked.views[job.party], attacked.truth, rng), None
    except NotInView as lack:
        findings, missing = [], str(lack)
    return Done(name, job.party, tuple(findings), missing, time.perf_counter() - began)


def _key(*parts: object) -> str:
    return sha256("\x00".join(map(str, (__version__, *parts))).encode()).hexdigest()[:32]


@cache
def code_of(module: str) -> str:
    """A digest of an attack's file, and of the files of this folder that it is made with."""
    folder, pending = resources.files(HERE), {module.rpartition(".")[2]}
    sources: dict[str, bytes] = {}
    while pending:
        name = pending.pop()
        path = folder / f"{name}.py"
        sources[name] = path.read_bytes() if path.is_file() else b""
        pending |= set(IMPORTED.findall(sources[name].decode())) - sources.keys()
    return sha256(b"\x00".join(sources[name] for name in sorted(sources))).hexdigest()
