"""When everything would happen: threads that work, send and wait, on a clock that is only on paper.

A thread is a generator of what it does, one thing after another. What a party sends shares its line: each connection
has an equal part of it, as TCP gives it. A message is there when its last byte has left, and the latency has passed.
Nothing is computed or sent.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

PIECE = 2**16  # bytes that a connection sends before it is another's turn, at least
PIECES = 50_000  # of all messages together, about: more would take long to lay out


@dataclass(frozen=True)
class Work:
    """Processor time of this thread."""

    seconds: float


@dataclass(frozen=True)
class Send:
    """A message; its sender goes on at once."""

    receiver: str
    bytes: float


@dataclass(frozen=True)
class Receive:
    """The next message from this sender."""

    sender: str


@dataclass(frozen=True)
class Wait:
    """For another thread of the same party."""

    until: Callable[[], bool]


Deed = Work | Send | Receive | Wait
Thread = Iterator[Deed]


@dataclass(frozen=True)
class Lines:
    """What lies between the parties."""

    bits_per_s: float  # of each party's line, out
    latency_s: float  # one way
    cores: int | None = None  # of the one machine that all threads share; None: as many as there are threads


@dataclass
class _Line:
    """Out of one party: a queue of unsent bytes for each receiver."""

    queues: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    turns: deque[str] = field(default_factory=deque)  # receivers whose queues are not empty
    busy: bool = False


class Timetable:
    """All threads of all parties, until the last one has ended."""

    def __init__(self, lines: Lines, *, piece: float = PIECE) -> None:
        self.now = 0.0
        self._lines, self._piece = lines, piece
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._out: dict[str, _Line] = defaultdict(_Line)
        self._arrived: dict[tuple[str, str], int] = defaultdict(int)
        self._receiving: dict[tuple[str, str], tuple[str, Thread]] = {}
        self._waiting: list[tuple[str, Thread, Callable[[], bool]]] = []
        self._cores, self._ready = lines.cores, deque[tuple[str, Thread, float]]()

    def run(self, threads: Mapping[str, Sequence[Thread]]) -> float:
        """Until all have ended; the seconds that it took."""
        for party, own in threads.items():
            for thread in own:
                self._go_on(party, thread)
        while self._events:
            self.now, _, happens = heapq.heappop(self._events)
            happens()
        if self._receiving or self._waiting:
            waits = sorted({f"{me} for {sender}" for sender, me in self._receiving} | {me for me, *_ in self._waiting})
            raise RuntimeError(f"threads wait for ever: {', '.join(waits)}")
        return self.now

    def _at(self, seconds: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), happens))

    def _go_on(self, party: str, thread: Thread) -> None:
        """Until it has to wait for anything; then look whether others wait for what it has done."""
        self._advance(party, thread)
        while ready := next((one for one in self._waiting if one[2]()), None):
            self._waiting.remove(ready)
            self._advance(*ready[:2])

    def _advance(self, party: str, thread: Thread) -> None:
        for deed in thread:
            if isinstance(deed, Work):
                self._work(party, thread, deed.seconds)
                return
            if isinstance(deed, Send):
                self._send(party, deed)
            elif isinstance(deed, Receive):
                link = deed.sender, party
                if not self._arrived[link]:
                    self._receiving[link] = party, thread
                    return
                self._arrived[link] -= 1
            elif not deed.until():
                self._waiting.append((party, thread, deed.until))
                return

    def _work(self, party: str, thread: Thread, seconds: float) -> None:
        if self._cores is None:
            self._at(seconds, lambda: self._go_on(party, thread))
            return
        self._ready.append((party, thread, seconds))
        self._take_core()

    def _take_core(self) -> None:
        if not self._cores or not self._ready:
            return
        self._cores -= 1
        party, thread, seconds = self._ready.popleft()

        def done() -> None:
            self._cores = (self._cores or 0) + 1
            self._take_core()
            self._go_on(party, thread)

        self._at(seconds, done)

    def _send(self, party: str, message: Send) -> None:
        line = self._out[party]
        if not line.queues[message.receiver]:
            line.turns.append(message.receiver)
        line.queues[message.receiver].append(message.bytes)
        if not line.busy:
            self._next_piece(party, line)

    def _next_piece(self, party: str, line: _Line) -> None:
        line.busy = bool(line.turns)
        if not line.busy:
            return
        receiver = line.turns.popleft()
        queue = line.queues[receiver]
        piece = min(queue[0], self._piece)

        def sent() -> None:
            queue[0] -= piece
            if queue[0] <= 0:
                queue.popleft()
                self._at(self._lines.latency_s, lambda: self._arrive(party, receiver))
            if queue:
                line.turns.append(receiver)
            self._next_piece(party, line)

        self._at(8 * piece / self._lines.bits_per_s, sent)

    def _arrive(self, sender: str, receiver: str) -> None:
        self._arrived[sender, receiver] += 1
        waiting = self._receiving.pop((sender, receiver), None)
        if waiting is not None:
            self._arrived[sender, receiver] -= 1
            self._go_on(*waiting)
