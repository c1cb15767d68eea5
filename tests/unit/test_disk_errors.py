"""A disk that is full or cannot be written to: an error with a name, another attempt while others can wait."""

import errno
import json
import logging
import os
from collections import Counter
from functools import partial

import pytest
import torch

from tests.disks import Faults, fill, make_read_only, make_writable, small_disk
from tests.network import small
from tests.unit.test_message_log import PAYLOAD, message
from vfgnn import logs, writing
from vfgnn.checkpoint import Checkpoints
from vfgnn.errors import DiskError, ExitCode, VfgnnError
from vfgnn.files import load_party
from vfgnn.log_file import LogFile
from vfgnn.message_log import MessageLog, read_entries
from vfgnn.party.folder import RunFolder, hold
from vfgnn.party.train import run_party
from vfgnn.privacy.ledger import Ledger, Release, read_releases
from vfgnn.records import EpochMetrics, Traffic
from vfgnn.transport.goodbye import FAILED, LEFT, goodbye_code
from vfgnn.writing import patient, write_whole

EPOCHS = 3


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(writing, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # counted by Faults, and slow


@pytest.fixture(autouse=True)
def no_handlers():
    yield
    for handler in list(logs.LOGGER.handlers):
        logs.LOGGER.removeHandler(handler)
        handler.close()


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    return small(tmp_path_factory.mktemp("disk") / "federation").file


def own_side_of_a_run(home, federation):
    """Everything that a party does with its disk in a short run, in its order."""
    path = home / "run"
    held, ledger, log = hold(path, "A"), None, None
    try:
        folder = RunFolder(path, "A")
        logs.configure("A", file=folder.log, as_json=False)
        kept = Checkpoints(folder.checkpoints, party="A", federation="f", scheduled=range(100))
        log, ledger = MessageLog(folder.messages), Ledger(home / "ledger.jsonl")
        begin = max(kept.steps, default=0)
        kept.go_back("run", begin)
        folder.begin("run", begin, federation)
        for epoch in range(begin, EPOCHS):
            kept.remember(epoch, {"w": torch.full((3,), float(epoch))})
            kept.write(epoch)
            log.add("start", message(), PAYLOAD, bytes(32), phase="forward", step=epoch)
            ledger.charge(Release("r", epoch, "rows", "row", ("train",), adjacency="zero_out", noise_multiplier=2.0))
            logs.event("epoch", epoch=epoch)
            folder.add_metrics(EpochMetrics(epoch, 1.0, 0.5))
        folder.end(Traffic(), revealed={}, outcome=None, error=None)
    finally:
        for opened in (log, ledger):
            if opened is not None:
                opened.close()
        os.close(held)


def assert_whole(home):
    """What must be there after the run, whatever happened on the way."""
    path = home / "run"
    assert [json.loads(line)["epoch"] for line in (path / "metrics.jsonl").read_text().splitlines()] == [0, 1, 2]
    assert json.loads((path / "run.json").read_text())["state"] == "finished"
    assert len(list(read_entries(path / "messages.jsonl"))) >= EPOCHS
    assert len(read_releases(home / "ledger.jsonl")) >= EPOCHS
    assert Checkpoints(path / "checkpoints", party="A", federation="f", scheduled=range(100)).steps == [1, 2]
    assert all(json.loads(line)["event"] for line in (path / "log.jsonl").read_text().splitlines())
    assert not list(home.rglob(".*"))


def moments(tmp_path, federation):
    """How often a short run turns to its disk."""
    with pytest.MonkeyPatch.context() as patch:
        faults = Faults(patch, at=0)
        own_side_of_a_run(tmp_path / "undisturbed", federation)
    assert_whole(tmp_path / "undisturbed")
    assert faults.count > 60
    return range(1, faults.count + 1)


def count(told, what, **fields):
    told[what] += 1


def test_one_fault_at_any_moment_changes_nothing(tmp_path, federation, capsys):
    for at in moments(tmp_path, federation):
        told, home = Counter(), tmp_path / str(at)
        with pytest.MonkeyPatch.context() as patch:
            faults = Faults(patch, at)
            with patient(5, partial(count, told)):
                own_side_of_a_run(home, federation)
            assert faults.failed
        assert_whole(home)
        assert told in ({}, {"the disk fails: tried again": 1, "the disk works again": 1})  # {}: it was the log's line
        assert len(read_releases(home / "ledger.jsonl")) == EPOCHS
        assert len(list(read_entries(home / "run" / "messages.jsonl"))) == EPOCHS
    assert "Traceback" not in capsys.readouterr().err


def test_a_disk_that_stays_full_is_an_error_with_a_name_and_the_next_start_ends_well(tmp_path, federation, capsys):
    named = 0
    for at in moments(tmp_path, federation):
        home = tmp_path / str(at)
        home.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            Faults(patch, at, for_good=True)
            try:
                own_side_of_a_run(home, federation)
            except VfgnnError as error:
                named += 1
                assert isinstance(error, DiskError)
                assert error.exit_code == ExitCode.BAD_INPUT
                assert "No space left on device" in str(error) and "make room" in str(error) and str(home) in str(error)
        own_side_of_a_run(home, federation)
        assert_whole(home)
    assert named > 50
    assert "Traceback" not in capsys.readouterr().err


def test_an_attempt_is_told_once_and_ends_when_patience_does(tmp_path, monkeypatch):
    told = []
    Faults(monkeypatch, 1, for_good=True)
    with (
        patient(0.05, lambda what, **fields: told.append((what, fields["reason"], fields["for_s"]))),
        pytest.raises(DiskError, match="file cannot be written: No space"),
    ):
        write_whole(tmp_path / "file", "content")
    assert told == [("the disk fails: tried again", "No space left on device", 0.05)]


def test_outside_of_patience_and_in_other_threads_nothing_is_tried_again(tmp_path, monkeypatch):
    faults = Faults(monkeypatch, 1)
    with pytest.raises(DiskError):
        write_whole(tmp_path / "file", "content")
    assert faults.count == 1


@pytest.mark.parametrize(
    ("code", "to_do"),
    [(errno.EROFS, "mount"), (errno.EACCES, "let this user"), (errno.EMFILE, "ulimit"), (errno.EIO, "see whether")],
)
def test_each_fault_says_what_to_do(tmp_path, monkeypatch, code, to_do):
    Faults(monkeypatch, 1, code=code)
    with pytest.raises(DiskError, match=to_do) as caught:
        write_whole(tmp_path / "file", "content")
    assert os.strerror(code) in str(caught.value)


def test_a_party_whose_disk_fails_leaves_as_one_that_was_stopped():
    assert goodbye_code(DiskError("x")) == LEFT  # the others wait for it
    assert goodbye_code(VfgnnError("x")) == FAILED


def test_a_log_that_cannot_be_written_keeps_its_lines_and_says_so_once(tmp_path, monkeypatch, capsys):
    logs.configure("A", file=tmp_path / "log.jsonl", as_json=False)
    with pytest.MonkeyPatch.context() as patch:
        Faults(patch, 1, for_good=True)
        for number in range(3):
            logs.event("something", number=number)
    logs.event("the end")
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == [
        "something", "the log cannot be written: kept in memory", "something", "something", "the end",
        "the log is written again",
    ]  # fmt: skip
    shown = capsys.readouterr().err
    assert shown.count("kept in memory where=") == 1
    assert "No space left on device" in shown
    assert "Traceback" not in shown


def test_the_handler_of_before_printed_a_traceback(tmp_path, monkeypatch, capsys):
    """What the guard is for: a FileHandler on a full disk."""
    monkeypatch.setattr("vfgnn.logs.LogFile", logging.FileHandler)
    with small_disk(tmp_path / "disk") as disk:
        logs.configure("A", file=disk / "log.jsonl", as_json=False)
        fill(disk)
        for _ in range(100):
            logs.event("something", text="x" * 100)
        (disk / "filler").unlink()
        logs.configure("A", file=tmp_path / "log.jsonl", as_json=False)  # closes the other one
    assert "Traceback" in capsys.readouterr().err


def test_a_log_in_memory_has_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("vfgnn.log_file.KEPT", 5)
    handler = LogFile(tmp_path / "log.jsonl")
    handler.setFormatter(logging.Formatter("%(message)s"))
    with pytest.MonkeyPatch.context() as patch:
        Faults(patch, 1, for_good=True)
        for number in range(20):
            handler.handle(logging.makeLogRecord({"msg": f"line {number}"}))
    handler.handle(logging.makeLogRecord({"msg": "the end"}))
    handler.close()
    assert (tmp_path / "log.jsonl").read_text().splitlines() == [*(f"line {n}" for n in range(16, 20)), "the end"]


def test_a_full_disk_is_named_and_has_room_again(tmp_path, federation):
    """A real one."""
    with small_disk(tmp_path / "disk") as disk:
        lines = writing.Lines(disk / "lines")
        lines.add(b"one\n")
        fill(disk)
        with pytest.raises(DiskError, match="No space left on device"):
            for _ in range(2000):
                lines.add(b"x" * 99 + b"\n")
        with pytest.raises(DiskError, match="No space left on device"):
            own_side_of_a_run(disk / "home", federation)
        assert (disk / "lines").read_bytes().endswith(b"\n")
        (disk / "filler").unlink()
        lines.add(b"two\n")
        lines.close()
        assert (disk / "lines").read_bytes().endswith(b"\ntwo\n")
        own_side_of_a_run(disk / "home", federation)
        assert_whole(disk / "home")


def test_a_folder_that_cannot_be_written_to_is_refused_at_the_start(tmp_path):
    local = small(tmp_path / "federation")
    with small_disk(tmp_path / "disk") as disk:
        party = load_party(local.party_toml("A")).model_copy(update={"run_folder": disk / "home" / "run"})
        make_read_only(disk)
        try:
            with pytest.raises(DiskError, match="Read-only file system") as refused:
                run_party(local.file, party)
        finally:
            make_writable(disk)
    assert refused.value.exit_code == ExitCode.BAD_INPUT
    assert "mount this disk" in str(refused.value)
