"""The kinds of message there are, and the declaration that each one is held against.

Nobody can send or receive anything that is not declared: kind, sender, receiver, dtype and shape are all known at
both ends before a byte moves (`parties/schedule.py` makes the declarations, `channel.py` enforces them).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import torch

WORD = torch.float64
"""Of the joint layer's messages: 8 bytes, as the words of the ring."""


class Kind(StrEnum):
    """What a message carries, from whom to whom, and therefore what the receiver sees."""

    ROW_ROLES = "row_roles"
    """Label holder -> server and publishing holders: which rows train, which validate. Never a label."""
    JOINT_WEIGHTS = "joint_weights"
    """Holder j -> holder k: j's share of the block of W that meets X_k (in the clear in `insecure_clear`)."""
    JOINT_UPDATE = "joint_update"
    """Holder i -> holder k: i's share Q_i of the update that meets X_k^T (in the clear in `insecure_clear`)."""
    H0_SHARE = "h0_share"
    """Holder -> each holder with edges: its additive share of h0. The sum of all shares is the reveal."""
    LOCAL_EMBEDDINGS = "local_embeddings"
    """Holder -> server: its published rows h_local."""
    HIDDEN = "hidden"
    """Server -> label holder: z_L of the training rows, with dropout."""
    HIDDEN_EVALUATED = "hidden_evaluated"
    """Server -> label holder: z_L of validation or predicted rows, without dropout."""
    CONTROL = "control"
    """Label holder -> everyone: whether this epoch is the best so far, and whether to stop."""
    HIDDEN_GRADIENT = "hidden_gradient"
    """Label holder -> server: dL/dz_L of the training rows."""
    LOCAL_GRADIENT = "local_gradient"
    """Server -> holder: the gradient of that holder's own published rows."""


@dataclass(frozen=True)
class Declared:
    """One message that may, and must, be sent."""

    kind: Kind
    sender: str
    receiver: str
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Payload size on the link."""
        size = self.dtype.itemsize
        for length in self.shape:
            size *= length
        return size

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"{self.kind} {self.sender}->{self.receiver} {str(self.dtype).removeprefix('torch.')}[{shape}]"


def total_bytes(messages: Iterable[Declared]) -> int:
    """Payload bytes of all links together."""
    return sum(message.bytes for message in messages)
