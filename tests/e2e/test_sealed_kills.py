"""kill -9 of a sealed federation's processes, at any moment: the same result, and nothing opened a second time."""

import json
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch
from safetensors.torch import load_file

from tests.conftest import random_graph
from tests.e2e.test_processes import assert_nothing_left
from tests.network import small
from tests.recording import payloads
from tests.restarts import lineage
from tests.sealed_twin import go_through
from vfgnn.data.feature_maps import mapped
from vfgnn.data.partition import partition
from vfgnn.files import Patience
from vfgnn.lab.federation import split_labels
from vfgnn.lab.processes import LocalProcesses, State
from vfgnn.lab.simulate import build
from vfgnn.party.programs import end_step
from vfgnn.privacy.openings import read_openings

PATIENCE = Patience(start_s=60, message_s=60, away_s=40)
KILL = Path(__file__).parents[1] / "kill_at.py"
SEALED = {"hops": 2, "steps": 3, "ridges": [0.3, 1.0], "order": "labels"}
TOLD = ("quotient", "inner_products", "validation_classes", "predicted_classes", "predicted_scores")


class Killed:
    """A federation whose parties are killed at their moments, and started again at once."""

    def __init__(self, folder, kills, *, holders=2, nodes=40, limits=None, **sealed):
        self.graph = random_graph(nodes=nodes)
        self.holdings = partition(self.graph.x, self.graph.edge_index, holders=holders, seed=0)
        settings = {"protocol": "sealed", "sealed": {**SEALED, **sealed}}
        self.local = small(
            folder / "federation", holdings=self.holdings, graph=self.graph, patience=PATIENCE, **settings
        )
        self.kills, self._marks = kills, folder / "kills"

    def run(self):
        """To its end, whoever is killed."""
        with LocalProcesses(self.local, wrap=self._wrapped) as running:
            while running.alive():
                for name, child in running.children.items():
                    if child.poll() == -9:
                        running.progress[name].state = State.KILLED
                        running.start(name)
                if all(child.poll() != -9 for child in running.children.values()):
                    running.look()
                time.sleep(0.02)
            running.look()
        happened = {path.name for name in self.local.names for path in (self._marks / name).iterdir()}
        assert happened == {moment for moments in self.kills.values() for moment in moments}

    def _wrapped(self, name):
        return [sys.executable, str(KILL), ",".join(self.kills.get(name, ())), str(self._marks / name)]

    @property
    def agreement(self):
        return self.local.file.agreement

    def left(self, name):
        """What a holder's run ended with."""
        end = end_step(self.agreement)
        return load_file(self.local.run_folder(name) / "checkpoints" / f"step-{end:08d}.safetensors")

    @property
    def starts(self):
        """The name of each, and the step that it went on from."""
        lines = (self.local.run_folder("A") / "log.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        begun = [event for event in events if event["event"] in ("run begins", "run goes on")]
        return [(event["start"], event["step"]) for event in begun]

    def assert_equals_twin(self):
        """Word by word: the same starts on plain words, with the same masks."""
        settings = self.local.file.settings
        labels = split_labels(self.graph)
        leader = build(self.holdings, labels, settings, seed=0).label_holder
        held = [mapped(one, settings.sealed) for one in self.holdings]
        starts = lineage(self.starts)
        _, trained, leader = go_through(self.agreement, held, labels, leader, seed=0, starts=starts)
        states = [self.left(name) for name in self.agreement.holder_names]
        for owner, expected in trained.weights.items():
            assert torch.equal(sum(state[f"weights/{owner}"] for state in states), expected)
        assert torch.equal(sum(state["offset"] for state in states), trained.offset)
        assert torch.equal(self.left("A")["opened/values"], leader.heard)

    def assert_opened_once(self):
        """One line at every other holder; and whatever was told twice were the same bytes, up to sharings of zero."""
        for name in self.agreement.row_readers:
            (line,) = read_openings(self.local.folder / name / "opened_ledger.jsonl")
            assert line.kind == "training"
        if len(self.agreement.holder_names) == 2:
            told = defaultdict(set)
            for one in payloads(self.local.run_folder("B")):
                if one["kind"] in TOLD:
                    told[one["kind"]].add(one["content"])
            assert {kind: len(contents) for kind, contents in told.items()} == dict.fromkeys(told, 1)
            assert len(told) == 4


FIVE = {"A": ["setup:2", "finish:20"], "B": ["offline:40", "finish:30:done"], "dealer": ["offline:90"]}


def test_five_kills_change_nothing(tmp_path):
    found = Killed(tmp_path, FIVE)
    found.run()
    found.assert_equals_twin()
    found.assert_opened_once()
    assert_nothing_left(found.local)
