"""A peer with a valid certificate that does not follow the protocol, and callers without any.

Each ends in a named error within its deadline, tells the other end why, and leaves the port usable.
"""

import asyncio
import random
import resource
import socket
import ssl
import time

import pytest
import torch
from websockets.exceptions import ConnectionClosed

from tests.network import Party, declare, endpoint, run_pair, small, words
from vfgnn.channel import Channel
from vfgnn.errors import ChannelClosed, DeadlinePassed, ProtocolError
from vfgnn.files import Patience
from vfgnn.messages import Declared
from vfgnn.split.program import CONTROL, H0_SHARE
from vfgnn.transport import endpoint as endpoint_module
from vfgnn.transport import wire
from vfgnn.transport.endpoint import RUN

KIND = H0_SHARE


@pytest.fixture
def local(tmp_path):
    return small(tmp_path / "federation", patience=Patience(start_s=10, message_s=2, away_s=2))


def header(start, number=1, *, shape=(4,), dtype="uint8", kind=KIND):
    return wire.encode(wire.Message(start, number, str(kind), dtype, shape))


def attack(local, frames, work=lambda network, peer: network.get("B"), room=None):
    """B's certificate, B's hello, then `frames(start)`; what A raised, and the reason that B was told."""
    victim = Party(local, "A", work)
    if room is not None:
        victim.network.resize({"B": room})
    victim.thread.start()

    async def call():
        attacker = endpoint(local, "B")
        for _ in range(50):
            try:
                connection = await attacker.dial("A", RUN)
                break
            except endpoint_module.NotThere:
                await asyncio.sleep(0.1)
        await attacker.hello(connection, "A")
        start = wire.decode(await connection.recv(), sender="A").start
        try:
            for frame in frames(start):
                if isinstance(frame, float):
                    await asyncio.sleep(frame)
                else:
                    await connection.send(frame)
            while True:
                await asyncio.wait_for(connection.recv(), 20)
        except ConnectionClosed as closed:
            return "" if closed.rcvd is None else closed.rcvd.reason
        finally:
            await connection.close()

    reason = asyncio.run(call())
    victim.thread.join(20)
    assert not victim.thread.is_alive()
    return victim.error, reason


