"""A checkpoint comes back whole, or is refused by name."""

from dataclasses import dataclass

import pytest
import torch

from vfgnn import checkpoint
from vfgnn.checkpoint import KEPT, Checkpoints, RoleState, nest, part
from vfgnn.errors import CheckpointRefused


def state(value=0.0):
    shared = torch.arange(6.0).reshape(2, 3)
    return {
        "w": torch.full((2, 3), value),
        "best/w": shared,
        "also/w": shared,  # the same memory twice
        "count": torch.tensor(3),
        "nothing": torch.empty(0, 3, dtype=torch.float64),
    }


def kept(folder, **changes):
    about = {"party": "A", "federation": "f", "scheduled": range(0, 1000, 10), **changes}
    return Checkpoints(folder, **about)


def written(folder, *steps):
    made = kept(folder)
    made.go_back("run", 0)
    for step in steps:
        made.remember(step, state(step))
        made.write(step)
    return made


def test_what_is_written_is_what_is_read(tmp_path):
    written(tmp_path, 10)
    again = kept(tmp_path)
    assert (again.run, again.steps) == ("run", [10])
    for name, tensor in state(10).items():
        assert torch.equal(again.load(10)[name], tensor)
    assert not list(tmp_path.glob("*.tmp"))


def test_parts_and_wholes():
    nested = nest("a", {"b/c": torch.ones(1)})
    assert list(nested) == ["a/b/c"]
    assert list(part(nested, "a")) == ["b/c"]
    assert part(nested, "a/b/") == {}


def test_the_last_two_of_the_schedule_stay_and_one_beside_it(tmp_path):
    made = written(tmp_path, 0, 10, 20, 23, 30, 34, 35)
    assert kept(tmp_path).steps == [20, 30, 35]
    assert len(made.steps) == KEPT + 1 + 1  # and 34 in memory


def test_going_back_forgets_what_came_after(tmp_path):
    made = written(tmp_path, 10, 20)
    made.go_back("run", 10)
    assert made.steps == [10]
    made.go_back("another run", 0)
    assert made.steps == []
    assert kept(tmp_path).steps == []


def test_without_a_remembered_step_nothing_is_written(tmp_path):
    assert kept(tmp_path).write() is None
    assert list(tmp_path.iterdir()) == []


def break_file(path, how):
    content = bytearray(path.read_bytes())
    if how == "truncated":
        content = content[:-5]
    elif how == "empty":
        content = bytearray()
    else:
        content[-3] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("how", "says"), [("truncated", "cannot be read"), ("empty", "cannot be read"), ("one bit", "was altered")]
)
def test_a_broken_file_is_refused_by_name(tmp_path, how, says):
    written(tmp_path, 10)
    path = tmp_path / "step-00000010.safetensors"
    break_file(path, how)
    with pytest.raises(CheckpointRefused, match=says) as caught:
        kept(tmp_path)
    assert path.name in str(caught.value)


@pytest.mark.parametrize("field", ["party", "federation"])
def test_a_foreign_file_is_refused_by_name(tmp_path, field):
    written(tmp_path, 10)
    with pytest.raises(CheckpointRefused, match=f"another {field}"):
        kept(tmp_path, **{field: "other"})


def test_a_renamed_file_is_refused(tmp_path):
    written(tmp_path, 10)
    (tmp_path / "step-00000010.safetensors").rename(tmp_path / "step-00000020.safetensors")
    with pytest.raises(CheckpointRefused, match="another step"):
        kept(tmp_path)


def test_files_of_two_runs_are_refused(tmp_path):
    written(tmp_path, 10)
    path = tmp_path / "step-00000010.safetensors"
    content = path.read_bytes()
    path.unlink()
    other = kept(tmp_path)
    other.go_back("other", 0)
    other.remember(20, state())
    other.write(20)
    path.write_bytes(content)
    with pytest.raises(CheckpointRefused, match="two runs"):
        kept(tmp_path)


@dataclass(frozen=True, repr=False)
class Inner(RoleState):
    rows: torch.Tensor
    rate: float


@dataclass(frozen=True, repr=False)
class Outer(RoleState):
    weights: dict[str, torch.Tensor]
    count: int
    inner: Inner | None
    maybe: torch.Tensor | None = None


def test_a_typed_state_comes_back_as_it_went():
    state = Outer({"a/b": torch.arange(3)}, 7, Inner(torch.tensor([4, 2]), 0.1))
    back = Outer.from_tensors(state.to_tensors())
    assert torch.equal(back.weights["a/b"], torch.arange(3))
    assert (back.count, back.inner.rate, back.inner.rows.tolist(), back.maybe) == (7, 0.1, [4, 2], None)
    assert Outer.from_tensors(Outer({}, 0, None).to_tensors()) == Outer({}, 0, None)


def test_a_state_that_lacks_something_is_refused():
    with pytest.raises(CheckpointRefused, match="lacks something"):
        Outer.from_tensors({"weights/a": torch.zeros(1)})


def test_a_state_never_shows_its_content():
    assert repr(Inner(torch.tensor([31337]), 0.5)) == "Inner()"


def test_a_checkpoint_of_the_format_before_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", "vfgnn checkpoint 1")
    old = checkpoint.Checkpoints(tmp_path, party="A", federation="f", scheduled=[0])
    old.go_back("run", 0)
    old.remember(0, {"refreshes": torch.tensor(1)})
    old.write(0)
    monkeypatch.undo()
    with pytest.raises(CheckpointRefused, match="another format"):
        checkpoint.Checkpoints(tmp_path, party="A", federation="f", scheduled=[0])
