"""Two parties over real TLS in one process: who is let in, and that no message is lost, repeated or readable."""

import asyncio
import functools
import gc
import json
import socket
import ssl
import threading
import time

import pytest
import torch
from websockets.exceptions import ConnectionClosed

from tests.network import (
    QUICK,
    WINDOW,
    Party,
    check_tls13,
    declare,
    endpoint,
    new_certificate,
    proxied,
    rewrite,
    run_all,
    run_pair,
    small,
    words,
)
from vfgnn.channel import Channel
from vfgnn.errors import ChannelClosed, ConfigError, DeadlinePassed, PeerFailed, PeerRefused, ProtocolError
from vfgnn.files import Patience, load_party, to_toml
from vfgnn.logs import Event
from vfgnn.message_log import MessageLog, read_entries, read_keys
from vfgnn.split.program import H0_SHARE
from vfgnn.transport import certificates, connection, tls, wire
from vfgnn.transport.capacity import NOTHING
from vfgnn.transport.connection import Alarm, Link, cancel
from vfgnn.transport.endpoint import RUN

SECRET = torch.frombuffer(bytearray(b"the account of Mrs Miller" * 40), dtype=torch.uint8)


def send_all(payloads):
    def work(network, peer):
        me = "A" if peer == "B" else "B"
        for payload in payloads:
            network.put(declare(me, peer, payload), payload)
        for payload in payloads:
            message, got = network.get(peer)
            assert message == declare(peer, me, payload)
            assert torch.equal(got, payload)

    return work


@pytest.fixture
def local(tmp_path):
    return small(tmp_path / "federation", patience=Patience(start_s=2, message_s=5, away_s=5))


PAYLOADS = [
    words(6).reshape(2, 3),
    torch.rand(1000, 700),  # three chunks
    torch.empty(0, 8, dtype=torch.float64),
    torch.zeros(1, dtype=torch.uint8),
]


def test_every_kind_of_payload_arrives_as_it_was_sent(local):
    one, other = (Party(local, name, send_all(PAYLOADS)) for name in "AB")
    run_pair(one, other)
    assert (one.error, other.error) == (None, None)


def test_a_message_that_its_sender_changes_later_never_leaves(local):
    """Payloads are sent from the memory they lie in, so a change after `put` is an error of ours, and found."""

    def send(network, peer):
        wait = words(5_000_000)  # the line is busy with this one
        network.put(declare("A", "B", wait), wait)
        payload = words(100)
        network.put(declare("A", "B", payload), payload)
        payload.zero_()
        network.settle()

    def receive(network, peer):
        for _ in range(2):
            network.get("A")

    one, other = Party(local, "A", send), Party(local, "B", receive)
    run_pair(one, other)
    assert "changed after it was sent" in str(one.error)
    assert "A gave up" in str(other.error)


def test_a_proxy_sees_tls_13_and_no_plaintext(local):
    with proxied(local, "A") as (through, proxies):
        one, other = (Party(through, name, send_all([SECRET, *PAYLOADS])) for name in "AB")
        run_pair(one, other)
        assert (one.error, other.error) == (None, None)
        (seen,) = proxies["A"].seen
        check_tls13(*seen, [b"Mrs Miller", b"vfgnn run", b'"type"', b"h0_share", b"websocket"])