REFUSED = {
    "truncated": (lambda s: [header(s), b"12", header(s, 2)], "a header within a payload"),
    "too long": (lambda s: [header(s), b"12345"], "a chunk that does not fit"),
    "an empty chunk": (lambda s: [header(s), b""], "a chunk that does not fit"),
    "oversized": (lambda s: [header(s, shape=(2**26 + 1,))], "larger than any of the schedule"),
    "a start that cannot be": (lambda s: [wire.encode(wire.Start("../x", s, -1))], "a header that cannot be read"),
    "of endless shape": (lambda s: [header(s, shape=(0, 2**70))], "impossible shape"),
    "of impossible shape": (lambda s: [header(s, shape=(-1, 4))], "impossible shape"),
    "re-ordered": (lambda s: [header(s, 2), b"1234"], "a message out of order"),
    "replayed": (lambda s: [header(s), b"1234", header(s), b"1234"], "a message out of order"),
    "foreign": (lambda s: [header("another start"), b"1234"], "a message of another start"),
    "a payload without a header": (lambda s: [b"1234"], "a payload without its header"),
    "an unknown kind": (lambda s: [header(s).replace("h0_share", "h1_share")], "a kind that this link does not have"),
    "a pickle": (lambda s: [b"\x80\x04\x95\x10\x00\x00\x00"], "a payload without its header"),
    "not JSON": (lambda s: ["{"], "a header that cannot be read"),
    "an ack for nothing": (lambda s: [wire.encode(wire.Ack(7))], "never sent"),
    "a start by somebody else": (lambda s: [wire.encode(wire.Start("0" * 16, "1" * 16, 0))], "an unexpected start"),
    "a flood": (
        lambda s: [part for n in range(1, 20) for part in (header(s, n), b"1234")],
        "more messages than may be waiting",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_message_that_may_not_come_is_refused_by_name(local, case):
    frames, says = REFUSED[case]
    waits = case in ("replayed", "a flood")  # the first message is a good one: use it only later
    began = time.monotonic()

    def work(network, peer):
        if waits:
            time.sleep(0.7)
            for _ in range(20):
                network.get("B")
        network.get("B")

    error, reason = attack(local, frames, work)
    assert isinstance(error, ProtocolError)
    assert says in str(error)
    assert "B" in str(error)
    assert says in reason
    assert time.monotonic() - began < 10


def through_a_channel(declared):
    def work(network, peer):
        channel = Channel("A", network)
        channel.enter("forward", [declared])
        channel.receive("B", declared.kind)

    return work


NAN = torch.tensor([1.0, float("nan")]).numpy().tobytes()
CHANNEL = {
    "wrong dtype": (lambda s: [header(s, dtype="int64", shape=(2,)), bytes(16)], "not the declared one"),
    "wrong shape": (lambda s: [header(s, dtype="float32", shape=(1, 2)), bytes(8)], "not the declared one"),
    "wrong kind": (lambda s: [header(s, dtype="float32", shape=(2,), kind=CONTROL), bytes(8)], "not the declared"),
    "NaN": (lambda s: [header(s, dtype="float32", shape=(2,)), NAN], "NaN or infinite"),
}


@pytest.mark.parametrize("case", CHANNEL)
def test_a_message_that_is_not_the_declared_one_is_refused(local, case):
    frames, says = CHANNEL[case]
    error, reason = attack(local, frames, through_a_channel(Declared(KIND, "B", "A", torch.float32, (2,))))
    assert isinstance(error, ProtocolError)
    assert says in str(error)
    assert says in reason
    assert "nan" not in str(error)


def test_a_frame_beyond_every_limit_ends_the_connection(local):
    error, _ = attack(local, lambda s: [header(s, shape=(2**21,)), bytes(2**20 + 1)])
    assert isinstance(error, ChannelClosed)
    assert "B" in str(error)


def test_one_byte_a_second_ends_at_the_deadline(local):
    began = time.monotonic()
    error, _ = attack(local, lambda s: [header(s, shape=(100,)), *[part for _ in range(20) for part in (b"1", 0.3)]])
    assert isinstance(error, DeadlinePassed)
    assert "a message from B" in str(error)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("frames", [[], [6.0]], ids=["reads and uses nothing", "does not even read"])
def test_a_peer_that_stops_ends_at_the_deadline_with_bounded_memory(local, frames):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def pour(network, peer):
        payload = words(500_000)  # 4 MB
        while True:
            network.put(declare("A", "B", payload), payload)

    error, _ = attack(local, lambda s: frames, pour)
    assert isinstance(error, DeadlinePassed)
    assert "B to use what was sent" in str(error)
    # A window of 8 messages of 4 MB, once queued and once on their way, at both ends; and the interpreter's own.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def port_of(local):
    return int(local.file.parties["A"].address.split(":")[1])


def test_a_thousand_random_byte_strings(local):
    """Most are no TLS at all; some begin like it. The port answers a good caller afterwards."""
    rng = random.Random(0)
    listener = Party(local, "A", lambda network, peer: network.get("B"))
    listener.begin()
    for number in range(1000):
        content = rng.randbytes(rng.randrange(1, 200))
        if number % 3 == 0:
            content = b"\x16\x03\x01" + content
        with socket.create_connection(("127.0.0.1", port_of(local)), timeout=5) as raw:
            raw.sendall(content)
    caller = Party(local, "B", lambda network, peer: network.put(declare("B", "A", words(3)), words(3)))
    caller.thread.start()
    for party in (caller, listener):
        party.thread.join(20)
        assert party.error is None


def test_random_bytes_inside_tls_are_refused_too(local):
    rng = random.Random(1)
    listener = Party(local, "A", lambda network, peer: network.get("B"))
    listener.begin()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(local.folder / "B" / "B.certificate.pem", local.folder / "B" / "B.key.pem")
    for _ in range(20):
        with (
            socket.create_connection(("127.0.0.1", port_of(local)), timeout=5) as raw,
            context.wrap_socket(raw) as wrapped,
        ):
            wrapped.sendall(rng.randbytes(300))
    caller = Party(local, "B", lambda network, peer: network.put(declare("B", "A", words(3)), words(3)))
    caller.thread.start()
    for party in (caller, listener):
        party.thread.join(20)
        assert party.error is None


def test_two_hundred_connections_at_once(local, monkeypatch):
    """They say nothing and hang on; the good caller is served meanwhile, and they are gone after their deadline."""
    monkeypatch.setattr(endpoint_module, "OPEN_S", 1.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def late(network, peer):
        time.sleep(1.5)
        network.get("B")

    listener = Party(local, "A", late)
    listener.begin()
    idle = [socket.create_connection(("127.0.0.1", port_of(local)), timeout=5) for _ in range(200)]
    caller = Party(local, "B", lambda network, peer: network.put(declare("B", "A", words(3)), words(3)))
    run = (caller, listener)
    caller.thread.start()
    for party in run:
        party.thread.join(20)
        assert party.error is None
    assert all(one.recv(10) == b"" for one in idle)  # hung up on
    for one in idle:
        one.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB: 1 MB for each at most


def test_the_port_is_free_afterwards(local):
    one, other = Party(local, "A"), Party(local, "B")
    run_pair(one, other)
    socket.create_server(("127.0.0.1", port_of(local))).close()
