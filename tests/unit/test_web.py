"""The label holder's endpoint over a desk without a federation: what it says, and that all of it is documented."""

import json
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.unit.test_desk import answers, opened
from vfgnn import logs
from vfgnn.errors import ConfigError
from vfgnn.lab.local_files import free_ports
from vfgnn.party.serve.web import MOST_BYTES, MOST_IDS, Endpoint, listening_at

OK_A = {"id": "a", "status": "ok", "class": "yes", "probability": {"no": 0.25, "yes": 0.75}}


@contextmanager
def listening(desk):
    """The real web server; its address."""
    (port,) = free_ports(1)
    endpoint = Endpoint(desk, "127.0.0.1", port)
    endpoint.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        endpoint.stop()


def ask(url, *ids):
    return requests.post(f"{url}/predictions", json={"ids": list(ids)}, timeout=20)


def test_answers_come_in_the_order_of_the_question():
    with listening(opened(answers("a", "b", also=("c",)))) as url:
        said = ask(url, "a", "b", "a").json()
    assert [one["id"] for one in said["predictions"]] == ["a", "b", "a"]
    assert said["predictions"][0] == OK_A and said["predictions"][1]["class"] == "no"
    assert said["as_of"].endswith("+00:00")


def test_an_id_that_there_is_no_prediction_for_is_answered_as_such():
    desk, known = opened(answers("a")), answers("a", also=("c",))
    with listening(desk) as url:
        threading.Timer(0.2, lambda: desk.answer(known, {"a", "c", "d"})).start()  # the party: no more to be known
        said = ask(url, "a", "c", "d").json()["predictions"]
    assert said[0] == OK_A
    assert said[1:] == [
        {"id": "c", "status": "not at all holders", "class": None, "probability": None},
        {"id": "d", "status": "unknown", "class": None, "probability": None},
    ]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"ids": []}',
        '{"ids": "a"}',
        '{"ids": [1]}',
        '{"ids": [null]}',
        '{"ids": [""]}',
        '{"ids": ["a\\u0000"]}',
        '{"ids": ["a"], "more": 1}',
        '{"ids": ["\\ud800"]}',
        json.dumps({"ids": ["a"] * (MOST_IDS + 1)}),
        json.dumps({"ids": ["a" * 1001]}),
        b"\xff\xfe",
    ],
)
def test_what_is_no_question_is_refused_and_not_repeated(body):
    with listening(opened(answers("a"))) as url:
        said = requests.post(f"{url}/predictions", data=body, headers={"Content-Type": "application/json"}, timeout=20)
    assert said.status_code == 422
    assert said.json()["detail"] and all(set(one) == {"loc", "msg", "type"} for one in said.json()["detail"])


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_no_question_has_is_refused_before_it_is_in_memory(chunked):
    body = b" " * (MOST_BYTES + 1)
    with listening(opened(answers("a"))) as url:
        said = requests.post(f"{url}/predictions", data=iter([body]) if chunked else body, timeout=20)
        assert said.status_code == 413
        assert ask(url, "a").status_code == 200


def test_out_of_service_is_said_with_its_reason_and_service_comes_back():
    desk, away = opened(answers("a")), {"shop": "lost"}
    desk.meeting(lambda: away)
    desk.open()
    with listening(desk) as url:
        said, health = ask(url, "a"), requests.get(f"{url}/health", timeout=20)
        assert (said.status_code, said.json()["error"]) == (503, "shop is away (lost)")
        assert int(said.headers["Retry-After"]) > 0
        assert health.status_code == 503
        assert (health.json()["reason"], health.json()["away"]) == ("shop is away (lost)", ["shop"])
        away.clear()
        assert ask(url, "a").json()["predictions"] == [OK_A]
        assert requests.get(f"{url}/health", timeout=20).json()["status"] == "in service"


def test_whoever_waits_when_a_party_is_lost_hears_it():
    desk, away = opened(answers("a")), {}
    desk.meeting(lambda: away)
    desk.open()
    with listening(desk) as url:
        threading.Timer(0.3, lambda: away.update(shop="lost")).start()
        said = ask(url, "new")
    assert (said.status_code, said.json()["error"]) == (503, "shop is away (lost)")
    assert desk.waiting(0) == set()


