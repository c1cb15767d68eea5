"""Separate hosts: network namespaces, each party with its own address, 100 Mbit/s and 50 ms; and what the plan said.

Where the kernel has no netem a proxy in each namespace keeps every byte for 50 ms instead. Needs root; skips otherwise.
"""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from tests.network import rewrite
from vfgnn.files import Patience, load_party, to_toml
from vfgnn.lab.local_files import write_federation
from vfgnn.lab.processes import LocalProcesses
from vfgnn.lab.scenario import Scenario
from vfgnn.party.folder import read_run_seconds
from vfgnn.plan.expected import Expected
from vfgnn.plan.plan import make_plan
from vfgnn.plan.sealed import make_sealed_plan
from vfgnn.sealed.record import sent_by_part
from vfgnn.split.program import training

MBIT, MS, EPOCHS = 100, 50, 12
LINES = {"bandwidth_mbit_s": MBIT, "latency_ms": MS}
SWITCH = "vfgnn-switch"


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], check=check, capture_output=True)


def allowed():
    if os.geteuid() or not shutil.which("ip") or not shutil.which("tc"):
        return False
    made = ip("netns", "add", "vfgnn-probe", check=False).returncode == 0
    ip("netns", "del", "vfgnn-probe", check=False)
    return made


@contextmanager
def hosts(names):
    """One namespace for each party, all on one switch; 100 Mbit/s out of each."""
    spaces = {name: f"vfgnn-{name}" for name in names}
    for space in (SWITCH, *spaces.values()):
        ip("netns", "del", space, check=False)
    try:
        ip("netns", "add", SWITCH)
        ip("-n", SWITCH, "link", "add", "br0", "type", "bridge")
        ip("-n", SWITCH, "link", "set", "br0", "up")
        for number, (name, space) in enumerate(spaces.items(), start=1):
            port = f"port{number}"
            ip("netns", "add", space)
            ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", SWITCH)
            ip("-n", SWITCH, "link", "set", port, "master", "br0", "up")
            ip("-n", space, "addr", "add", address(names, name) + "/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", space, "link", "set", "lo", "up")
            shape = ["tbf", "rate", f"{MBIT}mbit", "burst", "128kb", "latency", "5s"]
            ip("netns", "exec", space, "tc", "qdisc", "add", "dev", "eth0", "root", *shape)
        yield spaces
    finally:
        for space in (SWITCH, *spaces.values()):
            ip("netns", "del", space, check=False)


def separate(test):
    """Marks for a test that needs hosts of its own."""
    skip = pytest.mark.skipif(not allowed(), reason="network namespaces need root, ip and tc")
    return pytest.mark.slow(skip(test))


def address(names, name):
    return f"10.77.0.{names.index(name) + 1}"


@contextmanager
def delays(spaces, names):
    proxies = []
    try:
        for name, space in spaces.items():
            command = ["ip", "netns", "exec", space, sys.executable, str(Path(__file__).parents[1] / "delay_proxy.py")]
            ends = [f"{address(names, name)}:7443", "127.0.0.1:7444", str(MS)]
            proxies.append(subprocess.Popen([*command, *ends], stdout=subprocess.PIPE))
            assert proxies[-1].stdout.readline() == b"ready\n"
        yield
    finally:
        for proxy in proxies:
            proxy.kill()
            proxy.wait()
            proxy.stdout.close()


def apart(folder, scenario):
    """The files of a federation, each of whose parties is on a host of its own."""
    patience = Patience(start_s=60, message_s=60, away_s=20)
    local = write_federation(folder, scenario.holdings, scenario.labels, scenario.settings, patience=patience)
    names = list(local.names)
    local = rewrite(local, **{name: {"address": f"{address(names, name)}:7443"} for name in names})
    for name in names:
        own = load_party(local.party_toml(name)).model_dump(mode="json", exclude_none=True)
        local.party_toml(name).write_text(to_toml({**own, "listen": "127.0.0.1:7444"}))
    return local


def run(local):
    """All parties, each in its namespace."""
    names = list(local.names)
    with (
        hosts(names) as spaces,
        delays(spaces, names),
        LocalProcesses(local, wrap=lambda name: ["ip", "netns", "exec", spaces[name]]) as running,
    ):
        running.wait()


def expected(local, scenario):
    return Expected(local.file.agreement, len(scenario.labels.train), len(scenario.labels.val))


@separate
def test_separate_hosts_take_as_long_as_the_plan_says(tmp_path):
    overrides = {"epochs": EPOCHS, "patience": None}
    scenario = Scenario.of("citeseer", holders=2, preset="best", seed=0, **overrides)
    local = apart(tmp_path / "f", scenario)
    predicted = make_plan(expected(local, scenario), **LINES)
    run(local)
    ticks = local.ticks[2:-1]  # the first refreshes come with setup, the last step only evaluates
    measured = median(after - before for before, after in pairwise(ticks))
    assert local.outcome.test_accuracy > 0.6
    sent = local.traffic.bytes_in(*training(local.file.agreement).repeated) / EPOCHS
    print(f"measured {measured:.2f} s, predicted {predicted.seconds_per_epoch:.2f} s, {sent / 1e6:.1f} MB")  # noqa: T201
    assert sent == pytest.approx(predicted.bytes_per_epoch, rel=0.05)  # the last, evaluating step is counted too
    assert measured == pytest.approx(predicted.seconds_per_epoch, rel=0.25)


@separate
def test_a_sealed_training_takes_as_long_as_the_plan_says(tmp_path):
    """Two holders and the dealer, CiteSeer, the default steps and hops: predictions of all nodes included."""
    scenario = Scenario.of("citeseer", holders=2, protocol="sealed", seed=0)
    local = apart(tmp_path / "f", scenario)
    predicted = make_sealed_plan(expected(local, scenario), **LINES)
    run(local)
    measured, traffic = read_run_seconds(local.run_folder(local.file.label_holder)), local.traffic
    sent = sent_by_part(traffic)
    assert local.outcome.test_accuracy > 0.7
    print(f"measured {measured:.2f} s, predicted {predicted.seconds:.2f} s, {predicted.rounds} rounds, {sent}")  # noqa: T201
    assert sent == {
        "setup": predicted.bytes_setup,
        "offline": predicted.bytes_offline,
        "online": predicted.bytes_online,
    }
    assert measured == pytest.approx(predicted.seconds, rel=0.25)