def test_the_proxy_would_notice_plaintext():
    with pytest.raises(AssertionError, match=r"nothing was seen|a record that is not|one hello"):
        check_tls13(b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", b"HTTP/1.1 101\r\n\r\n", [b"websocket"])


# who is let in


def refused_at_both_ends(local, *, caller_says, listener_says):
    """B dials A: both ends name the other party and the reason."""
    listener, caller = Party(local, "A"), Party(local, "B")
    run_pair(listener, caller)
    assert isinstance(caller.error, PeerRefused)
    assert "A" in str(caller.error)
    assert caller_says in str(caller.error)
    # The handshake failed, so nothing proves that it was B.
    assert [peer for peer, reason in listener.refusals if listener_says in reason] == ["a caller that says it is B"]
    assert isinstance(listener.error, ChannelClosed)  # it waited for B, and says why B never came
    assert "B did not come" in str(listener.error)
    assert "a caller that says it is B was refused: it" in str(listener.error)
    assert listener_says in str(listener.error)


def test_an_unlisted_certificate_of_the_caller(local):
    new_certificate(local, "B")
    refused_at_both_ends(
        local, caller_says="not listed in its federation file", listener_says="not listed in our federation file"
    )


def test_an_unlisted_certificate_of_the_listener(local):
    new_certificate(local, "A")
    refused_at_both_ends(
        local, caller_says="not listed in our federation file", listener_says="not listed in its federation file"
    )


def test_an_expired_certificate_of_the_caller(local):
    certificate = new_certificate(local, "B", days=1, age_days=3)
    refused_at_both_ends(
        rewrite(local, B={"certificate": certificate}), caller_says="expired", listener_says="has expired"
    )


def test_an_expired_certificate_of_the_listener(local):
    certificate = new_certificate(local, "A", days=1, age_days=3)
    refused_at_both_ends(
        rewrite(local, A={"certificate": certificate}), caller_says="has expired", listener_says="expired"
    )


def test_a_certificate_that_is_not_valid_yet(local):
    certificate = new_certificate(local, "B", days=9, age_days=-3)
    refused_at_both_ends(
        rewrite(local, B={"certificate": certificate}), caller_says="not valid (yet)", listener_says="not valid yet"
    )


def test_the_certificate_of_another_party_of_the_federation(local):
    for part in ("key", "certificate"):
        stolen = (local.folder / "server" / f"server.{part}.pem").read_bytes()
        (local.folder / "B" / f"B.{part}.pem").write_bytes(stolen)
    with pytest.raises(ConfigError, match="not its own") as caught:
        endpoint(local, "B")
    assert "server" in str(caught.value)


def test_another_name_in_the_hello_than_in_the_certificate(local):
    """A party that lies about its name is refused as the one whose certificate it has, and both ends say so."""
    honest, liar = Party(local, "A", also=["server"]), Party(local, "server")
    liar.network._endpoint.me = "B"
    run_pair(honest, liar)
    assert "server says hello in another name" in str(honest.error)
    assert "hello in another name" in str(liar.error)


def test_another_party_at_the_address(local):
    """B dials A's address and reaches the server: wrong name, said at both ends."""
    wrong = rewrite(local, A={"address": local.file.parties["server"].address})

    listener, caller = Party(local, "server", also=["B"]), Party(wrong, "B")
    run_pair(listener, caller)
    assert "server answers at the address of A" in str(caller.error)
    assert "B dialled A here and reached server" in str(listener.error)


def raw_client(local, *, certificate=True, version=ssl.TLSVersion.TLSv1_3):
    """A caller that is not our program."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    if certificate:
        home = local.folder / "B"
        context.load_cert_chain(home / "B.certificate.pem", home / "B.key.pem")
    port = int(local.file.parties["A"].address.split(":")[1])
    raw = socket.create_connection(("127.0.0.1", port), timeout=5)
    with raw, context.wrap_socket(raw, server_hostname=tls.claim("B")) as wrapped:
        wrapped.sendall(b"GET /run HTTP/1.1\r\n\r\n")
        return wrapped.recv(100)


@pytest.fixture
def listening(local):
    listener = Party(local, "A")
    listener.begin()
    yield listener
    listener.thread.join(20)


def test_a_caller_without_a_certificate(local, listening):
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate.required"):
        raw_client(local, certificate=False)
    assert listening.refusals == [("a caller that says it is B", "it presented no certificate")]


def test_a_stranger_that_claims_a_name_puts_no_blame_on_it(local, listening):
    """It has no certificate, only the hash of a name; the party of that name is away, and that is all that is said."""
    while listening.network.away != {"B": "never heard of"}:
        time.sleep(0.01)
    with pytest.raises(ssl.SSLError):
        raw_client(local, certificate=False)
    assert listening.network.away == {"B": "never heard of"}
    listening.thread.join(20)
    assert "B: never heard of; a caller that says it is B was refused" in str(listening.error)


def test_a_party_that_shows_its_certificate_is_named(local):
    """What it is refused for counts as its own fault."""
    listener, caller = Party(local, "A"), Party(local, "B", purpose="predict")
    listener.network._endpoint.standing = True
    run_pair(listener, caller)
    assert "B: B was started with `vfgnn predict`" in str(listener.error)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
def test_a_caller_with_tls_12(local, listening):
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
        raw_client(local, version=ssl.TLSVersion.TLSv1_2)
    assert [reason for _, reason in listening.refusals] == ["it does not speak TLS 1.3"]


def test_a_caller_without_tls(local, listening):
    port = int(local.file.parties["A"].address.split(":")[1])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as raw:
        raw.sendall(b"GET /run HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = raw.recv(100)
    assert not answer.startswith(b"HTTP")
    assert listening.refusals == [("an unknown caller", "it does not speak TLS (plain HTTP)")]


def answering(port, context):
    """A listener that is not our program."""
    listener = socket.create_server(("127.0.0.1", port))

    def serve():
        caller, _ = listener.accept()
        try:
            if context is None:
                caller.recv(10)
                caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            else:
                context.wrap_socket(caller, server_side=True).recv(10)
        except (ssl.SSLError, OSError):
            pass
        caller.close()
        listener.close()

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


@pytest.mark.parametrize(("kind", "says"), [("plain", "does not speak TLS"), ("1.2", "does not speak TLS 1.3")])
def test_our_dialler_refuses_less_than_tls_13(local, kind, says):
    context = None
    if kind == "1.2":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(local.folder / "A" / "A.certificate.pem", local.folder / "A" / "A.key.pem")
    thread = answering(int(local.file.parties["A"].address.split(":")[1]), context)
    with pytest.raises(PeerRefused, match=says) as caught:
        asyncio.run(endpoint(local, "B").dial("A", RUN))
    assert "A" in str(caught.value)
    thread.join(5)


def test_a_swapped_certificate_in_the_federation_file_is_found(local):
    swapped = rewrite(local, B={"certificate": local.file.parties["A"].certificate})
    with pytest.raises(ConfigError, match="made out to") as caught:
        endpoint(swapped, "A")
    assert "B" in str(caught.value)


def test_certificates_of_a_private_ca(tmp_path):
    local = small(tmp_path / "federation")
    authority, signed = certificate_authority(["A", "B", "server", "dealer"])
    for name, (key, certificate) in signed.items():
        (local.folder / name / f"{name}.key.pem").write_bytes(key)
        (local.folder / name / f"{name}.certificate.pem").write_bytes(certificate)
    nobody = {"certificate": None}
    trusting = rewrite(local, A=nobody, B=nobody, server=nobody, dealer=nobody, certificate_authority=authority)
    one, other = (Party(trusting, name, send_all(PAYLOADS)) for name in "AB")
    run_pair(one, other)
    assert (one.error, other.error) == (None, None)


def test_beside_a_ca_no_listed_certificate_may_sign_others(tmp_path):
    """It would be a second CA: its owner could make a certificate in the name of any party that lists none."""
    local = small(tmp_path / "federation")
    authority, _ = certificate_authority([])
    could_sign, _ = certificate_authority([], name="B")
    with pytest.raises(ConfigError, match="could sign others"):
        endpoint(rewrite(local, B={"certificate": could_sign}, certificate_authority=authority), "A")


def test_a_certificate_of_another_ca_is_refused(tmp_path):
    local = small(tmp_path / "federation", patience=Patience(start_s=2, message_s=5, away_s=5))
    authority, _ = certificate_authority([])
    _, foreign = certificate_authority(["B"])
    (local.folder / "B" / "B.key.pem").write_bytes(foreign["B"][0])
    (local.folder / "B" / "B.certificate.pem").write_bytes(foreign["B"][1])
    trusting = rewrite(local, B={"certificate": None}, certificate_authority=authority)
    refused_at_both_ends(
        trusting, caller_says="it refused our certificate", listener_says="nor from the CA named there"
    )


def certificate_authority(names, name="a CA of ours"):
    """PEM of a CA, and for each name a key and a certificate that it signed."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import NameOID

    def named(name):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def build(subject, key, issuer, issuer_key, *, ca):
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(named(subject)).issuer_name(named(issuer))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(minutes=1)).not_valid_after(now + timedelta(days=1))
        return builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), True).sign(
            issuer_key, hashes.SHA256()
        )

    root = ec.generate_private_key(ec.SECP256R1())
    authority = build(name, root, name, root, ca=True)
    signed = {}
    for party in names:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = build(party, key, name, root, ca=False)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        signed[party] = pem, certificate.public_bytes(Encoding.PEM)
    return authority.public_bytes(Encoding.PEM).decode(), signed


