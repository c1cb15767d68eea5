"""The two programs that every protocol shares: to leave together, and to ask for one more pass.

Run by every party, whatever its role. What leaves is one byte, and never for whom something is asked.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from vfgnn.channel import Channel
from vfgnn.messages import BYTE, Declared, Kind
from vfgnn.program import Phase, Program

DONE = Kind("done", "that the sender's final state is on its disk")
END = Kind("end", "that everybody's final state is, so that the receiver may go")
PASS = Kind("pass", "that one more pass is wanted, and whether nodes are to be aligned anew; never for whom")


@dataclass(frozen=True)
class NoSizes:
    """The moment of a program whose messages do not depend on any."""

    number: int | None = None
    opens: bool = True
    closes: bool = True


def leaving(parties: Iterable[str], leader: str) -> Program[NoSizes]:
    """Nobody leaves before everybody's final state is on disk."""
    everyone = tuple(parties)
    others = [name for name in everyone if name != leader]
    messages = [Declared(DONE, name, leader, *BYTE) for name in others]
    messages += [Declared(END, leader, name, *BYTE) for name in others]
    return Program("leaving", everyone, leader, (Phase("end", "leave", lambda _: messages),), NoSizes())


def idle(name: str, leader: str) -> Program[NoSizes]:
    """What a party follows while the others are at something that it has no part in."""
    return Program(name, (), leader, (), NoSizes())


def calling(parties: Iterable[str], leader: str) -> Program[NoSizes]:
    """Of a federation that stays up, before each pass."""
    everyone = tuple(parties)
    messages = [Declared(PASS, leader, name, *BYTE) for name in everyone if name != leader]
    return Program("calling", everyone, leader, (Phase("pass", "call", lambda _: messages),), NoSizes())


class Follower:
    """A party's part in the two programs above, whatever its role in the others; the leader's if it leads."""

    known = NoSizes()

    def __init__(self, channel: Channel, program: Program[NoSizes], *, new_nodes: bool = False) -> None:
        self.channel, self.new_nodes = channel, new_nodes
        self._leader = program.leader
        self._others = [name for name in program.parties if name != program.leader]

    def leave(self, moment: NoSizes) -> None:
        """Before this is through, whoever is killed finds the others; after it, nobody needs anybody."""
        nothing = torch.zeros(1, dtype=torch.uint8)
        if self.channel.party == self._leader:
            for other in self._others:
                self.channel.receive(other, DONE)
            for other in self._others:
                self.channel.send(other, END, nothing)
        else:
            self.channel.send(self._leader, DONE, nothing)
            self.channel.receive(self._leader, END)

    def call(self, moment: NoSizes) -> None:
        """The label holder asks everyone; everyone else waits for that, for as long as the label holder is there.

        Reveals: to everyone, when something is asked that the label holder does not know yet; never what.
        """
        if self.channel.party == self._leader:
            for other in self._others:
                self.channel.send(other, PASS, torch.tensor([self.new_nodes], dtype=torch.uint8))
        else:
            self.new_nodes = bool(self.channel.receive(self._leader, PASS, patient=True)[0])
