"""What an attack is, in words, and what it found, in numbers. One file of this folder has one attack or a few."""

from dataclasses import asdict, dataclass

from vfgnn.audit.statistics import Comparison


@dataclass(frozen=True)
class Attack:
    """The description that stands beside an attack's figures."""

    name: str
    who: str  # the role that attacks
    needs: str  # side knowledge, beyond its view
    target: str
    metric: str
    baseline: str  # the same figure from what the party has without the protocol's messages
    literature: str


@dataclass(frozen=True)
class AttackFinding:
    """What one attack found in one run."""

    attack: Attack
    party: str  # whose view it was
    about: str  # whose secret it was
    measured: Comparison

    def to_json(self) -> dict[str, object]:
        """For leaks.json."""
        return {**asdict(self.attack), "party": self.party, "about": self.about, **self.measured.to_json()}
