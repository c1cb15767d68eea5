"""The whole paper in one record: every row and timing, what was checked of its claims, and what the work took.

`vfgnn reproduce all` makes it; the report and docs/reproduction.md are made from it and from nothing else.
"""

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError

from vfgnn.data.partition import EdgeSplit
from vfgnn.errors import DataError
from vfgnn.experiments.baseline import Timing
from vfgnn.experiments.claims import Claim, check_claims, readings_of
from vfgnn.experiments.runner import Store, Task
from vfgnn.experiments.tables import TableRow
from vfgnn.explained import expected_of


@dataclass(frozen=True)
class Work:
    """What the trainings of one part took: two at a time, each on one core."""

    part: str
    trainings: int
    cpu_seconds: float
    first: str  # when the first and the last of them ended
    last: str
    versions: tuple[str, ...]


@dataclass(frozen=True)
class Reproduction:
    """All that a reproduction found."""

    seeds: int
    rows: tuple[TableRow, ...]
    timings: tuple[Timing, ...]
    work: tuple[Work, ...]  # by part; a training that two parts share counts in both
    total: Work  # each training once, arXiv's apart
    machine: str

    @property
    def readings(self) -> list[EdgeSplit]:
        """Those of how edges are split that rows were trained under."""
        return readings_of(self.rows)

    @property
    def claims(self) -> list[Claim]:
        """The paper's orderings, each with our numbers and whether they show it: all under each reading in turn."""
        return [claim for reading in self.readings for claim in check_claims(self.rows, self.timings, reading)]

    def of(self, *tables: str) -> list[TableRow]:
        """The rows of some tables."""
        return [row for row in self.rows if row.table in tables]

    def to_json(self) -> dict[str, Any]:
        """As a file."""
        return {
            "seeds": self.seeds,
            "machine": self.machine,
            "rows": [row.to_json() for row in self.rows],
            "timings": [asdict(timing) for timing in self.timings],
            "claims": [claim.to_json() for claim in self.claims],
            "work": [asdict(work) for work in self.work],
            "total": asdict(self.total),
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Reproduction":
        """From such a file, every value checked; claims are checked anew."""
        try:
            rows = tuple(TableRow.from_json(row) for row in content["rows"])
            made = TypeAdapter(Reproduction).validate_python({**content, "rows": tuple(map(asdict, rows))})
            _ = made.claims  # arithmetic that figures without sense do not allow
        except ValidationError as error:
            finding = error.errors(include_url=False, include_input=False)[0]
            key = ".".join(map(str, finding["loc"]))
            raise DataError(f"'{key}' cannot be used", expected=expected_of(finding), where="a reproduction") from None
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
            raise DataError("not a reproduction", expected="what `vfgnn reproduce all --json` wrote") from None
        return made


def work_of(part: str, tasks: Iterable[Task], store: Store) -> Work:
    """Sum up what was kept."""
    efforts = [effort for task in dict.fromkeys(tasks) if (effort := store.effort(task)) is not None]
    return Work(
        part=part,
        trainings=len(efforts),
        cpu_seconds=round(sum(effort.cpu_seconds for effort in efforts), 1),
        first=min((effort.finished for effort in efforts), default=""),
        last=max((effort.finished for effort in efforts), default=""),
        versions=tuple(sorted({effort.version for effort in efforts})),
    )


def machine() -> str:
    """What it ran on, in a few words."""
    python = ".".join(platform.python_version_tuple()[:2])
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), Python {python}, torch {torch.__version__.partition('+')[0]}"
    )
