"""The server in the sealed protocol: it aligns ids by their tokens (alignment/server.py), and does nothing else.

Sees: what an alignment shows it. It takes no part in training or prediction, and loads nothing that could. It is there
only where a federation of tables aligns by tokens, and stays until all leave together.
"""

from vfgnn.agreement import Agreement
from vfgnn.channel import Channel
from vfgnn.checkpoint import NoState
from vfgnn.common_programs import NoSizes
from vfgnn.contribution import Contribution


class SealedServer:
    """Has no messages."""

    result = None  # it learns nothing
    state_type = NoState
    known = NoSizes()

    def __init__(self, agreement: Agreement, channel: Channel, own: Contribution) -> None:
        self.agreement, self.channel = agreement, channel

    def state(self) -> NoState:
        """Nothing."""
        return NoState()

    def load(self, state: NoState) -> None:
        """Nothing to take up."""

    def close(self) -> None:
        """Nothing runs in the background."""
