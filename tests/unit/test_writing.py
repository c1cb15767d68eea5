"""A file is whole or not there, private where it should be, and on the disk."""

import errno
import os
import resource
import stat
import threading
from pathlib import Path

import pytest
import torch

from tests.network import small
from tests.unit.test_message_log import KEY, PAYLOAD, message
from vfgnn.checkpoint import Checkpoints
from vfgnn.errors import DiskError
from vfgnn.message_log import MessageLog
from vfgnn.party.released import Released
from vfgnn.privacy.ledger import Ledger, Release
from vfgnn.transport import certificates
from vfgnn.writing import flush, remove_unfinished, write_whole


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def flushed(monkeypatch):
    """What was flushed, in order, by the name that it had then."""
    seen, fsync = [], os.fsync

    def remember(descriptor):
        seen.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", remember)
    return seen


def write_bytes(temporary):
    temporary.write_bytes("wörter\n".encode())


@pytest.mark.parametrize("content", ["wörter\n", "wörter\n".encode(), write_bytes], ids=["text", "bytes", "callable"])
@pytest.mark.parametrize("there", [False, True], ids=["new", "replaced"])
def test_the_content_is_there_and_nothing_else(tmp_path, content, there):
    path = tmp_path / "above" / "file.txt"
    if there:
        write_whole(path, "before, and longer than what comes")
    write_whole(path, content)
    assert path.read_text() == "wörter\n"
    assert list(path.parent.iterdir()) == [path]


def stops(temporary):
    temporary.write_text("half")
    raise RuntimeError("in the middle")


def is_interrupted(temporary):
    temporary.write_text("half")
    raise KeyboardInterrupt


@pytest.mark.parametrize(("content", "raised"), [(stops, RuntimeError), (is_interrupted, KeyboardInterrupt)])
@pytest.mark.parametrize("for_others", [False, True])
def test_after_an_error_what_was_there_is_still_there(tmp_path, content, raised, for_others):
    path = tmp_path / "file"
    for before in ([], [path]):
        with pytest.raises(raised):
            write_whole(path, content, for_others=for_others)
        assert list(tmp_path.iterdir()) == before
        if before:
            assert path.read_text() == "before"
        path.write_text("before")


