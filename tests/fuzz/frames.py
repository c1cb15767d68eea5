"""Target: what an authenticated peer sends after its hello, to a link in this process or to a live party over TLS.

Mutated: headers (fields, shapes, numbers, kinds, depth), payloads (cut, too long, empty, NaN), their order and their
type (text for binary and back); over TLS also fragments, pings, and bytes that are no WebSocket frame.
"""

import asyncio
import json
import struct
import time
from contextlib import suppress
from functools import lru_cache
from random import Random
from types import SimpleNamespace

from websockets.exceptions import ConcurrencyError, ConnectionClosed, ConnectionClosedOK
from websockets.frames import Close

from tests.fuzz.case import HUNG, Case, Outcome, Part, judge
from tests.fuzz.ground import RUN, Ground
from tests.fuzz.mutate import SHAPES, deep_json, each_missing, mutate_bytes, mutate_tree
from tests.network import Party, endpoint
from vfgnn.channel import Channel
from vfgnn.errors import NotThere, VfgnnError
from vfgnn.messages import Declared
from vfgnn.split.program import CONTROL, H0_SHARE
from vfgnn.transport import wire
from vfgnn.transport.endpoint import RUN as FOR_RUN

NAME = "frames"
LINK, PARTY, CHANNEL = "link", "party", "channel"  # the ways in: in process; over TLS, the last with a schedule
START = "<start>"  # in a case, for the name of a start that is drawn anew each time
DEADLINE_S = 25.0
LIVE = 40  # one in so many goes over TLS
WAYS_TO_SPOIL = (
    "tree", "tree", "tree", "shape", "shape", "bytes", "type", "drop", "twice", "swap", "deep", "split", "fragments",
    "ping", "raw", "start",
)  # fmt: skip
HEADER = {"type": "message", "start": START, "number": 1, "kind": str(H0_SHARE), "dtype": "float32", "shape": [2]}
FIRST = [*({**HEADER, "shape": shape} for shape in SHAPES), *each_missing(HEADER)]
BINARY = ("binary", "binary fragments")


class Talk:
    """A connection whose other end says what a case says, then hangs up; what it is told is kept."""

    def __init__(self, frames: list[str | bytes]) -> None:
        self.request, self._frames, self.sent = SimpleNamespace(path=FOR_RUN), iter(frames), []

    async def recv(self) -> str | bytes:
        for frame in self._frames:
            return frame
        raise ConnectionClosedOK(Close(1000, ""), Close(1000, ""), True)

    async def send(self, frame: str | bytes) -> None:
        self.sent.append(frame)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        self.sent.append(reason)


def good_hello(ground: Ground) -> str:
    """B's, to A; its clock is right to the minute."""
    return _hello(ground, int(time.time() / 60))


@lru_cache(maxsize=1)
def _hello(ground: Ground, minute: int) -> str:
    talk = Talk([])
    with suppress(NotThere):
        asyncio.run(endpoint(ground.local, "B").hello(talk, "A"))
    return str(talk.sent[0])


