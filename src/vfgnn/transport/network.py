"""All links of one party over TLS: the `Transport` of a real run.

The connections live in a thread of their own, so that sending and receiving overlap with the party's work.
1. listen, dial, say hello (endpoint.py)       2. the label holder names the run when all its peers are there
3. messages over the links (connection.py); lost connections are made again       4. goodbye, or why it failed
"""

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping

import torch
from websockets.asyncio.connection import Connection

from vfgnn.errors import (
    ChannelClosed,
    CheckpointRefused,
    NameTaken,
    NotThere,
    PeerFailed,
    PeerRefused,
    PeerRestarted,
    ProtocolError,
    VfgnnError,
)
from vfgnn.logs import Event
from vfgnn.messages import Declared
from vfgnn.randomness import new_seed
from vfgnn.transport.capacity import NOTHING, Capacity
from vfgnn.transport.connection import Alarm, Link, cancel
from vfgnn.transport.endpoint import LATER, RUN, Caller, Endpoint, named
from vfgnn.transport.goodbye import ENDED, FAILED, brief, goodbye_code
from vfgnn.transport.wire import Hello, Start, highest_common

FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 2.0  # between two attempts to dial
LINGER_S = 3.0  # for the other peers of a party that cannot start
GOODBYE_S = 30.0  # for the peers to use what was sent last
PROBE_S = 3.0  # for a peer to show that it is still there when somebody else calls in its name
OnEvent = Callable[..., None]


