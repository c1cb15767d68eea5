"""`vfgnn reproduce all` from kept trainings to the page: nothing is trained here."""

import json

import pytest
from typer.testing import CliRunner

from vfgnn.cli.main import app
from vfgnn.experiments import parts
from vfgnn.experiments.baseline import Measurement, Timing
from vfgnn.experiments.runner import Effort, Store


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
    assert record["total"]["trainings"] < sum(work["trainings"] for work in record["work"])
    assert len(record["timings"]) == 6 and "SecureGNN" in result.output
    assert "<!doctype html>" in (kept / "page" / "reproduction.html").read_text()
    named = (kept / "docs" / "reproduction.md").read_text()
    pictures = list((kept / "docs" / "reproduction").iterdir())
    assert pictures and all(f"reproduction/{picture.name}" in named for picture in pictures)


def test_timings_are_kept(kept):
    arguments = ["reproduce", "baseline", "--seeds", "1", "--run-dir", str(kept / "runs")]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert len(list((kept / "runs").glob("timing-*.json"))) == 6
    assert CliRunner().invoke(app, arguments).output == first.output
