"""`vfgnn doctor`: what would keep this party from running, found before the run, and who must do what about it.

Looks at the party's own files first, then calls each peer and compares what both have. While it looks it answers the
doctors of other parties too. Peers learn what every hello tells: the public file, versions and the time.
"""

import asyncio
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from websockets.asyncio.connection import Connection

from vfgnn.agreement import SERVER
from vfgnn.errors import ConfigError, NotThere, PeerRefused, VfgnnError
from vfgnn.files import FederationFile, PartyFile, load_federation, load_party
from vfgnn.party.finding import Finding, as_finding
from vfgnn.party.own_data import load_data
from vfgnn.party.programs import most_recorded, of_run
from vfgnn.party.sealed_findings import sealed_findings
from vfgnn.party.session import capacities
from vfgnn.transport import certificates
from vfgnn.transport.endpoint import DOCTOR, LATER, RUN, Endpoint
from vfgnn.transport.reach import AS_RUNNING
from vfgnn.transport.revocation import RevocationList
from vfgnn.transport.wire import Hello, highest_common

CLOCKS_S = 60.0  # clocks may differ by so much
SOON_DAYS = 14
MakeEndpoint = Callable[[FederationFile, PartyFile], Endpoint]


def examine(
    federation: Path, party: Path, *, wait_s: float = 0, make_endpoint: MakeEndpoint = Endpoint
) -> list[Finding]:
    """All findings, in the order in which they should be mended; a fault at home ends the list before the peers."""
    findings: list[Finding] = []
    try:
        file = load_federation(federation)
        findings.append(Finding("federation file", "ok", f"{', '.join(file.parties)}; digest {file.digest[:16]}"))
    except VfgnnError as error:
        return [as_finding("federation file", error)]
    try:
        own = load_party(party)
        if own.name not in file.parties:
            expected = ", ".join(file.parties)
            needless = own.name == SERVER and file.agreement.sealed
            raise ConfigError(
                f"{own.name} is not in the federation file",
                expected=f"name = one of {expected}",
                hint="sealed, a server is there only to align ids by tokens; this one is not needed"
                if needless
                else None,
            )
        findings.append(Finding("party file", "ok", f"this is {own.name}"))
    except VfgnnError as error:
        return [*findings, as_finding("party file", error)]
    findings += _home(file, own)
    try:
        endpoint = make_endpoint(file, own)
    except VfgnnError as error:
        return [*findings, as_finding("key and certificate", error)]
    if own.record_view:
        findings.append(_recorded(file, own))
    findings += asyncio.run(_peers(endpoint, wait_s))
    return findings


def _home(file: FederationFile, own: PartyFile) -> Iterator[Finding]:
    """Keys, certificates and data, as far as this party can see them by itself."""
    try:
        mode = own.key.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            yield Finding("key", "note", f"others can read {own.key}", f"chmod 600 {own.key}")
        else:
            yield Finding("key", "ok", "readable by its owner only")
    except OSError as error:
        yield Finding(
            "key", "fault", f"{own.key}: {error.strerror}", f"vfgnn keys new {own.name}, or correct party.toml"
        )
    try:
        yield _own_certificate(file, own)
    except VfgnnError as error:
        yield as_finding("certificate", error)
    for name, peer in file.parties.items():
        if name != own.name and peer.certificate is not None:
            yield from _listed_certificate(name, peer.certificate)
    yield from _revocations(file, own)
    try:
        data = load_data(file, own)
        yield Finding("data", "ok", data.in_words())
        if file.agreement.sealed:
            yield from sealed_findings(file, own, data)
    except VfgnnError as error:
        yield as_finding("data", error)


def _recorded(file: FederationFile, own: PartyFile) -> Finding:
    size = most_recorded(file, own.name) / 1e6
    found = f"contents of messages are kept for `vfgnn audit`, encrypted, at most {size:.1f} MB for each start"
    return Finding("view", "note", found, "leave record_view out of party.toml where no audit is planned")


def _own_certificate(file: FederationFile, own: PartyFile) -> Finding:
    mine, listed = certificates.load(own.certificate), file.parties[own.name].certificate
    name, fault = certificates.name_of(mine), certificates.fault_of_dates(mine)
    if name != own.name:
        what = f"made out to {name}, but this party is {own.name}"
        return Finding("certificate", "fault", what, f"vfgnn keys new {own.name}, and list the new certificate")
    if fault is not None:
        to_do = f"vfgnn keys new {own.name} in an empty folder, then list the new certificate at all parties"
        return Finding("certificate", "fault", f"{fault} (or this clock is wrong)", to_do)
    if listed is not None and certificates.parse(listed, "the federation file") != mine:
        what = f"not the one that the federation file lists for {own.name}"
        return Finding("certificate", "fault", what, "list this one at all parties, or use the key of the listed one")
    days = (mine.not_valid_after_utc.timestamp() - time.time()) / 86400
    if days < SOON_DAYS:
        return Finding("certificate", "note", f"expires in {days:.0f} days", f"vfgnn keys new {own.name} before then")
    return Finding(
        "certificate", "ok", f"valid for {days:.0f} days, fingerprint {certificates.fingerprint(mine)[:23]}…"
    )


