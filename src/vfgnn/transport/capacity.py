"""How much may be under way on a link: which kinds of message, how many, and how many bytes.

Follows from the programs that the parties follow (party/session.py), so both ends count alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vfgnn.messages import Declared, Kind


@dataclass(frozen=True)
class LinkBudget:
    """What may be under way in one direction of a link: sent, and not used yet."""

    messages: int
    bytes: int
    kinds: Mapping[Kind, int]  # with the bytes of the largest message of each

    def has_room(self, waiting: int, waiting_bytes: int, message: Declared) -> bool:
        """Whether one more message may follow those that wait."""
        fits = message.bytes <= self.kinds.get(message.kind, -1)
        return fits and waiting < self.messages and waiting_bytes + message.bytes <= self.bytes


@dataclass(frozen=True)
class Capacity:
    """Both directions of a link."""

    sends: LinkBudget
    receives: LinkBudget


NOTHING = Capacity(LinkBudget(0, 0, {}), LinkBudget(0, 0, {}))
