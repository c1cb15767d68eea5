"""Noised rows of new nodes: what was released once is there after a restart, and of no other model."""

import pytest
import torch

from vfgnn.errors import CheckpointRefused
from vfgnn.party.released import Released


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
