"""What a protocol is: a table of phases that every party follows by itself.

A phase has a name, the messages that it declares (a function of the sizes that a party knows by then), and the NAME of
the role's method that carries it out. So a program imports no role, and a server's process loads no holder. The loop,
the links and their capacities, the plan, the check of message logs, the kinds that the wire accepts and the table
in docs/protocol.md are all read from it: a new message is written in the program and in the role, and nowhere else.

Rows may be carried out in a thread of their own, beside those that follow them: what a dealer deals runs ahead of the
steps that use it. The programs that all protocols share are in common_programs.py.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, product
from typing import Any, Generic, Protocol, TypeVar

from vfgnn.agreement import Agreement
from vfgnn.beside import BesideThread
from vfgnn.channel import Channel
from vfgnn.checkpoint import RoleState
from vfgnn.errors import ProtocolError
from vfgnn.messages import Declared, Kind, total_bytes
from vfgnn.records import Result


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


class PartBeside(Role[M_co], Protocol[M_co]):
    """What a role does in a thread of its own."""

    def fail(self, error: BaseException) -> None:
        """Whoever waits for what it makes hears that no more will come, and why."""


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
class Beside(Generic[M]):
    """Rows that a party's `part` goes through in a thread of its own, beside the rows that follow.

    `part`: the name of the role's attribute, a role over links that the rows that follow do not use. A role without it
    has nothing to do here.
    """

    part: str
    rows: tuple[Phase[M] | Repeated[M], ...]


Row = Phase[M] | Repeated[M] | Beside[M]


@dataclass(frozen=True)
class Program(Generic[M]):
    """The table, and who follows it."""

    name: str
    parties: tuple[str, ...]
    leader: str  # the label holder
    table: tuple[Row[M], ...]
    largest: M  # the most that a party may ever know: every phase on, every size at its bound
    others: tuple[M, ...] = ()  # as large, of steps that have other messages

    @property
    def bounds(self) -> tuple[M, ...]:
        """Moments whose messages are all that there may be, each at its largest."""
        return (self.largest, *self.others)

    @property
    def rows(self) -> Iterator[Phase[M] | Repeated[M]]:
        """All of them, in whichever thread."""
        return chain.from_iterable(row.rows if isinstance(row, Beside) else (row,) for row in self.table)

    @property
    def groups(self) -> Iterator[tuple[Phase[M], ...]]:
        """Phases whose messages may be under way at the same time."""
        return ((row,) if isinstance(row, Phase) else row.phases for row in self.rows)

    def walk(self, known: M) -> Iterator[tuple[Phase[M], M]]:
        """Every phase that comes for these sizes, with its moment; `known` is that of phases outside of steps."""
        for row in self.rows:
            moments = [known] if isinstance(row, Phase) else row.moments(known, 0)
            phases = (row,) if isinstance(row, Phase) else row.phases
            yield from ((phase, moment) for moment in moments for phase in phases if phase.when(moment))

    @property
    def phases(self) -> Iterator[Phase[M]]:
        """All of them."""
        return chain.from_iterable(self.groups)

    @property
    def repeated(self) -> tuple[str, ...]:
        """The names of the phases that make a step."""
        return tuple(phase.name for row in self.rows if isinstance(row, Repeated) for phase in row.phases)

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
    threads: list[BesideThread] = []
    try:
        for row in program.table:
            if not isinstance(row, Beside):
                for turn in _turns(row, role, begin, watch):
                    turn.over = bool(turn.method(turn.moment))
            elif (part := getattr(role, row.part, None)) is not None:
                ahead = partial(carry_out, replace(program, table=row.rows), part, begin=begin)
                threads.append(BesideThread(ahead, part.channel, part.fail))
        role.channel.finish()
        for thread in threads:
            thread.join()
    except BaseException as error:
        for thread in threads:
            thread.abandon(error)
        raise


@dataclass
class _Turn(Generic[M]):
    """A role's method that is due. Whoever follows the table calls it, so that arithmetic does not lie deep."""

    method: Callable[[M], object]
    moment: M
    over: bool = False  # what it returned: no more steps


def _turns(row: Phase[M] | Repeated[M], role: Role[M], begin: int, watch: Watch) -> Iterator[_Turn[M]]:
    """All of a row's, each when the one before has been taken."""
    if isinstance(row, Phase):
        yield from _enter(row, role, role.known, step=None)
        return
    for moment in row.moments(role.known, begin):
        if moment.opens:
            watch.begins(moment.number or 0)
        over = False
        for phase in row.phases:
            for turn in () if over else _enter(phase, role, moment, step=moment.number):
                yield turn
                over = turn.over
        if moment.closes or over:
            watch.done(moment.number or 0)
        if over:
            return


def _enter(phase: Phase[M], role: Role[M], moment: M, *, step: int | None) -> Iterator[_Turn[M]]:
    """The phase's turn, if it comes for this moment, and if the role has anything to do in it."""
    if not phase.when(moment):
        return
    role.channel.enter(phase.name, [] if phase.announced else phase.messages(moment), step=step)
    method = method_of(role, phase, moment)
    if method is not None:
        yield _Turn(method, moment)


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
