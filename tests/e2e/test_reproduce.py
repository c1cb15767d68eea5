"""`vfgnn reproduce all` from kept trainings to the page: nothing is trained here."""

import json

import pytest
from typer.testing import CliRunner

from vfgnn.cli.main import app
from vfgnn.experiments import arxiv, parts
from vfgnn.experiments.baseline import Measurement, Timing
from vfgnn.experiments.runner import SEARCHED_FROM, Effort, Store
from vfgnn.settings import Settings


@pytest.fixture
def kept(tmp_path, monkeypatch):
    store, effort = Store(tmp_path / "runs"), Effort("2026-11-16T12:00:00+00:00", "0.1.0", 2.0, 1.5)
    for part in parts.everything(1):
        for task in part.notes:
            store.put(task, {"val_accuracy": 0.8, "test_accuracy": 0.7, "best_epoch": 3, "epochs": 9}, effort)
    monkeypatch.setattr(
        Measurement,
        "measure",
        lambda self, data_dir: Timing(self.dataset, self.model, self.publish, self.features, 1.25, 10**6),
    )
    return tmp_path


def test_all_shows_and_writes_what_was_kept(kept):
    out = ["--json", "all.json", "--report", "page/reproduction.html", "--docs", "docs/reproduction.md"]
    paths = [str(kept / value) if not value.startswith("--") else value for value in out]
    result = CliRunner().invoke(app, ["reproduce", "all", "--seeds", "1", "--run-dir", str(kept / "runs"), *paths])
    assert result.exit_code == 0, result.output
    record = json.loads((kept / "all.json").read_text())
    assert {row["mean"] for row in record["rows"] if row["dataset"] != "arxiv"} == {0.7}
    assert {row["edge_split"] for row in record["rows"]} == {"undirected", "directed"}
    secure = {claim["reading"]: claim["verdict"] for claim in record["claims"] if claim["id"] == "q3-accuracy"}
    assert secure == {"undirected": "reproduced", "directed": "reproduced"}
    assert record["total"]["trainings"] < sum(work["trainings"] for work in record["work"])
    assert len(record["timings"]) == 6 and "SecureGNN" in result.output
    assert "<!doctype html>" in (kept / "page" / "reproduction.html").read_text()
    named = (kept / "docs" / "reproduction.md").read_text()
    pictures = list((kept / "docs" / "reproduction").iterdir())
    assert pictures and all(f"reproduction/{picture.name}" in named for picture in pictures)


def keep(store, task, *, accuracy):
    """As the runner keeps a training: nothing of test nodes where values are chosen."""
    result = {"val_accuracy": accuracy, "best_epoch": 3, "epochs": 9}
    if task.seed < SEARCHED_FROM:
        result["test_accuracy"] = accuracy
    store.put(task, result, Effort("2026-11-16T12:00:00+00:00", "0.1.0", 2.0, 1.5))


def test_arxiv_is_chosen_on_validation_then_taken_into_the_whole(kept):
    """Values are those of the point with the best validation accuracy; `all` shows what was kept of it, marked."""
    store = Store(kept / "runs")
    last = [points[-1] for points in arxiv.POINTS.values()]
    for task in arxiv.search_tasks():
        trained = Settings.model_validate(json.loads(task.settings))
        keep(store, task, accuracy=0.4 + 0.1 * ({key: getattr(trained, key) for key in last[0]} in last))
    searched = {task: store.get(task) for task in arxiv.search_tasks()}
    assert all(point in last for point, _ in arxiv.chosen_points(searched).values())
    for task, [row] in arxiv.row_tasks(searched).items():
        keep(store, task, accuracy=0.5 + 0.1 * (row.model.where == "federated"))
    runs = ["--run-dir", str(kept / "runs"), "--json", str(kept / "arxiv.json")]
    result = CliRunner().invoke(app, ["reproduce", "arxiv", *runs])
    assert result.exit_code == 0, result.output
    record = json.loads((kept / "arxiv.json").read_text())
    assert {row["dataset"] for row in record["rows"]} == {"arxiv_text"} and len(record["rows"]) == 10
    assert all(claim["judged_on"] == "arxiv_text" for claim in record["claims"]) and len(record["claims"]) == 9
    assert "test" not in json.dumps(record["chosen"])
    everything = ["reproduce", "all", "--seeds", "1", "--edge-split", "undirected", *runs]
    assert CliRunner().invoke(app, everything).exit_code == 0
    claims = [claim for claim in json.loads((kept / "arxiv.json").read_text())["claims"] if claim["judged_on"]]
    assert len(claims) == 9 and all(claim["found"].startswith("judged on arxiv_text") for claim in claims)


def test_edge_splits_are_named(kept):
    for text in ("half", "undirected,half", ""):
        result = CliRunner().invoke(app, ["reproduce", "compare", "--edge-split", text])
        assert result.exit_code != 0 and "undirected, directed" in str(result.exception)


def test_timings_are_kept(kept):
    arguments = ["reproduce", "baseline", "--seeds", "1", "--run-dir", str(kept / "runs")]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert len(list((kept / "runs").glob("timing-*.json"))) == 6
    assert CliRunner().invoke(app, arguments).output == first.output
