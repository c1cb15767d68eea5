"""A party's key and certificate: made at home, and only the certificate leaves.

The certificate carries the party's name as its common name; that name is what peers check against the federation file.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vfgnn.errors import ConfigError
from vfgnn.writing import write_whole

MARGIN = timedelta(minutes=5)  # a peer's clock may be a little behind ours
UNREADABLE = (
    ValueError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What `cryptography` says of bytes that are no certificate."""


def new(name: str, *, days: int, passphrase: bytes | None, now: datetime | None = None) -> tuple[bytes, bytes]:
    """A fresh P-256 key and a certificate for it that it signed itself, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    begin = (now or datetime.now(UTC)) - MARGIN
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption), certificate.public_bytes(Encoding.PEM)


def write(folder: Path, name: str, *, days: int, passphrase: bytes | None) -> tuple[Path, Path]:
    """Write `<name>.key.pem` (for its owner's eyes only) and `<name>.certificate.pem`; neither is ever overwritten."""
    key_path, certificate_path = folder / f"{name}.key.pem", folder / f"{name}.certificate.pem"
    for path in (key_path, certificate_path):
        if path.exists():
            raise ConfigError(
                "there is a key or certificate already",
                expected="no such file",
                got=str(path),
                hint="move it away first, or choose another folder",
            )
    key, certificate = new(name, days=days, passphrase=passphrase)
    write_whole(key_path, key, overwrite=False)
    write_whole(certificate_path, certificate, for_others=True, overwrite=False)
    return key_path, certificate_path


def sign(content: bytes, key: Path, passphrase: str | None, certificate: Path) -> tuple[bytes, str]:
    """A party's signature, and the certificate that verifies it."""
    secret = None if passphrase is None else passphrase.encode()
    private = serialization.load_pem_private_key(key.read_bytes(), secret)
    if isinstance(private, ec.EllipticCurvePrivateKey):
        made = private.sign(content, ec.ECDSA(hashes.SHA256()))
    elif isinstance(private, rsa.RSAPrivateKey):
        made = private.sign(content, padding.PKCS1v15(), hashes.SHA256())
    elif isinstance(private, ed25519.Ed25519PrivateKey):
        made = private.sign(content)
    else:
        raise ConfigError("a key that cannot sign", expected="an EC, Ed25519 or RSA key", where=str(key))
    return made, certificate.read_text()


def verify(content: bytes, signature: bytes, certificate: x509.Certificate) -> bool:
    """Whether the owner of `certificate` signed `content`."""
    public = certificate.public_key()
    try:
        if isinstance(public, ec.EllipticCurvePublicKey):
            public.verify(signature, content, ec.ECDSA(hashes.SHA256()))
        elif isinstance(public, rsa.RSAPublicKey):
            public.verify(signature, content, padding.PKCS1v15(), hashes.SHA256())
        elif isinstance(public, ed25519.Ed25519PublicKey):
            public.verify(signature, content)
        else:
            return False
    except InvalidSignature:
        return False
    return True


def parse(pem: str | bytes, where: str) -> x509.Certificate:
    """One certificate; the first one if there are several (the rest are its chain)."""
    try:
        made = x509.load_pem_x509_certificate(pem.encode() if isinstance(pem, str) else pem)
        # They are parsed when they are looked at: whatever is wrong with them is found here.
        _ = made.subject, made.issuer, made.extensions, made.public_key(), made.not_valid_after_utc
        return made
    except UNREADABLE as error:
        raise ConfigError("not a certificate", expected="PEM", got=str(error)[:120], where=where) from None


def load(path: Path) -> x509.Certificate:
    """The certificate in a file."""
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigError("no certificate", expected="a PEM file", got=str(error.strerror), where=str(path)) from None


def name_of(certificate: x509.Certificate) -> str:
    """The party a certificate is made out to."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def is_leaf(certificate: x509.Certificate) -> bool:
    """Whether it says of itself that it signs no other certificates."""
    try:
        return not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256, as people read it to each other over the telephone."""
    return certificate.fingerprint(hashes.SHA256()).hex(":")


def fault_of_dates(certificate: x509.Certificate, now: datetime | None = None) -> str | None:
    """Why a certificate is not valid at this time, or None."""
    now = now or datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        return f"expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if now < certificate.not_valid_before_utc:
        return f"not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
    return None