def make(rng: Random, number: int, ground: Ground) -> Case:
    """A few good messages, and something done to them; the first cases are one header, with each fault once."""
    if number < len(FIRST):
        return Case(NAME, LINK, (("text", json.dumps(FIRST[number]).encode()), ("binary", bytes(8))))
    parts: list[Part] = []
    for at in range(1, rng.choice((2, 3, 12))):
        header = {**HEADER, "number": at, "kind": str(rng.choice((H0_SHARE, H0_SHARE, CONTROL)))}
        parts += [
            ("text", json.dumps(header).encode()),
            ("binary", struct.pack("<ff", 1.0, rng.choice((2.0, float("nan"))))),
        ]
        if rng.random() < 0.2:
            parts.append(("text", b'{"type":"ack","number":0}'))
    for _ in range(rng.choice((1, 1, 2, 3))):
        _spoil(rng, parts)
    way = LINK if number % LIVE else (PARTY, CHANNEL)[number // LIVE % 2]
    return Case(NAME, way, tuple(parts))


def _spoil(rng: Random, parts: list[Part]) -> None:
    at = rng.randrange(len(parts)) if parts else 0
    label, content = parts[at] if parts else ("text", b"{}")
    how = rng.choice(WAYS_TO_SPOIL)
    if how in ("tree", "shape") and label == "text":
        header = _header(content)
        made = mutate_tree(rng, header) if how == "tree" else {**header, "shape": rng.choice(SHAPES)}
        parts[at : at + 1] = [(label, json.dumps(made).encode())]
    elif how == "type":
        parts[at : at + 1] = [("binary" if label == "text" else "text", content)]
    elif how == "drop" and parts:
        del parts[at]
    elif how == "twice":
        parts.insert(at, (label, content))
    elif how == "swap" and parts:
        parts.insert(rng.randrange(len(parts)), parts.pop(at))
    elif how == "split":
        cut = rng.randrange(len(content) + 1)
        parts[at : at + 1] = [(label, content[:cut]), (label, content[cut:])]
    elif how == "start":
        parts.insert(at, ("text", json.dumps({"type": "start", "run": RUN, "start": RUN, "step": 0}).encode()))
    elif how in ("deep", "ping", "raw"):
        parts.insert(at, ("text", deep_json(rng)) if how == "deep" else (how, rng.randbytes(rng.choice((0, 20, 200)))))
    elif how == "fragments":
        parts[at : at + 1] = [("binary fragments" if label in BINARY else "fragments", content)]
    else:
        parts[at : at + 1] = [(label, mutate_bytes(rng, content))]


def _header(content: bytes) -> dict[str, object]:
    """As it is, or a good one if nothing can be read any more."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return HEADER
    return found if isinstance(found, dict) else HEADER


def frames_of(case: Case, start: str, ground: Ground) -> list[tuple[str, str | bytes]]:
    """Text as text, and the names of this federation and this start."""
    found: list[tuple[str, str | bytes]] = []
    for label, content in case.parts:
        here = (ground.here(content) or b"").replace(START.encode(), start.encode())
        found.append((label, here if label in (*BINARY, "ping", "raw") else here.decode(errors="replace")))
    return found


def run(case: Case, ground: Ground) -> Outcome:
    """In process: hello, then the frames, through the network's own path for a caller."""
    frames = [frame for label, frame in frames_of(case, RUN, ground) if label not in ("ping", "raw")]
    return meet([good_hello(ground), *frames], case, ground)


def meet(frames: list[str | bytes], case: Case, ground: Ground) -> Outcome:
    """What becomes of a caller that says `frames` and hangs up."""
    network = Party(ground.local, "A").network
    link = network._links["B"]
    try:
        link.begin(wire.Start(run=RUN, start=RUN, step=0))
        asyncio.run(network._answer(Talk(frames), "B"))
        if link.failure is not None:
            raise link.failure
        if link.hello is not None:
            network._decide()  # as the label holder does when all have come
        if link.received:
            receive_one(network)
    except Exception as error:  # noqa: BLE001 (it is what we are looking for)
        return judge(error, case)
    return judge(None, case)


def receive_one(network) -> None:
    """Through a channel that expects two finite numbers."""
    channel = Channel("A", network)
    channel.enter("forward", [Declared(H0_SHARE, "B", "A", wire.DTYPES["float32"], (2,))])
    channel.receive("B", H0_SHARE)


def run_live(case: Case, ground: Ground, ask) -> Outcome:
    """Over TLS, to the party that `ask` speaks with; it ends with an error, whose name is what counts."""
    ask(do="live", channel=case.way == CHANNEL)
    try:
        asyncio.run(asyncio.wait_for(attack(case, ground), DEADLINE_S))
    except TimeoutError:
        return Outcome(HUNG, "the caller was not answered", f"{NAME} {case.way}: no answer")
    except (VfgnnError, OSError):
        pass  # how the party tells it is what counts
    ended = ask(do="ended", seconds=DEADLINE_S, target=case.target, way=case.way)
    return Outcome(**ended)


async def attack(case: Case, ground: Ground) -> None:
    """B's certificate and hello, then what the case says."""
    caller = endpoint(ground.local, "B")
    connection = await caller.dial("A", FOR_RUN)
    try:
        await caller.hello(connection, "A")
        start = wire.decode(await connection.recv(), sender="A").start
        for label, frame in frames_of(case, start, ground):
            await _say(connection, label, frame)
    except ConnectionClosed:
        pass
    finally:
        await connection.close()


async def _say(connection, label: str, frame) -> None:
    if label == "ping":
        for number in range(50):
            with suppress(ConcurrencyError):  # our own end's: such a ping is under way already
                await connection.ping(b"%d" % number + frame[:100])
    elif label == "raw":
        connection.transport.write(frame)
        await asyncio.sleep(0.01)
    elif label.endswith("fragments"):
        third = len(frame) // 3 + 1
        await connection.send([frame[:third], frame[third : 2 * third], frame[2 * third :]])
    else:
        await connection.send(frame)