def test_after_a_flush_that_fails_what_was_there_is_still_there(tmp_path, monkeypatch):
    def fails(descriptor):
        raise OSError(errno.EIO, "the disk")

    path = tmp_path / "file"
    path.write_text("before")
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(DiskError, match="file cannot be written: Input/output error"):
        write_whole(path, "after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_file_before_and_an_error_with_a_name(tmp_path):
    released = Released(tmp_path, "run")
    released.add(["a"], torch.ones(1, 2))
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
    try:
        with pytest.raises(DiskError, match=r"released\.safetensors cannot be written: File too large"):
            released.add([str(number) for number in range(100)], torch.ones(100, 2))
        with pytest.raises(DiskError, match="too large"):
            write_whole(path, b"0" * (len(before) + 200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_content_is_flushed_before_the_rename_and_the_name_after_it(tmp_path, flushed):
    path = tmp_path / "file"

    def looks(temporary):
        assert not flushed
        temporary.write_text("content")

    write_whole(path, looks)
    (file, folder) = flushed
    assert file.parent == folder == tmp_path
    assert file.name.startswith(".file.") and file.name.endswith(".tmp")


def test_a_folder_that_cannot_be_flushed_is_no_error_and_a_file_is_one(tmp_path, monkeypatch):
    def fails(descriptor):
        raise OSError(errno.EINVAL, "cannot be flushed")

    monkeypatch.setattr(os, "fsync", fails)
    flush(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot be flushed"):
        flush(tmp_path / "file")


def test_a_private_file_is_private_from_its_first_moment(tmp_path):
    os.umask(0)
    path, seen = tmp_path / "file", []

    def looks(temporary):
        seen.append(mode_of(temporary))
        temporary.write_text("secret")

    write_whole(path, looks)
    assert [*seen, mode_of(path)] == [0o600, 0o600]
    path.chmod(0o644)
    write_whole(path, looks)
    assert [*seen, mode_of(path)] == [0o600] * 3


def test_a_file_for_others_follows_the_umask_and_a_replaced_one_keeps_its_mode(tmp_path):
    path = tmp_path / "file"
    write_whole(path, "content", for_others=True)
    assert mode_of(path) == 0o644
    for mode in (0o600, 0o664, 0o444):
        path.chmod(mode)
        write_whole(path, "again", for_others=True)
        assert mode_of(path) == mode


def test_two_writers_at_once_leave_one_whole_file(tmp_path):
    path, temporaries = tmp_path / "file", []
    both_write = threading.Barrier(2)

    def writer(letter):
        def write(temporary):
            temporaries.append(temporary)
            temporary.write_text(letter * 100)
            both_write.wait(20)
            temporary.write_text(letter * 1000)

        return threading.Thread(target=write_whole, args=(path, write))

    threads = [writer("a"), writer("b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(set(temporaries)) == 2
    assert path.read_text() in ("a" * 1000, "b" * 1000)
    assert list(tmp_path.iterdir()) == [path]


def test_without_overwrite_the_first_file_stays(tmp_path):
    path = tmp_path / "file"
    write_whole(path, "first", overwrite=False)
    with pytest.raises(FileExistsError):
        write_whole(path, "second", overwrite=False)
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_nlink == 1


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link, file = tmp_path / "link", tmp_path / "elsewhere" / "file"
    link.symlink_to(file)
    for text in ("first", "second"):
        write_whole(link, text)
        assert file.read_text() == text
        assert link.is_symlink()


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    thread = threading.Thread(target=lambda: read.append(pipe.read_text()))
    thread.start()
    write_whole(pipe, "content")
    thread.join(20)
    assert read == ["content"]
    assert pipe.is_fifo()


def test_what_a_kill_left_is_removed_by_name(tmp_path):
    for name in (".file.0123456789abcdef.tmp", ".other.0123456789abcdef.tmp", "file", "users.tmp"):
        (tmp_path / name).touch()
    remove_unfinished(tmp_path, "file")
    assert {path.name for path in tmp_path.iterdir()} == {".other.0123456789abcdef.tmp", "file", "users.tmp"}
    remove_unfinished(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "users.tmp"}


# what parties keep


def checkpoint(folder):
    kept = Checkpoints(folder, party="A", federation="f", scheduled=range(10))
    kept.go_back("run", 0)
    kept.remember(0, {"w": torch.ones(2)})
    kept.write(0)


def released(folder):
    Released(folder, "run").add(["a"], torch.ones(1, 2))


def test_state_rows_and_keys_are_for_their_owner_alone(tmp_path):
    checkpoint(tmp_path / "checkpoints")
    released(tmp_path / "released")
    key, certificate = certificates.write(tmp_path / "keys", "A", days=1, passphrase=None)
    found = {path.name: mode_of(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert found.pop(certificate.name) == 0o644
    assert set(found) == {"step-00000000.safetensors", "released.safetensors", key.name}
    assert set(found.values()) == {0o600}


def test_data_of_a_federation_on_one_machine_is_for_its_owner_alone(tmp_path):
    local = small(tmp_path)
    private = [path for path in tmp_path.rglob("*") if path.suffix == ".safetensors" or path.name.endswith(".key.pem")]
    assert len(private) == 2 + 1 + 4  # holdings, labels, keys
    assert {mode_of(path) for path in private} == {0o600}
    assert mode_of(local.federation_toml) == 0o600  # on one machine it is nobody else's either


def test_a_ledger_and_a_message_log_are_for_their_owner_alone(tmp_path):
    os.umask(0)
    ledger, log = Ledger(tmp_path / "ledger.jsonl"), MessageLog(tmp_path / "messages.jsonl")
    ledger.charge(Release("r", 0, "rows", "row", ("train",), adjacency="zero_out", noise_multiplier=2.0))
    log.add("start", message(), PAYLOAD, KEY, phase="forward", step=3)
    ledger.close()
    log.close()
    assert mode_of(tmp_path / "ledger.jsonl") == mode_of(tmp_path / "messages.jsonl") == 0o600
    assert mode_of(tmp_path / "messages.keys.jsonl") == 0o600


@pytest.mark.parametrize("keep", [checkpoint, released])
def test_what_a_party_keeps_is_flushed(tmp_path, flushed, keep):
    keep(tmp_path)
    assert len(flushed) == 2
    assert flushed[1] == tmp_path


def test_a_ledgers_half_written_count_is_removed_when_it_is_opened_again(tmp_path):
    half, other = (tmp_path / f".{name}.0123456789abcdef.tmp" for name in ("ledger.jsonl.count", "of-somebody-else"))
    half.touch()
    other.touch()
    Ledger(tmp_path / "ledger.jsonl").close()
    assert not half.exists()
    assert other.exists()
