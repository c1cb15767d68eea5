"""A certificate that its CA took back is refused, although it is signed and has not ended."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.network import Party, endpoint, run_pair, small
from vfgnn.errors import ChannelClosed, ConfigError, PeerRefused
from vfgnn.files import FederationFile, Patience, load_party, to_toml
from vfgnn.party.doctor import _home
from vfgnn.transport.revocation import RevocationList

DAY = timedelta(days=1)


class Authority:
    """A CA, its certificates and its lists."""

    def __init__(self, name="a CA of ours"):
        self.name, self.key = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), self.new_key()
        self.certificate = self._sign(self.name, self.key, ca=True)
        self.pem = self.certificate.public_bytes(Encoding.PEM).decode()

    @staticmethod
    def new_key():
        return ec.generate_private_key(ec.SECP256R1())

    def _sign(self, subject, key, *, ca=False):
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - DAY).not_valid_after(now + DAY)
        return builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), True).sign(
            self.key, hashes.SHA256()
        )

    def sign(self, party, home):
        key = self.new_key()
        made = self._sign(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, party)]), key)
        (home / f"{party}.key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        (home / f"{party}.certificate.pem").write_bytes(made.public_bytes(Encoding.PEM))
        return made

    def revocations(self, *certificates, begins=-DAY, ends=DAY, critical=False):
        now = datetime.now(UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.name)
        builder = builder.last_update(now + begins).next_update(now + ends)
        for one in certificates:
            entry = x509.RevokedCertificateBuilder().serial_number(one.serial_number).revocation_date(now - DAY)
            builder = builder.add_revoked_certificate(entry.build())
        if critical:
            builder = builder.add_extension(x509.DeltaCRLIndicator(1), critical=True)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)


@pytest.fixture
def ours(tmp_path):
    """A and B are known by their CA alone; A and B each have its list, and B's certificate is not on it."""
    local = small(tmp_path / "federation", patience=Patience(start_s=1, message_s=5, away_s=2))
    authority = Authority()
    document = local.file.document | {"certificate_authority": authority.pem}
    signed = {}
    for holder in document["holders"]:
        holder["certificate"] = None
        signed[holder["name"]] = authority.sign(holder["name"], local.folder / holder["name"])
    local.federation_toml.write_text(to_toml(document))
    local = type(local)(local.folder, FederationFile.model_validate(document))
    for name in "AB":
        give(local, name, authority.revocations())
        party = load_party(local.party_toml(name)).model_dump(mode="json")
        local.party_toml(name).write_text(to_toml({**party, "revocation_list": "ca.crl.pem"}))
    return local, authority, signed


def give(local, name, revocations):
    (local.folder / name / "ca.crl.pem").write_bytes(revocations)


def test_certificates_that_are_not_on_the_list_are_good(ours):
    local, _, _ = ours
    one, other = (Party(local, name) for name in "AB")
    run_pair(one, other)
    assert (one.error, other.error) == (None, None)


@pytest.mark.parametrize(("keeper", "revoked"), [("A", "B"), ("B", "A")], ids=["of the caller", "of the listener"])
def test_a_revoked_certificate_is_refused_at_both_ends(ours, keeper, revoked):
    """One end has the list; the other hears why. B dials A."""
    local, authority, signed = ours
    give(local, keeper, authority.revocations(signed[revoked]))
    listener, caller = (Party(local, name) for name in "AB")
    run_pair(listener, caller)
    ends = {"A": listener, "B": caller}
    assert f"the certificate of {revoked} was revoked by its CA" in str(ends[keeper].error)
    assert isinstance(ends[revoked].error, PeerRefused)
    assert f"the certificate of {revoked} was revoked by its CA" in str(ends[revoked].error)
    if keeper == "A":  # a thief does not end the run of the party that it calls: A has waited for the real B
        assert isinstance(listener.error, ChannelClosed) and "B did not come" in str(listener.error)
        assert ("B", "the certificate of B was revoked by its CA") in listener.refusals


def test_without_the_check_a_revoked_certificate_is_let_in(ours, monkeypatch):
    local, authority, signed = ours
    give(local, "A", authority.revocations(signed["B"]))
    monkeypatch.setattr(RevocationList, "refuse_revoked", lambda self, certificate: None)
    one, other = (Party(local, name) for name in "AB")
    run_pair(one, other)
    assert (one.error, other.error) == (None, None)


UNUSABLE = {
    "expired": (lambda ca: ca.revocations(begins=-2 * DAY, ends=-DAY), "has expired"),
    "of another CA": (lambda ca: Authority().revocations(), "not of the CA that the federation file names"),
    "of a CA of another name": (lambda ca: Authority("another").revocations(), "not of the CA"),
    "a part": (lambda ca: ca.revocations(critical=True), "covers only a part"),
    "of the future": (lambda ca: ca.revocations(begins=DAY, ends=2 * DAY), "of the future"),
    "not PEM": (lambda ca: b"hello", "not a revocation list"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_list_that_cannot_be_used_is_refused_by_name(ours, case):
    local, authority, _ = ours
    make, says = UNUSABLE[case]
    give(local, "A", make(authority))
    with pytest.raises(ConfigError, match=says):
        endpoint(local, "A")
    found = {one.about: one for one in _home(local.file, load_party(local.party_toml("A")))}
    assert found["revocation list"].bad and says in found["revocation list"].found


def test_an_own_certificate_that_was_revoked_is_found_at_the_start(ours):
    local, authority, signed = ours
    give(local, "A", authority.revocations(signed["A"]))
    with pytest.raises(ConfigError, match="the certificate of A was revoked"):
        endpoint(local, "A")


def test_a_list_without_a_ca_is_refused(ours, tmp_path):
    with pytest.raises(ConfigError, match="a revocation list, and no CA"):
        RevocationList.of(tmp_path / "ca.crl.pem", None)


def test_a_list_is_renewed_while_peers_wait(ours):
    """It has expired when B calls; once it is renewed, B is let in without a restart."""
    local, authority, _ = ours
    one, other = Party(local, "A"), Party(local, "B")
    give(local, "A", authority.revocations(begins=-2 * DAY, ends=-DAY))
    one.begin()
    other.thread.start()
    time.sleep(0.3)
    assert not one.network._links["B"].came
    give(local, "A", authority.revocations())
    for party in (one, other):
        party.thread.join(20)
    assert (one.error, other.error) == (None, None)


def test_the_doctor_speaks_of_the_list(ours):
    local, authority, signed = ours
    give(local, "A", authority.revocations(signed["B"]))
    party = load_party(local.party_toml("A"))
    (found,) = (one for one in _home(local.file, party) if one.about == "revocation list")
    assert found.state == "ok" and "1 certificates revoked" in found.found
    (found,) = (
        one
        for one in _home(local.file, party.model_copy(update={"revocation_list": None}))
        if one.about == "revocation list"
    )
    assert found.state == "note" and "stays trusted" in found.found
