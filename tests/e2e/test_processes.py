"""Real processes with real keys: the same result as in one process, and nothing left behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.conftest import random_graph
from tests.network import check_tls13, proxied, rewrite, small
from tests.protocol.test_corner_cases import CASES, cut
from vfgnn.data.partition import partition
from vfgnn.errors import ExitCode, PartyFailed
from vfgnn.files import Patience
from vfgnn.lab.federation import split_labels
from vfgnn.lab.processes import LocalProcesses
from vfgnn.lab.simulate import build

COMMAND = [str(Path(sys.executable).parent / "vfgnn")]


def in_one_process(local, holdings, graph, seed):
    parties = build(holdings, split_labels(graph), local.file.settings, seed=seed)
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as each process has: sums in the same order
    try:
        return parties.train(), parties.traffic
    finally:
        torch.set_num_threads(before)


def assert_equal(local, holdings, graph, seed=0):
    with LocalProcesses(local) as running:
        running.wait()
    outcome, traffic = in_one_process(local, holdings, graph, seed)
    assert local.outcome == outcome  # every loss and every accuracy, bit by bit
    counted = {link: (found.messages, found.bytes) for link, found in local.traffic.links.items()}
    assert counted == {link: (found.messages, found.bytes) for link, found in traffic.links.items()}


RUNS = {
    "2 holders, sage_mean, all rows published": (2, {"publish": "all"}),
    "3 holders, gat": (3, {"gnn": "gat", "combine": "concat"}),
    "4 holders, sage_pool": (4, {"gnn": "sage_pool", "combine": "regression"}),
    "2 holders, individual, gcn: no dealer": (2, {"gnn": "gcn", "initial_embedding": "individual"}),
    "2 holders, appnp, frozen after 2 epochs": (2, {"gnn": "appnp", "combine": "confidence", "joint_layer_epochs": 2}),
}


QUICK = ("2 holders, sage_mean, all rows published", "2 holders, individual, gcn: no dealer")


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in RUNS]
)
def test_processes_train_the_same_model_as_one_process(tmp_path, case):
    holders, settings = RUNS[case]
    graph = random_graph()
    holdings = partition(graph.x, graph.edge_index, holders=holders, seed=0)
    local = small(tmp_path / "federation", holdings=holdings, graph=graph, **settings)
    assert len(local.names) == holders + (1 if "no dealer" in case else 2)
    assert_equal(local, holdings, graph)


@pytest.mark.parametrize("holders", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_sealed_training_needs_holders_and_a_dealer(tmp_path, holders):
    """Data that is aligned already needs no server; everything is as in one process."""
    graph = random_graph()
    holdings = partition(graph.x, graph.edge_index, holders=holders, seed=0)
    local = small(tmp_path / "federation", holdings=holdings, graph=graph, protocol="sealed")
    assert local.names == ("dealer", *"ABC"[:holders])
    assert_equal(local, holdings, graph)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "settings"),
    [("a label holder without features", {"gnn": "sage_lstm"}), ("a holder without edges", {"gnn": "sage_mean"})],
)
def test_holders_that_lack_something(tmp_path, case, settings):
    graph = random_graph()
    parts = [(slice(0, 0), slice(0, 60)), (slice(None), slice(60, None))]
    holdings = cut(graph, *(parts if case.startswith("a label holder") else CASES[case]))
    local = small(tmp_path / "federation", holdings=holdings, graph=graph, **settings)
    assert_equal(local, holdings, graph)


def test_four_processes_with_proxies_between_all_of_them(tmp_path):
    """Every link is TLS 1.3; no header, no name and no feature value can be read on any of them."""
    graph = random_graph()
    graph.x[:, 0] = torch.arange(40) + 0.123456789
    local = small(tmp_path / "federation", graph=graph)
    secrets = [b"vfgnn run", b'"type"', b"websocket", b"local_embeddings", graph.x[:8, 0].numpy().tobytes()]
    with proxied(local, *local.names) as (through, proxies):
        with LocalProcesses(through) as running:
            running.wait()
        seen = [pair for proxy in proxies.values() for pair in proxy.seen if pair[1]]
    assert len(seen) == 5  # A-B, and each of them with server and dealer; server and dealer have nothing to say
    for pair in seen:
        check_tls13(*pair, secrets)


def test_every_party_keeps_its_own_records(tmp_path):
    local = small(tmp_path / "federation")
    with LocalProcesses(local) as running:
        running.wait()
    runs = {name: json.loads((local.run_folder(name) / "run.json").read_text()) for name in local.names}
    assert len({about["run"] for about in runs.values()}) == 1
    assert {about["federation"] for about in runs.values()} == {local.file.digest}
    assert {name for name, about in runs.items() if "outcome" in about} == {"A"}
    for name in local.names:
        folder = local.run_folder(name)
        assert (folder / "metrics.jsonl").exists() == (name == "A")
        events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        assert {"time", "party", "event"} <= events[0].keys()
        assert [event["epoch"] for event in events if event["event"] == "epoch"] == list(range(5))
        assert any("loss" in event for event in events) == (name == "A")
        assert "loss" not in (local.folder / name / "output.txt").read_text() or name == "A"
        for link in json.loads((folder / "traffic.json").read_text()):
            assert name in (link["sender"], link["receiver"])
            assert link.keys() == {"phase", "sender", "receiver", "messages", "bytes", "waited_s"}
    assert_own_keys(local)


def assert_own_keys(local):
    keys = [(local.folder / name / f"{name}.key.pem") for name in local.names]
    assert len({key.read_bytes() for key in keys}) == len(keys)
    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}


@pytest.mark.slow
def test_a_second_run_keeps_the_records_of_the_first(tmp_path):
    local = small(tmp_path / "federation", initial_embedding="individual", epochs=2)
    names = []
    for _ in range(2):
        with LocalProcesses(local) as running:
            running.wait()
        names.append(json.loads((local.run_folder("A") / "run.json").read_text())["run"])
    assert names[0] != names[1]
    assert (local.folder / "A" / f"run-{names[0]}" / "metrics.jsonl").is_file()


def test_differing_files_end_all_processes_by_name(tmp_path):
    local = small(tmp_path / "federation", patience=Patience(start_s=30, message_s=20, away_s=2))
    (tmp_path / "other").mkdir()
    other = rewrite(local, settings={"dim": 4})
    changed = tmp_path / "other" / "federation.toml"
    changed.write_text(other.federation_toml.read_text())
    rewrite(local, settings={"dim": 8})
    processes = [
        subprocess.Popen(
            [*COMMAND, "run", str(changed if name == "B" else local.federation_toml), str(local.party_toml(name))],
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in local.names
    ]
    said = dict(zip(local.names, (process.communicate(timeout=90)[1] for process in processes), strict=True))
    assert {process.returncode for process in processes} == {ExitCode.PEER}
    for name in ("A", "B"):
        assert "settings.dim" in said[name]
        assert "copy it to all parties" in said[name]
    assert all("Traceback" not in text for text in said.values())


def test_the_first_failure_is_named(tmp_path):
    local = small(tmp_path / "federation")
    (local.folder / "B" / "data" / "holding.safetensors").write_bytes(b"")
    with pytest.raises(PartyFailed, match="B failed") as caught, LocalProcesses(local) as running:
        running.wait()
    assert "the holding file cannot be read" in str(caught.value)
    assert caught.value.exit_code == ExitCode.BAD_INPUT  # its own
    assert_nothing_left(local)


# nothing is left behind


def assert_nothing_left(local):
    """No process of this federation, and every port free."""
    deadline = time.monotonic() + 15
    while (alive := processes_of(local.folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive
    for party in local.file.parties.values():
        socket.create_server(("127.0.0.1", int(party.address.split(":")[1]))).close()
    assert not [path for path in local.folder.rglob("*") if path.name.endswith(".tmp")]


def processes_of(folder):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if str(folder).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def demo(folder, temporary):
    return subprocess.Popen(
        [*COMMAND, "demo", "--folder", str(folder), "--set", "epochs=500", "--set", "patience=500", "--set", "dim=8"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
        # A shell that started the tests in the background had SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for_training(folder, process):
    log = folder / "split" / "A" / "run" / "log.jsonl"
    deadline = time.monotonic() + 90
    while not (log.is_file() and '"epoch"' in log.read_text()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(
    "end",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_demo_leaves_no_process_port_or_temporary_file(tmp_path, end):
    from vfgnn.files import load_federation
    from vfgnn.lab.local_files import LocalFederation

    folder, temporary = tmp_path / "demo", tmp_path / "temporary"
    temporary.mkdir()
    process = demo(folder, temporary)
    try:
        wait_for_training(folder, process)
        process.send_signal(end)
        _, said = process.communicate(timeout=40)
    finally:
        process.kill()
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[end]
    assert "Traceback" not in said
    local = LocalFederation(folder / "split", load_federation(folder / "split" / "federation.toml"))
    assert_nothing_left(local)
    assert list(temporary.iterdir()) == []
    for name in local.names:
        about = json.loads((local.run_folder(name) / "run.json").read_text())
        assert about["state"] == "failed"
        assert "Traceback" not in (local.folder / name / "output.txt").read_text()