def test_metrics_count_and_name_nobody():
    with listening(opened(answers("Miller"))) as url:
        ask(url, "Miller", "Miller")
        requests.post(f"{url}/predictions", json={}, timeout=20)
        requests.get(f"{url}/Miller", timeout=20)
        said = requests.get(f"{url}/metrics", timeout=20)
    lines = said.text.splitlines()
    assert said.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'vfgnn_ids_total{status="ok"} 2.0' in lines
    assert 'vfgnn_requests_total{code="200",path="/predictions"} 1.0' in lines
    assert 'vfgnn_requests_total{code="422",path="/predictions"} 1.0' in lines
    assert 'vfgnn_requests_total{code="404",path="other"} 1.0' in lines
    assert "vfgnn_in_service 1.0" in lines and "vfgnn_known_ids 1.0" in lines
    assert "Miller" not in said.text


@pytest.mark.parametrize(
    ("called", "code"),
    [("localhost:80", 200), ("127.0.0.1", 200), ("[::1]:8080", 200), ("attacker.example", 400), ("[", 400)],
)
def test_a_web_page_cannot_reach_it_under_another_name(called, code):
    with listening(opened(answers("a"))) as url:
        said = requests.get(f"{url}/health", headers={"Host": called}, timeout=20)
    assert said.status_code == code


@pytest.mark.parametrize(("host", "callers"), [("127.0.0.1", "this machine"), ("0.0.0.0", "whoever reaches it")])
def test_it_says_where_it_answers_and_to_whom(tmp_path, host, callers):
    logs.configure("bank", file=tmp_path / "log.jsonl", as_json=True)
    (port,) = free_ports(1)
    endpoint = Endpoint(opened(answers("a")), host, port)
    endpoint.start()
    endpoint.stop()
    said = json.loads((tmp_path / "log.jsonl").read_text())
    assert (said["event"], said["at"]) == ("answers", f"http://{host}:{port}")
    assert callers in said["callers"]


def test_a_port_that_is_taken_is_refused_by_name():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="cannot listen") as refused:
        Endpoint(opened(), "127.0.0.1", taken.getsockname()[1])
    assert "--listen" in refused.value.hint


def test_an_answer_does_not_wait_for_an_acknowledgement():
    """Nagle's algorithm and delayed acknowledgements would hold every answer for 40 ms; calls inherit the option."""
    with listening_at("127.0.0.1", 0) as found:
        assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("in_service", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_schemathesis_finds_nothing(tmp_path, in_service):
    """Every check that it has, on the document that the endpoint gives out; out of service, all but those of 503."""
    desk, ended = opened(answers("A-17", "A-18", also=("B",))), threading.Event()
    if not in_service:
        desk.close("a reason")

    def answer_all() -> None:  # as the label holder does when there is no more to be known
        while not ended.is_set():
            desk.answer(desk.known, desk.waiting(0.1))

    party = threading.Thread(target=answer_all)
    party.start()
    allowed = [] if in_service else ["--exclude-checks", "not_a_server_error,positive_data_acceptance"]
    try:
        with listening(desk) as url:
            command = [Path(sys.executable).parent / "schemathesis", "run", f"{url}/openapi.json", "--no-color"]
            found = subprocess.run(
                [*command, "--max-examples", "50", "--checks", "all", *allowed],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                timeout=250,
            )
    finally:
        ended.set()
        party.join()
    assert found.returncode == 0, found.stdout
    assert "Tested: 3" in found.stdout  # operations, which is all


def test_what_the_web_server_reports_is_an_event_without_words_of_what_was_read(tmp_path, monkeypatch):
    logs.configure("bank", file=tmp_path / "log.jsonl", as_json=True)
    desk = opened(answers("Miller"))
    monkeypatch.setattr(desk, "at_once", lambda ids: {}[ids[0]])
    with listening(desk) as url:
        assert ask(url, "Miller").status_code == 500
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as caller:
            caller.sendall(b"Miller\r\n\r\n")
            caller.recv(1024)
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    fault, odd = events[1:]  # after where it answers
    assert (fault["event"], fault["error"]) == ("Exception in ASGI application", "KeyError")
    assert odd["event"] == "Invalid HTTP request received."
    assert "Miller" not in str(events)
