"""What a party records of its own view: who can read it, what is kept, and that a changed file is refused."""

import json
import stat

import pytest
import torch

from vfgnn import view_file
from vfgnn.errors import ViewRefused
from vfgnn.messages import Declared, Kind
from vfgnn.view_file import ABOUT, FIRST, LENGTH, ViewRecorder, key_path, most_bytes, read_view, view_folder

KIND = Kind("rows", "the rows")
SECRET = torch.arange(0x41424344, 0x41424344 + 40, dtype=torch.int64)


def declared(payload, sender="A", receiver="server"):
    return Declared(KIND, sender, receiver, payload.dtype, tuple(payload.shape))


def record(folder, payloads, *, close=True):
    recorder = ViewRecorder(folder)
    for number, payload in enumerate(payloads):
        recorder.add("start", declared(payload), payload, phase="forward", step=number)
    if close:
        recorder.close()
    return recorder


def file_of(folder, number=1):
    return view_folder(folder) / f"{number:04d}.view"


def read(folder, *, finished=True):
    return list(read_view(folder, finished=finished))


@pytest.fixture
def small_frames(monkeypatch):
    """So that a message has several."""
    monkeypatch.setattr(view_file, "FRAME", 256)  # and a description still fits into one


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float64, torch.uint8])
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (0, 4)])
def test_a_message_comes_back_as_it_was(tmp_path, dtype, shape):
    payload = torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)
    record(tmp_path, [payload])
    (found,) = read(tmp_path)
    assert found.payload.dtype == dtype
    assert torch.equal(found.payload, payload)
    assert found.link == ("rows", "A", "server")
    assert (found.about["phase"], found.about["step"]) == ("forward", 0)


def test_the_first_messages_and_the_last_one_are_kept(tmp_path):
    record(tmp_path, [torch.tensor([n]) for n in range(10)])
    assert [int(one.payload) for one in read(tmp_path)] == [*range(FIRST), 9]


def test_what_its_owner_changes_later_stays_as_it_was(tmp_path):
    payload = torch.zeros(4)
    recorder = record(tmp_path, [payload] * (FIRST + 1), close=False)
    payload += 1
    recorder.close()
    assert all(not one.payload.any() for one in read(tmp_path))


def test_size_is_bounded_beforehand(tmp_path):
    payload = torch.zeros(50, 8)
    record(tmp_path, [payload] * 30)
    told = most_bytes("A", [declared(payload)] * 30)
    assert (FIRST + 1) * payload.nbytes < file_of(tmp_path).stat().st_size <= told
    assert told == ABOUT + (FIRST + 1) * (payload.nbytes + ABOUT)
    assert most_bytes("B", [declared(payload)]) == ABOUT


def test_only_the_owner_can_read_it_and_nothing_stands_in_it_in_the_clear(tmp_path):
    record(tmp_path, [SECRET])
    content = file_of(tmp_path).read_bytes()
    assert SECRET.numpy().tobytes()[:16] not in content
    assert b"server" not in content
    for path, mode in ((file_of(tmp_path), 0o600), (key_path(tmp_path), 0o600), (view_folder(tmp_path), 0o700)):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_two_files_of_one_view_have_keys_of_their_own(tmp_path):
    """The same nonces are used in both: under one key, the difference of the files would be that of their contents."""
    for _ in range(2):
        record(tmp_path, [SECRET])
    one, other = (file_of(tmp_path, number).read_bytes() for number in (1, 2))
    assert len(one) == len(other)
    assert one[view_file.SEED_BYTES + LENGTH :][:64] != other[view_file.SEED_BYTES + LENGTH :][:64]
    assert [torch.equal(message.payload, SECRET) for message in read(tmp_path)] == [True, True]


def test_another_key_opens_nothing(tmp_path):
    record(tmp_path, [SECRET])
    key_path(tmp_path).write_text("00" * 32)
    with pytest.raises(ViewRefused, match="altered"):
        read(tmp_path)
    key_path(tmp_path).unlink()
    with pytest.raises(ViewRefused, match="no key"):
        read(tmp_path)


def frames_of(content):
    """The salt, and each frame with its length."""
    at, found = view_file.SEED_BYTES, [content[: view_file.SEED_BYTES]]
    while at < len(content):
        end = at + LENGTH + int.from_bytes(content[at : at + LENGTH], "little")
        found.append(content[at:end])
        at = end
    return found


def test_any_changed_byte_is_found(tmp_path):
    record(tmp_path, [torch.tensor([7])])
    path, content = file_of(tmp_path), file_of(tmp_path).read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(ViewRefused):
            read(tmp_path)


@pytest.mark.parametrize("change", ["swapped", "left out", "twice", "of another file", "after the end"])
def test_frames_that_do_not_follow_each_other_are_refused(tmp_path, small_frames, change):
    record(tmp_path, [SECRET, SECRET + 1])
    record(tmp_path, [SECRET, SECRET + 1])
    assert len(read(tmp_path)) == 4
    path, (salt, *frames) = file_of(tmp_path), frames_of(file_of(tmp_path).read_bytes())
    assert len(frames) == 7  # two messages, each a description and two frames of words; the end
    other = frames_of(file_of(tmp_path, 2).read_bytes())[1:]
    changed = {
        "swapped": [frames[0], frames[2], frames[1], *frames[3:]],
        "left out": [frames[0], *frames[2:]],
        "twice": [frames[0], frames[1], frames[1], *frames[2:]],
        "of another file": [frames[0], other[1], *frames[2:]],
        "after the end": [*frames, frames[-1]],
    }[change]
    path.write_bytes(salt + b"".join(changed))
    with pytest.raises(ViewRefused, match="altered"):
        read(tmp_path)


def test_a_file_that_was_cut_is_refused_where_the_run_came_to_its_end(tmp_path, small_frames):
    record(tmp_path, [SECRET, SECRET + 1])
    path, content = file_of(tmp_path), file_of(tmp_path).read_bytes()
    for end in range(0, len(content), 7):
        path.write_bytes(content[:end])
        with pytest.raises(ViewRefused, match="cut"):
            read(tmp_path)
        assert len(read(tmp_path, finished=False)) <= 2  # of a killed process: what was whole


def test_a_killed_process_leaves_the_first_messages_and_the_next_one_goes_on(tmp_path):
    record(tmp_path, [torch.tensor([n]) for n in range(10)], close=False)
    record(tmp_path, [torch.tensor([n]) for n in range(5, 12)])
    assert [int(one.payload) for one in read(tmp_path)] == [0, 1, 2, 5, 6, 7, 11]


def test_a_run_that_recorded_nothing_is_refused_by_name(tmp_path):
    with pytest.raises(ViewRefused, match="no recorded view") as refused:
        read(tmp_path)
    assert "record_view = true" in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("description", [b"", b"7", b"[]", b"{}", b"[" * 10_000, b"\xff"])
@pytest.mark.parametrize("part", [None, {"shape": [-1]}, {"shape": 7}, {"dtype": []}, {"kind": None}, {"shape": [3]}])
def test_a_description_that_cannot_be_is_refused_by_name(tmp_path, monkeypatch, description, part):
    """Whoever has the key can write any: a party that shows its folder to an auditor, or an older program."""
    about = {"kind": "rows", "sender": "A", "receiver": "server", "dtype": "float32", "shape": [1]}
    wrong = description if part is None else json.dumps({**about, **part}).encode()
    recorder = ViewRecorder(tmp_path)
    recorder._frame(wrong)
    recorder._frame(torch.zeros(1).numpy().tobytes())
    recorder.close()
    with pytest.raises(ViewRefused):
        read(tmp_path)
