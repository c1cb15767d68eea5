"""Where a party is met: it listens, it dials, and the first thing either side says is a hello.

Before anything of a run is sent, both sides know that the other's certificate is the one the federation file lists
under its name, that they speak a version of the protocol in common, and that its federation file is the same, field by
field. Whoever finds a difference says so to the other in the close reason.
"""

import asyncio
import logging
import socket
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509
from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidProxyStatus,
    InvalidStatus,
    ProxyError,
    WebSocketException,
)

from vfgnn.address import host_and_port
from vfgnn.differences import differences
from vfgnn.errors import ConfigError, NotThere, PeerRefused, VfgnnError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.randomness import derive_key, new_seed
from vfgnn.shown import shown
from vfgnn.transport import certificates, tls, wire
from vfgnn.transport.gate import Gate
from vfgnn.transport.goodbye import FAILED, brief
from vfgnn.transport.reach import connected
from vfgnn.transport.revocation import RevocationList
from vfgnn.version import __version__

OPEN_S = 10.0  # for a TCP connection, a handshake, a hello
CLOSE_S = 3.0  # for a peer to hear a goodbye
KEEP_ALIVE_S = 10.0
SHOWN_DIFFERENCES = 5
RUN, DOCTOR = "/run", "/doctor"  # what a caller wants
TRAIN = "run"
LATER = 1013  # WebSocket close code: try again later
Meet = Callable[[Connection, str], Awaitable[None]]
QUIET = logging.getLogger("vfgnn.websockets")  # its findings reach the user through our own errors
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False
AT_BOTH_ENDS: dict[str, Any] = {
    "close_timeout": CLOSE_S,
    "compression": None,
    "max_size": wire.MAX_HEADER,
    "ping_interval": KEEP_ALIVE_S,
    "ping_timeout": 3 * KEEP_ALIVE_S,
    "write_limit": 2 * wire.CHUNK,
    "logger": QUIET,
}
"""Of a WebSocket, whether it was dialled or answered."""


@dataclass(frozen=True)
class Caller:
    """Who called, as far as that is known: by its certificate, or only by what it says of itself."""

    party: str | None = None  # proven
    claims: str | None = None  # anybody can say so

    def __str__(self) -> str:
        if self.party is not None:
            return self.party
        return "an unknown caller" if self.claims is None else f"a caller that says it is {self.claims}"


