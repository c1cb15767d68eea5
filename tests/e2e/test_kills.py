"""kill -9 at any moment costs time and nothing else."""

import json
import os
import random
import time
from collections import Counter

import pytest
import torch
from safetensors import safe_open

from tests.conftest import random_graph
from tests.e2e.test_processes import assert_nothing_left, in_one_process
from tests.network import small
from tests.recording import RECORDED, payloads, recorded
from vfgnn.data.partition import partition
from vfgnn.errors import CheckpointRefused, ExitCode
from vfgnn.files import Patience, load_party
from vfgnn.lab.processes import LocalProcesses
from vfgnn.message_log import MessageLog, read_entries
from vfgnn.messages import Declared
from vfgnn.split.program import DEALER_SEED, JOINT_PRODUCT, JOINT_UPDATE, JOINT_WEIGHTS, MASKED_FEATURES

PATIENCE = Patience(start_s=60, message_s=60, away_s=40)


def survive(local, kills, rng):
    """Kill each role in turn at random moments of training, start it again at once, and see the run end."""
    done, at = Counter(), None
    order = [local.names[i % len(local.names)] for i in range(kills)]
    with LocalProcesses(local, wrap=lambda name: RECORDED) as running:
        while running.alive():
            running.look()
            states = {progress.state for progress in running.progress.values()}
            if states == {"training"}:
                at = at or time.monotonic() + rng.uniform(0.0, 1.5)
            elif "training" not in states or rng.random() > 0.001:  # now and then one that has just come back
                at = None
            if order and at is not None and time.monotonic() >= at:
                running.kill(order[0])
                running.start(order[0])
                done[order.pop(0)] += 1
                at = None
            time.sleep(0.01)
        running.look()
    return done


def check(tmp_path, *, kills, holders=2, seed=0, **settings):
    graph = random_graph()
    holdings = partition(graph.x, graph.edge_index, holders=holders, seed=0)
    epochs = 40 * kills + 60
    local = small(tmp_path / "federation", holdings=holdings, graph=graph, epochs=epochs, patience=PATIENCE, **settings)
    done = survive(local, kills, random.Random(seed))
    assert sum(done.values()) == kills, f"the run was over after {done}"
    outcome, _ = in_one_process(local, holdings, graph, 0)
    assert local.outcome == outcome  # every loss of every epoch, once, bit by bit; the accuracy of the final weights
    assert_same_weights(local, holdings, graph)
    assert_fresh_masks(local)
    assert_nothing_left(local)


