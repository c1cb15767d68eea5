"""What each party's threads do in a sealed program: whom they send to and wait for, and how long they work.

Everything that is sent is read from the program, round by round (sealed/program.py, sealed/rehearsal.py); how long a
thread works for it is measured (sealed_work.py). Nothing is computed or sent.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile

from vfgnn.agreement import DEALER, Agreement
from vfgnn.common_programs import NoSizes, leaving
from vfgnn.messages import Declared, total_bytes
from vfgnn.mpc.graph_shape import begin_messages, complete_messages
from vfgnn.plan.sealed_work import Rates
from vfgnn.plan.timetable import Receive, Send, Thread, Timetable, Wait, Work
from vfgnn.program import Phase, Program
from vfgnn.sealed.program import (
    GRAPH_KINDS,
    Begun,
    SealedMoment,
    dealing_order,
    dealt_messages,
    graph_shape,
    opened_messages,
    script_of,
)
from vfgnn.sealed.record import Part
from vfgnn.sealed.rehearsal import Hop, Item
from vfgnn.sealed.supply import MOST_BYTES

ON_THE_LINE = 1.05  # bytes with those of TCP, IP, TLS and WebSocket headers, for each byte of a message
BYTE_S = 3e-9  # of a message, at each end: TLS, WebSocket and the message log
MESSAGE_S = 2e-4  # of any message, at each end: two threads, a log entry, an acknowledgement


@dataclass
class Stock:
    """What has been dealt to a holder and is not used, as in sealed/supply.py."""

    laid: int = 0  # items that all is there for, from the first one on
    sizes: deque[tuple[int, float]] = field(default_factory=deque)  # of those that lie there, with their numbers
    waited_s: float = 0.0

    def has_room(self, size: float) -> bool:
        """Or nothing else lies there."""
        held = sum(size for _, size in self.sizes)
        return not held or held + size <= MOST_BYTES

    def use(self, number: int) -> None:
        """What all items up to this one need."""
        while self.sizes and self.sizes[0][0] <= number:
            self.sizes.popleft()


class SealedThreads:
    """Of all parties, for a training or a prediction; `moment`: how many rows there are."""

    def __init__(
        self, agreement: Agreement, program: Program[SealedMoment], moment: SealedMoment, rates: Rates
    ) -> None:
        self._agreement, self._rates, self._shape = agreement, rates, graph_shape(agreement)
        first = [row for row in takewhile(lambda row: isinstance(row, Phase), program.table) if isinstance(row, Phase)]
        self._first = [row.messages(moment) for row in first]
        last = leaving(program.parties, program.leader)
        self._last = [phase.messages(NoSizes()) for phase in last.phases]
        self._parts = script_of(agreement, moment).parts
        self._stocks = {name: Stock() for name in agreement.holder_names}
        self._working, self._ahead_ended = {DEALER, *agreement.holder_names}, set[str]()
        self.set_up_at: dict[str, float] = {}
        self.sent: Counter[Part] = Counter()  # payload bytes on all links

    @property
    def waited_s(self) -> float:
        """How long the holder that waited longest stands still for the dealer."""
        return max(stock.waited_s for stock in self._stocks.values())

    def of(self, me: str, clock: Timetable) -> list[Thread]:
        """A party's threads; a server that has aligned ids has one."""
        return [self._main(me, clock), *([self._ahead(me)] if me in self._working else [])]

    def _main(self, me: str, clock: Timetable) -> Thread:
        """The one that goes through the program."""
        yield Work(self._rates.start_s)
        for messages in self._first:
            yield from self._phase(me, messages, "setup")
        self.set_up_at[me] = clock.now
        number, stock = 0, self._stocks.get(me)
        for items in (items for part in self._parts for items in part.rounds):
            number += len(items)
            if stock is not None:
                yield from _take(stock, number, clock)
                yield from self._exchange(me, opened_messages(self._agreement, items), "online")
        yield Wait(lambda: me in self._ahead_ended or me not in self._working)
        for messages in self._last:
            yield from self._phase(me, messages, None)

    def _ahead(self, me: str) -> Thread:
        """The one that runs ahead, from when its party is set up."""
        yield Wait(lambda: me in self.set_up_at)
        going = self._ahead_of_dealer() if me == DEALER else self._ahead_of_holder(me, self._stocks[me])
        yield from going
        self._ahead_ended.add(me)

    def _ahead_of_holder(self, me: str, stock: Stock) -> Thread:
        for item in (item for part in self._parts for item in dealing_order(self._agreement, part)):
            for message in self._dealt(item):  # a bounce comes before it goes back
                yield from self._exchange(me, [message], "offline")
            if not isinstance(item, Begun):
                yield from _lay(stock, self._kept(me, item))

    def _ahead_of_dealer(self) -> Thread:
        coming = deque[list[Declared]]()
        for item in (item for part in self._parts for item in dealing_order(self._agreement, part)):
            messages = self._dealt(item)
            if isinstance(item, Begun):  # what comes back is taken when the hop is completed
                coming.append([message for message in messages if message.receiver == DEALER])
                messages = [message for message in messages if message.sender == DEALER]
            elif isinstance(item, Hop):
                yield from self._exchange(DEALER, coming.popleft(), "offline")
            yield from self._exchange(DEALER, messages, "offline")

    def _dealt(self, item: Item | Begun) -> list[Declared]:
        if isinstance(item, Begun):
            return begin_messages(self._shape, GRAPH_KINDS, item.width)
        if isinstance(item, Hop):
            return complete_messages(self._shape, GRAPH_KINDS, item.width)
        return dealt_messages(self._agreement, [item])

    def _kept(self, me: str, item: Item) -> float:
        """Bytes that lie in a holder's memory until an item's turn comes."""
        if isinstance(item, Hop):
            return 2 * 8 * self._agreement.nodes * item.width  # its mask, and its share of the product with that
        return total_bytes(message for message in self._dealt(item) if message.receiver == me)

    def _phase(self, me: str, messages: Sequence[Declared], part: Part | None) -> Thread:
        """What is of one kind is sent before anything of it is waited for."""
        for _, alike in groupby(messages, key=lambda message: message.kind):
            yield from self._exchange(me, list(alike), part)

    def _exchange(self, me: str, messages: Sequence[Declared], part: Part | None) -> Thread:
        """Work, send, wait for what the others send, work on."""
        sends = [message for message in messages if message.sender == me]
        receives = [message for message in messages if message.receiver == me]
        if not sends and not receives:
            return
        work = 0.0 if part is None else self._rates.seconds(me, part, total_bytes([*sends, *receives])) / 2
        yield Work(work + _transport(sends))
        for message in sends:
            yield Send(message.receiver, ON_THE_LINE * message.bytes)
        for message in receives:
            yield Receive(message.sender)
        yield Work(work + _transport(receives))
        if part is not None:
            self.sent[part] += total_bytes(sends)


def _lay(stock: Stock, size: float) -> Thread:
    """Wait for room for what the next item needs, and lay it down."""
    yield Wait(lambda: stock.has_room(size))
    stock.laid += 1
    stock.sizes.append((stock.laid, size))


def _take(stock: Stock, number: int, clock: Timetable) -> Thread:
    """Wait until all up to this item is there, and use it up."""
    began = clock.now
    yield Wait(lambda: stock.laid >= number)
    stock.waited_s += clock.now - began
    stock.use(number)


def _transport(messages: Sequence[Declared]) -> float:
    return sum(MESSAGE_S + BYTE_S * message.bytes for message in messages)