# what is compared before step 0


def test_differing_federation_files_are_named_field_by_field(local):
    other_file = rewrite(local, settings={"dim": 16}, B={"features": 7})
    listener, caller = Party(local, "A"), Party(other_file, "B")
    run_pair(listener, caller)
    for party, mine, theirs in ((listener, "8 at A", "16 at B"), (caller, "16 at B", "8 at A")):
        assert isinstance(party.error, PeerRefused)
        for part in ("settings.dim", mine, theirs, "holders[B].features"):
            assert part in str(party.error)


def test_another_protocol_is_refused_at_both_ends(local):
    listener, caller = Party(local, "A"), Party(local, "B", protocols=(3, 4), program="0.9")
    run_pair(listener, caller)
    for party in (listener, caller):
        assert isinstance(party.error, PeerRefused)
        assert "protocols 3 and 4" in str(party.error) and "protocol 2" in str(party.error)
    assert "install the same version of vfgnn at all parties: 0.9 at A" in str(listener.error)


@pytest.mark.parametrize(
    ("ours", "theirs", "spoken"), [((1, 2), (2, 3), 2), ((1, 2, 3), (1, 2), 2), ((1,), (1, 2), 1), ((1, 2), (1,), 1)]
)
def test_the_highest_version_in_common_is_spoken(local, ours, theirs, spoken):
    listener = Party(
        local, "A", lambda network, peer: network.put(declare("A", "B", words(1)), words(1)), protocols=ours
    )
    caller = Party(local, "B", lambda network, peer: network.get("A"), protocols=theirs)
    run_pair(listener, caller)
    assert (listener.error, caller.error) == (None, None)
    assert (listener.start.protocol, caller.start.protocol) == (spoken, spoken)


