"""`vfgnn doctor` finds each fault, and says who must do what."""

import socket
import threading
import time
from contextlib import contextmanager

import pytest

from tests.network import Party, endpoint, new_certificate, proxied, rewrite, small
from tests.tables import sealed_federation_of_tables
from vfgnn.errors import ExitCode
from vfgnn.files import Patience, load_party
from vfgnn.party.doctor import examine
from vfgnn.party.finding import Finding, exit_code
from vfgnn.privacy.openings import Opening, OpeningLedger
from vfgnn.transport.endpoint import Endpoint


@pytest.fixture
def local(tmp_path):
    return small(
        tmp_path / "federation", patience=Patience(start_s=30, message_s=30, away_s=5), initial_embedding="individual"
    )


def test_a_party_that_records_its_view_is_told_what_that_keeps(local):
    path = local.party_toml("B")
    assert "view" not in look(local)
    path.write_text(f"record_view = true\n{path.read_text()}")
    finding = look(local)["view"]
    assert finding.state == "note"
    assert "MB for each start" in finding.found


@contextmanager
def waiting(local, name, **changes):
    """A party that waits in `vfgnn run` for the others: here with a link to a party that never comes."""
    party = Party(local, name, also=[peer for peer in ("A", "B", "server") if peer != name], **changes)
    party.begin()
    try:
        yield party
    finally:
        for link in party.network._links.values():
            link.fail(Exception("the test is over"))
        party.thread.join(20)


def look(local, name="B", **changes):
    """All findings of one party, by what they are about."""

    def make(file, party):
        return Endpoint(file, party, **changes)

    findings = examine(local.federation_toml, local.party_toml(name), make_endpoint=make)
    return {finding.about: finding for finding in findings}


def fault(findings, about, says, to_do):
    finding = findings[about]
    assert finding.state == "fault", finding
    assert says in finding.found
    assert to_do in finding.to_do


HOME, PEER = Finding("data", "fault", ""), Finding("A", "fault", "", at_peer=True)
NOTE = Finding("key", "note", "")


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ([NOTE], 0),
        ([NOTE, PEER], ExitCode.PEER),
        ([HOME], ExitCode.BAD_INPUT),
        ([PEER, HOME], ExitCode.BAD_INPUT),
    ],
)
def test_the_exit_code_tells_whether_to_look_at_home(findings, code):
    assert exit_code(findings) == code


def test_nothing_to_find(local):
    with waiting(local, "A"), waiting(local, "server"):
        findings = look(local)
    assert {about for about, finding in findings.items() if finding.at_peer} == {"A", "server"}
    assert {finding.state for finding in findings.values()} == {"ok"}
    assert {"federation file", "party file", "key", "certificate", "data", "port", "A", "server"} <= findings.keys()


