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


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_walk_through_runs_as_written(tmp_path):
    page = (ROOT / "examples" / "fraud" / "README.md").read_text()
    script = "set -euo pipefail\n" + "\n".join(re.findall(r"```sh\n(.*?)```", page, flags=re.S))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=850,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    home = tmp_path / "fraud"
    (individual,) = [path for path in (home / "bank").glob("run-*") if path.is_dir()]
    about = json.loads((individual / "run.json").read_text())
    assert about["state"] == "finished" and about["outcome"]["scores"]["average_precision"] > 0.2
    with (home / "predictions.csv").open() as file:
        statuses = [row["status"] for row in csv.DictReader(file)]
    with (home / "bank" / "accounts.csv").open() as file:
        assert len(statuses) == len(list(csv.DictReader(file)))
    assert statuses.count("ok") == about["nodes"] < len(statuses)
    assert "ready to run" in result.stdout
    found = json.loads((home / "compare.json").read_text())
    reached = {name: mean(one["average_precision"] for one in of["scores"]) for name, of in found.items()}
    alone = max(value for name, value in reached.items() if name.endswith("alone"))
    assert alone + 0.05 <= reached["federation"] <= reached["all in one place"]
    page = (home / "collaborative.html").read_text()
    assert "leak meter" in page and "not declared" not in page
    assert "not declared" not in (home / "report.html").read_text()
