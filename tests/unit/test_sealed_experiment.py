"""`vfgnn reproduce sealed`: which trainings it needs, what is kept of them, and what its rows say."""

import json

import pytest
from typer.testing import CliRunner

from vfgnn.cli.main import app
from vfgnn.data import datasets
from vfgnn.errors import ConfigError
from vfgnn.experiments import sealed
from vfgnn.experiments.catalogue import BEST
from vfgnn.experiments.runner import Effort, Store, run_task
from vfgnn.experiments.sealed import SealedCell, Wanted, sealed_rows, sealed_settings, sealed_tasks
from vfgnn.experiments.splits import PER_CLASS, REPORTED_FROM, redrawn
from vfgnn.experiments.tables import compare_tasks, models_named
from vfgnn.report.sealed import sealed_figure, sealed_grids
from vfgnn.settings import Preset

WANTED = Wanted(("citeseer",), (2, 4), seeds=2, draws=2)


def result(accuracy, **also):
    return {"val_accuracy": 0.7, "test_accuracy": accuracy, "best_epoch": 4, "epochs": 4, **also}


def test_the_papers_protocol_is_trained_as_for_its_own_tables():
    """So what `reproduce compare` has kept is not trained again."""
    groups = sealed_tasks(WANTED)[SealedCell("citeseer", 2, "split")]
    compared = compare_tasks(["citeseer"], 2, holders=2, models=models_named([BEST]))
    assert [task.key for [task] in groups] == [task.key for task in compared]


def test_every_protocol_has_its_trainings():
    tasks = sealed_tasks(WANTED)
    assert [len(tasks[SealedCell("citeseer", 4, one)]) for one in ("sealed", "isolated", "split")] == [2, 2, 2]
    assert [len(group) for group in tasks[SealedCell("citeseer", 4, "isolated")]] == [4, 4]
    assert len(tasks[SealedCell("citeseer", 1, "pooled")]) == 1
    drawn = [task for [task] in tasks[SealedCell("citeseer", 2, "sealed", drawn=True)]]
    assert [task.draw for task in drawn] == [REPORTED_FROM, REPORTED_FROM + 1]
    keys = [task.key for groups in tasks.values() for group in groups for task in group]
    assert len(keys) == len(set(keys))


def test_a_draw_has_other_nodes_to_train_with_and_the_same_to_test_on():
    data = datasets.load("citeseer")
    drawn = redrawn(data, REPORTED_FROM)
    assert (drawn.train_mask != data.train_mask).any() and (drawn.test_mask == data.test_mask).all()
    assert not (drawn.test_mask & (drawn.train_mask | drawn.val_mask)).any()
    assert not (drawn.train_mask & drawn.val_mask).any() and int(drawn.train_mask.sum()) == 6 * PER_CLASS


def test_rows_are_means_over_holders_then_seeds(tmp_path):
    tasks = sealed_tasks(WANTED)
    opened = {"what": "classes", "rows": 5327}
    flat = [(cell, task) for cell, groups in tasks.items() for group in groups for task in group]
    results = {
        task: result(0.7 + 0.1 * task.seed + 0.02 * (task.holder or 0), **({"opened": opened} if i == 0 else {}))
        for i, (_, task) in enumerate(flat)
    }
    rows = {(row.protocol, row.holders, row.split): row for row in sealed_rows(tasks, results)}
    alone = rows["isolated", 4, "public"]
    assert alone.mean == pytest.approx(0.78) and alone.n == 2  # 0.73 and 0.83
    first = rows["sealed", 2, "public"].to_json()
    assert first["opened"] == opened and first["steps"] == 4 and first["paper"] == 0.695
    assert rows["pooled", 1, "public"].paper == 0.700 and rows["split", 4, "public"].steps is None
    texts = [grid.to_markdown() for grid in sealed_grids(list(rows.values()))]
    assert "0.750 ± 0.071" in texts[0] and "2 other draws" in texts[1]
    sealed_figure(list(rows.values()), tmp_path / "sealed.svg")
    assert (tmp_path / "sealed.svg").stat().st_size > 1000


def test_rows_of_what_is_kept_are_those_with_all_their_trainings(tmp_path):
    tasks, store = sealed_tasks(WANTED), Store(tmp_path)
    alone = tasks[SealedCell("citeseer", 2, "isolated")]
    for task in (*alone[0], alone[1][0], tasks[SealedCell("citeseer", 1, "pooled")][0][0]):
        store.put(task, result(0.7), Effort("2026-11-16T12:00:00+00:00", "0.1.0", 2.0, 1.5))
    rows = sealed_rows(tasks, sealed.kept_of(sealed.notes_of(tasks), store))
    assert [row.protocol for row in rows] == ["pooled"]
    out = tmp_path / "sealed.json"
    words = ["reproduce", "sealed", "--datasets", "citeseer", "--holders", "2,4", "--seeds", "2", "--kept-only"]
    done = CliRunner().invoke(app, [*words, "--run-dir", str(tmp_path), "--json", str(out)])
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text())["rows"] == [row.to_json() for row in rows]


@pytest.mark.slow
def test_a_federation_reaches_what_the_model_reaches_in_one_place():
    tasks = sealed_tasks(Wanted(("citeseer",), (2,), ("sealed", "pooled"), seeds=1))
    [[federated], [pooled]] = [group[0] for group in tasks.values()]
    found = run_task(federated)
    assert abs(found["test_accuracy"] - run_task(pooled)["test_accuracy"]) <= 0.003
    assert found["opened"]["what"] == "classes" and found["opened"]["trainings"] == 1


def test_what_cannot_be_asked_for_is_refused():
    with pytest.raises(ConfigError, match="no federation"):
        Wanted(("cora",), (1, 2))
    with pytest.raises(ConfigError, match="unknown protocol"):
        sealed.protocols_named(["sealed", "open"])


def test_what_was_chosen_for_a_data_set_lies_over_the_defaults(monkeypatch):
    preset = Preset("best")
    monkeypatch.setitem(preset._chosen, "cora", {"sealed": {"sealed": {"hops": 7}}, "confidence": {"layers": 3}})
    asked = {"protocol": "sealed", "sealed": {"steps": 3}}
    found = preset.settings(dataset="cora", model="pooled", overrides=asked)
    assert (found.sealed.hops, found.sealed.steps, found.sealed.teleport) == (7, 3, 0.1)
    assert preset.settings(dataset="cora", overrides={"sealed": {"steps": 3}}).layers == 3
    assert preset.settings(dataset="cora").sealed.hops is None
    assert preset.settings(dataset="pubmed", overrides={"protocol": "sealed", "sealed": {"hops": 5}}).sealed.hops == 5


def test_nothing_of_the_papers_protocol_determines_a_sealed_training():
    settings = sealed_settings("cora")
    assert settings.protocol == "sealed" and settings.model_dump(exclude={"protocol", "sealed"}) == type(
        settings
    )().model_dump(exclude={"protocol", "sealed"})
