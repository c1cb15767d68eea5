"""The log of who saw what cannot be changed without a trace."""

import json
import resource

import pytest
import torch

from vfgnn.errors import DiskError, LogRefused
from vfgnn.message_log import MessageLog, digest_of, read_entries
from vfgnn.messages import Declared
from vfgnn.split.program import LOCAL_EMBEDDINGS

PAYLOAD = torch.arange(6.0).reshape(2, 3)


def message(sender="A", receiver="B"):
    return Declared(LOCAL_EMBEDDINGS, sender, receiver, PAYLOAD.dtype, (2, 3))


def add(log, *payloads):
    for step, payload in enumerate(payloads):
        log.add("start", message(), payload, phase="forward", step=step)
    log.close()


@pytest.fixture
def path(tmp_path):
    add(MessageLog(tmp_path / "messages.jsonl"), PAYLOAD, PAYLOAD + 1, PAYLOAD + 2)
    return tmp_path / "messages.jsonl"


def test_entries_have_no_content(path):
    entries = list(read_entries(path))
    assert [entry.number for entry in entries] == [1, 2, 3]
    assert entries[0].digest == digest_of(PAYLOAD)
    assert len({entry.digest for entry in entries}) == 3
    assert (entries[0].kind, entries[0].shape, entries[0].bytes) == ("local_embeddings", (2, 3), 24)
    assert "payload" not in path.read_text()


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
                log.add("start", message(), PAYLOAD, phase="forward", step=3)
            assert path.stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.add("start", message(), PAYLOAD, phase="forward", step=3)
    log.close()
    assert [entry.number for entry in read_entries(path)] == [1, 2, 3, 4]
