"""What an attack is, in words, and what it found, in numbers. One file of this folder has one attack or a few.

Such a file has its `Attack` descriptions, and functions that carry them out: `(view, truth, rng) -> findings`. A
function guesses from the view alone; the truth is there to hold its guesses against. What it cannot do with this view
it leaves to `NotInView`, which `View` and `Truth` raise where something is not there. `catalogue.py` says which
function is for whom.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum

from torch import Generator

from vfgnn.audit.statistics import Comparison, Measured
from vfgnn.audit.views import Truth, View


class Target(StrEnum):
    """What an attack is after: a column of the audit's matrix, and the name in `--limit edges=0.02`."""

    EDGES = "edges"
    LABELS = "labels"
    FEATURES = "features"
    ROWS = "rows"  # what a holder publishes of a node
    DEGREES = "degrees"
    MEMBERSHIP = "membership"  # which rows trained
    WORDS = "words"  # whether what is said to be uniform is so
    EPSILON = "epsilon"  # whether a mechanism is as private as it claims


@dataclass(frozen=True)
class Attack:
    """The description that stands beside an attack's figures."""

    name: str
    who: str  # the role that attacks
    needs: str  # side knowledge, beyond its view
    target: Target
    gets: str  # the target, in words
    metric: str
    baseline: str  # the same figure from what the party has without the protocol's messages
    helps: str  # settings and mechanisms that make it worse
    literature: str


@dataclass(frozen=True)
class AttackFinding:
    """What one attack found in one run."""

    attack: Attack
    party: str  # whose view it was
    about: str  # whose secret it was
    measured: Comparison
    pooled: Measured | None = None  # sealed: the same attack on what the clear model on pooled data says

    def to_json(self) -> dict[str, object]:
        """For records."""
        pooled = {} if self.pooled is None else {"pooled": asdict(self.pooled)}
        return {**asdict(self.attack), "party": self.party, "about": self.about, **self.measured.to_json(), **pooled}


CarryOut = Callable[[View, Truth, Generator], list[AttackFinding]]
"""Carries out one attack, or a few that have their work in common."""