def assert_same_weights(local, holdings, graph):
    """The final checkpoints hold the weights of the run that nobody disturbed."""
    from vfgnn.lab.federation import split_labels
    from vfgnn.lab.simulate import build

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    parties = build(holdings, split_labels(graph), local.file.settings, seed=0)
    parties.train()
    torch.set_num_threads(before)
    for name, party in parties.parties.items():
        (*_, last) = sorted((local.run_folder(name) / "checkpoints").glob("step-*"))
        with safe_open(last, framework="pt") as file:
            ours, theirs = party.state().to_tensors(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        assert ours.keys() == theirs.keys()
        for key, tensor in ours.items():
            assert tensor.shape == theirs[key].shape
            assert tensor.numpy().tobytes() == theirs[key].numpy().tobytes(), (name, key)  # NaN equals NaN here


MASKED = {MASKED_FEATURES, JOINT_WEIGHTS, JOINT_UPDATE, JOINT_PRODUCT}


def assert_fresh_masks(local):
    """No masked message and no seed was ever sent twice, although some steps were done twice."""
    starts = set()
    for name in local.file.agreement.holder_names:
        starts |= {entry.run for entry in read_entries(local.run_folder(name) / "messages.jsonl")}
        assert not repeated(payloads(local.run_folder(name)), name)
    assert len(starts) > 1


def repeated(messages, name):
    """Masked messages of this holder, and seeds that it got, whose content was there before on the same link."""
    secret = [
        one for one in messages if one["kind"] == DEALER_SEED or (one["sender"] == name and one["kind"] in MASKED)
    ]
    counts = Counter((one["receiver"], one["content"]) for one in secret)
    return [content for content, count in counts.items() if count > 1]


def test_a_repeated_mask_is_found_by_its_payload(tmp_path, monkeypatch):
    """And by nothing else: the digests of the message log differ whenever a message is sent again."""
    monkeypatch.setattr(MessageLog, "add", recorded(MessageLog.add))
    log = MessageLog(tmp_path / "messages.jsonl")
    for start, payload in (("one", 1), ("two", 2), ("two", 1)):
        message = Declared(MASKED_FEATURES, "A", "B", torch.int64, (1,))
        log.add(start, message, torch.tensor([payload]), bytes(32), phase="setup", step=None)
        assert len(repeated(payloads(tmp_path), "A")) == ((start, payload) == ("two", 1))
    log.close()
    assert len({entry.digest for entry in read_entries(tmp_path / "messages.jsonl")}) == 3


def test_five_kills_change_nothing(tmp_path):
    check(tmp_path, kills=5, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kills", "holders", "settings"),
    [
        (8, 2, {"gnn": "appnp", "joint_layer_epochs": 20}),
        (6, 3, {"publish": "all"}),
        (6, 2, {"initial_embedding": "individual", "gnn": "sage_lstm", "evaluate_every": 3}),
    ],
)
def test_twenty_kills_change_nothing(tmp_path, kills, holders, settings):
    check(tmp_path, kills=kills, holders=holders, seed=kills, **settings)


@pytest.mark.skipif("VFGNN_SOAK" not in os.environ, reason="200 kills take most of an hour: make soak")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("round_", range(10))
def test_two_hundred_kills_change_nothing(tmp_path, round_):
    check(tmp_path, kills=20, holders=2 + round_ % 2, seed=100 + round_)


@pytest.mark.slow
def test_sigterm_loses_no_step(tmp_path):
    """A party that is stopped in order writes the step it stands at; the others still have it in memory."""
    local = small(tmp_path / "federation", epochs=300, patience=PATIENCE)
    with LocalProcesses(local) as running:
        wait_for_epoch(running, 25)
        running.children["B"].terminate()
        assert running.children["B"].wait(20) == 143
        steps = sorted(int(path.stem[5:]) for path in (local.run_folder("B") / "checkpoints").glob("step-*"))
        assert steps[-1] % 10 != 0 or steps[-1] >= 25
        running.start("B")
        running.wait()
    went_on = [event["step"] for event in events(local, "B") if event["event"] == "run goes on"]
    assert went_on == [steps[-1]] or went_on == [steps[-1] - 1]  # a peer may stand one step behind


@pytest.mark.slow
def test_a_party_that_stays_away_ends_the_others_with_checkpoints(tmp_path):
    patience = Patience(start_s=60, message_s=60, away_s=2)
    local = small(tmp_path / "federation", epochs=2000, patience=patience)
    with LocalProcesses(local) as running:
        wait_for_epoch(running, 15)
        running.kill("B")
        running._close_input("B")
        del running.children["B"]
        for name, child in running.children.items():
            assert child.wait(30) == ExitCode.PEER
            said = running.said(name)
            assert "B" in said
            assert "2 s" in said or "gave up" in said
            assert len(list((local.run_folder(name) / "checkpoints").glob("step-*"))) >= 1
    assert any("B has been away" in running.said(name) or "B did not come" in running.said(name) for name in "A")
    # With B back, all go on with the same command.
    with LocalProcesses(local) as running:
        wait_for_epoch(running, 30)
        assert any(event["event"] == "run goes on" for event in events(local, "A"))


def wait_for_epoch(running, epoch):
    deadline = time.monotonic() + 90
    while min(progress.epoch for progress in running.progress.values()) < epoch:
        running.look()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def events(local, name):
    return [json.loads(line) for line in (local.run_folder(name) / "log.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_rolled_back_party_is_refused_by_name(tmp_path):
    local = small(tmp_path / "federation", epochs=2000, patience=PATIENCE)
    with LocalProcesses(local) as running:
        wait_for_epoch(running, 15)
        old = {path.name: path.read_bytes() for path in (local.run_folder("B") / "checkpoints").glob("step-*")}
        wait_for_epoch(running, 60)
        for name in local.names:
            running.kill(name)
    folder = local.run_folder("B") / "checkpoints"
    for path in folder.glob("step-*"):
        path.unlink()
    for name, content in old.items():
        (folder / name).write_bytes(content)
    running = LocalProcesses(local)
    for name in local.names:
        running.start(name)
    try:
        codes = {name: child.wait(60) for name, child in running.children.items()}
        assert codes.pop("A") == ExitCode.BAD_INPUT  # the label holder compares
        assert set(codes.values()) == {ExitCode.PEER}
        assert "B was rolled back" in running.said("A")
        assert "--fresh" in running.said("A")
        assert "A gave up: B was rolled back" in running.said("B")
    finally:
        running.stop()


@pytest.mark.slow
def test_a_party_killed_after_the_end_has_lost_nothing(tmp_path):
    """The others have gone; its final state is on its disk, so it ends well, with the outcome it had."""
    patience = Patience(start_s=60, message_s=60, away_s=1)
    local = small(tmp_path / "federation", epochs=3, patience=patience, initial_embedding="individual")
    with LocalProcesses(local) as running:
        running.wait()
    outcome = local.outcome
    for name in ("A", "server"):
        about = local.run_folder(name) / "run.json"
        found = json.loads(about.read_text())
        found.pop("outcome", None)
        about.write_text(json.dumps({**found, "state": "running"}))
        with LocalProcesses(local, names=[name]) as running:
            running.wait()
    assert local.outcome == outcome


def test_a_failure_before_the_beginning_leaves_a_folder_that_can_be_put_aside(tmp_path):
    from vfgnn.party.folder import RunFolder
    from vfgnn.records import Traffic

    folder = tmp_path / "run"
    RunFolder(folder, "A").end(Traffic(), revealed={}, outcome=None, error="nobody came")
    RunFolder(folder, "A").end(Traffic(), revealed={}, outcome=None, error="nobody came")
    RunFolder(folder, "A", fresh=True).take_place()
    assert not (folder / "run.json").exists()
    assert len(list(tmp_path.glob("run-*"))) == 1


def test_a_finished_run_is_put_aside_and_an_unfinished_one_too_if_asked(tmp_path):
    from vfgnn.party.folder import RunFolder, write_json

    folder = tmp_path / "run"
    write_json(folder / "run.json", {"run": "one", "state": "failed"})
    RunFolder(folder, "A")
    assert (folder / "run.json").is_file()
    RunFolder(folder, "A", fresh=True).take_place()
    assert not (folder / "run.json").exists()
    assert (tmp_path / "run-one" / "run.json").is_file()


def test_a_new_run_leaves_the_folder_alone_while_another_process_uses_it(tmp_path):
    """A party that serves reads its model again in every pass."""
    from vfgnn.party.folder import hold, write_json
    from vfgnn.party.train import run_party

    local = small(tmp_path / "federation")
    party = load_party(local.party_toml("A"))
    write_json(party.run_folder / "run.json", {"run": "one", "state": "finished"})
    held = hold(party.run_folder, "A")
    try:
        with pytest.raises(CheckpointRefused, match="another process of A uses this run folder"):
            run_party(local.file, party, fresh=True)
    finally:
        os.close(held)
    assert (party.run_folder / "run.json").is_file()
