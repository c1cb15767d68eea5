"""The door of a party that listens: how many callers it holds, in which memory, and for how long.

Anybody can open a TCP connection. A caller passes three rooms, and each has a limit and a deadline:

    waiting   it has not sent a byte: a bare socket, nearly no memory
    opening   TLS, until its certificate is known: about 0.3 MB each
    a peer's  it has the certificate of a party: a few for each party, before and after its hello

A full room lets the new caller in, because a real peer sends at once. It drops the oldest caller of the address that
has most of them, so a stranger at one address pushes out only itself.

The limits lie far below the number of files that a process may have open, so checkpoints and logs can always be opened.
"""

import asyncio
import resource
import socket
import ssl
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from websockets.asyncio.connection import Connection
from websockets.asyncio.server import Server, ServerConnection
from websockets.exceptions import WebSocketException
from websockets.protocol import State
from websockets.server import ServerProtocol

WAITING, OPENING, PER_PEER = 128, 32, 4
FILES = 8  # strangers hold at most one in so many of the files that this process may open
AGAIN_S = 0.5  # before the next call is accepted where no file could be opened
TELL_S = 60.0  # between two words about a full room
CALLS = 64  # accepted at a time, so that the links are served in between


def most_files() -> int:
    """How many callers may wait where `ulimit -n` is small."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return WAITING if soft == resource.RLIM_INFINITY else max(2, soft // FILES)


@dataclass(frozen=True, eq=False)
class Place:
    """One caller in a room."""

    address: str
    drop: Callable[[], object]


class Room:
    """At most `most` callers; one too many pushes out another."""

    def __init__(self, most: int, full: Callable[[], None] = lambda: None) -> None:
        self._most, self._full = most, full
        self._places: dict[Place, None] = {}  # in the order of their coming

    def __len__(self) -> int:
        return len(self._places)

    @contextmanager
    def holding(self, address: str, drop: Callable[[], object]) -> Iterator[None]:
        """Inside, the caller is in this room; `drop` ends it."""
        place = Place(address, drop)
        self._places[place] = None
        if len(self._places) > self._most:
            self._full()
            self.push_out()
        try:
            yield
        finally:
            self._places.pop(place, None)

    def push_out(self) -> None:
        """Drop the oldest caller of the address that has most of them."""
        counts = Counter(place.address for place in self._places)
        if counts:
            crowd = counts.most_common(1)[0][0]
            oldest = next(place for place in self._places if place.address == crowd)
            del self._places[oldest]
            oldest.drop()


class GateConnection(ServerConnection):
    """A WebSocket whose task is the gate's own: websockets would start another one for it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TLS is through."""
        Connection.connection_made(self, transport)


class Gate:
    """Takes the calls at one listening socket; `answer` gets those whose certificate TLS has accepted."""

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        answer: Callable[[ServerConnection], Awaitable[None]],
        *,
        who: Callable[[Connection], str | None],
        full: Callable[[str], None],
        open_s: float,
        connection: dict[str, Any],
    ) -> None:
        self._sock, self._context, self._answer, self._who, self._tell = sock, context, answer, who, full
        self._open_s, self._connection = open_s, dict(connection)
        self._protocol = {key: self._connection.pop(key) for key in ("max_size", "logger")}
        files = most_files()
        self._waiting = Room(min(WAITING, files), lambda: self._full("callers that send nothing"))
        self._opening = Room(min(OPENING, files), lambda: self._full("callers without a certificate so far"))
        self._peers: dict[str | None, Room] = {}
        self._calls: dict[asyncio.Task[None], GateConnection | None] = {}
        self._told = float("-inf")
        self._loop = asyncio.get_running_loop()
        sock.setblocking(False)
        self._loop.add_reader(sock, self._accept)

    def is_serving(self) -> bool:
        """For websockets: whether a call is still answered."""
        return self._sock.fileno() >= 0

    async def close(self) -> None:
        """No more calls; those of peers hear a goodbye."""
        self._loop.remove_reader(self._sock)
        self._sock.close()
        for task, connection in self._calls.items():
            if connection is None or connection.state is not State.OPEN:
                task.cancel()
        open_ones = [one.close(1001) for one in self._calls.values() if one is not None and one.state is State.OPEN]
        await asyncio.gather(*open_ones, *self._calls, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(CALLS):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no file can be opened, here or in the whole system
                self._full("open files")
                self._waiting.push_out()
                self._loop.remove_reader(self._sock)
                self._loop.call_later(AGAIN_S, self._accept_again)
                return
            task = self._loop.create_task(self._take(sock, address[0]))
            self._calls[task] = None
            task.add_done_callback(lambda done: self._calls.pop(done))

    def _accept_again(self) -> None:
        if self.is_serving():
            self._loop.add_reader(self._sock, self._accept)

    def _full(self, what: str) -> None:
        if time.monotonic() - self._told > TELL_S:
            self._told = time.monotonic()
            self._tell(f"too many {what}: the oldest are dropped")

    async def _take(self, sock: socket.socket, address: str) -> None:
        """One call, through the three rooms."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            sock.setblocking(False)
            # asyncio does this only for sockets that it made itself; without it every small message waits 40 ms.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._waiting.holding(address, task.cancel):
                async with asyncio.timeout(self._open_s):
                    await self._first_byte(sock)
            with self._opening.holding(address, task.cancel):
                connection = await self._shake_hands(sock)
        except (OSError, asyncio.CancelledError):  # a TimeoutError is an OSError; who was at fault is told by tls.py
            sock.close()
            return
        self._calls[task] = connection
        peer = self._who(connection)
        try:
            with self._peers.setdefault(peer, Room(PER_PEER)).holding(address, connection.transport.abort):
                await self._talk(connection)
        except (OSError, WebSocketException, asyncio.CancelledError):  # the caller hung up, or was dropped
            pass
        finally:
            connection.transport.abort()  # nothing where it is closed already

    async def _first_byte(self, sock: socket.socket) -> None:
        """Wait for the first byte of a TLS hello, and leave it where it is."""
        came = asyncio.Event()
        self._loop.add_reader(sock, came.set)
        try:
            await came.wait()
        finally:
            self._loop.remove_reader(sock)
        if not sock.recv(1, socket.MSG_PEEK):
            raise ConnectionResetError

    async def _shake_hands(self, sock: socket.socket) -> GateConnection:
        server = cast(Server, self)  # of which a connection needs `is_serving` alone
        _, connection = await self._loop.connect_accepted_socket(
            lambda: GateConnection(ServerProtocol(**self._protocol), server, **self._connection),
            sock,
            ssl=self._context,
            ssl_handshake_timeout=self._open_s,
            ssl_shutdown_timeout=self._connection["close_timeout"],
        )
        return connection

    async def _talk(self, connection: GateConnection) -> None:
        """The upgrade to a WebSocket, then the answer."""
        async with asyncio.timeout(self._open_s):
            await connection.handshake(server_header=None)
        if connection.state is State.OPEN:
            connection.start_keepalive()
            async with connection:
                await self._answer(connection)