class Network:
    """One party's connections to all its peers."""

    def __init__(self, endpoint: Endpoint, capacities: Mapping[str, Capacity], *, on_event: OnEvent) -> None:
        self._endpoint, self._on_event = endpoint, on_event
        endpoint.refused = self._refused
        label_holder, patience = endpoint.file.label_holder, endpoint.file.patience
        leads, self._alarm = endpoint.me == label_holder, Alarm()
        self._links = {
            peer: Link(endpoint.me, peer, capacity, patience, self._alarm, leader=label_holder)
            for peer, capacity in capacities.items()
        }
        self._dialled = [peer for peer in self._links if endpoint.dials(peer)]
        self._leader = None if leads else self._links[label_holder]
        self._last_fault: dict[str, str] = {}
        self._claimed: dict[str, str] = {}  # of callers who said that they were a peer, and could not prove it
        self._goodbye = (ENDED, "")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    def open(self, *, wait_s: float, key: str = "start_s") -> Start:
        """Meet all peers within `wait_s`; the label holder then says which run this is, and where all stand."""
        sock = self._endpoint.listening_socket()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live(sock)), name="network", daemon=True)
        self._thread.start()
        self._wait_for_peers(wait_s, key)
        start = self._decide() if self._leader is None else self._leader.wait_for_start(wait_s, key)
        if start.protocol not in self._endpoint.protocols:
            raise PeerRefused(
                "the label holder names a version that this party does not speak",
                expected=named(self._endpoint.protocols),
                got=named([start.protocol]),
                hint="install the same version of vfgnn at all parties",
            )
        for link in self._links.values():
            link.begin(start)
        return start

    def put(self, message: Declared, payload: torch.Tensor) -> None:
        """Hand over a payload for its receiver."""
        self._links[message.receiver].put(message, payload)

    def get(self, sender: str, *, patient: bool = False) -> tuple[Declared, torch.Tensor]:
        """Wait for the next message from `sender`; `patient`: for as long as it is there."""
        return self._links[sender].get(patient=patient)

    def log_key(self, sender: str, receiver: str) -> bytes:
        """For the digests of a link: this party's own, or the one that the peer has told."""
        if sender == self._endpoint.me:
            return self._endpoint.log_key(receiver)
        return self._links[sender].log_key

    def resize(self, capacities: Mapping[str, Capacity]) -> None:
        """What may be under way from now on; a peer that is not named has nothing to send."""
        for peer, link in self._links.items():
            link.resize(capacities.get(peer, NOTHING))

    def interrupt(self, error: BaseException) -> None:
        """Whichever thread waits on a link hears this instead."""
        self._alarm.ring(error)

    @property
    def away(self) -> dict[str, str]:
        """The peers that there is no connection with now, and what was last heard of them."""
        return {
            link.peer: self._last_fault.get(link.peer) or link.farewell or ("lost" if link.came else "never heard of")
            for link in self._links.values()
            if link.lost_at is not None
        }

    def refuse_failed(self) -> None:
        """For a party that waits for none of its peers: raise what it would hear if it did."""
        if self._alarm.failure is not None:
            raise self._alarm.failure
        for link in self._links.values():
            link.refuse_over()

    def settle(self, apart: Collection[str] = ()) -> None:
        """Wait until every peer has used what was sent to it: nobody is then more than a step behind.

        `apart`: peers that another thread goes on sending to. They use it when this party goes on.
        """
        for peer, link in self._links.items():
            if peer not in apart:
                link.settle()

    def close(self, error: BaseException | None = None) -> None:
        """Say goodbye: after everything was used, or at once with the reason of a failure."""
        if self._thread is None:
            return
        if error is None:
            deadline = time.monotonic() + GOODBYE_S
            for link in self._links.values():
                link.flush(max(0.0, deadline - time.monotonic()))
        else:
            self._goodbye = (goodbye_code(error), brief(error))
            if isinstance(error, PeerFailed):
                self._on_event(Event.PEER_FAILED, peer=error.peer, reason=error.what)
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(GOODBYE_S)

    def _wait_for_peers(self, wait_s: float, key: str) -> None:
        deadline, away_s = time.monotonic() + wait_s, self._endpoint.file.patience.away_s
        # A peer with little to do may have come, said all it had to say, and ended before the others are there.
        while missing := [link for link in self._links.values() if link.lost_at is not None and not link.ended]:
            if self._alarm.failure is not None:
                raise self._alarm.failure
            if any(link.failure for link in self._links.values()):
                raise self._first_failure()
            if self._leader is not None and self._leader.start is not None and time.monotonic() + away_s < deadline:
                # The label holder has met everyone, and goes on without those whom only this party misses.
                deadline, wait_s, key = time.monotonic() + away_s, away_s, "away_s"
            if time.monotonic() > deadline:
                away = self.away
                claimed = [said for peer, said in self._claimed.items() if peer in away]
                raise ChannelClosed(
                    f"{' and '.join(link.peer for link in missing)} did not come",
                    expected=f"all parties within {wait_s:g} s ({key} in the federation file)",
                    got="; ".join([*(f"{peer}: {fault}" for peer, fault in away.items()), *claimed]),
                    where=f"party {self._endpoint.me}",
                    hint="run `vfgnn doctor` at the parties that are named",
                )
            time.sleep(0.02)

    def _first_failure(self) -> VfgnnError:
        """What went wrong; before that, let every peer hear it or find it out by itself."""
        deadline = time.monotonic() + LINGER_S
        while time.monotonic() < deadline and not all(link.came or link.failure for link in self._links.values()):
            time.sleep(0.02)
        failures = [link.failure for link in self._links.values() if link.failure is not None]
        return next((failure for failure in failures if isinstance(failure, PeerRefused)), failures[0])

    def _decide(self) -> Start:
        """Label holder: go on from the last step that all have, or begin a run."""
        endpoint, protocol, fresh = self._endpoint, self._common_protocol(), new_seed().hex()[:16]
        everyone = self._known()
        known = {who: found for who, found in everyone.items() if who in (endpoint.keepers or everyone)}
        runs = {run for run, _ in known.values() if run}
        common = set.intersection(*(steps for _, steps in known.values())) if len(runs) == 1 else set()
        step = max(common, default=None)
        # Where nothing is lost yet, those that keep nothing must have heard of the run too.
        if step or (step == 0 and all(run in runs and 0 in steps for run, steps in everyone.values())):
            return Start(run=runs.pop(), start=fresh, step=step, protocol=protocol)
        furthest = max(max(steps, default=0) for _, steps in known.values())
        spared = endpoint.file.checkpoint_every if endpoint.unwritten is None else endpoint.unwritten
        if step == 0 or furthest < spared:  # nobody has written anything that would be lost
            return Start(run=fresh, start=fresh, step=0, protocol=protocol)
        have = "; ".join(f"{who}: {_shown(run, steps)}" for who, (run, steps) in known.items())
        often = Counter(run for run, _ in known.values()).most_common(1)[0][0]
        odd = [who for who, (run, _) in known.items() if run != often]
        behind = odd[0] if odd else min(known, key=lambda who: max(known[who][1], default=-1))
        raise CheckpointRefused(
            f"{behind} was rolled back, or lost its checkpoints",
            expected="a step of one run that all parties have",
            got=have,
            hint=f"restore the run folder of {behind}, or start all parties with --fresh to begin a new run",
        )

    def _known(self) -> dict[str, tuple[str | None, set[int]]]:
        """Label holder: of which run each party has which steps."""
        known = {self._endpoint.me: (self._endpoint.run, set(self._endpoint.steps))}
        hellos = {peer: link.hello for peer, link in self._links.items()}
        return known | {peer: (hello.run, set(hello.steps)) for peer, hello in hellos.items() if hello is not None}

    def _common_protocol(self) -> int:
        """Label holder, who hears everybody: the highest version that all speak; so far only pairs have compared."""
        spoken = {self._endpoint.me: self._endpoint.protocols}
        spoken |= {peer: link.hello.spoken for peer, link in self._links.items() if link.hello is not None}
        chosen = highest_common(*spoken.values())
        if chosen is None:
            raise PeerRefused(
                "no version of the protocol is spoken by all parties",
                expected="one that all have in common",
                got="; ".join(f"{who}: {named(protocols)}" for who, protocols in spoken.items()),
                hint="install the same version of vfgnn at all parties",
            )
        return chosen

    # in the network's thread

    async def _live(self, sock: socket.socket | None) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        gate = None if sock is None else self._endpoint.listen(sock, self._answer)
        tasks = [asyncio.create_task(self._keep_dialled(self._links[peer])) for peer in self._dialled]
        await self._stop.wait()
        await asyncio.gather(*(link.close(*self._goodbye) for link in self._links.values()), return_exceptions=True)
        await cancel(tasks)
        if gate is not None:
            await gate.close()

    def _refused(self, who: Caller, why: str) -> None:
        """A caller was turned away; this ends nothing. Only its certificate makes it a fault of a peer."""
        if who.party is not None:
            self._last_fault[who.party] = why
        if who.claims is not None:
            self._claimed[who.claims] = f"{who} was refused: {why}"
        self._on_event(Event.REFUSED, peer=str(who), reason=why)

    async def _answer(self, connection: Connection, peer: str) -> None:
        """A peer has called: for a run, or just to see whether all is well."""
        link, request = self._links.get(peer), getattr(connection, "request", None)
        if link is None or request is None or request.path != RUN:
            await self._endpoint.hello(connection, peer)
            return
        try:
            await self._serve(link, connection)
        except NotThere as absent:
            self._last_fault[peer] = absent.what
            raise
        except NameTaken:  # the peer itself is there
            raise
        except Exception as error:  # noqa: BLE001 (it is raised again, by name)
            link.fail(_named(error, peer))
            raise _named(error, peer) from None

    async def _keep_dialled(self, link: Link) -> None:
        pause = FIRST_PAUSE_S
        while not link.ended and link.failure is None:
            try:
                connection = await self._endpoint.dial(link.peer, RUN)
                try:
                    await self._serve(link, connection)
                except Exception as error:
                    await connection.close(LATER if isinstance(error, NotThere) else FAILED, brief(error))
                    raise
                pause = FIRST_PAUSE_S
            except NotThere as absent:
                self._last_fault[link.peer] = absent.got or absent.what
            except Exception as error:  # noqa: BLE001 (it is raised again in the party's thread)
                link.fail(_named(error, link.peer))
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)

    async def _serve(self, link: Link, connection: Connection) -> None:
        """Say hello, then send and receive until the connection ends."""
        async with link.meeting:
            hello = await self._meet(link, connection)
        self._on_event(Event.CONNECTED_AGAIN if link.came else Event.CONNECTED, peer=link.peer)
        self._last_fault.pop(link.peer, None)
        await link.serve(connection, peer_received=hello.received)
        if not link.ended and link.failure is None:
            self._on_event(Event.CONNECTION_LOST, peer=link.peer)

    async def _meet(self, link: Link, connection: Connection) -> Hello:
        """Both ends know of each other what they need.

        A process that ended, or lost its connection, does not answer on the old one. Whoever calls while the peer
        answers is a second process with its key: let in, each of the two would push out the other again and again.
        """
        if await link.answers(PROBE_S):
            raise NameTaken(
                f"another process runs as {link.peer}, and is connected",
                expected=f"one process with the key of {link.peer}",
                where=f"party {link.me}",
                hint=f"find out where {link.peer} runs already; if {link.peer} started only one, its key was stolen",
            )
        await link.detach()  # before it is counted what was received
        hello = await self._endpoint.hello(
            connection, link.peer, received=link.received, knows=None if link.hello is None else link.hello.session
        )
        self._endpoint.check_purpose(hello)
        if hello.knows not in (None, self._endpoint.session):
            raise NotThere(f"{link.peer} has yet to hear that {link.me} was started anew")
        try:
            link.meet(hello)
        except PeerRestarted as restarted:
            self._alarm.ring(restarted)
            raise NotThere(f"{link.me} goes back to a common step") from None
        return hello


def _named(error: Exception, peer: str) -> VfgnnError:
    """Whatever goes wrong with a peer ends in an error that names it."""
    return error if isinstance(error, VfgnnError) else ProtocolError(brief(error), where=f"the link with {peer}")


def _shown(run: str | None, steps: set[int]) -> str:
    return f"steps {sorted(steps)} of run {run}" if steps else "nothing"
