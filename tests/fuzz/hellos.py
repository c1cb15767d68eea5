"""Target: hellos of an authenticated peer, in this process and over TLS, for a run and for `vfgnn doctor`.

Mutated: every field, its type and length, control characters, unknown versions, the federation at any depth, binary
for text, a tree too deep, bytes.
"""

import asyncio
import json
from random import Random

from websockets.exceptions import ConnectionClosed

from tests.fuzz import frames
from tests.fuzz.case import ACCEPTED, HUNG, REFUSED, UNNAMED, Case, Outcome
from tests.fuzz.ground import Ground
from tests.fuzz.mutate import deep_json, mutate_bytes, mutate_tree
from tests.network import endpoint
from vfgnn.errors import VfgnnError
from vfgnn.transport.endpoint import DOCTOR

NAME = "hellos"
ENDPOINT, ASKED, RUNNING = "endpoint", "doctor", "party"  # in process; over TLS, for the doctor or for a run
INTERNAL_ERROR = 1011  # the close code for an exception that nobody named
LIVE = 40  # one in so many goes over TLS
FIRST = (
    ("binary", lambda hello: hello),
    ("binary", lambda hello: hello.replace(b"hello", b"hell\xff", 1)),
    ("binary", lambda hello: hello.replace(b'"program":"', b'"program":"\xff', 1)),
    ("binary", lambda hello: b"\x80\x04\x95"),
    ("text", lambda hello: b""),
    ("text", lambda hello: b"null"),
)
"""The cases that come first: the kind of frame, and what is done to a good hello."""


def make(rng: Random, number: int, ground: Ground) -> Case:
    hello, draw, label = frames.good_hello(ground).encode(), rng.random(), "text"
    if number < len(FIRST):
        label, change = FIRST[number]
        return Case(NAME, ENDPOINT, ((label, change(hello)),))
    if draw < 0.7:
        hello = json.dumps(mutate_tree(rng, json.loads(hello))).encode()
    elif draw < 0.85:
        hello = mutate_bytes(rng, hello)
    elif draw < 0.9:
        hello = deep_json(rng)
    if rng.random() < 0.1:
        label = rng.choice(("binary", "binary fragments", "fragments"))
    way = ENDPOINT if number % LIVE else (ASKED, RUNNING)[number // LIVE % 2]
    return Case(NAME, way, ((label, hello),))


def run(case: Case, ground: Ground) -> Outcome:
    """In process, through the network's own path for a caller."""
    return frames.meet([frame for _, frame in frames.frames_of(case, "", ground)], case, ground)


def run_live(case: Case, ground: Ground, ask) -> Outcome:
    """Over TLS. Asked by a doctor the party stays, and its close code tells; in a run it ends with the error."""
    ask(do="live")
    try:
        code, reason = asyncio.run(asyncio.wait_for(attack(case, ground), frames.DEADLINE_S))
    except TimeoutError:
        return Outcome(HUNG, "the caller was not answered", f"{NAME} {case.way}: no answer")
    except (VfgnnError, OSError) as error:
        code, reason = None, str(error)
    if case.way == RUNNING:
        return Outcome(**ask(do="ended", seconds=frames.DEADLINE_S, target=case.target, way=case.way))
    if code == INTERNAL_ERROR:
        why = (ask(do="faults", some=True) or ["closed with 1011, an internal error"])[0]
        return Outcome(UNNAMED, why, f"{NAME} {case.way}: {why}")
    return Outcome(ACCEPTED if code == 1000 else REFUSED, reason)


async def attack(case: Case, ground: Ground) -> tuple[int | None, str]:
    """B's certificate, the hello of the case; how the party closes."""
    connection = await endpoint(ground.local, "B").dial("A", DOCTOR if case.way == ASKED else frames.FOR_RUN)
    try:
        for label, frame in frames.frames_of(case, "", ground):
            await frames._say(connection, label, frame)
        async with asyncio.timeout(0.3 if case.way == RUNNING else frames.DEADLINE_S):
            while True:
                await connection.recv()
    except ConnectionClosed as closed:
        return (None, "lost") if closed.rcvd is None else (closed.rcvd.code, closed.rcvd.reason)
    except TimeoutError:
        if case.way == RUNNING:  # it was taken for B, and waits for what B has to say
            return 1000, ""
        raise
    finally:
        await connection.close()


def good_caller(ground: Ground) -> Case:
    """B, as it should be: the port must answer it whatever came before."""
    return Case(NAME, ASKED, (("text", frames.good_hello(ground).encode()),))
