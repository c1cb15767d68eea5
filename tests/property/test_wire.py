"""Headers and payloads come back as they went, and nothing else is read."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vfgnn.errors import ProtocolError
from vfgnn.messages import Declared
from vfgnn.split.program import CONTROL
from vfgnn.transport import wire

names = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.integers(0, 2**53)
words = st.from_regex(r"[0-9a-f]{16}", fullmatch=True)
parties = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)
programs = st.from_regex(r"[A-Za-z0-9_.+!-]{1,64}", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=10,
)
headers = st.one_of(
    st.builds(wire.Ack, numbers),
    st.builds(wire.Start, run=words, start=words, step=numbers, protocol=st.integers(0, 99)),
    st.builds(
        wire.Message,
        start=names,
        number=numbers,
        kind=st.text(max_size=64),
        dtype=st.sampled_from(list(wire.DTYPES)),
        shape=st.lists(st.integers(0, 2**31), max_size=4).map(tuple),
    ),
    st.builds(
        wire.Hello,
        protocol=st.integers(0, 99),
        protocols=st.lists(st.integers(0, 99), max_size=3).map(tuple),
        program=programs,
        sender=parties,
        receiver=parties,
        time=st.floats(0, 2e9),
        session=words,
        knows=st.none() | words,
        received=numbers,
        run=st.none() | words,
        steps=st.lists(numbers, max_size=4).map(tuple),
        federation=st.dictionaries(names, json_values, max_size=4),
        log_key=st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    ),
)


@given(headers)
def test_a_header_comes_back_as_it_went(header):
    assert wire.decode(wire.encode(header), sender="B") == header


@given(st.one_of(st.text(max_size=200), st.binary(max_size=200)))
def test_anything_else_is_refused_by_name(frame):
    with pytest.raises(ProtocolError, match="the link from B"):
        wire.decode(frame, sender="B")


@given(headers, st.integers(0, 400))
def test_a_truncated_header_is_refused(header, cut):
    text = wire.encode(header)
    with pytest.raises(ProtocolError):
        wire.decode(text[: min(cut, len(text) - 1)], sender="B")


@pytest.mark.parametrize("field", ["number", "kind", "dtype", "shape"])
def test_a_header_with_a_value_of_another_kind_is_refused(field):
    text = '{"type":"message","start":"r","number":1,"kind":"control","dtype":"uint8","shape":[1]}'
    assert isinstance(wire.decode(text, sender="B"), wire.Message)
    broken = text.replace(f'"{field}":', f'"{field}":{{}},"x":')
    with pytest.raises(ProtocolError):
        wire.decode(broken, sender="B")


def test_an_unknown_field_is_refused():
    with pytest.raises(ProtocolError, match="cannot be read"):
        wire.decode('{"type":"ack","number":1,"more":2}', sender="B")


def test_the_version_of_any_hello_can_be_read():
    version = wire.decode_version('{"type":"hello","protocol":7,"program":"9.9","new":true}', sender="B")
    assert (version.spoken, version.program) == ((7,), "9.9")


@given(st.lists(st.sets(st.integers(1, 9), min_size=1), min_size=1, max_size=4))
def test_the_highest_version_in_common(spoken):
    chosen = wire.highest_common(*spoken)
    common = [one for one in range(1, 10) if all(one in some for some in spoken)]
    assert chosen == (common[-1] if common else None)


shapes = st.lists(st.integers(0, 5), min_size=0, max_size=3).map(tuple)


@given(shapes, st.sampled_from(list(wire.DTYPES.values())), st.integers(1, 50), st.randoms(use_true_random=False))
def test_a_payload_comes_back_from_chunks_of_any_size(shape, dtype, chunk, random):
    count = Declared(CONTROL, "B", "A", dtype, shape).bytes
    payload = torch.frombuffer(bytearray(random.randbytes(count)) or bytearray(1), dtype=torch.uint8)[:count]
    message = Declared(CONTROL, "B", "A", torch.uint8, (count,))
    assembly, sent = wire.Assembly(message), wire.payload_bytes(payload)
    for at in range(0, count, chunk):
        assert not assembly.complete
        assembly.add(bytes(sent[at : at + chunk]))
    assert assembly.complete
    assert torch.equal(assembly.payload, payload)


@pytest.mark.parametrize("chunk", [b"", b"123456789", "text"])
def test_a_chunk_that_does_not_fit_is_refused(chunk):
    assembly = wire.Assembly(Declared(CONTROL, "B", "A", torch.uint8, (8,)))
    with pytest.raises(ProtocolError):
        assembly.add(chunk)


ENDLESS = [(2**40, 2**40, 2**40, 0), (0, 2**70), (2**21, 0, 2**20)]


@pytest.mark.parametrize("shape", [(-1,), (2**40, 2**40), (1, 1, 1, 1, 1), (9,), *ENDLESS])
def test_an_impossible_or_oversized_message_takes_no_memory(shape):
    header = wire.Message("run", 1, CONTROL, "uint8", shape)
    with pytest.raises(ProtocolError):
        wire.declared(header, sender="B", receiver="A", kinds={CONTROL: 8})


@given(st.lists(st.sampled_from([0, 1, 2, 3, 2**20, 2**39, 2**40]), max_size=4).map(tuple))
def test_a_message_that_is_let_in_can_be_put_together(shape):
    header = wire.Message("run", 1, CONTROL, "float64", shape)
    try:
        message = wire.declared(header, sender="B", receiver="A", kinds={CONTROL: 64})
    except ProtocolError:
        return
    assert wire.Assembly(message).payload.shape == shape


NESTED = '{"type":"hello","protocol":1,"program":"1","federation":' + '{"a":' * 100_000 + "1" + "}" * 100_001
HELLOS = {
    "binary": b'{"type":"hello","protocol":1,"program":"\xff"}',
    "binary JSON": b'{"type":"hello","protocol":1,"program":"1"}',
    "nested without end": NESTED,
    "a number of 400 digits": '{"type":"hello","protocol":' + "9" * 400 + ',"program":"1"}',
    "a negative number": '{"type":"hello","protocol":-1,"program":"1"}',
    "NaN": '{"type":"hello","protocol":NaN,"program":"1"}',
    "an endless program": '{"type":"hello","protocol":1,"program":"' + "9" * 65 + '"}',
    "a program of two lines": '{"type":"hello","protocol":1,"program":"1\\n"}',
}


@pytest.mark.parametrize("case", HELLOS)
def test_a_hello_that_cannot_be_is_refused_by_name(case):
    for read in (wire.decode_version, wire.decode):
        with pytest.raises(ProtocolError, match="the link from B"):
            read(HELLOS[case], sender="B")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("purpose", "run\x1b[2J"),
        ("purpose", "r" * 65),
        ("sender", "B" * 65),
        ("session", "s"),
        ("knows", "0" * 17),
        ("run", "../../run"),
        ("received", -1),
        ("received", 2**60),
        ("time", -1.0),
        ("time", 1e300),
        ("steps", list(range(65))),
        ("steps", [-1]),
        ("log_key", "0" * 63),
    ],
)
def test_no_field_of_a_hello_is_without_limit(field, value):
    hello = {"type": "hello", "protocol": 1, "program": "1", "sender": "B", "receiver": "A", "time": 0.0}
    hello |= {"session": "0" * 16, "knows": None, "received": 0, "run": None, "steps": [], "federation": {}}
    hello |= {"log_key": "0" * 64}
    assert isinstance(wire.decode(json.dumps(hello), sender="B"), wire.Hello)
    with pytest.raises(ProtocolError, match="cannot be read"):
        wire.decode(json.dumps(hello | {field: value}), sender="B")


def test_a_kind_that_the_link_does_not_have_takes_no_memory():
    header = wire.Message("run", 1, "h0_share", "uint8", (1,))
    with pytest.raises(ProtocolError, match="a kind that this link does not have"):
        wire.declared(header, sender="B", receiver="A", kinds={CONTROL: 8})
