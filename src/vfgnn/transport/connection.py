"""One link: the numbered messages between this party and one peer, over whichever connection there is now.

A connection may be lost and made again without a message being lost or used twice: each direction is numbered, the
receiver acknowledges what its party has used, and what is not acknowledged is sent again. Messages that wait to be used
have a budget, in number and in bytes, so neither side can fill the other's memory.

The party's thread calls `put` and `get`; everything with `async` runs in the network's thread.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed

from vfgnn.errors import ChannelClosed, DeadlinePassed, PeerFailed, PeerRestarted, ProtocolError, VfgnnError
from vfgnn.files import Patience
from vfgnn.messages import Declared
from vfgnn.transport import wire
from vfgnn.transport.capacity import Capacity
from vfgnn.transport.goodbye import ENDED, FAILED, LEFT, RESTARTED, brief

START_MARGIN_S = 5.0  # the label holder began to wait a little later
CANCEL_S = 0.2  # after which a task is cancelled once more
POLL_S = 0.5  # waits are cut into pieces so that Ctrl-C gets through


@dataclass(frozen=True)
class Outgoing:
    """A message that the peer has not used yet."""

    header: wire.Message
    bytes: int
    tensor: torch.Tensor
    version: int

    @property
    def payload(self) -> memoryview:
        """The words to send: those that were handed over, without a copy, or an error."""
        if self.tensor._version != self.version:
            raise ProtocolError("a message was changed after it was sent", got=str(self.header.kind))
        return wire.payload_bytes(self.tensor)


@dataclass
class Alarm:
    """What concerns all links of a party, whichever it waits on: a peer was started anew, or a thread beside failed."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    failure: BaseException | None = None

    def ring(self, failure: BaseException) -> None:
        """Wake whoever waits on any link."""
        with self.changed:
            self.failure = self.failure or failure
            self.changed.notify_all()


class Incoming(NamedTuple):
    """A message that this party has not used yet."""

    start: str
    message: Declared
    payload: torch.Tensor


