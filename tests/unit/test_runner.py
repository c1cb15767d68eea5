"""Kept trainings: what determines them, and what is kept of those that values are chosen with."""

import json
from dataclasses import replace

import pytest

from vfgnn.data import datasets
from vfgnn.errors import DataError
from vfgnn.experiments import arxiv, runner
from vfgnn.experiments.runner import SEARCHED_FROM, Store, Task, make_task, run_task
from vfgnn.settings import Preset

QUICK = {"epochs": 2, "dim": 8, "layers": 2, "publish": "needed"}


def task(where="federated", seed=0, *, holder=None, edge_split="undirected", **changes):
    settings = Preset("paper").settings(overrides={**QUICK, **changes})
    return make_task(settings, dataset="citeseer", where=where, seed=seed, holder=holder, edge_split=edge_split)


def test_what_was_kept_before_there_was_a_second_reading_is_found():
    """The key of a training as an earlier version wrote it."""
    one = Task("cora", "federated", 2, None, (0.9, 0.1), 3, '{"dim": 32}')
    assert one.key == "95da6061e31df39c2f2e500c4dfb5d04"
    assert replace(one, edge_split="directed").key != one.key


def test_both_readings_share_pooled_trainings_alone():
    def split(where, holder=None):
        return [task(where, holder=holder, edge_split=reading).key for reading in ("undirected", "directed")]

    assert len(set(split("pooled"))) == 1
    assert len(set(split("federated"))) == len(set(split("isolated", 0))) == 2


def test_the_reading_is_what_is_trained_on(monkeypatch):
    seen = []
    monkeypatch.setattr(runner, "partition", lambda *_, **how: seen.append(how["edge_split"]) or [])
    data = datasets.load("citeseer")
    for reading in ("undirected", "directed"):
        runner._holdings(task(edge_split=reading), data)
    assert seen == ["undirected", "directed"]


def test_nothing_of_test_nodes_is_kept_where_values_are_chosen(tmp_path):
    """Of every training on such a partition, arXiv's included."""
    store, effort = Store(tmp_path), runner.Effort("2026-11-16T12:00:00+00:00", "0.1.0", 2.0, 1.5)
    chosen, reported = task(seed=SEARCHED_FROM), task(seed=0)
    for one in (chosen, reported):
        store.put(one, run_task(one), effort)
    assert "test" not in json.loads((tmp_path / f"{chosen.key}.json").read_text())["result"]
    assert "test_accuracy" not in store.get(chosen) and "test_accuracy" in store.get(reported)
    assert {one.seed for one in arxiv.search_tasks()} == {SEARCHED_FROM}


def test_a_record_of_trainings_stands_for_them(tmp_path):
    """On another machine, with another folder; what that one has trained since is added."""
    effort = runner.Effort("2026-11-16T12:00:00+00:00", "0.1.0", 2.0, 1.5)
    first, second = task(seed=0), task(seed=1)
    results = {
        one: {"val_accuracy": 0.5, "test_accuracy": 0.5, "best_epoch": 1, "epochs": 2} for one in (first, second)
    }
    here, record = Store(tmp_path / "here"), tmp_path / "record.json"
    here.put(first, results[first], effort)
    (tmp_path / "here" / "timing-1.json").write_text("{}")
    assert here.write_record(record) == 1
    there = Store(tmp_path / "there", record)
    assert there.get(first) == results[first] and there.effort(first) == effort and there.get(second) is None
    assert runner.run_all([first], there) == {first: results[first]}
    there.put(second, results[second], effort)
    assert there.write_record(record) == 2
    assert Store(tmp_path / "empty", record).get(second) == results[second]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}', b"\xff"])
def test_what_is_no_record_of_trainings_is_refused(content, tmp_path):
    (tmp_path / "record.json").write_bytes(content)
    with pytest.raises(DataError, match="record of trainings"):
        Store(tmp_path / "here", tmp_path / "record.json")


@pytest.mark.parametrize(("where", "holder"), [("isolated", 1), ("pooled", None)])
def test_one_holders_batches_are_those_of_a_federation_of_one(where, holder, monkeypatch):
    monkeypatch.setattr(runner, "CentralTraining", None)
    result = run_task(task(where, holder=holder, batch_rows=50, fanout=(3, 2)))
    assert 0 <= result["test_accuracy"] <= 1 and result["epochs"] == 2
