"""A new run takes the place of the one before when all take part in it, and not before."""

import json
import time
from types import SimpleNamespace

import pytest

from tests.network import small
from vfgnn import logs
from vfgnn.errors import PeerFailed
from vfgnn.party.folder import RunFolder, log_of, read_about, write_json
from vfgnn.party.session import NetworkSession
from vfgnn.party.train import OwnRun
from vfgnn.records import Traffic


@pytest.fixture
def path(tmp_path):
    write_json(tmp_path / "run" / "run.json", {"run": "one", "state": "finished"})
    return tmp_path / "run"


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    return small(tmp_path_factory.mktemp("folder") / "federation").file


def names(path):
    return sorted(one.name for one in path.parent.iterdir())


def test_a_start_that_is_refused_leaves_the_finished_run_where_it_is(path):
    folder = RunFolder(path, "A")
    folder.log.write_text("{}\n")
    folder.end(Traffic(), revealed={}, outcome=None, error="refused")
    assert read_about(path) == {"run": "one", "state": "finished"}
    assert names(path) == ["run", "run.starting"]
    assert log_of(path) == path.parent / "run.starting" / "log.jsonl"
    again = RunFolder(path, "A")  # what the refused start left is gone
    assert not again.log.exists()
    assert read_about(path) == {"run": "one", "state": "finished"}


def test_a_run_that_began_takes_the_place_when_it_is_told_to(path, federation):
    folder = RunFolder(path, "A")
    folder.begin("two", 0, federation)
    assert folder.is_new and read_about(path)["run"] == "one"
    folder.take_place()
    assert not folder.is_new
    assert read_about(path)["run"] == "two"
    assert names(path) == ["run", "run-one"]
    assert log_of(path) == folder.log == path / "log.jsonl"


def test_a_run_that_was_killed_before_it_took_its_place_goes_on(path, federation):
    RunFolder(path, "A").begin("two", 0, federation)
    again = RunFolder(path, "A")
    assert again.is_new and read_about(again.path)["run"] == "two"
    fresh = RunFolder(path, "A", fresh=True)
    assert fresh.is_new and read_about(fresh.path) == {}


def test_an_unfinished_run_goes_on_in_its_place(path):
    write_json(path / "run.json", {"run": "one", "state": "failed"})
    assert not RunFolder(path, "A").is_new
    assert RunFolder(path, "A", fresh=True).is_new


@pytest.mark.parametrize(("run", "step", "known"), [("one", 4, True), ("one", 0, False), ("two", 4, False)])
def test_what_was_opened_stays_noted_where_the_training_is_over(path, federation, run, step, known):
    """A process that was killed after its final state leaves no other trace of how many rows trained."""
    write_json(path / "run.json", {"run": "one", "state": "failed"})
    RunFolder(path, "A").note_now(opened={"to": "A"}, rounds=7)
    RunFolder(path, "A").begin(run, step, federation)
    found = read_about(path)
    assert (found.get("opened"), found.get("rounds")) == (({"to": "A"}, 7) if known else (None, None))


def test_a_name_from_a_record_is_no_path(path):
    write_json(path / "run.json", {"run": "../../elsewhere", "state": "finished"})
    RunFolder(path, "A").take_place()
    assert not (path.parent.parent / "elsewhere").exists()
    assert len(list(path.parent.glob("run-2*"))) == 1


@pytest.mark.parametrize(("told", "ended"), [(False, True), (True, False)])
def test_a_final_state_counts_for_nothing_where_a_peer_told_of_its_failure(path, told, ended):
    """A dealer has its final state long before the others: the run that failed meanwhile is not over."""
    write_json(path / "run.json", {"run": "one", "state": "failed"})
    folder = RunFolder(path, "dealer")
    error = PeerFailed("A", "something", where="here") if told else None
    if isinstance(error, PeerFailed):
        folder.note("peer_failed", True)
    folder.end(Traffic(), revealed={}, outcome=None, error="x")
    again = RunFolder(path, "dealer")
    parts = {"file": None, "party": None, "data": None, "folder": again, "log": None, "view": None, "ledger": None}
    run = OwnRun(**parts, accounts=None, end=5, kept=SimpleNamespace(steps=[5]))
    assert run._ended is ended


def test_who_waits_says_for_whom_within_seconds(monkeypatch):
    told = []
    monkeypatch.setattr(logs, "TOLD_S", 0.02)
    monkeypatch.setattr(logs, "event", lambda what, **fields: told.append((what, fields)))
    waiting = NetworkSession.__new__(NetworkSession)
    waiting._leader, waiting.network = "A", SimpleNamespace(away={"dealer": "nobody answers"})
    with waiting._telling(60):
        time.sleep(0.1)
        waiting.network.away = {}
        time.sleep(0.3)
    assert len(told) < 6  # less and less often
    assert told[0][0] == "waiting"
    assert told[0][1] == {"peers": "dealer", "since_s": 0, "of_s": 60, "heard": "dealer: nobody answers"}
    assert told[-1][1]["peers"] == "A, which waits for the others"
    count = len(told)
    time.sleep(0.1)
    assert len(told) == count
    assert json.dumps(told)