def _revocations(file: FederationFile, own: PartyFile) -> Iterator[Finding]:
    about = "revocation list"
    try:
        kept = RevocationList.of(own.revocation_list, file.certificate_authority)
        if kept is not None:
            found = kept.read()
            until = f"{found.next_update_utc:%Y-%m-%d %H:%M} UTC"
            yield Finding(about, "ok", f"{len(found)} certificates revoked; to be renewed before {until}")
        elif file.certificate_authority is not None:
            what = "none, so a stolen key of a party stays trusted until its certificate ends"
            yield Finding(about, "note", what, "set revocation_list in party.toml to the list of the CA")
    except VfgnnError as error:
        yield as_finding(about, error)


def _listed_certificate(name: str, pem: str) -> Iterator[Finding]:
    try:
        listed = certificates.parse(pem, f"the certificate of {name} in the federation file")
    except VfgnnError as error:
        yield as_finding(f"certificate of {name}", error)
        return
    fault, made_out = certificates.fault_of_dates(listed), certificates.name_of(listed)
    about = f"certificate of {name}"
    if made_out != name:
        yield Finding(
            about, "fault", f"made out to {made_out}", f"{name} must send the one made with vfgnn keys new {name}"
        )
    elif fault is not None:
        yield Finding(
            about, "fault", f"{fault} (or this clock is wrong)", f"{name} must make a new one, all must list it"
        )


async def _peers(endpoint: Endpoint, wait_s: float) -> list[Finding]:
    """Open the port, then call everybody, and be there for those who call."""
    me, file = endpoint.me, endpoint.file
    findings: list[Finding] = []
    called: dict[str, Hello] = {}

    async def answer(connection: Connection, peer: str) -> None:
        request = getattr(connection, "request", None)
        if request is not None and request.path == RUN:
            await connection.close(LATER, "a doctor is looking, the run comes later")
            return
        called[peer] = await endpoint.hello(connection, peer)

    gate = None
    try:
        sock = endpoint.listening_socket()
        gate = None if sock is None else endpoint.listen(sock, answer)
        where = f"listening for {file.parties[me].address}" if sock else "none: this party only dials"
        findings.append(Finding("port", "ok", where))
    except ConfigError as error:
        findings.append(as_finding("port", error))
    deadline = time.monotonic() + wait_s
    peers = list(capacities(me, of_run(file, me)))
    heard = await asyncio.gather(*(_peer(endpoint, peer, called, deadline) for peer in peers))
    findings += [replace(finding, at_peer=True) for finding in heard]
    await asyncio.sleep(max(0.0, deadline - time.monotonic()))  # others may still want to ask
    if gate is not None:
        await gate.close()
    return findings


async def _peer(endpoint: Endpoint, peer: str, called: dict[str, Hello], deadline: float) -> Finding:
    address = endpoint.file.parties[peer].address
    absent: NotThere | None = None
    while True:
        if peer in called:
            return _compare(endpoint, peer, called[peer], 0.0)
        if address is not None:
            found = await _call(endpoint, peer)
            if isinstance(found, Finding):
                return found
            absent = found
        if time.monotonic() >= deadline:
            break
        await asyncio.sleep(0.3)
    if absent is None:
        what = "has no address, so it dials this party; it has not called"
        return Finding(peer, "note", what, f"{peer} runs vfgnn doctor while this one waits (--wait 60)")
    return Finding(peer, "fault", absent.what, absent.hint or f"{peer} {AS_RUNNING}")


async def _call(endpoint: Endpoint, peer: str) -> Finding | NotThere:
    """Why nobody is there (yet), or what was found."""
    try:
        connection = await endpoint.dial(peer, DOCTOR)
        began = time.monotonic()
        try:
            hello = await endpoint.hello(connection, peer)
        finally:
            await connection.close()
        return _compare(endpoint, peer, hello, (time.monotonic() - began) / 2)
    except NotThere as absent:
        return absent
    except PeerRefused as error:
        return as_finding(peer, error)


def _compare(endpoint: Endpoint, peer: str, hello: Hello, delay_s: float) -> Finding:
    """What is left to compare after `Endpoint.hello` found a protocol in common and the same federation file."""
    off = abs(hello.time - endpoint.clock())
    if off > CLOCKS_S + delay_s:
        what = f"its clock and the one of {endpoint.me} differ by {off:.0f} s"
        return Finding(peer, "fault", what, f"set the clocks of {peer} and {endpoint.me} by NTP")
    if hello.program != endpoint.program:
        common = highest_common(endpoint.protocols, hello.spoken)
        what = f"runs vfgnn {hello.program}, {endpoint.me} runs {endpoint.program}; both speak protocol {common}"
        return Finding(peer, "note", what, "better install the same version at both")
    return Finding(peer, "ok", f"same protocol, same federation file, clocks within {max(1.0, off):.0f} s")
