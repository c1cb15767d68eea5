"""The label holder's word after an evaluation, one bit each for `improved` and `stop`, and what others do with it."""

from dataclasses import dataclass

import torch

from vfgnn.agreement import Agreement
from vfgnn.channel import Channel
from vfgnn.split.program import CONTROL
from vfgnn.split.steps import Moment

IMPROVED, STOP = 1, 2  # bits of CONTROL


@dataclass(frozen=True)
class Decision:
    """What everyone hears."""

    improved: bool  # keep these weights: the best so far
    stop: bool

    def encode(self) -> torch.Tensor:
        """As the payload of CONTROL."""
        return torch.tensor([IMPROVED * self.improved | STOP * self.stop], dtype=torch.uint8)

    @staticmethod
    def decode(payload: torch.Tensor) -> "Decision":
        """From the payload of CONTROL."""
        bits = int(payload[0])
        return Decision(improved=bool(bits & IMPROVED), stop=bool(bits & STOP))


class Listener:
    """What every role but the label holder's does after an evaluation."""

    agreement: Agreement
    channel: Channel

    def decide(self, moment: Moment) -> bool:
        """Hear the label holder's word; whether it was the last."""
        decision = Decision.decode(self.channel.receive(self.agreement.label_holder, CONTROL))
        if decision.improved:
            self.keep_best()
        return decision.stop

    def keep_best(self) -> None:
        """Remember the weights of now; a role without weights has nothing to remember."""
