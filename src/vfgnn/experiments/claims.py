"""The orderings that the paper claims, checked against our own rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from vfgnn.experiments.baseline import Timing
from vfgnn.experiments.tables import TableRow


@dataclass(frozen=True)
class Claim:
    """One ordering."""

    name: str  # where the paper says it, e.g. "Q1, Cora"
    says: str
    found: str  # our numbers
    reproduced: bool | None  # None: the rows that it needs are open


def check_claims(rows: Sequence[TableRow], timings: Sequence[Timing]) -> list[Claim]:
    """All of them, each with our numbers."""
    return []
