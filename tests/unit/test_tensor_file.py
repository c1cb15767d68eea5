"""Our safetensors files are those that safetensors itself makes, and a kill leaves nothing of them behind."""

import os
import signal
import subprocess
import sys

import pytest
import safetensors.torch
import torch

from tests.unit.test_checkpoint import kept, state, written
from vfgnn.errors import DataError
from vfgnn.tensor_file import DTYPES, read_tensors, write_tensors


def some_tensors():
    return {
        **{str(dtype): torch.arange(6).reshape(2, 3).to(dtype) for dtype in DTYPES},
        "number": torch.tensor(3),
        "nothing": torch.empty(0, 3, dtype=torch.float64),
        'na"me \N{SNOWMAN}': torch.ones(1),
        "turned": torch.arange(6.0).reshape(2, 3).t(),
    }


def test_the_bytes_are_those_of_safetensors(tmp_path):
    ours = some_tensors()
    write_tensors(tmp_path / "file", ours, {"a": 1})
    theirs = {name: tensor.contiguous() for name, tensor in ours.items()}
    assert (tmp_path / "file").read_bytes() == safetensors.torch.save(theirs, {"vfgnn": '{"a": 1}'})


def test_what_is_written_is_what_is_read(tmp_path):
    write_tensors(tmp_path / "file", some_tensors(), {"a": ["\N{SNOWMAN}", None]})
    about, found = read_tensors(tmp_path / "file", "the file", DataError)
    assert about == {"a": ["\N{SNOWMAN}", None]}
    assert found.keys() == some_tensors().keys()
    for name, tensor in some_tensors().items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor), name


def test_a_large_tensor_is_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("vfgnn.tensor_file.CHUNK", 64)
    tensors = {"a": torch.arange(1000), "b": torch.rand(33)}
    write_tensors(tmp_path / "file", tensors, {})
    _, found = read_tensors(tmp_path / "file", "the file", DataError)
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize(
    "header",
    [
        b'{"a":{"dtype":"F32","shape":[1099511627776,1099511627776,1099511627776,0],"data_offsets":[0,0]}}',
        b'{"__metadata__":{"vfgnn":"[1]"}}',
        b'{"__metadata__":{"vfgnn":"{"}}',
        b"{}",
        b"\xff\xff",
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(tmp_path, header):
    (tmp_path / "file").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(DataError, match="the file"):
        read_tensors(tmp_path / "file", "the file", DataError, names=("rows",))


# A real process that is killed (-9) while half of a checkpoint is on the disk; `write_tensors` or what was before it.
HALF = """
import os, sys, time, torch
from pathlib import Path
from tests.unit.test_checkpoint import kept
import vfgnn.writing

def stop(path):  # the content is in the file, which has not taken its place
    os.write(1, b"half\\n")
    time.sleep(60)

vfgnn.writing.flush = stop
if sys.argv[2] == "safetensors":  # as it was: their writer, of which we know only that it writes beside the path
    import ctypes, safetensors.torch, vfgnn.checkpoint
    def write(path, state, about):
        (path.parent / ".tmpMSjvLF").write_bytes(b"0" * 100)  # openat(".tmpMSjvLF", O_EXCL, 0600), then renameat
        stop(path)
    vfgnn.checkpoint.write_tensors = write
made = kept(Path(sys.argv[1]))
made.go_back("run", 0)
made.remember(10, {"w": torch.ones(1000)})
made.write(10)
"""


@pytest.mark.parametrize("writer", ["ours", "safetensors"])
def test_a_kill_while_a_checkpoint_is_written_leaves_nothing_after_the_next_start(tmp_path, writer):
    written(tmp_path, 0)
    child = subprocess.Popen([sys.executable, "-c", HALF, str(tmp_path), writer], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"half\n"
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 2  # the last whole one, and half of the next
    assert kept(tmp_path).steps == [0]
    assert {path.name for path in tmp_path.iterdir()} == {"step-00000000.safetensors"}


def test_safetensors_writes_nothing_itself(tmp_path, monkeypatch):
    """Its own writer has a temporary file whose name nobody knows afterwards."""
    seen = []
    watch = lambda name, arguments: seen.append(arguments) if name == "open" else None  # noqa: E731
    on = [True]
    sys.addaudithook(lambda name, arguments: watch(name, arguments) if on[0] else None)
    monkeypatch.setattr(safetensors.torch, "serialize_file", None)
    written(tmp_path, 10)
    on[0] = False
    made = {str(path) for path, mode, _ in seen if isinstance(mode, str) and "w" in mode}
    assert len(made) == 1
    assert next(iter(made)).endswith(".tmp")
    assert torch.equal(kept(tmp_path).load(10)["w"], state(10)["w"])


def test_writing_takes_no_second_copy_of_the_state(tmp_path):
    """A state of 64 MB: less than half of it more, at the highest point."""
    script = """
import sys, torch
from pathlib import Path
from vfgnn.party.folder import peak_bytes
from vfgnn.tensor_file import write_tensors
state = {"w": torch.ones(16_000_000)}
before = peak_bytes()
write_tensors(Path(sys.argv[1]), state, {})
print(peak_bytes() - before)
"""
    found = subprocess.run([sys.executable, "-c", script, tmp_path / "file"], capture_output=True, check=True)
    assert int(found.stdout) < 32_000_000
    assert (tmp_path / "file").stat().st_size > 64_000_000
