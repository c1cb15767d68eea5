"""The ledger of real processes: on disk before the message leaves, whatever happens."""

import json
import sys
import time
from pathlib import Path

import pytest

from tests.network import small
from tests.recording import RECORDED, payloads
from vfgnn.errors import PartyFailed
from vfgnn.files import Patience
from vfgnn.lab.processes import LocalProcesses
from vfgnn.privacy.ledger import read_releases, total_epsilon, worst
from vfgnn.report.run.page import make_page
from vfgnn.split.program import NOISED_EDGES
from vfgnn.split.steps import trained_epochs

PATIENCE = Patience(start_s=60, message_s=60, away_s=40)
KILL = Path(__file__).parents[1] / "kill_between.py"


def run_with_kills(local, folder, kills):
    """A federation whose holder B is killed at each of `kills`, and started anew; returns what A and B sent."""

    def wrapped(name):
        return [sys.executable, str(KILL), kills if name == "B" else "", str(folder / name)]

    folder.mkdir()
    with LocalProcesses(local, wrap=lambda name: wrapped(name) if name in ("A", "B") else ()) as running:
        for _ in range(kills.count(":")):
            while running.children["B"].poll() is None:
                time.sleep(0.02)
            assert running.children["B"].returncode == -9
            running.start("B")
        running.wait()
    sent = {name: (folder / name / "sent.txt").read_text().splitlines() for name in ("A", "B")}
    return {name: [line.split() for line in lines] for name, lines in sent.items()}


def charged(local, name):
    return read_releases(local.folder / name / "privacy_ledger.jsonl")


def sent_once(messages):
    """Whether each step sent one message, however often."""
    return len({step for step, _ in messages}) == len(set(map(tuple, messages))) < len(messages)


def test_a_kill_between_ledger_and_message_charges_exactly_what_is_sent(tmp_path):
    local = small(tmp_path / "federation", epochs=30, patience=PATIENCE, publish="all", privacy={"row_epsilon": 8.0})
    sent = run_with_kills(local, tmp_path / "kills", "charged:12")
    for name in ("A", "B"):
        # The prediction sends the best epoch's message again; every other message has its own line, and no more.
        assert sent_once(sent[name])
        assert len(charged(local, name)) == len({digest for _, digest in sent[name]}) == 31
        assert not (local.run_folder(name) / "noised").exists()


@pytest.mark.slow
@pytest.mark.parametrize("publish", ["all", "needed"])
def test_a_budget_is_kept_and_used_to_its_end_under_kills(tmp_path, publish):
    privacy = {"row_epsilon": 1.0, "gradient_epsilon": 1.0, "budget_epsilon": 12.0}
    local = small(tmp_path / "federation", epochs=200, patience=PATIENCE, publish=publish, privacy=privacy)
    epochs = trained_epochs(local.file.agreement)
    assert 20 < epochs < 200
    last = "charged" if publish == "all" else "sent"  # then only the prediction is left for the last start
    sent = run_with_kills(local, tmp_path / "kills", f"copied:3,charged:9,sent:14,sent:15,{last}:{epochs}")
    for name in ("A", "B"):
        lines = charged(local, name)
        assert sent_once(sent[name])
        # As planned, and as without any kill: each step, and the rows that only the prediction has.
        assert sum(line.what == "rows" for line in lines) == epochs + 1 + (publish == "needed")
        assert total_epsilon(worst(lines, "row"), 1e-4, "zero_out") <= 12.0
    assert sum(line.what == "gradient" for line in charged(local, "A")) == epochs
    assert [read_about(local, name)["state"] for name in local.names] == ["finished"] * len(local.names)


@pytest.mark.slow
def test_without_copies_the_same_kills_spend_the_budget_early(tmp_path):
    """The test above can fail: steps that are noised anew are charged anew."""
    privacy = {"row_epsilon": 1.0, "budget_epsilon": 8.0}
    local = small(tmp_path / "federation", epochs=200, patience=PATIENCE, publish="all", privacy=privacy)
    with pytest.raises(PartyFailed, match="budget"):
        run_with_kills(local, tmp_path / "kills", "forgetful,copied:3,charged:9,sent:14")


def read_about(local, name):
    return json.loads((local.run_folder(name) / "run.json").read_text())


def test_a_finished_run_says_what_it_spent(tmp_path):
    privacy = {"row_epsilon": 8.0, "edge_epsilon": 4.0, "publish_noised_edges": True, "label_epsilon": 4.0}
    local = small(tmp_path / "federation", epochs=4, patience=PATIENCE, privacy=privacy)
    with LocalProcesses(local) as running:
        running.wait()
    stated = {
        name: json.loads((local.run_folder(name) / "run.json").read_text()).get("privacy") for name in local.names
    }
    assert stated["server"] is None
    assert [part["what"] for part in stated["A"]["guarantees"]] == ["published rows", "edges", "labels"]
    assert [part["what"] for part in stated["B"]["guarantees"]] == ["published rows", "edges"]
    rows = stated["B"]["guarantees"][0]
    assert rows["releases"]["of train rows"] in (4, 5) and rows["epsilon_total"] > rows["epsilon_per_release"]
    page = make_page([local.run_folder(name) for name in local.names])
    assert "Differential privacy" in page and "randomised response" in page and "Not covered" in page
    assert "None was used" not in page


@pytest.mark.slow
def test_noised_edges_are_drawn_once_for_all_runs(tmp_path):
    privacy = {"edge_epsilon": 4.0, "publish_noised_edges": True}
    local = small(tmp_path / "federation", epochs=3, patience=PATIENCE, privacy=privacy)
    lists = []
    for _ in range(2):
        with LocalProcesses(local, wrap=lambda name: RECORDED) as running:
            running.wait()
        found = payloads(local.run_folder("B"))
        lists.append([one["content"] for one in found if (one["sender"], one["kind"]) == ("B", NOISED_EDGES)])
    assert lists[0] == lists[1] and lists[0]
    assert len(read_releases(local.folder / "B" / "privacy_ledger.jsonl")) == 1
