"""What is dealt ahead of the stages that use it, by the dealer and by each holder in a thread of its own.

One table of stages for both; what they do in each is theirs (dealer.py, supply.py). Reveals: nothing; whatever is dealt
is uniform to its receiver, and what goes back to the dealer is padded.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from vfgnn.agreement import Agreement
from vfgnn.channel import Channel
from vfgnn.sealed.program import SealedMoment, finish_items, script_of, step_items
from vfgnn.sealed.rehearsal import Item


class OfflineWork(ABC):
    """One party's part. `channel`: its links with the dealer, or the dealer's with the holders."""

    def __init__(self, agreement: Agreement, channel: Channel, known: SealedMoment) -> None:
        self.agreement, self.channel, self.known = agreement, channel, known

    def deal_prepare(self, moment: SealedMoment) -> None:
        """For the degrees."""
        self.deal(script_of(self.agreement, moment).prepare)

    def deal_step(self, moment: SealedMoment) -> None:
        """For one step."""
        self.deal(step_items(self.agreement, moment))

    def deal_finish(self, moment: SealedMoment) -> None:
        """For one part of what comes after the steps."""
        self.deal(finish_items(self.agreement, moment))

    @abstractmethod
    def deal(self, items: Iterable[Item]) -> None:
        """For these items, in their order."""

    @abstractmethod
    def fail(self, error: BaseException) -> None:
        """Whoever waits for what is dealt hears that no more will come, and why."""