def test_versions_that_only_pairs_have_in_common_are_refused(tmp_path):
    local = small(tmp_path / "federation", holders=3)
    spoken = {"A": (1, 2, 3), "B": (1, 2), "C": (3,)}
    leader = Party(local, "A", also=("C",), protocols=spoken["A"])
    others = [Party(local, name, protocols=spoken[name]) for name in ("B", "C")]
    run_all(leader, *others)
    assert isinstance(leader.error, PeerRefused)
    for part in ("spoken by all", "B: protocols 1 and 2", "C: protocol 3"):
        assert part in str(leader.error)
    assert all("spoken by all" in str(party.error) for party in others)


def hello_of(party, **changes):
    hello = {
        "type": "hello",
        "protocol": 2,
        "program": "0.1.0",
        "sender": "B",
        "receiver": "A",
        "time": 0.0,
        "session": "0123456789abcdef",
        "knows": None,
        "received": 0,
        "run": None,
        "steps": [],
        "federation": party.file.document,
        "log_key": "0" * 64,
    }
    return json.dumps(hello | changes)


def test_a_peer_that_names_a_single_number_speaks_just_that(local):
    party = endpoint(local, "A", protocols=(2, 3))
    assert party.check_hello(hello_of(party), "B").spoken == (2,)
    with pytest.raises(PeerRefused, match="B speaks protocol 4, A speaks protocols 2 and 3") as refused:
        party.check_hello(hello_of(party, protocol=4, program="0.3.0"), "B")
    assert "0.3.0 at A" in str(refused.value)


