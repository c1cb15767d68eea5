"""What holders open over their channels: masked values to all of them, and classes to one of them.

Runs at every holder. What leaves are shares; who learns what they join to stands at each function.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from vfgnn.channel import Channel
from vfgnn.errors import ProtocolError
from vfgnn.messages import Declared, Kind
from vfgnn.mpc.bits import pack, packed_bytes, unpack
from vfgnn.mpc.shared import Names
from vfgnn.mpc.sharing import BITS, ZeroSharing, reveal


class ChannelOpening:
    """Opens masked values among the holders."""

    def __init__(self, channel: Channel, names: Names) -> None:
        self._channel, self._names = channel, names

    def open(self, *shares: torch.Tensor) -> list[torch.Tensor]:
        """Reveals: the sums (of bits, the XOR), to all holders. Whoever calls this has masked them."""
        holders = self._names.holders
        return reveal(self._channel, *shares, holders=holders, to=holders, name=self._names.opened)


@dataclass(frozen=True)
class ClassOpening:
    """Predicted classes go to one holder: one round, C bits for a row; for 3 holders or more under sharings of zero."""

    holders: Sequence[str]
    to: str
    kind: Kind

    def messages(self, rows: int, classes: int) -> list[Declared]:
        """From every other holder to the one that learns them."""
        shape = (packed_bytes(rows * classes),)
        return [Declared(self.kind, holder, self.to, BITS, shape) for holder in self.holders if holder != self.to]

    def open(self, channel: Channel, one_hot: torch.Tensor, zero: ZeroSharing, *, counter: int) -> torch.Tensor | None:
        """The class of each row from shares of `argmax` [rows, C]; None at all other holders.

        `counter`: of the sharing of zero, never the same twice for one set of seeds.
        Reveals: the class of each row, to `to`; nothing to anybody else.
        """
        hidden = zero.hide(pack(one_hot), counter)
        opened = reveal(channel, hidden, holders=self.holders, to=(self.to,), name=self.kind)
        if not opened:
            return None
        bits = unpack(opened[0], tuple(one_hot.shape))
        wrong = int((bits.sum(dim=1) != 1).sum())
        if wrong:
            raise ProtocolError(  # its first part is told to the others, who must not learn how many rows
                "rows without a class, or with several",
                expected="one class for each row",
                got=f"{wrong} of {len(bits)} rows that are not so",
                hint="scores of a row must differ by less than half of the range that they are compared in",
            )
        return bits.argmax(dim=1)
