"""New nodes of a sealed model between processes: each is opened once, whoever is killed, by predict and by serve."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.test_serve import append, as_rows, ask, assert_same
from tests.e2e.test_tables import rows_of, run, shared_ids
from tests.network import rewrite
from tests.recording import payloads
from tests.tables import sealed_federation_of_tables
from vfgnn.bench.serve import Served
from vfgnn.files import load_federation
from vfgnn.lab.local_files import LocalFederation
from vfgnn.lab.local_training import PREDICT
from vfgnn.lab.processes import LocalProcesses
from vfgnn.privacy.openings import read_openings

KILL = Path(__file__).parents[1] / "kill_at.py"
QUICK = {"start_s": 300, "message_s": 300, "away_s": 3}
NEW = ("new-1", "new-2")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


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


def predicted(local, out, kills=None):
    """All parties at once, new nodes included; one that is killed ends the others, which find no predictions."""
    kills = kills or {}
    words = {name: ["--new-nodes"] for name in local.names}
    words["bank"] += ["--out", str(out)]

    def wrapped(name):
        return [sys.executable, str(KILL), kills.get(name, ""), str(out.with_suffix("") / name)]

    with LocalProcesses(local, command=PREDICT, words=words, wrap=wrapped) as running:
        codes = {name: child.wait(400) for name, child in running.children.items()}
    assert {name for name, code in codes.items() if code == -9} == set(kills)
    assert out.exists() == (set(codes.values()) == {0}) == (not kills)
    return rows_of(out) if out.exists() else {}


def opened_later(local):
    lines = read_openings(local.folder / "shop" / "opened_ledger.jsonl")
    return [(line.kind, line.rows) for line in lines if line.kind == "prediction"]


def told(local):
    """Classes of new nodes, as the shop sent them, over all passes."""
    folders = sorted((local.run_folder("shop") / "predictions").iterdir())
    found = [one for folder in folders for one in payloads(folder)]
    return [one["content"] for one in found if one["kind"] == "predicted_classes"]


def test_a_prediction_that_is_interrupted_again_and_again_is_told_once(local, tmp_path):
    """From the moment on when all holders have their shares of it, it is these that are told.

    One node: of several the order is drawn anew with each alignment, and so is that of what is told.
    """
    for name in ("bank", "shop"):
        table = local.folder / name / "nodes.csv"
        table.write_text("".join(line for line in table.open() if not line.startswith("new-2")))
    interruptions = (
        ({"dealer": "offline:12"}, False),
        ({"shop": "sealed_kept:1"}, False),
        ({"bank": "predicted_classes:1"}, True),  # before the label holder has noted what it was told
        ({"shop": "predicted_classes:1:done"}, True),
    )
    for number, (kills, counted) in enumerate(interruptions):
        predicted(local, tmp_path / f"{number}.csv", kills)
        assert opened_later(local) == ([("prediction", 1)] if counted else [])
    known = predicted(local, tmp_path / "known.csv")
    assert known["new-1"]["status"] == "ok" and known["new-1"]["class"]
    assert opened_later(local) == [("prediction", 1)]
    assert len(told(local)) > 1 and len(set(told(local))) == 1
    count = len(told(local))
    assert predicted(local, tmp_path / "again.csv") == known
    assert len(told(local)) == count  # the label holder had them


def test_serve_opens_each_new_node_once_whoever_is_killed(local, tmp_path):
    common = sorted(shared_ids(local, ("bank", "shop")))
    with Served(local, "--recheck", "0") as served:
        said = as_rows(ask(served, *NEW))
        assert {one["status"] for one in said.values()} == {"ok"}
        assert opened_later(local) == [("prediction", len(NEW))]
        for name in ("shop", "dealer", "bank"):
            served.processes.kill(name)
            served.processes.start(name)
            served.wait(200)
            assert as_rows(ask(served, *NEW)) == said
        for name in ("bank", "shop"):
            append(local, name, "new-3", edges=[("new-3", common[2])])
        assert as_rows(ask(served, *NEW, "new-3"))["new-3"]["status"] == "ok"
        assert opened_later(local) == [("prediction", len(NEW)), ("prediction", 1)]
        said |= as_rows(ask(served, "new-3"))
    known = predicted(local, tmp_path / "known.csv")
    for one, row in said.items():
        assert_same(row, known[one])
    assert opened_later(local) == [("prediction", len(NEW)), ("prediction", 1)]
