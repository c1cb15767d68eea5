"""kill -9 of a sealed federation's processes, at any moment: the same result, and nothing opened a second time."""

import json
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.conftest import random_graph
from tests.e2e.test_processes import assert_nothing_left
from tests.masks import TOLD, repeated, sent
from tests.network import small
from tests.protocol.test_sealed_accuracy import ERROR
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
from vfgnn.sealed.formats import SHORT

PATIENCE = Patience(start_s=300, message_s=300, away_s=300)
KILL = Path(__file__).parents[1] / "kill_at.py"
SEALED = {"hops": 2, "steps": 3, "ridges": [0.3, 1.0], "order": "labels"}


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
        moments = [*self.kills.get(name, ()), *self._words]
        return [sys.executable, str(KILL), ",".join(moments), str(self._marks / name)]

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

    @property
    def undisturbed(self):
        """The same federation in one process, with other masks."""
        return build(self.holdings, split_labels(self.graph), self.local.file.settings, seed=0)

    def assert_equals_twin(self):
        """Word by word: the same starts on plain words, with the same masks."""
        settings, labels, leader = self.local.file.settings, split_labels(self.graph), self.undisturbed.label_holder
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

    def assert_near_undisturbed(self):
        """Other masks round otherwise: the same classes for 99.9 % of rows, and scores within twice the error."""
        other = self.undisturbed
        other.train()
        found, expected = self.left("A")["opened/values"], other.label_holder.state().opened.values
        if found.shape[1] > 1:
            found, expected = found.double() * 2.0**-SHORT, expected.double() * 2.0**-SHORT
            assert float((found - expected).abs().max()) < 2 * ERROR
            found, expected = found.argmax(1), expected.argmax(1)
        assert float((found == expected).double().mean()) >= 0.999

    def repeated(self, name):
        """Kinds of masked messages of this party's links that came twice, in all starts."""
        return repeated([sent(line) for line in payloads(self.local.run_folder(name))])


FIVE = {"A": ["setup:2", "finish:20"], "B": ["offline:40", "finish:30:done"], "dealer": ["offline:90"]}
CASES = {
    "labels": (
        {
            "A": ["sealed_rows:1", "step:40", "inner_products:1", "end:1"],
            "B": ["kept:2", "told:2"],
            "dealer": ["offline:30:done"],
        },
        {},
    ),
    "three holders, scores": (
        {
            "A": ["quotient:2", "predicted_scores:1:done"],
            "B": ["sealed_pair_seed:1", "finish:25"],
            "C": ["offline:60", "kept:4"],
            "dealer": ["gather_2:1", "offline:150"],
        },
        {"holders": 3, "opens": "scores", "nodes": 1000},
    ),
    "columns travel": (
        {
            "A": ["prepare:10", "kept:4"],
            "B": ["step:30", "validation_classes:1:done", "predicted_classes:1"],
            "dealer": ["offline:20"],
        },
        {"order": "features", "columns_at_once": 5, "nodes": 1000},
    ),
}


def test_five_kills_change_nothing(tmp_path):
    found = Killed(tmp_path, FIVE)
    found.run()
    found.assert_equals_twin()
    found.assert_opened_once()
    assert not any(found.repeated(name) for name in found.local.names)
    assert_nothing_left(found.local)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", list(CASES))
def test_twenty_kills_change_nothing(tmp_path, case):
    """Of every role, in every phase; 21 in all. Each of them lets one training be opened, and no more."""
    kills, settings = CASES[case]
    found = Killed(tmp_path, kills, **settings)
    found.run()
    found.assert_equals_twin()
    found.assert_near_undisturbed()
    found.assert_opened_once()
    assert not any(found.repeated(name) for name in found.local.names)
    assert_nothing_left(found.local)


@pytest.mark.slow
def test_masks_that_come_twice_are_found_between_processes(tmp_path):
    """The tests above can fail: every start under one name, so that all draw again what they drew before."""
    found = Killed(tmp_path, {"B": ["step:30"]}, words=["reused"])
    found.run()
    assert {"sealed_seed", "sealed_features", "gather_1", "bounce_1", "sealed_opened"} <= found.repeated("A")
