"""Who has no part in finding the nodes: the dealer, and under psi the server too. Nothing leaves."""

from vfgnn.alignment import order
from vfgnn.alignment.order import Aligned
from vfgnn.alignment.program import AlignmentPlan, Counts
from vfgnn.channel import Channel


class AligningDealer:
    """Has no part in finding the nodes, and hears how many there are."""

    known = Counts()

    def __init__(self, channel: Channel, plan: AlignmentPlan) -> None:
        self.channel, self._plan = channel, plan
        self.aligned = Aligned(0)

    def settle(self, moment: Counts) -> None:
        """Hear it."""
        self.aligned = Aligned(order.hear_count(self.channel, self._plan))