def test_two_doctors_answer_each_other(local):
    found = {}

    def doctor(name):
        found[name] = examine(local.federation_toml, local.party_toml(name), wait_s=3)

    threads = [threading.Thread(target=doctor, args=(name,)) for name in ("A", "B", "server")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not [finding for findings in found.values() for finding in findings if finding.bad]


def test_a_doctor_does_not_disturb_a_waiting_run(local):
    with waiting(local, "A") as party:
        look(local)
        look(local)
        assert not party.network._links["B"].came
        assert party.network._links["B"].failure is None


def test_peer_down(local):
    with waiting(local, "server"):
        findings = look(local)
    fault(findings, "A", "nobody answers at localhost", "A must be running")
    assert findings["server"].state == "ok"


def test_an_unknown_host_is_named_as_such(local):
    wrong = rewrite(local, A={"address": "no-such-host.invalid:7001"})
    with waiting(local, "server"):
        fault(look(wrong), "A", "the host no-such-host.invalid of A is unknown", "correct the address of A")


def test_a_refused_connection_is_named_as_such(local):
    finding = look(local)["A"]
    assert finding.found.endswith("refuses connections to this port") and "Errno" not in finding.found


def test_data_is_told_in_words(local):
    with waiting(local, "server"):
        findings = look(local)
    assert "(" not in findings["data"].found and "40 nodes, 6 features" in findings["data"].found


def test_wrong_port_another_party_answers(local):
    wrong = rewrite(local, A={"address": local.file.parties["server"].address})
    with waiting(local, "server"):
        fault(look(wrong), "A", "server answers at the address of A", "check the address of A")


def test_wrong_port_another_program_answers(local):
    with socket.create_server(("127.0.0.1", 0)) as other:
        wrong = rewrite(local, A={"address": f"localhost:{other.getsockname()[1]}"})

        def hang_up():
            while True:
                try:
                    caller, _ = other.accept()
                except OSError:
                    return
                caller.sendall(b"220 mail.example ESMTP\r\n")
                caller.close()

        threading.Thread(target=hang_up, daemon=True).start()
        fault(look(wrong), "A", "does not speak TLS", "A")
        other.shutdown(socket.SHUT_RDWR)


def test_wrong_name_of_the_party(local):
    path = local.party_toml("B")
    path.write_text(path.read_text().replace('name = "B"', 'name = "Bob"'))
    fault(look(local), "party file", "Bob is not in the federation file", "A, B")


def test_wrong_name_in_the_certificate(local):
    new_certificate(local, "B", name="Bob")
    fault(look(local), "certificate", "made out to Bob", "vfgnn keys new B")


def test_wrong_name_in_a_listed_certificate(local):
    wrong = rewrite(local, A={"certificate": local.file.parties["server"].certificate})
    fault(look(wrong), "certificate of A", "made out to server", "A must send")


def test_own_certificate_not_listed(local):
    new_certificate(local, "B")
    with waiting(local, "A"):
        findings = look(local)
    fault(findings, "certificate", "not the one that the federation file lists for B", "list this one at all parties")
    fault(findings, "A", "it refused our certificate: not listed", "vfgnn keys show` at B")


def test_a_peers_certificate_not_listed(local):
    new_certificate(local, "A")
    with waiting(local, "A"):
        fault(look(local), "A", "its certificate is not listed in our federation file", "vfgnn keys show` at A")


def test_own_certificate_expired(local):
    certificate = new_certificate(local, "B", days=1, age_days=3)
    expired = rewrite(local, B={"certificate": certificate})
    fault(look(expired), "certificate", "expired on", "vfgnn keys new B")


def test_a_peers_certificate_expired(local):
    certificate = new_certificate(local, "A", days=1, age_days=3)
    expired = rewrite(local, A={"certificate": certificate})
    with waiting(expired, "A"):
        findings = look(expired)
    fault(findings, "certificate of A", "expired on", "A must make a new one")
    fault(findings, "A", "its certificate has expired", "keys show` at A")


def test_clock_off(local):
    with waiting(local, "A", clock=lambda: time.time() - 3600):
        fault(look(local), "A", "differ by 3600 s", "set the clocks of A and B by NTP")
    with waiting(local, "A"):
        fault(look(local, clock=lambda: time.time() + 120), "A", "differ by 120 s", "NTP")


def test_data_missing(local):
    (local.folder / "B" / "data" / "holding.safetensors").unlink()
    fault(look(local), "data", "no holding file", "party.toml")


def test_data_malformed(local):
    path = local.folder / "B" / "data" / "holding.safetensors"
    path.write_bytes(path.read_bytes()[:-3])
    fault(look(local), "data", "cannot be read", "again")


def test_data_of_another_size(local):
    path = local.folder / "B" / "data" / "holding.safetensors"
    path.write_bytes((local.folder / "A" / "data" / "holding.safetensors").read_bytes())
    wrong = rewrite(local, B={"features": 99})
    fault(look(wrong), "data", "features = ", "correct the file that is wrong")


def test_differing_federation_files(local):
    with waiting(local, "A"):
        other = rewrite(local, settings={"dim": 9})
        fault(look(other), "A", "settings.dim: 9 at B, 8 at A", "copy it to all parties")


def test_differing_protocols(local):
    with waiting(local, "A", protocols=(3,), program="0.9"):
        fault(look(local), "A", "protocol 3", "install the same version")


def test_differing_programs_with_the_same_protocol_are_noted(local):
    with waiting(local, "A", program="0.0.9"):
        finding = look(local)["A"]
    assert finding.state == "note"
    assert "0.0.9" in finding.found


def test_key_missing(local):
    (local.folder / "B" / "B.key.pem").unlink()
    fault(look(local), "key", "No such file", "vfgnn keys new B")


def test_key_that_others_can_read_is_noted(local):
    (local.folder / "B" / "B.key.pem").chmod(0o644)
    finding = look(local)["key"]
    assert (finding.state, "chmod 600" in finding.to_do) == ("note", True)


def test_port_in_use(local):
    port = int(local.file.parties["B"].address.split(":")[1])
    with socket.create_server(("127.0.0.1", port)):
        fault(look(local), "port", "cannot listen", "listen")


def test_a_federation_file_that_cannot_be_read(local):
    local.federation_toml.write_text("nodes = ")
    fault(look(local), "federation file", "not TOML", "")


def test_a_party_without_an_address_is_waited_for(local):
    behind = rewrite(local, B={"address": None})
    finding = look(behind, "A")["B"]
    assert finding.state == "note"
    assert "it dials this party" in finding.found
    assert endpoint(behind, "B").dials("A")
    assert not endpoint(behind, "A").dials("B")
    with pytest.raises(Exception, match="neither B nor A can be dialled"):
        endpoint(rewrite(behind, A={"address": None}), "B").dials("A")


def test_a_proxy_that_asks_nothing_changes_nothing(local):
    """An outbound HTTP proxy: CONNECT, then the same TLS."""
    with waiting(local, "A"), http_proxy() as (port, asked):
        party = load_party(local.party_toml("B"))
        findings = examine(
            local.federation_toml,
            local.party_toml("B"),
            make_endpoint=lambda file, own: Endpoint(
                file, party.model_copy(update={"proxy": f"http://127.0.0.1:{port}"})
            ),
        )
    assert {finding.about: finding.state for finding in findings}["A"] == "ok"
    assert any(line.startswith(b"CONNECT localhost") for line in asked)


@contextmanager
def http_proxy():
    asked, listener = [], socket.create_server(("127.0.0.1", 0))

    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass

    def accept():
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            head = b""
            while b"\r\n\r\n" not in head:
                head += caller.recv(1024)
            asked.append(head)
            try:
                callee = socket.create_connection(("127.0.0.1", int(head.split()[1].split(b":")[1])))
            except OSError:
                caller.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
                caller.close()
                continue
            caller.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            for pair in ((caller, callee), (callee, caller)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1], asked
    finally:
        listener.close()


def test_a_proxy_in_between_is_not_noticed(local):
    with proxied(local, "A") as (through, _), waiting(through, "A"):
        assert look(through)["A"].state == "ok"


# sealed


@pytest.fixture
def sealed(tmp_path):
    return sealed_federation_of_tables(tmp_path / "federation", flags=["--max-ids", 1000])


def test_sealed_has_no_server_and_says_what_it_opens(sealed):
    findings = look(sealed, "shop")
    assert {about for about, finding in findings.items() if finding.at_peer} == {"dealer", "bank"}
    assert {finding.state for finding in findings.values() if not finding.at_peer} == {"ok"}
    said = findings["what is opened"].found
    assert "to bank alone: classes" in said and "18 inner products" in said and "4 ridges" in said
    (shop,) = [holder for holder in sealed.file.holders if holder.name == "shop"]
    assert f"at most {shop.entry_bound} are declared" in findings["edges"].found
    assert "edges" not in look(sealed, "dealer")


def test_sealed_by_psi_needs_no_server(sealed):
    party = sealed.folder / "server"
    party.mkdir()
    lines = sealed.party_toml("bank").read_text().partition("[data]")[0].replace("bank", "server")
    (party / "party.toml").write_text(lines)
    fault(look(sealed, "server"), "party file", "server is not in the federation file", "not needed")


def test_sealed_tables_beyond_what_is_declared(sealed):
    less = rewrite(sealed, shop={"entry_bound": 10})
    fault(look(less, "shop"), "data", "more directed entries than the holder has declared", "--entry-bound")


def test_sealed_edges_that_are_left_out(sealed):
    """Degrees in 4 bits leave each of two holders 7 edges of a node."""
    own = {**sealed.file.document["settings"]["sealed"], "degree_bits": 4}
    finding = look(rewrite(sealed, settings={"sealed": own}), "shop")["edges"]
    assert finding.state == "note" and "a node counts 7 edges" in finding.found and "degree_bits" in finding.to_do


def test_sealed_scores_need_consent_and_openings_have_limits(sealed):
    limits = look(sealed, "shop")["limits"]
    assert limits.state == "ok" and "bank may have 10 trainings and any number of rows" in limits.found
    assert not {"limits", "scores"} & set(look(sealed, "bank"))  # it asks; the others allow
    own = {**sealed.file.document["settings"]["sealed"], "opens": "scores"}
    asked = rewrite(sealed, settings={"sealed": own}, limits={"max_opened_rows": 500})
    fault(look(asked, "shop"), "scores", "this holder has not agreed", "allow_scores = true")
    party = asked.party_toml("shop")
    party.write_text(party.read_text().replace("# allow_scores = true", "allow_scores = true"))
    assert look(asked, "shop")["scores"].state == "ok"
    ledger = OpeningLedger(asked.folder / "shop" / "opened_ledger.jsonl")
    opened = {"kind": "training", "what": "scores", "rows": 500, "validation_rows": 40, "columns": 2, "scalars": 18}
    ledger.charge(Opening(run="r", start="s", label_holder="bank", **opened))
    ledger.close()
    limits = look(asked, "shop")["limits"]
    assert limits.state == "note" and "500 rows opened in all; by the ledger here it has had 1 and 500" in limits.found
    assert "refused here" in limits.to_do
