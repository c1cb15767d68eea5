"""TLS 1.3 with certificates both ways (standard `ssl`), and words for everything that can go wrong with it.

Trusted are exactly the certificates that the federation file lists, or those of the private CA that it names. After the
handshake the certificate says who the peer is, whatever address it came from.

A listener cannot read the certificate it refuses, so a caller says who it is in the server name of its first
message: a hash, since that message is not encrypted. It is a claim that anybody can make, and is shown as one
("a caller that says it is B"): no party is blamed for it.
"""

import hashlib
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from vfgnn.errors import ConfigError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.transport import certificates


@dataclass(frozen=True)
class Fault:
    """What went wrong in a handshake, and whose certificate to look at first."""

    text: str  # for people: it follows the peer's name, who is "it"
    ours: bool = False  # the peer refuses us; otherwise we refuse the peer


UNLISTED = Fault("its certificate is not listed in our federation file")
NEITHER = Fault("its certificate is neither listed in our federation file nor from the CA named there")
VERIFY_FAULTS = {
    7: NEITHER,  # a CA of the same name, but not the same key
    9: Fault("its certificate is not valid yet (or a clock is wrong)"),
    10: Fault("its certificate has expired (or a clock is wrong)"),
    18: UNLISTED,
    19: UNLISTED,
    20: NEITHER,
    21: NEITHER,
}
FAULTS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": Fault("it presented no certificate"),
    "UNSUPPORTED_PROTOCOL": Fault("it does not speak TLS 1.3"),
    "TLSV1_ALERT_PROTOCOL_VERSION": Fault("it does not speak TLS 1.3"),
    "HTTP_REQUEST": Fault("it does not speak TLS (plain HTTP)"),
    "WRONG_VERSION_NUMBER": Fault("it does not speak TLS"),
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": Fault("it refused our certificate: expired (or a clock is wrong)", ours=True),
    "TLSV1_ALERT_UNKNOWN_CA": Fault("it refused our certificate: not listed in its federation file", ours=True),
    "TLSV1_ALERT_DECRYPT_ERROR": Fault("it refused our certificate: from another CA than the one it trusts", ours=True),
    "SSLV3_ALERT_BAD_CERTIFICATE": Fault("it refused our certificate: not valid (yet), or a clock is wrong", ours=True),
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": Fault("it refused our certificate: not accepted", ours=True),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": Fault("it wants a certificate and got none", ours=True),
}

OnFault = Callable[[str | None, Fault], None]
"""Called with what the caller's server name claims (None: nothing) and what went wrong."""


