"""The label holder's word after an evaluation: one bit each for `improved` and `stop`."""

from dataclasses import dataclass

import torch

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
