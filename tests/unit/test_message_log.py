"""The log of who saw what cannot be changed without a trace, and gives no content away."""

import json
import resource

import pytest
import torch

from vfgnn import message_log
from vfgnn.chain import FIRST, Chain, _hash
from vfgnn.errors import DiskError, LedgerRefused, LogRefused
from vfgnn.message_log import MessageLog, digest_of, keys_path, message_key, read_entries, read_keys, seal_path, verify
from vfgnn.messages import Declared
from vfgnn.privacy.ledger import Ledger, read_releases
from vfgnn.report.run.audit import audit
from vfgnn.split.program import CONTROL, LOCAL_EMBEDDINGS

PAYLOAD = torch.arange(6.0).reshape(2, 3)
KEY = bytes(range(32))


def message(sender="A", receiver="B"):
    return Declared(LOCAL_EMBEDDINGS, sender, receiver, PAYLOAD.dtype, (2, 3))


def add(log, *payloads, start="start", key=KEY):
    for step, payload in enumerate(payloads):
        log.add(start, message(), payload, key, phase="forward", step=step)
    log.close()


@pytest.fixture
def path(tmp_path):
    add(MessageLog(tmp_path / "messages.jsonl"), PAYLOAD, PAYLOAD + 1, PAYLOAD + 2)
    return tmp_path / "messages.jsonl"


def rewritten(path, **changes):
    """The same log with other fields in its second line (... leaves one out), chained anew."""
    before, lines = FIRST, []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        fields = json.loads(line)
        fields.pop("hash")
        if number == 2:
            fields = {key: value for key, value in (fields | changes).items() if value is not ...}
        before = _hash(before, fields)
        lines.append(json.dumps({**fields, "hash": before}))
    path.write_text("\n".join(lines) + "\n")


def test_entries_have_no_content(path):
    entries = list(read_entries(path))
    assert [entry.number for entry in entries] == [entry.place for entry in entries] == [1, 2, 3]
    assert entries[0].digest == digest_of(PAYLOAD, message_key(KEY, "start", "A", "B", 1))
    assert len({entry.digest for entry in entries}) == 3
    assert (entries[0].kind, entries[0].shape, entries[0].bytes) == ("local_embeddings", (2, 3), 24)
    assert "payload" not in path.read_text() and KEY.hex() not in path.read_text()


def test_one_message_can_be_opened_without_the_others(path):
    first, second, _ = read_entries(path)
    log_key = read_keys(path)[first.run, first.sender, first.receiver]
    key = message_key(log_key, first.run, first.sender, first.receiver, first.place)
    assert log_key == KEY and verify(PAYLOAD, first, key)
    assert not verify(PAYLOAD + 1, first, key)
    assert not verify(PAYLOAD + 1, second, key)
    assert not verify(PAYLOAD, first, bytes(32))


def test_the_two_ends_agree_and_nothing_else_does(tmp_path):
    """Equal payloads have equal digests at the two ends of one message, and nowhere else."""
    digests = {}
    for party in "AB":
        log = MessageLog(tmp_path / party / "messages.jsonl")
        (tmp_path / party).mkdir()
        for start, sender, receiver in (("one", "A", "B"), ("one", "B", "A"), ("two", "A", "B")):
            for _ in range(2):
                log.add(start, message(sender, receiver), PAYLOAD, KEY, phase="forward", step=0)
        log.close()
        digests[party] = [entry.digest for entry in read_entries(tmp_path / party / "messages.jsonl")]
    assert digests["A"] == digests["B"]
    assert len(set(digests["A"])) == 6


def guessed(path):
    """The words of a message of one byte, by trying all of them against its digest, without a key."""
    (entry,) = read_entries(path)
    words = [torch.tensor([word], dtype=torch.uint8) for word in range(256)]
    return [int(word) for word in words if digest_of(word, bytes(32)) == entry.digest]


@pytest.mark.parametrize("keyed", [True, False])
def test_a_message_of_one_byte_is_found_by_trying_only_without_the_key(tmp_path, monkeypatch, keyed):
    if not keyed:
        monkeypatch.setattr(message_log, "message_key", lambda *_: bytes(32))
    path = tmp_path / "messages.jsonl"
    log = MessageLog(path)
    control = Declared(CONTROL, "A", "B", torch.uint8, (1,))
    log.add("start", control, torch.tensor([7], dtype=torch.uint8), KEY, phase="control", step=0)
    log.close()
    assert guessed(path) == ([] if keyed else [7])


def test_keys_are_written_before_they_are_used_and_again_for_every_start(path, monkeypatch):
    order = []
    append = Chain.append
    monkeypatch.setattr(
        Chain, "append", lambda self, fields: order.append(self._lines.path.name) or append(self, fields)
    )
    add(MessageLog(path), PAYLOAD, PAYLOAD, start="again", key=bytes(32))
    assert order == ["messages.keys.jsonl", "messages.jsonl", "messages.jsonl"]
    assert read_keys(path) == {("start", "A", "B"): KEY, ("again", "A", "B"): bytes(32)}
    assert keys_path(path).stat().st_mode & 0o777 == 0o600


