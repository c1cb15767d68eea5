"""Which attacks there are: which function, in which protocol, on whose view.

A function may give findings of several attacks. Where a view lacks what it needs, those of `attacks` are listed as not
measured.
"""

from dataclasses import dataclass

from vfgnn.audit.attack import Attack, CarryOut
from vfgnn.audit.case import PartyRole
from vfgnn.party.roles import Protocol

SERVER, DEALER = PartyRole.SERVER, PartyRole.DEALER
HOLDER, LABEL_HOLDER = PartyRole.HOLDER, PartyRole.LABEL_HOLDER


@dataclass(frozen=True)
class Entry:
    """One function, and where it belongs."""

    carry_out: CarryOut
    attacks: tuple[Attack, ...]
    protocol: Protocol
    roles: tuple[PartyRole, ...]

    @property
    def name(self) -> str:
        """Its own, for what is kept."""
        return f"{self.carry_out.__module__.rpartition('.')[2]}.{self.carry_out.__name__}"


CATALOGUE: tuple[Entry, ...] = ()


def entries_for(protocol: Protocol, role: PartyRole) -> list[Entry]:
    """What can be tried with a view of this role."""
    return [entry for entry in CATALOGUE if entry.protocol == protocol and role in entry.roles]
