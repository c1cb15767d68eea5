"""What an audit found, as rows: one for each finding, and one for each attack that could not be measured.

`auc` is the attack's figure, whatever its metric is; `baseline` is that of its best baseline.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.case import PartyRole, role_of
from vfgnn.audit.runner import CaseResult
from vfgnn.audit.statistics import HARMLESS, LEAKS, UNKNOWN
from vfgnn.errors import ConfigError, LimitExceeded
from vfgnn.version import __version__


@dataclass(frozen=True)
class AuditRow:
    """One finding, or why there is none."""

    run: str
    protocol: str
    role: PartyRole
    party: str
    attack: Attack
    finding: AttackFinding | None
    missing: str | None = None

    @property
    def verdict(self) -> str:
        """In words."""
        return f"{UNKNOWN}: no {self.missing}" if self.finding is None else self.finding.measured.verdict

    @property
    def excess(self) -> float | None:
        """By how much at least the attack is better than its best baseline."""
        return None if self.finding is None else self.finding.measured.difference[0]

    def to_json(self) -> dict[str, object]:
        """For `--json`."""
        about: dict[str, object] = {
            "run": self.run,
            "protocol": self.protocol,
            "role": str(self.role),
            "party": self.party,
            "attack": self.attack.name,
            "target": str(self.attack.target),
            "metric": self.attack.metric,
        }
        if self.finding is None:
            return {**about, "verdict": self.verdict}
        measured, pooled = self.finding.measured, self.finding.pooled
        name, best = measured.best
        return {
            **about,
            "about": self.finding.about,
            "n": measured.attack.n,
            "auc": measured.attack.value,
            "low": measured.attack.low,
            "high": measured.attack.high,
            "tpr": measured.attack.tpr,
            "advantage": measured.attack.advantage,
            "baseline": best.value,
            "baseline_low": best.low,
            "baseline_high": best.high,
            "baseline_name": name,
            "difference": list(measured.difference),
            "pooled_auc": None if pooled is None else pooled.value,
            "pooled_low": None if pooled is None else pooled.low,
            "pooled_high": None if pooled is None else pooled.high,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Audit:
    """Of one run or of several protocols on the same data."""

    results: tuple[CaseResult, ...]
    defended: bool = False  # whether the runs differ in one mitigation each
    command: str | None = None  # that makes it again, of test federations

    @property
    def rows(self) -> list[AuditRow]:
        """All of them, in the order of the catalogue."""
        return [row for result in self.results for row in _rows(result)]

    def to_json(self) -> dict[str, object]:
        """What `--json` writes."""
        attacks = {row.attack.name: row.attack for row in self.rows}
        return {
            "command": self.command,
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "version": __version__,
            "defended": self.defended,
            "runs": [_about(one) for one in self.results],
            "rows": [row.to_json() for row in self.rows],
            "attacks": [vars(one) for one in attacks.values()],
        }


def _about(result: CaseResult) -> dict[str, object]:
    case, settings = result.case, result.case.agreement.settings
    return {
        "run": case.title,
        "dataset": case.dataset,
        "protocol": case.protocol,
        "holders": len(case.agreement.holders),
        "opens": settings.sealed.opens if case.protocol == "sealed" else None,
        "test_accuracy": result.accuracy,
    }


def _rows(result: CaseResult) -> Iterable[AuditRow]:
    case = result.case
    for job, done in zip(result.jobs, result.done, strict=True):
        who = (case.title, case.protocol, role_of(case.agreement, job.party), job.party)
        if done.missing is not None:
            yield from (AuditRow(*who, attack, None, done.missing) for attack in job.entry.attacks)
        yield from (AuditRow(*who, found.attack, found) for found in done.findings)


@dataclass(frozen=True)
class Cell:
    """What one role finds out of one target, by its best attack."""

    rows: tuple[AuditRow, ...]

    @property
    def worst(self) -> AuditRow | None:
        """The finding that is furthest above its baseline."""
        found = [row for row in self.rows if row.finding is not None]
        return max(found, key=lambda row: row.excess or 0.0, default=None)

    @property
    def verdict(self) -> str:
        """Of the cell: the worst that any of its attacks has."""
        known = {row.finding.measured.verdict for row in self.rows if row.finding is not None}
        return LEAKS if LEAKS in known else HARMLESS if known == {HARMLESS} else UNKNOWN


Who = tuple[str, str, PartyRole]  # run, protocol, role


def matrix(rows: Sequence[AuditRow]) -> dict[Who, dict[Target, Cell]]:
    """Who finds out what, in each run."""
    cells: dict[Who, dict[Target, list[AuditRow]]] = {}
    for row in rows:
        cells.setdefault((row.run, row.protocol, row.role), {}).setdefault(row.attack.target, []).append(row)
    return {who: {what: Cell(tuple(some)) for what, some in found.items()} for who, found in cells.items()}


def by_run(rows: Sequence[AuditRow]) -> dict[str, dict[Target, Cell]]:
    """What anybody finds out, in each run."""
    cells: dict[str, dict[Target, list[AuditRow]]] = {}
    for row in rows:
        cells.setdefault(row.run, {}).setdefault(row.attack.target, []).append(row)
    return {run: {what: Cell(tuple(some)) for what, some in found.items()} for run, found in cells.items()}


def refuse_exceeded(rows: Sequence[AuditRow], limits: Mapping[Target, float]) -> None:
    """Each target's attacks may be better than their best baselines by so much; the interval decides, not the point."""
    for target, limit in limits.items():
        found = [row for row in rows if row.attack.target == target and row.finding is not None]
        if not found:
            raise ConfigError(
                f"the limit on {target} cannot be checked: nothing was measured",
                expected=f"a view and a truth that an attack on {target} can use",
            )
        worst = max(found, key=lambda row: row.excess or 0.0)
        if worst.finding is not None and (worst.excess or 0.0) > limit:
            measured = worst.finding.measured
            raise LimitExceeded(
                f"{target} leak more than the limit allows",
                expected=f"at most {limit:g} above the best baseline",
                got=f"at least {worst.excess:.3f}: {measured.attack.value:.3f} beside {measured.best[1].value:.3f}",
                where=f"{worst.protocol}, {worst.party}: {worst.attack.name}, about {worst.finding.about}",
                hint=worst.attack.helps,
            )