def test_a_newer_peer_may_say_more_in_its_hello(local):
    party = endpoint(local, "A")
    hello = party.check_hello(hello_of(party, protocol=4, protocols=[2, 4], mood="good"), "B")
    assert hello.spoken == (2, 4)


def test_a_party_of_one_version_names_a_single_number(local):
    party = endpoint(local, "A")
    plain = wire.decode(hello_of(party), sender="B")
    assert "protocols" not in json.loads(wire.encode(plain))


HELLO_1 = """{"type":"hello","protocol":1,"program":"0.1.0","sender":"B","receiver":"A","time":1763300000.5,
"session":"0123456789abcdef","knows":null,"received":0,"run":null,"steps":[],"federation":{}}"""
"""As a vfgnn that writes message logs of format 1 says it, all but the federation file."""


def test_a_peer_of_version_1_is_refused_by_name_at_both_ends(local):
    """Today's party meets a program of before; what that one reads of today's hello names the version too."""
    listener = Party(local, "A")
    listener.begin()

    async def call():
        before = endpoint(local, "B")
        connection = await before.dial("A", RUN)
        await connection.send(HELLO_1)
        heard = json.loads(await connection.recv())
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
        return heard, closed.value.rcvd.reason

    heard, reason = asyncio.run(call())
    listener.thread.join(20)
    assert isinstance(listener.error, PeerRefused)
    assert "B speaks protocol 1, A speaks protocol 2" in str(listener.error) and reason in str(listener.error)
    assert "vfgnn 0.1.0 at B" in str(listener.error)
    # A program of before refuses whatever has no version in common: these two fields it reads of any hello.
    assert (heard["protocol"], heard.get("protocols")) == (2, None)
    with pytest.raises(PeerRefused, match="A speaks protocol 2, B speaks protocol 1"):
        endpoint(local, "B", protocols=(1,)).check_hello(json.dumps(heard), "A")


def test_the_digests_of_both_ends_agree_after_a_lost_connection(local, tmp_path):
    """Each sender tells its log key in its hello, and the same one again when the connection is made again."""
    logs = {name: MessageLog(tmp_path / name / "messages.jsonl") for name in "AB"}
    for name in logs:
        (tmp_path / name).mkdir()

    def talk(network, peer):
        me = "A" if peer == "B" else "B"
        channel = Channel(me, network, log=logs[me])
        channel.begin(network._links[peer].start.start)
        for number in range(6):
            sends, receives = declare(me, peer, words(3)), declare(peer, me, words(3))
            channel.enter("talk", [sends, receives])
            channel.send(peer, H0_SHARE, words(3))
            channel.receive(peer, H0_SHARE)
            if me == "A" and number == 2:
                proxies["A"].cut()

    with proxied(local, "A") as (through, proxies):
        listener, caller = Party(through, "A", talk), Party(through, "B", talk)
        run_pair(listener, caller)
    for log in logs.values():
        log.close()
    assert (listener.error, caller.error) == (None, None)
    assert "connected again" in [event for event, _ in listener.events]
    entries = {name: list(read_entries(tmp_path / name / "messages.jsonl")) for name in "AB"}
    told = {name: {(one.sender, one.place): one.digest for one in entries[name]} for name in "AB"}
    assert told["A"] == told["B"] and len(set(told["A"].values())) == 12  # although all payloads were the same
    keys = {name: read_keys(tmp_path / name / "messages.jsonl") for name in "AB"}
    assert keys["A"] == keys["B"] and len(set(keys["A"].values())) == 2


def test_a_peer_cannot_change_its_log_key_within_a_session(local):
    party = endpoint(local, "A")
    link = Link("A", "B", NOTHING, QUICK, Alarm(), leader="A")
    hello = party.check_hello(hello_of(party), "B")
    link.meet(hello)
    link.meet(hello)
    with pytest.raises(ProtocolError, match="another log key"):
        link.meet(party.check_hello(hello_of(party, log_key="1" * 64), "B"))
    link.meet(party.check_hello(hello_of(party, log_key="1" * 64, session="f" * 16), "B"))
    assert link.log_key == b"\x11" * 32
    assert "1111" not in repr(link.hello)