@dataclass
class Endpoint:
    """One party's identity on the network, and its way to meet peers."""

    file: FederationFile
    party: PartyFile
    refused: Callable[["Caller", str], None] = lambda who, why: None  # told of callers that were turned away
    program: str = __version__
    protocols: tuple[int, ...] = wire.PROTOCOLS
    clock: Callable[[], float] = time.time
    session: str = field(default_factory=lambda: new_seed().hex()[:16])
    secret: bytes = field(default_factory=new_seed, repr=False)  # of this session's log keys
    run: str | None = None  # of the checkpoints that this party has, and
    steps: tuple[int, ...] = ()  # their steps
    keepers: tuple[str, ...] = ()  # the parties that a run cannot go on without the state of; if none is named, all
    unwritten: int | None = None  # so many first steps nobody has on its disk; None: those before the first checkpoint
    purpose: str = TRAIN  # the command that was started; its peers must have started the same
    standing: bool = False  # a peer that has come for something else is waited for, not refused

    def __post_init__(self) -> None:
        self.me = self.party.name
        if self.me not in self.file.parties:
            names = ", ".join(self.file.parties)
            raise ConfigError("this party is not in the federation", expected=f"one of {names}", got=self.me)
        made_out = certificates.name_of(certificates.load(self.party.certificate))
        if made_out != self.me:
            raise ConfigError(
                f"{self.me} has a certificate that is not its own",
                expected=f"one made out to {self.me}",
                got=made_out or "no name",
                where=str(self.party.certificate),
                hint=f"vfgnn keys new {self.me} makes it",
            )
        self._log_keys = {peer: derive_key(self.secret, "log key", self.me, peer) for peer in self.file.parties}
        self.trust = tls.Trust.of(self.file)
        self._revoked = RevocationList.of(self.party.revocation_list, self.file.certificate_authority)
        self._refuse_own_revoked()
        tls.context(self.party, self.trust, listens=False, on_fault=lambda *_: None)  # key and certificate can be used

    def _refuse_own_revoked(self) -> None:
        if self._revoked is not None:
            try:
                self._revoked.refuse_revoked(certificates.load(self.party.certificate))
            except PeerRefused as revoked:
                raise ConfigError(revoked.what, expected=revoked.expected, got=revoked.got, hint=revoked.hint) from None

    def _refuse_revoked(self, connection: Connection) -> None:
        """A list that cannot be used keeps peers out until it is mended: they try again."""
        der = _peer_certificate(connection)
        if self._revoked is None or der is None:
            return
        try:
            self._revoked.refuse_revoked(x509.load_der_x509_certificate(der))
        except ConfigError as error:
            raise NotThere(f"{self.me} lets nobody in: {error.what}", got=error.got, where=error.where) from None

    def dials(self, peer: str) -> bool:
        """Whether this party dials `peer`, or waits for its call: the one with an address is dialled."""
        order, parties = list(self.file.parties), self.file.parties
        theirs, ours = parties[peer].address, parties[self.me].address
        if theirs is None and ours is None:
            raise ConfigError(
                f"neither {self.me} nor {peer} can be dialled",
                expected="an address for at least one of the two in the federation file",
                hint="give one of them an address = 'host:port'",
            )
        return theirs is not None and (ours is None or order.index(peer) < order.index(self.me))

    # listening

    def listening_socket(self) -> socket.socket | None:
        """The port that peers dial, or None for a party that only dials."""
        address = self.file.parties[self.me].address
        if address is None:
            return None
        where = self.party.listen or f"0.0.0.0:{host_and_port(address)[1]}"
        host, port = host_and_port(where)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            return socket.create_server((host, port), family=family)
        except OSError as error:
            raise ConfigError(
                f"{self.me} cannot listen",
                expected=f"{where} to be free",
                got=error.strerror,
                hint="end the other program, or change `listen` in party.toml and the address in the federation file",
            ) from None

    def listen(self, sock: socket.socket, meet: Meet) -> Gate:
        """Answer calls; `meet` gets each connection whose certificate is that of a party of the federation."""

        async def answer(connection: ServerConnection) -> None:
            try:
                await meet(connection, self._identify(connection))
            except NotThere as later:
                await connection.close(LATER, brief(later))
            except VfgnnError as error:
                await connection.close(FAILED, brief(error))
                self.refused(Caller(self.trust.who(_peer_certificate(connection))), error.what)

        # What a TLS context leads to is never collected while a connection leads to the context: the collector cannot
        # see through CPython's connections. A party that serves meets its peers again and again.
        heard = weakref.WeakMethod(self._caller_fault)

        def on_fault(server_name: str | None, fault: tls.Fault) -> None:
            hear = heard()
            if hear is not None:
                hear(server_name, fault)

        context = tls.context(self.party, self.trust, listens=True, on_fault=on_fault)
        return Gate(
            sock,
            context,
            answer,
            who=lambda connection: self.trust.who(_peer_certificate(connection)),
            full=lambda what: self.refused(Caller(), what),
            open_s=OPEN_S,
            connection={key: value for key, value in AT_BOTH_ENDS.items() if key != "compression"},
        )

    def _caller_fault(self, server_name: str | None, fault: tls.Fault) -> None:
        self.refused(Caller(claims=self.trust.claimant(server_name)), fault.text)

    def _identify(self, connection: Connection) -> str:
        """Who called, by its certificate."""
        self._refuse_revoked(connection)
        name = self.trust.who(_peer_certificate(connection))
        if name is None or name == self.me:
            raise PeerRefused(
                f"{self.me} refused a certificate that is no other party's",
                expected=f"one of {', '.join(other for other in self.file.parties if other != self.me)}",
                got="another name" if name is None else name,
            )
        return name

    # dialling

    async def dial(self, peer: str, path: str) -> Connection:
        """A connection to `peer` (`path`: RUN or DOCTOR), its certificate checked.

        Raises `NotThere` where trying again may help, `PeerRefused` where somebody has to mend something.
        """
        address = self.file.parties[peer].address or ""
        faults: list[tls.Fault] = []
        context = tls.context(self.party, self.trust, listens=False, on_fault=lambda _, fault: faults.append(fault))
        where = f"{peer} at {address}"
        sock = await connected(peer, address, within_s=OPEN_S) if self.party.proxy is None else None
        try:
            connection = await connect(
                f"wss://{address}{path}",
                sock=sock,
                ssl=context,
                server_hostname=tls.claim(self.me),
                proxy=self.party.proxy,
                open_timeout=OPEN_S,
                user_agent_header=None,
                **AT_BOTH_ENDS,
            )
        except (OSError, EOFError, TimeoutError, WebSocketException) as error:
            if faults:
                raise self._dial_fault(peer, where, faults[0]) from None
            got = shown(str(error), most=wire.SHOWN) or type(error).__name__
            if isinstance(error, InvalidHandshake) and not _may_pass(error):
                raise PeerRefused(f"what answers for {peer} is no vfgnn party", got=got, where=where) from None
            raise NotThere(f"{peer} does not answer", got=got, where=where) from None
        try:
            self._refuse_revoked(connection)
        except VfgnnError as error:
            await connection.close(LATER if isinstance(error, NotThere) else FAILED, brief(error))
            raise
        found = self.trust.who(_peer_certificate(connection))
        if found != peer:
            await connection.close(FAILED, f"{self.me} dialled {peer} here and reached {found}"[:120])
            raise PeerRefused(
                f"{found or 'a stranger'} answers at the address of {peer}",
                expected=f"a certificate made out to {peer}",
                got=found or "another certificate",
                where=where,
                hint=f"check the address of {peer} in the federation file, and which party.toml was started there",
            )
        return connection

    def _dial_fault(self, peer: str, where: str, fault: tls.Fault) -> PeerRefused:
        suspect = self.me if fault.ours else peer
        return PeerRefused(
            f"{peer} and {self.me} do not trust each other: {fault.text}",
            expected="TLS 1.3, and certificates that are valid and listed in the federation files of both",
            where=where,
            hint=f"compare `vfgnn keys show` at {suspect} with the federation file, then the clocks",
        )

    # hello

    def log_key(self, peer: str) -> bytes:
        """The key of the digests, in both logs, of what this party sends to `peer` in this session."""
        return self._log_keys[peer]

    async def hello(
        self, connection: Connection, peer: str, *, received: int = 0, knows: str | None = None
    ) -> wire.Hello:
        """Say hello and hear the peer's; both sides refuse a difference that matters.

        Reveals: to `peer`, the federation file as this party has it, its versions, its clock, and the log key of
        what it will send to `peer`.
        """
        ours = wire.Hello(
            protocol=max(self.protocols),
            protocols=self.protocols if len(self.protocols) > 1 else (),
            program=self.program,
            sender=self.me,
            receiver=peer,
            time=self.clock(),
            session=self.session,
            knows=knows,
            received=received,
            run=self.run,
            steps=self.steps,
            federation=self.file.document,
            log_key=self.log_key(peer).hex(),
            purpose=self.purpose,
        )
        try:
            await connection.send(wire.encode(ours))
            async with asyncio.timeout(OPEN_S):  # `wait_for` may swallow a cancellation
                theirs = await connection.recv()
        except TimeoutError:
            raise NotThere(f"{peer} says no hello", expected=f"one within {OPEN_S:g} s") from None
        except ConnectionClosed as closed:
            if closed.rcvd is not None and closed.rcvd.code == FAILED:
                raise PeerRefused(f"{peer} refused {self.me}: {closed.rcvd.reason}", hint=f"see {peer}'s log") from None
            raise NotThere(f"{peer} hung up", got=str(closed)) from None
        return self.check_hello(theirs, peer)

    def check_hello(self, text: str | bytes, peer: str) -> wire.Hello:
        """Refuse a peer without a version in common, another name or another federation file."""
        version = wire.decode_version(text, sender=peer)
        if wire.highest_common(self.protocols, version.spoken) is None:
            raise self._other_protocol(peer, version)
        hello = wire.decode(text, sender=peer)
        if not isinstance(hello, wire.Hello) or (hello.sender, hello.receiver) != (peer, self.me):
            raise PeerRefused(f"{peer} says hello in another name", expected=f"from {peer} to {self.me}")
        found = list(differences(self.file.document, hello.federation))
        if found:
            shown = [f"{where}: {ours} at {self.me}, {theirs} at {peer}" for where, ours, theirs in found]
            more = f"; and {len(shown) - SHOWN_DIFFERENCES} more" if len(shown) > SHOWN_DIFFERENCES else ""
            raise PeerRefused(
                f"the federation files of {self.me} and {peer} differ in {found[0][0]}",
                expected="the same file at all parties",
                got="; ".join(shown[:SHOWN_DIFFERENCES]) + more,
                hint="agree on one file and copy it to all parties",
            )
        return hello

    def check_purpose(self, hello: wire.Hello) -> None:
        """Refuse a peer that was started with another command."""
        if hello.purpose == self.purpose:
            return
        what = f"{hello.sender} was started with `vfgnn {hello.purpose}`, {self.me} with `vfgnn {self.purpose}`"
        if self.standing:
            raise NotThere(what)
        raise PeerRefused(what, expected="the same command at all parties", hint="start it at all parties")

    def _other_protocol(self, peer: str, theirs: wire.Version) -> PeerRefused:
        ours_newer = max(self.protocols) > max(theirs.spoken)
        behind, newer = (peer, self.program) if ours_newer else (self.me, theirs.program)
        return PeerRefused(
            f"{peer} speaks {named(theirs.spoken)}, {self.me} speaks {named(self.protocols)}",
            expected=f"a version in common with {named(self.protocols)} (vfgnn {self.program} at {self.me})",
            got=f"{named(theirs.spoken)} (vfgnn {theirs.program} at {peer})",
            hint=f"install the same version of vfgnn at all parties: {newer} at {behind}, or one that speaks both",
        )


def named(protocols: Iterable[int]) -> str:
    """For people."""
    found = [str(one) for one in sorted(protocols)]
    return f"protocol {found[0]}" if len(found) == 1 else f"protocols {', '.join(found[:-1])} and {found[-1]}"


def _may_pass(error: InvalidHandshake) -> bool:
    """Whether the same call may succeed later: a peer that is not up yet, seen directly or through a proxy."""
    if isinstance(error, (InvalidStatus, InvalidProxyStatus)):
        return error.response.status_code >= 500
    return isinstance(error, (InvalidMessage, ProxyError))


def _peer_certificate(connection: Connection) -> bytes | None:
    sslobject = connection.transport.get_extra_info("ssl_object")
    der: bytes | None = None if sslobject is None else sslobject.getpeercert(binary_form=True)
    return der
