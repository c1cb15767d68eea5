"""What a holder keeps of new nodes by their ids: there after a restart, and of no other model."""

import pytest
import torch

from vfgnn.errors import CheckpointRefused
from vfgnn.party.released import AskedById, Released


def test_rows_come_back_by_id_after_a_restart(tmp_path):
    released = Released(tmp_path, "run")
    assert released.of(["a", "b"]) == [None, None]
    released.add(["a", "b"], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    again = Released(tmp_path, "run")
    again.add(["c \N{SNOWMAN}\0", "a"], torch.tensor([[5.0, 6.0], [9.0, 9.0]]))
    found = Released(tmp_path, "run").of(["b", "a", "nobody", "c \N{SNOWMAN}\0"])
    assert [None if row is None else row.tolist() for row in found] == [[3.0, 4.0], [1.0, 2.0], None, [5.0, 6.0]]
    assert [path.name for path in tmp_path.iterdir()] == [Released.kept]


def test_rows_of_another_model_are_not_sent(tmp_path):
    Released(tmp_path, "run").add(["a"], torch.ones(1, 2))
    assert Released(tmp_path, "other run").of(["a"]) == [None]


def test_nothing_new_writes_nothing(tmp_path):
    Released(tmp_path, "run").add([], torch.empty(0, 2))
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path):
    (tmp_path / Released.kept).write_bytes(b"nonsense")
    with pytest.raises(CheckpointRefused, match="cannot be read"):
        Released(tmp_path, "run")


def test_what_a_pass_tells_is_kept_by_id_until_another_one_begins(tmp_path):
    """Of another alignment the same ids stand elsewhere, and some have gone."""
    AskedById(tmp_path, "run").put(["a", "b", "c"], torch.tensor([[1, 0], [0, 1], [1, 1]], dtype=torch.uint8), "pass")
    asked = AskedById(tmp_path, "run")
    assert asked.last.start == "pass"
    again = asked.last.among(["z", "c", "a", "y"])
    assert again.rows.tolist() == [1, 2]
    assert again.made.tolist() == [[1, 1], [1, 0]]
    assert len(asked.last.among(["z"]).rows) == 0
    assert AskedById(tmp_path, "other run").last is None
    asked.clear()
    asked.clear()
    assert AskedById(tmp_path, "run").last is None
