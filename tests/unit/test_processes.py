"""Whom the parent of a federation's processes names when several of them have failed."""

import json
from types import SimpleNamespace

import pytest

from vfgnn.errors import SHOWN_AS, PartyFailed
from vfgnn.lab.processes import LocalProcesses, Progress, State
from vfgnn.logs import Event

TOLD_BY_B = [{"event": Event.PEER_FAILED, "peer": "B", "reason": "B gave up: bad data"}, {"event": Event.RUN_FAILED}]


def ended(folder, codes, logs):
    """Processes that have ended with these codes, and what they wrote."""
    local = SimpleNamespace(folder=folder, run_folder=lambda name: folder / name / "run")
    made = LocalProcesses(local)
    for name, code in codes.items():
        local.run_folder(name).mkdir(parents=True)
        (folder / name / "output.txt").write_text(f"a line\n{SHOWN_AS}the words of {name}\n  where:    here\n")
        lines = [json.dumps(event) + "\n" for event in logs.get(name, [])]
        (local.run_folder(name) / "log.jsonl").write_text("".join(lines))
        made.children[name] = SimpleNamespace(poll=lambda code=code: code)
        made.progress[name], made._read[name] = Progress(), (0, 0)
    return made


def failure(*arguments):
    with pytest.raises(PartyFailed) as caught:
        ended(*arguments).look()
    return caught.value


def test_the_one_that_was_told_of_no_failure_began_it(tmp_path):
    found = failure(tmp_path, {"A": 3, "server": 3, "B": 3}, {"A": TOLD_BY_B, "server": TOLD_BY_B})
    assert found.what == "B failed"
    assert found.got == f"{SHOWN_AS}the words of B\n  where:    here"


@pytest.mark.parametrize(("code", "own"), [(1, 1), (2, 2), (4, 4), (-9, 137)])
def test_the_one_whose_exit_code_blames_no_peer_began_it(tmp_path, code, own):
    found = failure(tmp_path, {"A": 3, "server": 3, "B": code}, {"B": TOLD_BY_B})
    assert (found.what, found.exit_code) == ("B failed", own)


def test_the_words_that_a_party_prints_decide_nothing(tmp_path):
    logs = {"A": [{"event": "a warning", "reason": "somebody gave up"}], "B": TOLD_BY_B}
    assert failure(tmp_path, {"A": 3, "B": 3}, logs).what == "A failed"


def test_where_all_blame_a_peer_one_of_them_is_named(tmp_path):
    assert failure(tmp_path, {"A": 3, "server": 3}, {"A": TOLD_BY_B, "server": TOLD_BY_B}).what == "A failed"


def test_what_was_killed_on_purpose_has_not_failed(tmp_path):
    running = ended(tmp_path, {"A": -9, "B": 0}, {})
    running.progress["A"].state = State.KILLED
    running.look()


def test_a_party_that_still_ends_is_waited_for_before_one_that_blames_it_is_named(tmp_path):
    running = ended(tmp_path, {"A": None, "dealer": 3}, {"dealer": [{"event": Event.PEER_FAILED, "peer": "A"}]})
    running.look()
    running.children["A"] = SimpleNamespace(poll=lambda: 4)
    with pytest.raises(PartyFailed) as caught:
        running.look()
    assert (caught.value.what, caught.value.exit_code) == ("A failed", 4)


def test_a_party_that_never_ends_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("vfgnn.lab.processes.CAUSE_S", 0.0)
    running = ended(tmp_path, {"A": None, "dealer": 3}, {})
    with pytest.raises(PartyFailed, match="dealer"):
        for _ in range(2):
            running.look()
