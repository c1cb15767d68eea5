"""Target: whoever can reach the port. None is let in, each is hung up on in time, and the port serves B afterwards.

No TLS at all, a client hello that was mutated, no certificate, a stranger's certificate made out to B, TLS 1.2, one
byte after another, B's certificate with something that is no WebSocket, and connections that say nothing and stay.
"""

import socket
import ssl
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.fuzz.case import HUNG, REFUSED, UNNAMED, Case, Outcome
from tests.fuzz.ground import Ground
from tests.fuzz.mutate import ODD_BYTES, TEXTS, mutate_bytes
from vfgnn.transport import certificates, tls

NAME = "strangers"
CERTIFICATES = {"no certificate": None, "a stranger": "stranger", "TLS 1.2": "B", "no WebSocket": "B"}
WAYS = (*CERTIFICATES, "no TLS", "client hello", "slow bytes", "idle")
IDLE, IDLE_S = 30, 40.0  # how many stay, and after how long they must have been hung up on
REQUEST = (
    b"GET /run HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
CHECKED = 20  # one in so many is followed by a good caller
idle: deque[tuple[float, socket.socket]] = deque()


def make(rng: Random, number: int, ground: Ground) -> Case:
    way = WAYS[number % len(WAYS)]
    name = rng.choice((tls.claim("B"), tls.claim("A"), "x", rng.choice(TEXTS[5:])[:60] or "y"))
    said = client_hello(name) if way in ("client hello", "slow bytes") else REQUEST
    if way == "no TLS" and rng.random() < 0.5:
        said = rng.choice((b"\x16\x03\x01", b"", rng.choice(ODD_BYTES) * 300)) + rng.randbytes(rng.randrange(300))
    elif way == "client hello" and rng.random() < 0.3:
        said = said.replace(name.encode(), b"\xd6" + name.encode()[1:])  # a name that is no text, all else in order
    elif way in ("client hello", "no WebSocket", "no TLS"):
        said = mutate_bytes(rng, said)
    return Case(NAME, way, (("server name", name.encode()), ("said", said)))


def run_live(case: Case, ground: Ground, ask) -> Outcome:
    ask(do="live")
    content = dict(case.parts)
    try:
        name = (content.get("server name") or b"x").decode(errors="replace")
        heard = _call(case, ground, name, content.get("said") or b"")
    except (OSError, ValueError, TypeError):  # refused, in one of many ways; or a name that Python does not send
        heard = b""
    if b" 101 " in heard[:20] and case.way != "no WebSocket":
        return Outcome(UNNAMED, "let in", f"{NAME} {case.way}: a stranger was let in")
    late = _overdue()
    if late:
        return Outcome(HUNG, f"{late} idle connections were kept", f"{NAME} idle: not hung up on")
    return Outcome(REFUSED)


def _call(case: Case, ground: Ground, name: str, said: bytes) -> bytes:
    host, _, port = (ground.local.file.parties["A"].address or "").rpartition(":")
    raw = socket.create_connection((host, int(port)), timeout=5)
    if case.way == "idle":
        idle.append((time.monotonic(), raw))
        return b""
    with raw:
        if case.way in CERTIFICATES:
            with context(case.way, ground).wrap_socket(raw, server_hostname=name) as wrapped:
                wrapped.sendall(said)
                wrapped.settimeout(0.1)
                return wrapped.recv(100)
        if case.way == "slow bytes":
            for byte in said[:60]:
                raw.sendall(bytes([byte]))
                time.sleep(0.001)
            return b""
        raw.sendall(said)
        raw.settimeout(0.05)
        return raw.recv(100)


def _overdue() -> int:
    """Idle connections that are still there after their time; the others are let go."""
    late = 0
    while idle and (time.monotonic() - idle[0][0] > IDLE_S or len(idle) > IDLE):
        began, raw = idle.popleft()
        raw.setblocking(False)
        with suppress(OSError), raw:
            overdue = time.monotonic() - began > IDLE_S
            try:
                late += overdue and raw.recv(1) != b""
            except BlockingIOError:
                late += overdue
    return late


def context(way: str, ground: Ground) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if way == "TLS 1.2":
        made.maximum_version = ssl.TLSVersion.TLSv1_2
    if CERTIFICATES[way] == "B":
        home = ground.local.folder / "B"
        made.load_cert_chain(home / "B.certificate.pem", home / "B.key.pem")
    elif CERTIFICATES[way] == "stranger":
        home = _stranger(ground.folder / "stranger")
        made.load_cert_chain(home / "B.certificate.pem", home / "B.key.pem")
    return made


def _stranger(home: Path) -> Path:
    if not home.exists():
        certificates.write(home, "B", days=1, passphrase=None)
    return home


def client_hello(name: str) -> bytes:
    """The first bytes of a TLS connection."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError, ValueError, TypeError):
        made.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name).do_handshake()
    return outgoing.read() or b"\x16\x03\x01"