FORMAT_1 = {
    "at": 1763300000.123456,
    "run": "0123456789abcdef",
    "sender": "A",
    "receiver": "B",
    "kind": "local_embeddings",
    "phase": "forward",
    "step": 0,
    "dtype": "float32",
    "shape": [2, 3],
    "bytes": 24,
    "digest": "47dc540c94ceb704a23875c11273e16bb0b8a87aed84de911f2133568115f254",
}


def test_a_log_of_format_1_is_refused_by_name(tmp_path):
    path = tmp_path / "messages.jsonl"
    before = Chain(path, "message log", LogRefused)
    before.append(FORMAT_1)
    before.close()
    says = "a message log of format 1; this vfgnn writes format 2"
    for use in (lambda: list(read_entries(path)), lambda: audit(tmp_path, "A", [], None), lambda: MessageLog(path)):
        with pytest.raises(LogRefused, match=says):
            use()
    assert len(path.read_text().splitlines()) == 1


BROKEN = {
    "a field that is missing": {"kind": ...},
    "a field more": {"more": 1},
    "a list for a name": {"sender": ["A"]},
    "no list for a shape": {"shape": 3},
    "a negative size": {"bytes": -1},
    "a negative length": {"shape": [-1]},
    "NaN": {"at": float("nan")},
    "an endless time": {"at": 1e300},
    "a digest of another kind": {"digest": "0" * 64},
    "another format": {"format": [2]},
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_line_with_other_fields_is_refused_by_name(path, case):
    rewritten(path)
    assert len(list(read_entries(path))) == 3
    rewritten(path, **BROKEN[case])
    with pytest.raises(LogRefused, match="message log"):
        list(read_entries(path))


LINES = {
    "bytes that are no text": b'{"number": 1, "hash": "\xff"}\n',
    "a list": b'["hash"]\n',
    "a number": b"1\n",
    "nested without end": b"[" * 100_000 + b"\n",
    "a number of 5000 digits": b"9" * 5000 + b"\n",
    "nothing": b"\n",
}


@pytest.mark.parametrize("case", LINES)
def test_a_file_that_is_no_chain_is_refused_by_name(tmp_path, case):
    path = tmp_path / "messages.jsonl"
    path.write_bytes(LINES[case])
    for use in (lambda: list(read_entries(path)), lambda: MessageLog(path)):
        with pytest.raises(LogRefused, match=r"cannot be read(.|\n)*line 1"):
            use()
    for use in (lambda: read_releases(path), lambda: Ledger(path)):
        with pytest.raises(LedgerRefused, match=r"cannot be read(.|\n)*line 1"):
            use()


def test_a_log_where_nothing_can_be_read_or_written_is_refused_by_name(tmp_path):
    with pytest.raises(LogRefused, match="cannot be read"):
        list(read_entries(tmp_path))  # a folder
    with pytest.raises(DiskError, match="cannot be written"):
        add(MessageLog(tmp_path / "away" / "messages.jsonl"), PAYLOAD)


SEALS = {
    "no JSON": b"nonsense",
    "no text": b'{"entries": 3, "head": "\xff"}',
    "a list": b"[]",
    "keys that are missing": b"{}",
    "a number for a certificate": b'{"entries": 3, "head": "0", "signature": "00", "certificate": 1}',
    "a signature that is no hex": b'{"entries": 3, "head": "0", "signature": "x", "certificate": ""}',
    "nested without end": b'{"entries": ' + b"[" * 100_000,
}


@pytest.mark.parametrize("case", SEALS)
def test_a_seal_that_cannot_be_read_is_refused_by_name(path, case):
    seal_path(path).write_bytes(SEALS[case])
    with pytest.raises(LogRefused, match="a seal that cannot be read"):
        audit(path.parent, "A", [], None)


def test_a_killed_process_goes_on_where_it_was(path):
    with path.open("ab") as file:
        file.write(b'{"number": 4, "run": "cut')
    add(MessageLog(path), PAYLOAD)
    assert [entry.number for entry in read_entries(path)] == [1, 2, 3, 4]


@pytest.mark.parametrize("how", ["changed", "dropped", "swapped", "added", "garbage"])
def test_any_change_is_found(path, how):
    lines = path.read_text().splitlines()
    if how == "changed":
        lines[1] = lines[1].replace('"bytes": 24', '"bytes": 25')
    elif how == "dropped":
        del lines[1]
    elif how == "swapped":
        lines[0], lines[1] = lines[1], lines[0]
    elif how == "added":
        lines.insert(1, json.dumps({**json.loads(lines[0]), "number": 2}))
    else:
        lines[2] = "nonsense"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LogRefused, match="line"):
        list(read_entries(path))


def test_a_full_disk_leaves_whole_lines_and_a_log_that_goes_on(path):
    log, size = MessageLog(path), path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        for _ in range(2):  # the first finds room for ten bytes, the second for none after them
            with pytest.raises(DiskError, match="cannot be written"):
                log.add("start", message(), PAYLOAD, KEY, phase="forward", step=3)
            assert path.stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.add("start", message(), PAYLOAD, KEY, phase="forward", step=3)
    log.close()
    assert [entry.number for entry in read_entries(path)] == [1, 2, 3, 4]
    assert [entry.place for entry in read_entries(path)] == [1, 2, 3, 1]  # of this process
