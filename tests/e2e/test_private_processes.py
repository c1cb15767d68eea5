"""The ledger of real processes: on disk before the message leaves, whatever happens."""

import json
import sys
import time
from pathlib import Path

import pytest

from tests.network import small
from tests.recording import RECORDED, payloads
from vfgnn.files import Patience
from vfgnn.lab.processes import LocalProcesses
from vfgnn.privacy.ledger import read_releases
from vfgnn.report.run.page import make_page
from vfgnn.split.program import LOCAL_EMBEDDINGS, NOISED_EDGES

PATIENCE = Patience(start_s=60, message_s=60, away_s=40)
KILL = Path(__file__).parents[1] / "kill_between.py"


def sent_payloads(local, name, kind):
    """What this holder's messages of a kind carried: equal ones are equal here, unlike their digests in the log."""
    found = payloads(local.run_folder(name))
    return [message["content"] for message in found if (message["sender"], message["kind"]) == (name, kind)]


def noised_messages(local, name):
    """The rows that this holder sent."""
    return sent_payloads(local, name, LOCAL_EMBEDDINGS)


def test_a_kill_between_ledger_and_message_never_under_counts(tmp_path):
    local = small(tmp_path / "federation", epochs=30, patience=PATIENCE, publish="all", privacy={"row_epsilon": 8.0})
    marker = tmp_path / "killed"
    wrap = [sys.executable, str(KILL), "12", str(marker)]
    with LocalProcesses(local, wrap=lambda name: wrap if name == "B" else RECORDED) as running:
        while running.children["B"].poll() is None:
            time.sleep(0.02)
        assert running.children["B"].returncode == -9 and marker.exists()
        at_death = len(read_releases(local.folder / "B" / "privacy_ledger.jsonl"))
        sent = noised_messages(local, "B")
        assert (at_death, len(sent)) == (12, 11)  # written down, never sent
        running.start("B")
        running.wait()
    for name in ("A", "B"):
        releases = read_releases(local.folder / name / "privacy_ledger.jsonl")
        sent = noised_messages(local, name)
        assert len(releases) >= len(set(sent))
        # Every start noised afresh, except the prediction, which sent the best epoch's message again.
        assert len(set(sent)) == len(sent) - 1
    assert len(read_releases(local.folder / "B" / "privacy_ledger.jsonl")) == len(set(noised_messages(local, "B"))) + 1


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
        lists.append(sent_payloads(local, "B", NOISED_EDGES))
    assert lists[0] == lists[1] and lists[0]
    assert len(read_releases(local.folder / "B" / "privacy_ledger.jsonl")) == 1