def test_log_keys_are_fresh_for_every_peer_and_session(local):
    sessions = [endpoint(local, "A"), endpoint(local, "A")]
    assert len({one.log_key(peer) for one in sessions for peer in ("B", "server")}) == 4
    assert not any(one.secret.hex() in repr(one) or repr(one.secret) in repr(one) for one in sessions)


def test_a_start_in_a_version_that_was_not_offered_is_refused(local):
    listener, caller = Party(local, "A", lambda network, peer: network.get("B"), protocols=(2, 9)), Party(local, "B")
    listener.network._common_protocol = lambda: 9
    run_pair(listener, caller)
    assert "does not speak" in str(caller.error) and "protocol 9" in str(caller.error)


def test_the_key_of_another_certificate_is_refused(local):
    new_certificate(local, "B")
    key = local.folder / "B" / "B.key.pem"
    key.write_bytes((local.folder / "A" / "A.key.pem").read_bytes())
    with pytest.raises(ConfigError, match="key and certificate cannot be used"):
        endpoint(local, "B")


def test_a_key_with_a_passphrase(local, tmp_path, monkeypatch):
    monkeypatch.delenv("VFGNN_PASSPHRASE", raising=False)
    home = local.folder / "B"
    key, certificate = certificates.new("B", days=1, passphrase=b"correct horse")
    (home / "B.key.pem").write_bytes(key)
    (home / "B.certificate.pem").write_bytes(certificate)
    with pytest.raises(ConfigError, match="has a passphrase"):
        endpoint(local, "B")
    monkeypatch.setenv("VFGNN_PASSPHRASE", "wrong")
    with pytest.raises(ConfigError, match="cannot be used"):
        endpoint(local, "B")
    monkeypatch.delenv("VFGNN_PASSPHRASE")
    (home / "secret.txt").write_text("correct horse\n")
    party = load_party(local.party_toml("B")).model_dump(mode="json")
    local.party_toml("B").write_text(to_toml({**party, "passphrase_file": "secret.txt"}))
    endpoint(local, "B")


# links


def test_a_lost_connection_loses_and_repeats_nothing(tmp_path):
    local = small(tmp_path / "federation", patience=QUICK)
    count = 40

    def talk(network, peer):
        me = "A" if peer == "B" else "B"
        for number in range(count):
            payload = words(50_000, number)
            network.put(declare(me, peer, payload), payload)
            assert torch.equal(network.get(peer)[1], payload)
            if me == "A" and number % 10 == 5:
                proxies["A"].cut()

    with proxied(local, "A") as (through, proxies):
        one, other = (Party(through, name, talk) for name in "AB")
        run_pair(one, other)
        assert (one.error, other.error) == (None, None)
        assert len(proxies["A"].seen) >= 4
        assert ("connected again", {"peer": "B"}) in one.events


def test_a_sender_waits_for_a_receiver_that_is_slow(local):
    """With a window of 8, the ninth message is not even queued before the first is used."""
    queued = []

    def send(network, peer):
        for number in range(2 * WINDOW):
            network.put(declare("A", "B", words(1)), words(1, number))
            queued.append(number)

    def receive(network, peer):
        time.sleep(1.0)
        assert len(queued) == WINDOW
        for number in range(2 * WINDOW):
            assert int(network.get("A")[1]) == number

    one, other = Party(local, "A", send), Party(local, "B", receive)
    run_pair(one, other)
    assert (one.error, other.error) == (None, None)


