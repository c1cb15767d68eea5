"""examples/fraud/README.md, run as it stands."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean

import pytest

ROOT = Path(__file__).parents[2]


def shell(folder, script):
    """Commands of the page, as they stand; what they print."""
    (folder / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        ["bash", "-c", "set -euo pipefail\n" + script],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=850,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def record(folder):
    """Of the run that the label holder has there."""
    return json.loads((folder / "run.json").read_text())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_walk_through_runs_as_written(tmp_path):
    page = (ROOT / "examples" / "fraud" / "README.md").read_text()
    said = shell(tmp_path, "\n".join(re.findall(r"```sh\n(.*?)```", page, flags=re.S)))
    home = tmp_path / "fraud"
    (put_aside,) = [path for path in (home / "bank").glob("run-*") if path.is_dir()]
    sealed, split = record(put_aside), record(home / "bank" / "run")
    assert {sealed["state"], split["state"]} == {"finished"}
    assert set(sealed["outcome"]["scores"]) == {"accuracy", "f1"}  # nothing but classes was opened
    assert sealed["outcome"]["scores"]["f1"] > split["outcome"]["scores"]["f1"]
    assert split["outcome"]["scores"]["average_precision"] > 0.2
    with (home / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    with (home / "bank" / "accounts.csv").open() as file:
        assert len(rows) == len(list(csv.DictReader(file)))
    assert [row["status"] for row in rows].count("ok") == sealed["nodes"] == split["nodes"] < len(rows)
    assert set(rows[0]) == {"id", "status", "class"}
    assert "ready to run" in said and "to bank alone: classes" in said
    assert "not declared" not in (home / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sealed_finds_more_than_split_and_split_more_than_each_alone(tmp_path):
    """The comparison of the page on one split, by the script that makes its table."""
    shell(
        tmp_path,
        "python examples/fraud/generate.py --out fraud\n"
        "python examples/fraud/compare.py --data fraud --seeds 1 --json compare.json",
    )
    found = json.loads((tmp_path / "compare.json").read_text())
    reached = {name: mean(one["average_precision"] for one in of["scores"]) for name, of in found.items()}
    alone = max(value for name, value in reached.items() if name.endswith("alone"))
    assert alone + 0.05 <= reached["federation"] <= reached["all in one place"]
    assert reached["federation"] <= reached["sealed federation"]
    best_alone = max(value for name, value in reached.items() if " alone" in name)  # also with the sealed model
    assert best_alone + 0.05 <= reached["sealed federation"]
