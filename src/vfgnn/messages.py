"""A kind of message, and the declaration that each message is held against.

Nobody can send or receive anything that is not declared: kind, sender, receiver, dtype and shape are all known at
both ends before a byte moves. Programs make the declarations (`program.py` and the `program` of each protocol), and
`channel.py` enforces them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import torch

WORD = torch.int64
"""Of what is secret-shared: words of the ring Z_2^64."""

SEED = (torch.uint8, (32,))
"""Type and shape of a seed."""

BYTE = (torch.uint8, (1,))
"""Of a word that says yes or no."""


class Kind(str):
    """What a message carries: its name on the wire and in logs, and what its receiver learns from it."""

    tells: str

    def __new__(cls, name: str, tells: str) -> Self:
        """`tells` completes "the receiver learns ..."."""
        made = super().__new__(cls, name)
        made.tells = tells
        return made


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