class Link:
    """This party's end of what it exchanges with `peer`."""

    def __init__(
        self, me: str, peer: str, capacity: Capacity, patience: Patience, alarm: Alarm, *, leader: str
    ) -> None:
        self.me, self.peer = me, peer
        self._bounds, self._patience = capacity, patience  # what can ever be under way, and
        self._room = capacity  # what can now
        self._announces, self._hears = me == leader, peer == leader  # the label holder says when the run begins
        self._alarm, self._changed = alarm, alarm.changed
        self._to_send = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._outgoing: deque[Outgoing] = deque()  # not acknowledged
        self._numbered = 0  # messages given a number by `put`
        self._incoming: deque[Incoming] = deque()
        self._received, self._used = 0, 0
        self._unused_bytes = 0
        self._held_back: Declared | None = None  # announced, and not read: there is no room for it
        self._more_room = asyncio.Event()
        self._connection: Connection | None = None
        self.start: wire.Start | None = None  # known when the label holder has said it
        self.hello: wire.Hello | None = None  # the peer's last one
        self.ended = False
        self.failure: VfgnnError | None = None
        self.lost_at: float | None = time.monotonic()  # None while connected
        self.came = False  # whether there has been a connection
        self._tasks: list[asyncio.Task[None]] = []
        self.meeting = asyncio.Lock()  # one connection at a time says hello
        self.farewell = ""  # what the peer said when it left

    # the party's side

    def put(self, message: Declared, payload: torch.Tensor) -> None:
        """Queue a payload, which nobody may change from now on; waits only while there is no room for it."""
        payload = payload.detach().cpu().contiguous()
        with self._changed:
            self._wait(lambda: self._may_send(message), f"{self.peer} to use what was sent to it")
            self._numbered += 1
            dtype = wire.DTYPE_NAMES[message.dtype]
            start = "" if self.start is None else self.start.start
            header = wire.Message(start, self._numbered, str(message.kind), dtype, message.shape)  # type: ignore[arg-type]
            self._outgoing.append(Outgoing(header, message.bytes, payload, payload._version))
        self._wake()

    def _may_send(self, message: Declared) -> bool:
        """The peer counts what it has not used, and this end what is not acknowledged: never less."""
        waiting = sum(one.bytes for one in self._outgoing)
        return not self._outgoing or self._room.sends.has_room(len(self._outgoing), waiting, message)

    def get(self, *, patient: bool = False) -> tuple[Declared, torch.Tensor]:
        """Wait for the next message; from then on the peer may forget it."""
        with self._changed:
            self._wait(self._has_next, f"a message from {self.peer}", math.inf if patient else None)
            self._used += 1
            start, message, payload = self._incoming.popleft()
            self._unused_bytes -= message.bytes
        if self.start is None or start != self.start.start:
            raise ProtocolError("a message of another start", where=f"the link from {self.peer}")
        self._wake()
        return message, payload

    def _has_next(self) -> bool:
        """Whether a message can be used; raises where the next one has no place in what the party does now.

        Messages come in the order of the program. Whoever waits here has made room for the next one (`resize`), so one
        that does not fit now will not fit later.
        """
        held_back = self._held_back
        if not self._incoming and held_back is not None and not self._may_read(held_back):
            raise ProtocolError(
                "a message that the program has no room for now",
                expected="the next message of the program",
                got=str(held_back),
                where=f"the link from {self.peer}",
            )
        return bool(self._incoming)

    def resize(self, capacity: Capacity) -> None:
        """The party follows other programs from now on, or knows more of their sizes."""
        with self._changed:
            self._room = capacity
            self._changed.notify_all()
        self._wake()

    def begin(self, start: wire.Start) -> None:
        """All have come; the label holder tells it to its peers."""
        with self._changed:
            self.start = start
            self._changed.notify_all()
        self._wake()

    def wait_for_start(self, wait_s: float, key: str) -> wire.Start:
        """The word of the label holder, which is at the other end and may itself still wait for somebody."""
        with self._changed:
            what = f"{self.peer} to start the run"
            self._wait(lambda: self.start is not None, what, wait_s, key=key, margin_s=START_MARGIN_S)
            if self.start is None:
                raise ProtocolError("no start", where=f"the link from {self.peer}")
            return self.start

    def flush(self, seconds: float) -> None:
        """Wait until the peer has used everything, or is gone."""
        with self._changed:
            over = self._alarm
            self._changed.wait_for(
                lambda: not self._outgoing or self.ended or self.failure or over.failure, timeout=seconds
            )

    def settle(self) -> None:
        """Wait until the peer has used everything."""
        with self._changed:
            self._wait(lambda: not self._outgoing, f"{self.peer} to use what was sent to it")

    def _wait(
        self,
        ready: Callable[[], bool],
        what: str,
        seconds: float | None = None,
        *,
        key: str = "message_s",
        margin_s: float = 0.0,
    ) -> None:
        """Until `ready`; raises when the link has failed, the peer has ended, or one of the deadlines has passed.

        `key`: where the federation file says how long (`seconds`, and `margin_s` more).
        """
        began, seconds = time.monotonic(), self._patience.message_s if seconds is None else seconds
        while not ready():
            if self._alarm.failure is not None:
                raise self._alarm.failure
            self.refuse_over()
            now = time.monotonic()
            if self.lost_at is not None and now - self.lost_at > self._patience.away_s:
                said = f" ({self.farewell})" if self.farewell else ""
                raise ChannelClosed(
                    f"{self.peer}{said} has been away for {self._patience.away_s:g} s",
                    expected="a connection (away_s in the federation file)",
                    where=f"party {self.me}",
                    hint=f"see whether {self.peer} still runs, and the network between the two",
                )
            if self.lost_at is None and now - began > seconds + margin_s:
                raise DeadlinePassed(
                    f"waited too long for {what}",
                    expected=f"within {seconds:g} s ({key} in the federation file)",
                    where=f"party {self.me}",
                    hint=f"see the log of {self.peer}",
                )
            self._changed.wait(POLL_S)

    def refuse_over(self) -> None:
        """Raise why nothing more will come from the peer, if that is so."""
        if self.failure is not None:
            raise self.failure
        if self.ended:
            raise ChannelClosed(f"{self.peer} ended before its message came", where=f"party {self.me}")

    def _wake(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._to_send.set)
            if self._held_back is not None:
                self._loop.call_soon_threadsafe(self._more_room.set)

    def fail(self, failure: VfgnnError) -> None:
        """Nothing more will come; whoever waits hears why."""
        with self._changed:
            if self.failure is None and not self.ended:
                self.failure = failure
            self._changed.notify_all()

    # the network's side

    @property
    def received(self) -> int:
        """Messages that need not be sent again."""
        return self._received

    @property
    def _engaged(self) -> bool:
        """Whether anything of a run has happened on this link."""
        return self.start is not None or self._numbered > 0 or self._received > 0

    def meet(self, hello: wire.Hello) -> None:
        """A peer's program may be started anew before the run begins; during it, all have to go back a few steps."""
        if self.hello is not None and self.hello.session != hello.session and self._engaged:
            raise PeerRestarted(f"{self.peer} was started anew", where=f"party {self.me}")
        if self.hello is not None and self.hello.session == hello.session and self.hello.log_key != hello.log_key:
            raise ProtocolError(f"{self.peer} tells another log key within a session", where=f"party {self.me}")
        self.hello = hello

    @property
    def log_key(self) -> bytes:
        """Of the digests of what the peer sends; it has told it in its hello."""
        if self.hello is None:
            raise ProtocolError("no hello", where=f"the link from {self.peer}")
        return bytes.fromhex(self.hello.log_key)

    async def serve(self, connection: Connection, *, peer_received: int) -> None:
        """Send and receive over `connection` until it ends; the link itself outlives it."""
        self._connection, self._loop = connection, asyncio.get_running_loop()
        self._connected(peer_received)
        tasks = self._tasks = [
            asyncio.create_task(self._send(connection, peer_received)),
            asyncio.create_task(self._receive(connection)),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if not task.cancelled():  # as `detach` does it
                    task.result()
        except ConnectionClosed as closed:
            self._closed(closed)
        except VfgnnError as error:
            self.fail(error)
            await connection.close(FAILED, brief(error))
        finally:
            await cancel(tasks)
            if self._connection is connection:
                self._connection = None
                with self._changed:
                    self.lost_at = time.monotonic()
                    self._changed.notify_all()

    async def answers(self, seconds: float) -> bool:
        """Whether the peer's process is at the other end of the connection of now."""
        if self._connection is None:
            return False
        try:
            async with asyncio.timeout(seconds):
                await (await self._connection.ping())
        except (TimeoutError, ConnectionClosed):
            return False
        return True

    async def detach(self) -> None:
        """Nothing more comes from the connection of before; the peer has made another one."""
        await cancel(self._tasks)
        self._tasks = []

    def _connected(self, peer_received: int) -> None:
        with self._changed:
            known = self._numbered - len(self._outgoing)
            if not known <= peer_received <= self._numbered:
                raise ProtocolError(
                    f"{self.peer} counts other messages than {self.me}",
                    expected=f"{known} to {self._numbered}",
                    got=str(peer_received),
                    hint="start all parties anew",
                )
            self.lost_at, self.came, self.farewell = None, True, ""
            self._changed.notify_all()

    def _closed(self, closed: ConnectionClosed) -> None:
        """A peer that says goodbye has ended; a connection that just broke may come back."""
        frame = closed.rcvd
        if frame is not None and frame.code == LEFT:
            self.farewell = frame.reason
        if frame is not None and frame.code == RESTARTED and self._engaged:
            self._alarm.ring(PeerRestarted(frame.reason, where=f"party {self.me}"))
        if frame is None or frame.code not in (ENDED, FAILED):
            return
        if frame.code == FAILED:
            self.fail(PeerFailed(self.peer, frame.reason or "no reason", where=f"party {self.me}"))
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    async def _send(self, connection: Connection, sent: int) -> None:
        acknowledged, announced = 0, not self._announces
        while True:
            self._to_send.clear()
            with self._changed:
                used, start = self._used, self.start
                due = next((one for one in self._outgoing if one.header.number > sent), None)
            if start is not None and not announced:
                await connection.send(wire.encode(start))
                announced = True
            if used > acknowledged:
                await connection.send(wire.encode(wire.Ack(used)))
                acknowledged = used
            if due is None:
                await self._to_send.wait()
                continue
            await self._send_message(connection, due)
            sent = due.header.number

    @staticmethod
    async def _send_message(connection: Connection, due: Outgoing) -> None:
        """Nothing of it is held here when this returns: the next message may be far away, and this one large."""
        await connection.send(wire.encode(due.header))
        words = due.payload
        for at in range(0, len(words), wire.CHUNK):
            await connection.send(words[at : at + wire.CHUNK])

    async def _receive(self, connection: Connection) -> None:
        while True:
            header = wire.decode(await connection.recv(), sender=self.peer)
            if isinstance(header, wire.Ack):
                self._acknowledge(header.number)
            elif isinstance(header, wire.Start) and self._hears and self.start in (None, header):
                self.begin(header)
            elif isinstance(header, wire.Message):
                await self._receive_message(connection, header)
            else:
                raise ProtocolError(
                    f"an unexpected {type(header).__name__.lower()}", where=f"the link from {self.peer}"
                )

    async def _receive_message(self, connection: Connection, header: wire.Message) -> None:
        where = f"the link from {self.peer}"
        if header.number != self._received + 1:
            raise ProtocolError(
                "a message out of order", expected=f"number {self._received + 1}", got=str(header.number), where=where
            )
        most = self._bounds.receives
        announced = wire.declared(header, sender=self.peer, receiver=self.me, kinds=most.kinds)
        if not most.has_room(*self._unused, announced):
            expected = f"at most {most.messages} messages, {most.bytes} bytes"
            raise ProtocolError("more messages than may be waiting", expected=expected, where=where)
        await self._wait_for_room(announced)
        assembly = wire.Assembly(announced)
        while not assembly.complete:
            assembly.add(await connection.recv())
        with self._changed:
            self._received += 1
            self._unused_bytes += announced.bytes
            self._incoming.append(Incoming(header.start, announced, assembly.payload))
            self._changed.notify_all()

    @property
    def _unused(self) -> tuple[int, int]:
        """Messages that were received and not used, and their bytes."""
        return self._received - self._used, self._unused_bytes

    def _may_read(self, message: Declared) -> bool:
        return self._room.receives.has_room(*self._unused, message)

    async def _wait_for_room(self, message: Declared) -> None:
        """Leave a message that comes early on the line: its sender may know the number of nodes before this party.

        Nothing waits for ever. The sender is through with an earlier program, so it has used all that this party sent
        it there, and its acknowledgements came before this message: this party can go on to the program of the message,
        where there is room for it. Should the line be silent for too long meanwhile, it is made again.
        """
        try:
            while True:
                self._more_room.clear()
                with self._changed:
                    if self._may_read(message):
                        return
                    self._held_back = message
                    self._changed.notify_all()
                await self._more_room.wait()
        finally:
            self._held_back = None

    def _acknowledge(self, number: int) -> None:
        with self._changed:
            if number > self._numbered:
                raise ProtocolError("an ack for what was never sent", where=f"the link from {self.peer}")
            while self._outgoing and self._outgoing[0].header.number <= number:
                self._outgoing.popleft()
            self._changed.notify_all()

    async def close(self, code: int, reason: str) -> None:
        """Say goodbye on the connection of now."""
        if self._connection is not None:
            await self._connection.close(code, reason)


async def cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """End tasks for good: what they wait on may swallow a cancellation that comes just when it is done."""
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=CANCEL_S)
    await asyncio.gather(*tasks, return_exceptions=True)  # so that no error of theirs counts as unheard
