"""What a protocol is: a table of phases that every party follows by itself.

A phase has a name, the messages that it declares (a function of the sizes that a party knows by then), and the NAME of
the role's method that carries it out. So a program imports no role, and a server's process loads no holder. The loop,
the links and their capacities, the plan, the check of message logs, the kinds that the wire accepts and the table
in docs/protocol.md are all read from it: a new message is written in the program and in the role, and nowhere else.

Here are also the two programs that every protocol shares: to leave together, and to ask for one more pass.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any, Generic, Protocol, TypeVar

import torch

from vfgnn.agreement import Agreement
from vfgnn.channel import Channel
from vfgnn.checkpoint import RoleState
from vfgnn.errors import ProtocolError
from vfgnn.messages import Declared, Kind, total_bytes
from vfgnn.records import Result

DONE = Kind("done", "that the sender's final state is on its disk")
END = Kind("end", "that everybody's final state is, so that the receiver may go")
PASS = Kind("pass", "that one more pass is wanted, and whether nodes are to be aligned anew; never for whom")


class AnyMoment(Protocol):
    """What a party knows of sizes at one point of a program."""

    @property
    def number(self) -> int | None:
        """Of the step, for records; outside of steps it means nothing."""

    @property
    def opens(self) -> bool:
        """Whether this is the first moment of its step."""

    @property
    def closes(self) -> bool:
        """Whether this is the last one."""


M = TypeVar("M", bound=AnyMoment)
M_co = TypeVar("M_co", bound=AnyMoment, covariant=True)
Messages = Callable[[M], list[Declared]]


class Role(Protocol[M_co]):
    """One party's part in a program: a method for each phase in which it has something to do.

    A method gets the moment. In a repeated phase it may return True: this was the last repetition.
    """

    channel: Channel

    @property
    def known(self) -> M_co:
        """What this party knows of sizes now."""


class ResumableRole(Role[M_co], Protocol[M_co]):
    """A role whose state outlives its process, and that leaves a result at the label holder."""

    @property
    def agreement(self) -> Agreement:
        """What all agreed on."""

    @property
    def result(self) -> Result | None:
        """None at everyone but the label holder."""

    @property
    def state_type(self) -> type[RoleState]:
        """Of what `state` gives and `load` takes."""

    def state(self) -> RoleState:
        """A copy of all that this party needs in order to stand at the beginning of the coming step again."""

    def load(self, state: Any) -> None:  # noqa: ANN401 (a `state_type`)
        """Stand there; comes before the first phase."""

    def close(self) -> None:
        """End what runs in the background, however the program ended."""


@dataclass(frozen=True)
class Phase(Generic[M]):
    """One row of the table."""

    name: str
    method: str  # of the role; a role that has no such method has nothing to do here
    messages: Messages[M]
    when: Callable[[M], bool] = lambda moment: True
    announced: bool = False  # lengths are told on the way: the method enters each piece when it knows its length


@dataclass(frozen=True)
class Repeated(Generic[M]):
    """Rows that are gone through once for each moment, until one of the methods returns True."""

    moments: Callable[[M, int], Iterator[M]]  # from what is known, and the first step
    phases: tuple[Phase[M], ...]


@dataclass(frozen=True)
class Program(Generic[M]):
    """The table, and who follows it."""

    name: str
    parties: tuple[str, ...]
    leader: str  # the label holder
    table: tuple[Phase[M] | Repeated[M], ...]
    largest: M  # the most that a party may ever know: every phase on, every size at its bound
    others: tuple[M, ...] = ()  # as large, of steps that have other messages

    @property
    def bounds(self) -> tuple[M, ...]:
        """Moments whose messages are all that there may be, each at its largest."""
        return (self.largest, *self.others)

    @property
    def groups(self) -> Iterator[tuple[Phase[M], ...]]:
        """Phases whose messages may be under way at the same time."""
        return ((row,) if isinstance(row, Phase) else row.phases for row in self.table)

    @property
    def phases(self) -> Iterator[Phase[M]]:
        """All of them."""
        return chain.from_iterable(self.groups)

    @property
    def repeated(self) -> tuple[str, ...]:
        """The names of the phases that make a step."""
        return tuple(phase.name for row in self.table if isinstance(row, Repeated) for phase in row.phases)

    def messages(self) -> list[Declared]:
        """Every message that there may be, each at its largest."""
        return [message for phase in self.phases for moment in self.bounds for message in phase.messages(moment)]


@dataclass(frozen=True)
class Watch:
    """What whoever runs a party hears of it; nothing if not told otherwise."""

    begins: Callable[[int], None] = lambda number: None  # the party stands at the beginning of this step
    done: Callable[[int], None] = lambda number: None


NOBODY = Watch()


def carry_out(program: Program[M], role: Role[M], *, begin: int = 0, watch: Watch = NOBODY) -> None:
    """Follow the table. `begin`: the step whose state the role has; what comes before the steps is done anew."""
    for row in program.table:
        if isinstance(row, Phase):
            _enter(row, role, role.known)
            continue
        for moment in row.moments(role.known, begin):
            number = moment.number or 0
            if moment.opens:
                watch.begins(number)
            over = False
            for phase in row.phases:
                # No helper: the arithmetic of a step should not lie deep in the stack.
                if not over and phase.when(moment):
                    role.channel.enter(phase.name, phase.messages(moment), step=moment.number)
                    method = method_of(role, phase, moment)
                    over = bool(method(moment)) if method is not None else False
            if moment.closes or over:
                watch.done(number)
            if over:
                break
    role.channel.finish()


def _enter(phase: Phase[M], role: Role[M], moment: M) -> None:
    if not phase.when(moment):
        return
    role.channel.enter(phase.name, [] if phase.announced else phase.messages(moment))
    method = method_of(role, phase, moment)
    if method is not None:
        method(moment)


def method_of(role: Role[M], phase: Phase[M], moment: M) -> Callable[[M], object] | None:
    """What a role does in a phase; a role without the method may have no messages in it."""
    method: Callable[[M], object] | None = getattr(role, phase.method, None)
    me = role.channel.party
    if method is None and any(me in (message.sender, message.receiver) for message in phase.messages(moment)):
        raise ProtocolError(
            f"{type(role).__name__} has messages in phase '{phase.name}' and no method for it",
            expected=f"a method {phase.method}(moment)",
        )
    return method


@dataclass
class LinkUse:
    """What one direction of a link may have to carry."""

    messages: int = 0  # at most, in phases that may overlap
    bytes: int = 0  # of all messages of such phases, at most
    kinds: dict[Kind, int] = field(default_factory=dict)  # with the bytes of the largest message of each


def links(*programs: Program[M]) -> dict[tuple[str, str], LinkUse]:
    """Every directed link of these programs, with its bounds."""
    found: dict[tuple[str, str], LinkUse] = defaultdict(LinkUse)
    for program in programs:
        for group, moment in product(program.groups, program.bounds):
            together: dict[tuple[str, str], list[Declared]] = defaultdict(list)
            for message in (message for phase in group for message in phase.messages(moment)):
                together[message.sender, message.receiver].append(message)
            for link, messages in together.items():
                use = found[link]
                use.messages = max(use.messages, len(messages))
                use.bytes = max(use.bytes, total_bytes(messages))
                for message in messages:
                    use.kinds[message.kind] = max(use.kinds.get(message.kind, 0), message.bytes)
    return dict(found)


# to leave together, and to ask for one more pass


@dataclass(frozen=True)
class NoSizes:
    """The moment of a program whose messages do not depend on any."""

    number: int | None = None
    opens: bool = True
    closes: bool = True


BYTE = (torch.uint8, (1,))


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
