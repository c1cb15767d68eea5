"""A label holder that asks for more than was agreed is refused by every other holder, by name, whatever its program."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import random_graph
from tests.e2e.test_sealed_new_nodes import NEW, opened_later, trained  # noqa: F401 (a fixture)
from tests.network import rewrite, small
from vfgnn.data.holdings import Labels
from vfgnn.data.prepared import save_labels
from vfgnn.errors import ExitCode
from vfgnn.files import Patience, load_federation
from vfgnn.lab.federation import split_labels
from vfgnn.lab.local_files import LocalFederation
from vfgnn.lab.local_training import PREDICT
from vfgnn.lab.processes import LocalProcesses
from vfgnn.message_log import read_entries
from vfgnn.party.folder import starting_folder
from vfgnn.privacy.openings import read_openings

PATIENCE = Patience(start_s=300, message_s=300, away_s=5)
GREEDY = Path(__file__).parents[1] / "greedy.py"
GRAPH = random_graph()

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def ended(local, leader, named="-", **how):
    """With a label holder whose program was changed: how each party's process ends, and what it says last."""
    wrap = {leader: (sys.executable, str(GREEDY), named)}
    with LocalProcesses(local, wrap=lambda name: wrap.get(name, ()), **how) as running:
        codes = {name: child.wait(400) for name, child in running.children.items()}
        return codes, {name: running.said(name) for name in local.names}


def trainings(local, name):
    path = local.folder / name / "opened_ledger.jsonl"
    return [line.run for line in read_openings(path) if line.kind == "training"]


def error_of(local, name):
    """In the record of a start that never took its place."""
    return json.loads((starting_folder(local.run_folder(name)) / "run.json").read_text())["error"]


def test_more_trainings_than_were_agreed_are_refused_by_all_others(tmp_path):
    """With invented labels: the others cannot tell, and need not."""
    sealed = {"protocol": "sealed", "sealed": {"hops": 1, "steps": 1}}
    local = small(tmp_path / "federation", graph=GRAPH, holders=3, patience=PATIENCE, **sealed)
    local = rewrite(local, limits={"max_trainings": 1})
    with LocalProcesses(local) as running:
        running.wait()
    labels = split_labels(GRAPH)
    invented = Labels(labels.y.flip(0), labels.train, labels.val, labels.test, labels.classes)
    save_labels(local.folder / "A" / "data" / "labels.safetensors", invented)
    codes, said = ended(local, "A")
    refused = {name for name, code in codes.items() if code == ExitCode.REFUSED}
    # Each of the others refuses when it hears of it; the first one may end all before the second has heard.
    assert refused and refused <= {"B", "C"}
    assert {code for name, code in codes.items() if name not in refused} == {ExitCode.PEER}
    for name in ("B", "C"):
        first = name if name in refused else next(iter(refused))
        refusal = f"{first} refuses to open more: max_trainings = 1 would be exceeded"
        assert refusal in said[name] and refusal in error_of(local, name)
        assert len(trainings(local, name)) == 1
        heard = read_entries(starting_folder(local.run_folder(name)) / "messages.jsonl")
        assert {entry.kind for entry in heard} <= {"sealed_rows"}  # nothing was computed for it
    assert "refuses to open more: max_trainings = 1" in error_of(local, "A")  # its own record says so
    assert "A" not in {name for name in local.names if (local.folder / name / "opened_ledger.jsonl").exists()}


def test_a_training_under_the_name_of_an_earlier_one_is_refused(tmp_path):
    """A run that goes on has its line in the ledger already, so a new one may not pass for it."""
    sealed = {"protocol": "sealed", "sealed": {"hops": 1, "steps": 1}}
    local = small(tmp_path / "federation", graph=GRAPH, patience=PATIENCE, **sealed)
    with LocalProcesses(local) as running:
        running.wait()
    (run,) = trainings(local, "B")
    codes, said = ended(local, "A", run)
    assert codes == {"A": ExitCode.PEER, "dealer": ExitCode.PEER, "B": ExitCode.REFUSED}
    assert f"B refuses to begin run {run} anew: something of it has been opened" in said["B"]


@pytest.fixture
def tables(trained, tmp_path):  # noqa: F811
    shutil.copytree(trained.folder, tmp_path / "federation")
    return LocalFederation(tmp_path / "federation", load_federation(tmp_path / "federation" / "federation.toml"))


def predicted(local, tmp_path):
    words = {name: ["--new-nodes"] for name in local.names}
    words["bank"] += ["--out", str(tmp_path / "out.csv")]
    found = ended(local, "bank", command=PREDICT, words=words)
    assert not (tmp_path / "out.csv").exists()
    return found


def test_rows_that_were_opened_are_refused_a_second_time(tables, tmp_path):
    codes, said = predicted(tables, tmp_path)
    assert codes == {"bank": ExitCode.PEER, "dealer": ExitCode.PEER, "shop": ExitCode.REFUSED}
    assert "shop refuses to open" in said["shop"] and "of this model a second time" in said["shop"]
    assert "shop gave up: shop refuses to open" in said["bank"]
    assert opened_later(tables) == []


def test_more_rows_than_were_agreed_are_refused(tables, tmp_path):
    (line,) = read_openings(tables.folder / "shop" / "opened_ledger.jsonl")
    local = rewrite(tables, limits={"max_opened_rows": line.rows + len(NEW) - 1})
    words = {name: ["--new-nodes"] for name in local.names}
    words["bank"] += ["--out", str(tmp_path / "out.csv")]
    with LocalProcesses(local, command=PREDICT, words=words) as running:
        codes = {name: child.wait(400) for name, child in running.children.items()}
        assert codes == {"bank": ExitCode.PEER, "dealer": ExitCode.PEER, "shop": ExitCode.REFUSED}
        said = running.said("shop")
    assert f"shop refuses to open more: max_opened_rows = {line.rows + 1} would be exceeded" in said
    assert opened_later(local) == []
