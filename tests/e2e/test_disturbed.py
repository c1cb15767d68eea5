"""What happens to processes and networks beside being killed: stopped for a while, cut off, another clock, a twin."""

import json
import os
import shutil
import signal
import subprocess
import time
from itertools import pairwise

import pytest

from tests.conftest import random_graph
from tests.e2e.test_processes import in_one_process
from tests.network import proxied, small
from vfgnn.data.partition import partition
from vfgnn.errors import ExitCode
from vfgnn.files import Patience, load_party, to_toml
from vfgnn.lab.local_files import free_ports
from vfgnn.lab.processes import VFGNN, LocalProcesses
from vfgnn.transport.endpoint import KEEP_ALIVE_S

PATIENCE = Patience(start_s=60, message_s=120, away_s=60)
CUT_S = 30
EPOCHS = 300

pytestmark = pytest.mark.slow


class Run:
    """A federation of processes whose result is known."""

    def __init__(self, folder, epochs=EPOCHS):
        self.graph = random_graph()
        self.holdings = partition(self.graph.x, self.graph.edge_index, holders=2, seed=0)
        self.local = small(folder, holdings=self.holdings, graph=self.graph, epochs=epochs, patience=PATIENCE)

    def events(self, name):
        lines = (self.local.run_folder(name) / "log.jsonl").read_text().splitlines()
        return [json.loads(line)["event"] for line in lines]

    def assert_whole(self):
        """Every loss of every epoch, once, bit by bit; and nobody had to go back a step."""
        outcome, _ = in_one_process(self.local, self.holdings, self.graph, 0)
        assert self.local.outcome == outcome
        for name in self.local.names:
            assert "going back to a common step" not in self.events(name)


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path / "federation")


def wait_for_epoch(running, epoch, name="A"):
    deadline = time.monotonic() + 120
    while running.progress[name].epoch < epoch:
        running.look()
        assert time.monotonic() < deadline and running.alive()
        time.sleep(0.01)


@pytest.mark.parametrize("name", ["A", "B", "server", "dealer"])
def test_a_process_that_is_stopped_for_a_while_goes_on(run, name):
    """For longer than its peers wait for a sign of life: they hang up, and it calls again when it is back."""
    with LocalProcesses(run.local) as running:
        wait_for_epoch(running, 5)
        running.children[name].send_signal(signal.SIGSTOP)
        try:
            time.sleep(4 * KEEP_ALIVE_S + 5)  # between two pings, and until the answer is overdue
        finally:
            running.children[name].send_signal(signal.SIGCONT)
        running.wait()
    run.assert_whole()
    others = [one for one in run.local.names if one != name]
    assert any("connection lost" in run.events(one) for one in others)


JUMP = """import os, sys, time
if os.environ.get("JUMPS_BY"):
    _time, _began = time.time, time.monotonic()
    def _jumping():
        late = time.monotonic() - _began > float(os.environ["JUMPS_AFTER"])
        return _time() + (float(os.environ["JUMPS_BY"]) if late else 0.0)
    time.time = _jumping
"""


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_jumps_changes_nothing(tmp_path, hours):
    """Nothing of a run depends on the time of day: one party's clock is set forward or back in the middle of it."""
    run = Run(tmp_path / "federation", epochs=600)
    (tmp_path / "jump").mkdir()
    (tmp_path / "jump" / "sitecustomize.py").write_text(JUMP)
    path = os.pathsep.join([str(tmp_path / "jump"), *filter(None, [os.environ.get("PYTHONPATH")])])
    # Each party loads its modules first, which takes some seconds here; a run of 600 epochs takes longer.
    jumping = ("env", f"PYTHONPATH={path}", f"JUMPS_BY={3600 * hours}", "JUMPS_AFTER=8")
    with LocalProcesses(run.local, wrap=lambda name: jumping if name == "B" else ()) as running:
        running.wait()
    run.assert_whole()
    lines = (run.local.run_folder("B") / "log.jsonl").read_text().splitlines()
    times = [time.mktime(time.strptime(json.loads(line)["time"][:19], "%Y-%m-%dT%H:%M:%S")) for line in lines]
    jumps = [later - before for before, later in pairwise(times)]
    assert max(jumps, key=abs) == pytest.approx(3600 * hours, abs=60)  # it was in the middle of the run


@pytest.mark.parametrize("how", ["hung up", "silent"])
def test_a_network_that_is_cut_for_half_a_minute(run, how):
    """Hung up and refused for 30 s, or without a byte for 30 s: nothing is lost, and nobody starts anew."""
    with proxied(run.local, "A", "server") as (through, proxies), LocalProcesses(through) as running:
        wait_for_epoch(running, 5)
        for proxy in proxies.values():
            if how == "silent":
                proxy.flows.clear()
            else:
                proxy.down = True
                proxy.cut()
        time.sleep(CUT_S)
        stood = running.progress["A"].epoch
        for proxy in proxies.values():
            proxy.down = False
            proxy.flows.set()
        running.wait()
    assert stood < EPOCHS
    run.assert_whole()
    assert ("connected again" in run.events("A")) == (how == "hung up")


def twin_of(local, name):
    """Everything of a party in another folder, its run included."""
    home = local.folder / f"another {name}"
    shutil.copytree(local.folder / name, home)
    party = load_party(local.party_toml(name)).model_dump(mode="json")
    own = {"run_folder": str(home / "run"), "listen": f"127.0.0.1:{free_ports(1)[0]}"}
    (home / "party.toml").write_text(to_toml({**party, **own}))
    return home / "party.toml"


def started(local, party_toml):
    command = [*VFGNN, str(local.federation_toml), str(party_toml)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("name", ["A", "B"])
def test_a_second_process_with_one_name_is_refused_and_the_first_goes_on(tmp_path, name):
    run = Run(tmp_path / "federation", epochs=2000)
    with LocalProcesses(run.local) as running:
        wait_for_epoch(running, 5)
        same = started(run.local, run.local.party_toml(name))
        assert same.returncode == ExitCode.BAD_INPUT and "another process" in same.stderr
        other = started(run.local, twin_of(run.local, name))
        assert other.returncode == ExitCode.PEER, other.stderr
        assert f"another process runs as {name}, and is connected" in other.stderr
        assert running.alive()
        running.wait()
    run.assert_whole()
    refused = [who for who in run.local.names if who != name and "refused" in run.events(who)]
    assert refused