def test_a_silent_peer_ends_in_a_named_error(tmp_path):
    local = small(tmp_path / "federation", patience=Patience(start_s=5, message_s=1, away_s=5))
    over = threading.Event()
    one = Party(local, "A", lambda network, peer: network.get("B"))
    other = Party(local, "B", lambda network, peer: over.wait(10))
    one.thread.start(), other.thread.start()
    one.thread.join(10)
    over.set()
    other.thread.join(10)
    assert isinstance(one.error, DeadlinePassed)
    assert "a message from B" in str(one.error)
    assert "message_s" in str(one.error)


def test_a_peer_that_stays_away_ends_in_a_named_error(tmp_path):
    local = small(tmp_path / "federation", patience=Patience(start_s=5, message_s=20, away_s=1))
    begun = threading.Barrier(2, timeout=10)  # one that has yet to hear of the start waits longer, and says so
    with proxied(local, "A") as (through, proxies):

        def lose(network, peer):
            begun.wait()
            proxies["A"].close()
            network.get(peer)

        one, other = (Party(through, name, lose) for name in "AB")
        run_pair(one, other)
    for party in (one, other):
        assert isinstance(party.error, ChannelClosed)
        assert f"{party.peer} has been away for 1 s" in str(party.error)


def test_a_peer_that_gives_up_says_why(local):
    def fail(network, peer):
        raise ProtocolError("a message that is not the declared one")

    one, other = Party(local, "A", lambda network, peer: network.get("B")), Party(local, "B", fail)
    run_pair(one, other)
    assert isinstance(one.error, PeerFailed)
    assert one.error.peer == "B"
    assert "B gave up: a message that is not the declared one" in str(one.error)
    assert [fields["peer"] for event, fields in one.events if event == Event.PEER_FAILED] == ["B"]
    assert Event.PEER_FAILED not in dict(other.events)  # it blames nobody


def test_a_program_error_tells_the_peer_its_kind_and_no_more(local):
    def fail(network, peer):
        raise ValueError("row 17 is 1234.56")

    one, other = Party(local, "A", lambda network, peer: network.get("B")), Party(local, "B", fail)
    run_pair(one, other)
    assert "B gave up: an error in its program (ValueError)" in str(one.error)
    assert "1234.56" not in str(one.error)


def test_a_peer_that_has_ended_is_named(local):
    one, other = Party(local, "A", lambda network, peer: network.get("B")), Party(local, "B")
    run_pair(one, other)
    assert "B ended before its message came" in str(one.error)
    assert other.error is None


def test_a_party_that_waits_for_nobody_hears_of_a_peer_that_has_ended(local):
    def watch(network, peer):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            network.refuse_failed()
            time.sleep(0.01)

    one, other = Party(local, "A", watch), Party(local, "B")
    run_pair(one, other)
    assert isinstance(one.error, ChannelClosed) and "B ended" in str(one.error)


def test_a_peer_that_was_through_before_this_party_looked_was_there(tmp_path):
    local = small(tmp_path / "federation", holders=3, patience=Patience(start_s=3, message_s=5, away_s=5))
    leader, slow, quick = (
        Party(local, name, also=also) for name, also in (("A", ("C",)), ("B", ("C",)), ("C", ("B",)))
    )
    look = slow.network._wait_for_peers

    def late(*when):
        while not slow.network._links["C"].ended:
            time.sleep(0.01)
        look(*when)

    slow.network._wait_for_peers = late
    run_all(leader, slow, quick)
    assert [party.error for party in (leader, slow, quick)] == [None] * 3


def test_every_start_has_a_fresh_name(local):
    runs = []
    for _ in range(2):
        one, other = (Party(local, name) for name in "AB")
        run_pair(one, other)
        runs.append({party.network._links[party.peer].start.start for party in (one, other)})
    assert [len(names) for names in runs] == [1, 1]
    assert runs[0] != runs[1]


def test_a_port_in_use_is_named(local):
    port = int(local.file.parties["A"].address.split(":")[1])
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ConfigError, match="cannot listen") as caught:
        endpoint(local, "A").listening_socket()
    assert str(port) in str(caught.value)


