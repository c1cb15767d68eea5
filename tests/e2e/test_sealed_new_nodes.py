"""New nodes of a sealed model between processes: each is opened once, whoever is killed, by predict and by serve."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.test_serve import append
from tests.e2e.test_tables import predict, rows_of, run, shared_ids
from tests.network import rewrite
from tests.recording import payloads
from tests.tables import sealed_federation_of_tables
from vfgnn.files import load_federation
from vfgnn.lab.local_files import LocalFederation
from vfgnn.lab.local_training import PREDICT
from vfgnn.lab.processes import LocalProcesses
from vfgnn.privacy.openings import read_openings

KILL = Path(__file__).parents[1] / "kill_at.py"
QUICK = {"start_s": 60, "message_s": 60, "away_s": 3}
NEW = ("new-1", "new-2")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two holders with tables, trained, and their tables when two nodes have come."""
    folder = tmp_path_factory.mktemp("sealed") / "federation"
    local = rewrite(sealed_federation_of_tables(folder, settings=["sealed.hops=2"]), patience=QUICK)
    run(local)
    common = sorted(shared_ids(local, ("bank", "shop")))
    for name in ("bank", "shop"):
        append(local, name, *NEW, edges=[("new-1", common[0]), ("new-2", common[1])])
    return local


@pytest.fixture
def local(trained, tmp_path):
    """A copy of it."""
    shutil.copytree(trained.folder, tmp_path / "federation")
    return LocalFederation(tmp_path / "federation", load_federation(tmp_path / "federation" / "federation.toml"))


def predictions(local, tmp_path):
    predict(local, "--out", tmp_path / "out.csv", all_say=["--new-nodes"])
    return rows_of(tmp_path / "out.csv")


def interrupted(local, tmp_path, kills):
    """A prediction in which a party is killed; the others end with it."""
    words = {name: ["--new-nodes"] for name in local.names}
    words["bank"] += ["--out", str(tmp_path / "lost.csv")]
    marks = tmp_path / "kills"

    def wrapped(name):
        return [sys.executable, str(KILL), kills.get(name, ""), str(marks / name)]

    with LocalProcesses(local, command=PREDICT, words=words, wrap=wrapped) as running:
        codes = {name: child.wait(200) for name, child in running.children.items()}
    assert {name for name, code in codes.items() if code == -9} == set(kills)
    assert not (tmp_path / "lost.csv").exists()


def opened_later(local):
    lines = read_openings(local.folder / "shop" / "opened_ledger.jsonl")
    return [(line.kind, line.rows) for line in lines if line.kind == "prediction"]


def told(local, name):
    """Classes of new nodes, as they were sent, over all passes."""
    folders = sorted((local.run_folder(name) / "predictions").iterdir())
    found = [one for folder in folders if (folder / "payloads.jsonl").exists() for one in payloads(folder)]
    return [one["content"] for one in found if one["kind"] == "predicted_classes"]


KILLS = {
    "the holder, when it is counted and not told": {"shop": "told:1"},
    "the label holder, before it has heard": {"bank": "predicted_classes:1"},
    "the holder, before all have kept their shares": {"shop": "sealed_kept:1"},
    "the dealer, before anything is made": {"dealer": "offline:12"},
}


@pytest.mark.parametrize("case", KILLS)
def test_a_prediction_that_was_interrupted_is_told_once(local, tmp_path, case):
    interrupted(local, tmp_path, KILLS[case])
    known = predictions(local, tmp_path)
    assert {known[one]["status"] for one in NEW} == {"ok"}
    assert opened_later(local) == [("prediction", len(NEW))]
    assert predictions(local, tmp_path) == known
