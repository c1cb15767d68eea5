"""Callers that hold connections: strangers without a certificate, and a party that opens too many."""

import asyncio
import errno
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import idle_callers
from tests.network import Party, declare, endpoint, small, words
from vfgnn.files import Patience
from vfgnn.lab.processes import LocalProcesses
from vfgnn.transport import endpoint as endpoint_module
from vfgnn.transport import gate
from vfgnn.transport.endpoint import RUN


@pytest.fixture
def local(tmp_path):
    return small(tmp_path / "federation", patience=Patience(start_s=20, message_s=20, away_s=5))


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def port_of(local):
    return int(local.file.parties["A"].address.split(":")[1])


@contextmanager
def callers(local, count, first=b""):
    """So many connections to A; each sends `first` and hangs on."""
    held = []
    try:
        for _ in range(count):
            held.append(socket.create_connection(("127.0.0.1", port_of(local)), timeout=5))
            held[-1].sendall(first)
        yield held
    finally:
        for one in held:
            one.close()


def beside(local, count, first=b""):
    """A run of A and B beside strangers: how many files A holds for them, and who of them was hung up on."""
    listener = Party(local, "A", lambda network, peer: network.get("B"))
    listener.begin()
    before = open_files()
    with callers(local, count, first) as held:
        files, earlier = open_files(), -1
        while files != earlier:  # until it has let in whom it lets in
            time.sleep(0.3)
            files, earlier = open_files(), files
        files -= before + count
        for one in held:
            one.setblocking(False)
        gone = [idle_callers.closed(one) for one in held]
        caller = Party(local, "B", lambda network, peer: network.put(declare("B", "A", words(3)), words(3)))
        caller.thread.start()
        for party in (caller, listener):
            party.thread.join(20)
            assert party.error is None
    return files, gone, listener


def test_callers_that_send_nothing_fill_one_small_room(local, monkeypatch):
    """The oldest go, so that whoever comes last is heard; and the operator reads of it once."""
    monkeypatch.setattr(gate, "WAITING", 20)
    files, gone, listener = beside(local, 300)
    assert files <= 20
    assert sum(gone) >= 280 and not any(gone[-20:])
    assert [why for _, why in listener.refusals if "too many callers that send nothing" in why] != []
    assert len(listener.refusals) == 1


def test_callers_that_begin_a_handshake_fill_one_small_room(local, monkeypatch):
    monkeypatch.setattr(gate, "OPENING", 10)
    files, gone, _ = beside(local, 200, b"\x16\x03\x01\x02\x00\x01")  # the beginning of a TLS hello
    assert files <= 10
    assert not any(gone[-10:])


def test_without_the_limits_strangers_hold_as_many_files_as_they_like(local, monkeypatch):
    """What the two tests above rely on: the limits, and nothing else, keep the strangers out."""
    for name in ("WAITING", "OPENING"):
        monkeypatch.setattr(gate, name, 10**6)
    monkeypatch.setattr(gate, "most_files", lambda: 10**6)
    files, gone, _ = beside(local, 200)
    assert files >= 200 and not any(gone)
    files, gone, _ = beside(local, 50, b"\x16\x03\x01\x02\x00\x01")
    assert files >= 50 and not any(gone)


@pytest.mark.parametrize(("soft", "most"), [(1024, 128), (256, 32), (10, 2), (gate.resource.RLIM_INFINITY, 128)])
def test_strangers_hold_few_of_the_files_that_a_process_may_open(monkeypatch, soft, most):
    monkeypatch.setattr(gate.resource, "getrlimit", lambda _: (soft, soft))
    assert gate.most_files() == most


def test_a_stranger_at_one_address_pushes_out_only_itself():
    dropped, room = [], gate.Room(3)

    def come(address, number):
        held = room.holding(address, lambda: dropped.append((address, number)))
        held.__enter__()
        return held

    held = [come("peer", 0), *(come("stranger", number) for number in range(5))]
    assert dropped == [("stranger", 0), ("stranger", 1), ("stranger", 2)]
    for one in held:
        one.__exit__(None, None, None)
    assert len(room) == 0


class Exhausted(socket.socket):
    """A listening socket whose process has no file left for the first calls."""

    left = 3

    def accept(self):
        if self.left:
            self.left -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_a_call_that_no_file_is_left_for_is_taken_later(local, monkeypatch):
    monkeypatch.setattr(gate, "AGAIN_S", 0.05)
    listener = Party(local, "A", lambda network, peer: network.get("B"))
    opened = listener.network._endpoint.listening_socket()
    listener.network._endpoint.listening_socket = lambda: Exhausted(fileno=opened.detach())
    caller = Party(local, "B", lambda network, peer: network.put(declare("B", "A", words(3)), words(3)))
    for party in (listener, caller):
        party.thread.start()
    for party in (caller, listener):
        party.thread.join(20)
        assert party.error is None
    assert any("too many open files" in why for _, why in listener.refusals)


def test_a_party_holds_few_connections_before_its_hello(local):
    """It has a valid certificate, and says nothing: a new connection replaces the oldest."""
    heard = threading.Event()
    listener = Party(local, "A", lambda network, peer: heard.wait(20))
    listener.begin()

    async def call():
        attacker = endpoint(local, "B")
        held = [await attacker.dial("A", RUN) for _ in range(3 * gate.PER_PEER)]
        await asyncio.sleep(0.3)
        still = sum(one.state.name == "OPEN" for one in held)
        for one in held:
            one.transport.abort()
        return still

    assert asyncio.run(call()) == gate.PER_PEER
    caller = Party(local, "B")
    caller.thread.start()
    caller.thread.join(20)
    heard.set()
    listener.thread.join(20)
    assert (caller.error, listener.error) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize("files", [1024, 256])
def test_a_run_beside_1500_idle_connections_ends_well(tmp_path, files):
    """Spread over all parties for the whole run; each party may open as many files as a shell commonly allows."""
    local = small(tmp_path / "federation", epochs=40, patience=Patience(start_s=60, message_s=60, away_s=30))
    ports = [reachable.address.split(":")[1] for reachable in local.file.parties.values() if reachable.address]
    script = Path(idle_callers.__file__)
    attacker = subprocess.Popen([sys.executable, script, "1500", *ports], stdout=subprocess.PIPE)
    try:
        with LocalProcesses(local, wrap=lambda _: ("sh", "-c", f'ulimit -n {files}; exec "$@"', "sh")) as running:
            assert attacker.stdout.readline() == b"ready\n"
            running.wait()
    finally:
        attacker.kill()
        attacker.wait()
        attacker.stdout.close()
    assert local.outcome.test_accuracy > 0
    assert endpoint_module.OPEN_S == 10  # they were held for as long as in earnest
