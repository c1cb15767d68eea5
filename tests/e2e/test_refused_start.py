"""A start that was refused costs nothing: the model of before is there, and nobody waits in silence."""

import time

import pytest

from tests.e2e.test_full_disk import wait_until_said
from tests.e2e.test_kills import wait_for_epoch
from tests.network import small
from vfgnn.errors import ExitCode, PartyFailed
from vfgnn.files import Patience
from vfgnn.lab.local_training import predict
from vfgnn.lab.processes import LocalProcesses
from vfgnn.party.folder import read_about

pytestmark = pytest.mark.slow


def run(local):
    with LocalProcesses(local) as running:
        running.wait()


def runs(local):
    return {name: read_about(local.run_folder(name))["run"] for name in local.names}


def test_predict_finds_the_model_after_refused_starts(tmp_path):
    """One that ends before the parties meet, one that a holder refuses afterwards."""
    patience = Patience(start_s=60, message_s=60, away_s=20)
    privacy = {"row_epsilon": 1.0, "budget_epsilon": 3.0}
    local = small(tmp_path / "federation", epochs=30, patience=patience, privacy=privacy)
    run(local)
    before = runs(local)

    with LocalProcesses(local, names=["A"]) as running:
        wait_until_said(running, "A", "waiting peers=server")
    assert runs(local) == before

    with pytest.raises(PartyFailed, match="budget") as refused:
        run(local)
    assert refused.value.exit_code == ExitCode.REFUSED
    assert runs(local) == before
    assert all((local.folder / name / "run.starting" / "log.jsonl").is_file() for name in local.names)
    assert predict(local.folder).num_nodes == 40


def test_a_dealer_that_had_dealt_for_all_steps_waits_for_the_others(tmp_path):
    """Its final state is on its disk, and the run is not over: a peer told that it failed."""
    patience = Patience(start_s=90, message_s=60, away_s=3)
    settings = {"gnn": "appnp", "joint_layer_epochs": 2, "epochs": 400}
    local = small(tmp_path / "federation", patience=patience, **settings)
    with LocalProcesses(local) as running:
        wait_for_epoch(running, 15)
        running.kill("B")
        codes = [running.children[name].wait(60) for name in ("A", "server", "dealer")]
        assert set(codes) == {ExitCode.PEER}
    with LocalProcesses(local, names=["dealer"]) as running:
        wait_until_said(running, "dealer", "waiting peers=")
        time.sleep(2 * patience.away_s)
        assert running.children["dealer"].poll() is None
        for name in ("A", "server"):
            running.start(name)
        wait_until_said(running, "A", "waiting peers=B")
        running.start("B")
        running.wait()
    assert {read_about(local.run_folder(name))["state"] for name in local.names} == {"finished"}