def test_a_task_that_swallows_a_cancellation_is_ended_all_the_same():
    """Otherwise a party that goes back to a common step would wait for it, and find its own port taken."""

    async def stubborn():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(60)  # as `asyncio.wait_for` goes on where its result came at the same moment

    async def check():
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        await asyncio.wait_for(cancel([task]), 5)
        return task.cancelled()

    assert asyncio.run(check())


def test_nothing_of_a_connection_stays_when_it_is_over(local):
    """A party that serves meets its peers again and again: each time a quarter of a megabyte would add up."""

    def contexts():
        gc.collect()
        return sum(type(one) is tls.Context for one in gc.get_objects())

    before = contexts()
    run_pair(*(Party(local, name, send_all(PAYLOADS)) for name in "AB"))
    assert contexts() == before


def test_a_peer_that_only_one_party_misses_is_waited_for_only_so_long_after_the_start(tmp_path):
    """The label holder has met everyone it knows and begins; whoever cannot says why instead of staying silent."""
    patience = Patience(start_s=60, message_s=60, away_s=1)
    local = small(tmp_path / "federation", patience=patience)
    one = Party(local, "A", lambda network, peer: network.get(peer))
    other = Party(local, "B", also=["server"])
    run_pair(one, other)
    assert isinstance(other.error, ChannelClosed) and "server did not come" in str(other.error)
    assert "within 1 s (away_s" in str(other.error)
    assert "B gave up" in str(one.error)


@pytest.mark.parametrize("key", ["start_s", "away_s"])
def test_a_label_holder_that_never_starts_is_named_with_the_key_that_counts(tmp_path, monkeypatch, key):
    local = small(tmp_path / "federation", patience=Patience(start_s=0.5, message_s=5, away_s=5))
    monkeypatch.setattr(connection, "START_MARGIN_S", 0.1)
    over = threading.Event()
    leader, other = Party(local, "A"), Party(local, "B")
    leader.network._decide = lambda: over.wait(20)
    other.network.open = functools.partial(other.network.open, key=key)
    leader.thread.start(), other.thread.start()
    other.thread.join(20)
    over.set()
    leader.thread.join(20)
    assert isinstance(other.error, DeadlinePassed)
    assert f"within 0.5 s ({key} in the federation file)" in str(other.error)


def join_as_second(local, one, first):
    """Another process with the key of B dials A when A and `first`, the B of before, have met."""
    one.thread.start(), first.thread.start()
    while not hasattr(first, "start"):
        time.sleep(0.01)
    second = Party(local, "B")
    second.network._dialled, second.network._endpoint.listening_socket = ["A"], lambda: None
    second.thread.start()
    return second


def test_a_second_process_with_the_key_of_a_connected_party_is_refused(tmp_path):
    """It hears why; the first one goes on, and nobody goes back."""
    local = small(tmp_path / "federation", patience=QUICK)
    refused = threading.Event()

    def talk(network, peer):
        me = "A" if peer == "B" else "B"
        assert refused.wait(20)
        network.put(declare(me, peer, words(3)), words(3))
        assert torch.equal(network.get(peer)[1], words(3))

    one, first = Party(local, "A", talk), Party(local, "B", talk)
    second = join_as_second(local, one, first)
    second.thread.join(20)
    refused.set()
    for party in (one, first):
        party.thread.join(20)
    assert (one.error, first.error) == (None, None)
    assert isinstance(second.error, PeerRefused)
    assert "A refused B: another process runs as B, and is connected" in str(second.error)
    assert ("B", "another process runs as B, and is connected") in one.refusals
    assert Event.CONNECTION_LOST not in [event for event, _ in first.events]


def test_without_the_probe_a_second_process_pushes_out_the_first(tmp_path, monkeypatch):
    async def silent(self, seconds):
        return False

    monkeypatch.setattr(connection.Link, "answers", silent)
    local = small(tmp_path / "federation", patience=Patience(start_s=1, message_s=5, away_s=1))
    one, first = (Party(local, name, lambda network, peer: network.get(peer)) for name in "AB")
    second = join_as_second(local, one, first)
    for party in (one, first, second):
        party.thread.join(30)
    assert "B was started anew" in str(one.error)
