"""One run that is attacked: whose views there are, and the truth that guesses are held against.

`simulated_run.py` trains a test federation for it, `recorded_views.py` reads a real one. Views may be made late: where
every attack has been finished before, nothing is trained again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from vfgnn.agreement import DEALER, SERVER, Agreement
from vfgnn.audit.views import Truth, View
from vfgnn.party.roles import Protocol


class PartyRole(StrEnum):
    """What a party is in a run: a row of the audit's matrix."""

    SERVER = "server"
    DEALER = "dealer"
    HOLDER = "other holder"
    LABEL_HOLDER = "label holder"


def role_of(agreement: Agreement, party: str) -> PartyRole:
    """By its name."""
    if party in (SERVER, DEALER):
        return PartyRole(party)
    return PartyRole.LABEL_HOLDER if party == agreement.label_holder else PartyRole.HOLDER


@dataclass(frozen=True, repr=False)
class Attacked:
    """The views and the truth of a run."""

    views: Mapping[str, View]  # by party
    truth: Truth
    accuracy: float | None = None  # on test nodes, where the auditor knows it


@dataclass(frozen=True, repr=False)
class Case:
    """A run before it is attacked."""

    title: str
    protocol: Protocol
    agreement: Agreement
    parties: tuple[str, ...]  # whose views there are
    digest: str  # of all that determines what attacks find
    make: Callable[[], Attacked]
    by_itself: str | None = None  # the holder that audits itself
    dataset: str | None = None  # of a test federation
