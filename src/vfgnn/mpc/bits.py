"""Public functions of a few XOR-shared bits, by one-time truth tables of bits.

A share of a bit is 0 or 1 in a byte of its own here; only messages are packed, 8 bits in each byte.
  1. dealer: a uniform mask bit m for each shared bit, and XOR shares of each table turned by its inputs' masks:
     T[v] = truth[v XOR m]
  2. all holders open v = b XOR m for all bits, packed
  3. each holder takes its share of T[v], which is truth[b]
One round. A bit that several tables read is opened once. For each instance a table of n inputs costs 2^n bits of
correction, at least a byte. What comes out is shared afresh: all shares but the last holder's are its seed's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import torch

from vfgnn.mpc.shared import Arithmetic, Operation, Payload
from vfgnn.mpc.sharing import BITS

MOST_INPUTS = 8


@dataclass(frozen=True)
class BitTable:
    """Which of the opened bits it reads, the lowest of an index first, and its 2^n entries of 0 or 1."""

    inputs: tuple[int, ...]
    truth: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.inputs) <= MOST_INPUTS or len(self.truth) != 2 ** len(self.inputs):
            raise ValueError(f"{len(self.truth)} entries for {len(self.inputs)} bits, of at most {MOST_INPUTS}")

    @property
    def bytes(self) -> int:
        """Of one turned table."""
        return max(1, len(self.truth) // 8)

    def index(self, bits: torch.Tensor) -> torch.Tensor:
        """The place that the bits [all, count] name, for each instance."""
        return torch.stack([bits[of].long() << place for place, of in enumerate(self.inputs)]).sum(dim=0)


@dataclass(frozen=True)
class BitTables(Operation):
    """`bits` shared bits for each of `count` instances, and the tables that read them."""

    name: ClassVar[str] = "bit tables"
    bits: int
    count: int
    tables: tuple[BitTable, ...]

    @property
    def opened(self) -> tuple[Payload, ...]:
        """V, packed."""
        return (Payload((packed_bytes(self.bits * self.count),), BITS),)

    @property
    def correction(self) -> tuple[Payload, ...]:
        """All turned tables, one after the other, of each instance."""
        return (Payload((sum(table.bytes for table in self.tables), self.count), BITS),)

    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """All turned tables."""
        m = unpack(masks[0], (self.bits, self.count))
        turned = [_turned(table.truth)[:, table.index(m)] for table in self.tables]
        return [torch.cat(turned)]


def evaluate(arithmetic: Arithmetic, share: torch.Tensor, tables: Sequence[BitTable]) -> torch.Tensor:
    """Shares of what the tables say [tables, count] from shares of bits [bits, count].

    Reveals: nothing; v is uniform to all holders.
    """
    shape = (share.shape[0], share.shape[1])
    dealt = arithmetic.material.take(BitTables(*shape, tuple(tables)))
    (v,) = arithmetic.opening.open(pack(share) ^ dealt.masks[0])
    opened, results = unpack(v, shape), []
    parts = torch.split(dealt.parts[0], [table.bytes for table in tables])
    for table, part in zip(tables, parts, strict=True):
        place = table.index(opened)
        of_eight = part.gather(0, (place >> 3).unsqueeze(0)).squeeze(0)
        results.append((of_eight >> (place & 7).to(BITS)) & 1)
    return torch.stack(results)


def packed_bytes(bits: int) -> int:
    """How many bytes carry them."""
    return -(-bits // 8)


def pack(bits: torch.Tensor) -> torch.Tensor:
    """8 bits in a byte, in order; the last byte is filled up with zeros."""
    return torch.from_numpy(np.packbits(bits.numpy().reshape(-1), bitorder="little"))


def unpack(packed: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """The bits; what fills up the last byte is left out."""
    count = int(np.prod(shape))
    return torch.from_numpy(np.unpackbits(packed.numpy(), count=count, bitorder="little").reshape(shape))


@cache
def _turned(truth: tuple[int, ...]) -> torch.Tensor:
    """For each index of masks (columns) the table turned by it, packed (rows)."""
    places = np.arange(len(truth))
    turned = np.array(truth, dtype=np.uint8)[places[:, None] ^ places[None, :]]
    return torch.from_numpy(np.packbits(turned, axis=0, bitorder="little"))
