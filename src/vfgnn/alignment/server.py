"""The server's part in finding the common nodes by tokens. It sees tokens, never ids, and tells each holder its own.

What leaves: to each holder, how many ids are common and which of its own they are.
"""

from vfgnn.alignment import order, tokens
from vfgnn.alignment.order import Aligned
from vfgnn.alignment.program import ID_COUNT, AlignmentPlan, Counts
from vfgnn.channel import Channel


class AligningServer:
    """Matches the tokens of all holders."""

    def __init__(self, channel: Channel, plan: AlignmentPlan) -> None:
        self.channel, self._plan = channel, plan
        self.known = Counts()
        self._lists: dict[str, tokens.Tokens] = {}
        self._common: tokens.Tokens | None = None
        self.aligned = Aligned(0)

    def open(self, moment: Counts) -> None:
        """Hear how many ids each holder has."""
        self.known = Counts({holder: int(self.channel.receive(holder, ID_COUNT)) for holder in self._plan.holders})

    def exchange_tokens(self, moment: Counts) -> None:
        """Reveals: to each holder, how many ids are common."""
        self._lists = tokens.collect(self.channel, self._plan)
        self._common = tokens.intersection(self._lists)
        self.known = Counts(moment.ids, len(self._common))
        tokens.tell_count(self.channel, self._plan, len(self._common))

    def learn_positions(self, moment: Counts) -> None:
        """Reveals: to each holder, which of its own ids are common."""
        if self._common is not None:
            tokens.tell_positions(self.channel, self._plan, self._lists, self._common)

    def settle(self, moment: Counts) -> None:
        """Hear that all holders have the same order."""
        self.aligned = Aligned(order.hear_count(self.channel, self._plan, expected=moment.common))
