"""Whatever a peer says reaches a terminal or a log without control characters, and never begins a line of its own."""

import json
import logging
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from tests.network import QUICK, endpoint, small
from vfgnn import errors, logs
from vfgnn.cli import main as command_line
from vfgnn.errors import PartyFailed, PeerFailed, VfgnnError
from vfgnn.shown import shown
from vfgnn.split.program import CONTROL
from vfgnn.transport import wire
from vfgnn.transport.capacity import NOTHING
from vfgnn.transport.connection import Alarm, Link
from vfgnn.transport.goodbye import FAILED, LEFT, brief

HARMFUL = {chr(one) for one in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F))}
HARMFUL |= {chr(one) for one in range(0x2066, 0x206A)}
ATTACK = "x\x1b]0;owned\x07\r\n12:00:00 A: run ended test_accuracy=1.0\n\u202e\x9b2J\x7f"
texts = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from(sorted(HARMFUL))), max_size=60)
quickly = hypothesis(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def harmless(text):
    return not HARMFUL & set(text)


def line_of(formatter, name, **fields):
    record = logging.LogRecord("vfgnn.run", logging.INFO, "", 0, name.replace("%", "%%"), (), None)
    record.fields = fields
    return formatter("A").format(record)


@example(ATTACK)
@given(texts)
def test_a_text_is_shown_on_one_line(text):
    assert harmless(shown(text))
    assert len(shown(text, most=10)) <= 10
    assert shown(shown(text)) == shown(text)
    assert shown(text) == text or not text.isprintable()
    assert shown(text, lines=True).count("\n") == text.count("\n")


@example(ATTACK)
@given(texts)
def test_a_log_line_is_one_line(text):
    for formatter in (logs.Text, logs.JsonLines):
        assert harmless(line_of(formatter, "refused", peer="B", reason=text))
        assert harmless(line_of(formatter, text))


@example(ATTACK)
@given(texts)
def test_an_error_has_as_many_lines_as_parts(text):
    error = VfgnnError(text, expected=text, got=text, where=text, hint=text)
    for part in (error.what, error.expected, error.got, error.where, error.hint, brief(error)):
        assert harmless(part)
    assert all(harmless(line) for line in str(error).split("\n"))
    assert len(str(error).split("\n")) == (5 if text else 1)


def test_only_the_lines_of_a_child_process_stay_lines():
    error = PartyFailed("B", code=2, said=f"error: one\n  got: two\x1b{ATTACK}", where="output.txt")
    assert "error: one\n  got: two\\x1b" in str(error)
    assert all(harmless(line) for line in str(error).split("\n"))


@pytest.mark.parametrize("error", [PeerFailed("B", ATTACK, where="A"), KeyError("x"), RuntimeError(ATTACK)])
def test_the_command_line_prints_no_escape(error, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr(command_line, "app", fail)
    monkeypatch.setattr(command_line.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit):
        command_line.main()
    printed = capsys.readouterr().err
    assert "error: " in printed and all(harmless(line) for line in printed.split("\n"))


@dataclass
class Heard:
    """What one party hears from a peer in its hello, and in its goodbye."""

    party: object
    hello: dict

    def errors(self, **changes):
        """What the party raises, or nothing."""
        try:
            self.party.check_purpose(self.party.check_hello(json.dumps(self.hello | changes), "B"))
        except VfgnnError as error:
            yield error

    def goodbye(self, code, reason):
        link = Link("A", "B", NOTHING, QUICK, Alarm(), leader="A")
        link._closed(ConnectionClosedError(Close(code, reason), None))
        return link


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    local = small(tmp_path_factory.mktemp("federation"))
    hello = {"type": "hello", "protocol": wire.PROTOCOLS[-1], "program": "0.1.0", "sender": "B", "receiver": "A"}
    hello |= {"time": 0.0, "session": "0" * 16, "knows": None, "received": 0, "run": None, "steps": []}
    return Heard(endpoint(local, "A"), hello | {"federation": local.file.document, "log_key": "0" * 64})


def said(heard, text):
    """Every text that a peer's string may reach."""
    document = heard.hello["federation"]
    settings = document["settings"]
    for changes in (
        {"purpose": text},
        {"program": text, "protocol": 99},
        {"type": text},
        {"sender": text},
        {text: 1, "session": text},
        {"federation": document | {text: 1}},
        {"federation": document | {"label_holder": text}},
        {"federation": document | {"settings": settings | {text: {text: text}}}},
        {"federation": document | {"settings": settings | {"combine": {text: text}}}},
    ):
        for error in heard.errors(**changes):
            yield from (str(error), error.what, brief(error))
    frame = wire.Message("0" * 16, 1, text, "uint8", (1,))
    try:
        wire.declared(frame, sender="B", receiver="A", kinds={CONTROL: 8})
    except VfgnnError as error:
        yield str(error)
    failure = heard.goodbye(FAILED, text).failure
    yield str(failure)
    yield line_of(logs.Text, "peer failed", peer="B", reason=heard.goodbye(LEFT, text).farewell)


@quickly
@example(ATTACK)
@given(texts)
def test_nothing_that_a_peer_says_is_shown_as_it_came(heard, text):
    for one in said(heard, text):
        assert all(harmless(line) for line in one.split("\n"))
        assert len(one) < 2000
    assert "\n" not in heard.goodbye(FAILED, text).failure.what


def test_a_purpose_cannot_forge_a_line(heard):
    (error,) = heard.errors(federation={"x\nerror: forged": 1})
    assert "\nerror: forged" not in str(error)


def test_without_the_guards_the_attack_is_seen(heard, monkeypatch):
    """The tests above can fail: they find the attack where nothing is escaped."""
    for module in (errors, logs, wire):
        monkeypatch.setattr(module, "shown", lambda text, **_: text)
    assert not harmless(line_of(logs.Text, "refused", reason=ATTACK))
    assert not harmless(PeerFailed("B", ATTACK, where="A").what)
    assert sum(not harmless(one.replace("\n", "")) for one in said(heard, ATTACK)) > 3


def test_a_long_key_of_a_peers_file_is_cut(heard):
    (error,) = heard.errors(federation=heard.hello["federation"] | {"k" * 100_000: "v" * 100_000})
    assert len(str(error)) < 1500
