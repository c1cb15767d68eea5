"""examples/notebook.ipynb and docs/python.md, run as they stand."""

import json
import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def test_the_notebook_is_kept_without_outputs():
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert cells and all(cell.outputs == [] and cell.execution_count is None for cell in cells)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")  # of the notebook's own machinery
def test_the_notebooks_numbers_are_the_command_lines(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=800, resources={"metadata": {"path": str(tmp_path)}}).execute()
    numbers = json.loads(notebook.cells[-1].outputs[0].text)
    words = ["--dataset", "citeseer", "--no-compare", "--set", "epochs=20", "--set", "dim=16"]
    out = tmp_path / "out.json"
    subprocess.run([sys.executable, "-m", "vfgnn", "simulate", *words, "--json", str(out)], check=True, cwd=tmp_path)
    said = json.loads(out.read_text())
    for key in ("test_accuracy", "val_accuracy", "best_epoch"):
        assert numbers[key] == said[key]
    assert numbers["losses"] == [epoch["loss"] for epoch in said["history"]]
    assert numbers["predicted"] == pytest.approx(said["test_accuracy"])
    assert numbers["asked"] == pytest.approx(numbers["trained"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_page_runs_as_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    known = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), known)
    assert len(blocks) == 4
    assert "DiscreteLaplace, the holder's own" in capsys.readouterr().out
