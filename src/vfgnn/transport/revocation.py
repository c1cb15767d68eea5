"""The revocation list of a private CA: which of its certificates no longer count, although they have not ended.

Every party keeps the list as a file of its own (`revocation_list` in party.toml) and renews it as the CA does. It is
read again whenever a peer connects. Nothing of it is sent; a refused peer hears that its certificate was revoked.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from vfgnn.errors import ConfigError, PeerRefused
from vfgnn.transport.certificates import MARGIN, name_of

HINT = "get a fresh list from the CA (PEM), or correct revocation_list in party.toml"


@dataclass(frozen=True)
class RevocationList:
    """Where it lies, and the CA whose it must be."""

    path: Path
    authorities: tuple[x509.Certificate, ...]

    @staticmethod
    def of(path: Path | None, authority: str | None) -> "RevocationList | None":
        """None where a party has no list; one without a CA in the federation file is refused."""
        if path is None:
            return None
        if authority is None:
            raise ConfigError(
                "a revocation list, and no CA",
                expected="certificate_authority in the federation file: listed certificates are replaced there",
                where=str(path),
                hint="remove revocation_list from party.toml",
            )
        try:
            return RevocationList(path, tuple(x509.load_pem_x509_certificates(authority.encode())))
        except ValueError as error:
            where = "certificate_authority in the federation file"
            raise ConfigError("not a certificate", expected="PEM", got=str(error)[:120], where=where) from None

    def read(self, now: datetime | None = None) -> x509.CertificateRevocationList:
        """The list as it is now: whole, signed by the CA, and not too old."""
        now = now or datetime.now(UTC)
        try:
            found = x509.load_pem_x509_crl(self.path.read_bytes())
        except OSError as error:
            raise self._refusal("the revocation list cannot be read", str(error.strerror)) from None
        except (ValueError, UnsupportedAlgorithm) as error:
            raise self._refusal("not a revocation list", str(error)[:120]) from None
        if not any(self._signed(found, authority) for authority in self.authorities):
            raise self._refusal("the revocation list is not of the CA that the federation file names", _issuer(found))
        if any(extension.critical for extension in found.extensions):
            raise self._refusal("the revocation list covers only a part", "a critical extension")
        if found.last_update_utc > now + MARGIN:
            raise self._refusal("the revocation list is of the future", f"{found.last_update_utc:%Y-%m-%d %H:%M} UTC")
        if found.next_update_utc is None or found.next_update_utc < now:
            ended = "no next update" if found.next_update_utc is None else f"{found.next_update_utc:%Y-%m-%d %H:%M} UTC"
            raise self._refusal("the revocation list has expired", ended)
        return found

    def refuse_revoked(self, certificate: x509.Certificate) -> None:
        """Raise where the CA took a certificate back. Certificates that others signed are not in its list."""
        found = self.read()
        entry = found.get_revoked_certificate_by_serial_number(certificate.serial_number)
        if certificate.issuer == found.issuer and entry is not None:
            name = name_of(certificate)
            raise PeerRefused(
                f"the certificate of {name} was revoked by its CA",
                expected="one that is not in the revocation list",
                got=f"revoked on {entry.revocation_date_utc:%Y-%m-%d}",
                hint=f"the CA signs a new key for {name}, made with: vfgnn keys new {name}",
            )

    @staticmethod
    def _signed(found: x509.CertificateRevocationList, authority: x509.Certificate) -> bool:
        try:
            return found.issuer == authority.subject and found.is_signature_valid(authority.public_key())  # type: ignore[arg-type]
        except (TypeError, UnsupportedAlgorithm):  # a key that signs nothing
            return False

    def _refusal(self, what: str, got: str) -> ConfigError:
        expected = "PEM, signed by the CA, between its last and its next update"
        return ConfigError(what, expected=expected, got=got, where=str(self.path), hint=HINT)


def _issuer(found: x509.CertificateRevocationList) -> str:
    return f"a list of {found.issuer.rfc4514_string()[:80]}"