def explain(error: ssl.SSLError) -> Fault:
    """What went wrong in a handshake, in the words of one who has to mend it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return VERIFY_FAULTS.get(error.verify_code, Fault(f"its certificate was refused: {error.verify_message}"))
    return FAULTS.get(error.reason or "", Fault(f"TLS failed: {error.reason or type(error).__name__}"))


def claim(name: str) -> str:
    """The server name by which a caller says who it is."""
    return hashlib.sha256(b"vfgnn " + name.encode()).hexdigest()[:32] + ".vfgnn"


class Context(ssl.SSLContext):
    """A context for one side that reports faults."""

    on_fault: OnFault

    def wrap_bio(  # type: ignore[override]
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """As in `ssl`."""
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        if isinstance(made, WatchedSSLObject):
            made.outgoing = outgoing
        return made


class WatchedSSLObject(ssl.SSLObject):
    """Tells its context what went wrong, and the peer too: asyncio by itself would do neither."""

    context: Context
    outgoing: ssl.MemoryBIO
    claimed: str | None = None
    failed = False

    def do_handshake(self) -> None:
        """As in `ssl`, but a failure first lets the alert out that tells the peer the reason."""
        try:
            self._watch(super().do_handshake)
        except ssl.SSLError:
            if self.outgoing.pending and self.failed:
                # asyncio now sends what is pending. The peer hangs up when it has read it, or the deadline ends it.
                raise ssl.SSLWantReadError from None
            raise

    def read(self, len: int = 1024, buffer: bytearray | None = None) -> bytes | int:  # type: ignore[override]  # noqa: A002
        """As in `ssl`: in TLS 1.3 a client learns only here that its certificate was refused."""
        return self._watch(lambda: super(WatchedSSLObject, self).read(len, buffer))  # type: ignore[return-value]

    def _watch(self, act: Callable[[], object]) -> object:
        try:
            return act()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            raise
        except ssl.SSLError as error:
            if not self.failed:  # what follows from the first fault is no news
                self.failed = True
                self.context.on_fault(self.claimed, explain(error))
            raise


@dataclass(frozen=True)
class Trust:
    """Whose certificates count, by name."""

    listed: dict[str, x509.Certificate]
    authority: str | None
    names: tuple[str, ...]

    @staticmethod
    def of(file: FederationFile) -> "Trust":
        """From the federation file; a certificate listed for one party but made out to another is refused."""
        listed = {}
        for name, party in file.parties.items():
            if party.certificate is not None:
                listed[name] = certificates.parse(
                    party.certificate, f"the certificate of {name} in the federation file"
                )
                made_out = certificates.name_of(listed[name])
                if made_out != name:
                    raise ConfigError(
                        "a certificate is listed for another party than it is made out to",
                        expected=name,
                        got=made_out or "no name",
                        where=f"the certificate of {name} in the federation file",
                        hint=f"{name} makes its own with: vfgnn keys new {name}",
                    )
                if file.certificate_authority is not None and not certificates.is_leaf(listed[name]):
                    raise ConfigError(
                        "a listed certificate could sign others",
                        expected="basicConstraints CA:FALSE, because this federation also trusts a CA",
                        where=f"the certificate of {name} in the federation file",
                        hint=f"{name} makes a plain one with: vfgnn keys new {name}",
                    )
        return Trust(listed, file.certificate_authority, tuple(file.parties))

    def pem(self) -> str:
        """All trusted certificates."""
        own = [certificate.public_bytes(Encoding.PEM).decode() for certificate in self.listed.values()]
        return "\n".join([*own, *([self.authority] if self.authority else [])])

    def who(self, der: bytes | None) -> str | None:
        """The party that a certificate (already verified against `pem`) belongs to, or None."""
        if der is None:
            return None
        certificate = x509.load_der_x509_certificate(der)
        name = certificates.name_of(certificate)
        if name in self.listed:
            return name if self.listed[name] == certificate else None
        return name if name in self.names and self.authority else None

    def claimant(self, server_name: str | None) -> str | None:
        """The party that says it is calling."""
        return next((name for name in self.names if claim(name) == server_name), None)


def passphrase_of(party: PartyFile) -> str | None:
    """The key's passphrase, from its file or the environment; never from a prompt: parties run unattended."""
    if party.passphrase_file is None:
        return os.environ.get("VFGNN_PASSPHRASE")
    try:
        return party.passphrase_file.read_text().rstrip("\n")
    except OSError as error:
        where = str(party.passphrase_file)
        raise ConfigError("no passphrase", expected="a readable file", got=str(error.strerror), where=where) from None


def context(party: PartyFile, trust: Trust, *, listens: bool, on_fault: OnFault) -> Context:
    """TLS 1.3 only, a certificate demanded from the other side, nothing resumed from an earlier connection."""
    made = Context(ssl.PROTOCOL_TLS_SERVER if listens else ssl.PROTOCOL_TLS_CLIENT)
    made.sslobject_class = WatchedSSLObject
    made.on_fault = on_fault
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False  # the party's name in the certificate is checked instead, by `Trust.who`
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(cadata=trust.pem())
    if listens:
        made.num_tickets = 0  # a resumed session would not show its certificate again
        made.sni_callback = _remember_claim
    load_key(made, party.certificate, party.key, passphrase_of(party))
    return made


def load_key(made: ssl.SSLContext, certificate: Path, key: Path, passphrase: str | None) -> None:
    """Put a party's own key and certificate into a context, or say which of the two is at fault."""

    def ask() -> str:
        raise ConfigError(
            "the key has a passphrase",
            expected="passphrase_file in party.toml, or VFGNN_PASSPHRASE",
            where=str(key),
        )

    for path, what in ((certificate, "certificate"), (key, "key")):
        if not path.is_file():
            raise ConfigError(
                f"no {what}", expected="a PEM file", where=str(path), hint="vfgnn keys new NAME makes both"
            )
    try:
        made.load_cert_chain(certificate, key, password=passphrase if passphrase is not None else ask)
    except ssl.SSLError as error:
        raise ConfigError(
            "key and certificate cannot be used",
            expected="a PEM key, its passphrase if it has one, and the certificate made with it",
            got=error.reason or "not PEM",
            where=f"{key} with {certificate}",
        ) from None


def _remember_claim(sslobject: ssl.SSLObject, server_name: str | None, _: ssl.SSLContext) -> None:
    if isinstance(sslobject, WatchedSSLObject):
        sslobject.claimed = server_name
