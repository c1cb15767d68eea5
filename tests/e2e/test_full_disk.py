"""A party's disk is full in the middle of a run: the others wait, and the result is the same."""

import time
from pathlib import Path

import pytest

from tests.conftest import random_graph
from tests.disks import fill, make_read_only, make_writable, small_disk
from tests.e2e.test_kills import wait_for_epoch
from tests.e2e.test_processes import in_one_process
from tests.network import small
from vfgnn.data.partition import partition
from vfgnn.errors import ExitCode
from vfgnn.files import Patience
from vfgnn.lab.processes import LocalProcesses
from vfgnn.party.session import DISK_SHARE

pytestmark = pytest.mark.slow


def federation(folder, **patience):
    graph = random_graph()
    holdings = partition(graph.x, graph.edge_index, holders=2, seed=0)
    local = small(folder, holdings=holdings, graph=graph, epochs=150, patience=Patience(**patience))
    return local, lambda: in_one_process(local, holdings, graph, 0)[0]


def wait_until_said(running, name, words, seconds=60):
    output, deadline = running.local.folder / name / "output.txt", time.monotonic() + seconds
    while words not in output.read_text(errors="replace"):
        assert time.monotonic() < deadline, output.read_text(errors="replace")
        running.look()
        time.sleep(0.05)


@pytest.mark.parametrize("name", ["A", "B", "server", "dealer"])
def test_full_for_a_while(tmp_path, name):
    local, undisturbed = federation(tmp_path / "federation", start_s=60, message_s=120, away_s=40)
    with small_disk(local.run_folder(name)) as disk, LocalProcesses(local) as running:
        wait_for_epoch(running, 15)
        fill(disk)
        wait_until_said(running, name, "the disk fails: tried again")
        time.sleep(2)
        assert all(child.poll() is None for child in running.children.values())
        (disk / "filler").unlink()
        running.wait()
        said = (local.folder / name / "output.txt").read_text()
        assert said.count("the disk fails: tried again") == said.count("the disk works again") >= 1
        assert "No space left on device" in said and "for_s=60" in said
        assert "Traceback" not in said
        assert local.outcome == undisturbed()


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_party_whose_disk_stays_so_leaves_and_comes_back(tmp_path, how):
    """The others wait for it as for one that was killed."""
    message_s = 40  # half of it for the disk, half of it to start the party again
    local, undisturbed = federation(tmp_path / "federation", start_s=60, message_s=message_s, away_s=60)
    with small_disk(local.run_folder("B")) as disk, LocalProcesses(local) as running:
        wait_for_epoch(running, 15)
        fill(disk) if how == "full" else make_read_only(disk / "checkpoints")
        assert running.children["B"].wait(60) == ExitCode.BAD_INPUT
        reason = "No space left on device" if how == "full" else "Read-only file system"
        said = running.said("B")
        assert f"cannot be written: {reason}" in said and "then start the same command again" in said
        whole = Path(local.folder / "B" / "output.txt").read_text()
        assert f"for_s={DISK_SHARE * message_s}" in whole
        assert "Traceback" not in whole
        time.sleep(1)
        others = [child for name, child in running.children.items() if name != "B"]
        assert all(child.poll() is None for child in others)  # nobody has failed
        if how == "full":
            (disk / "filler").unlink()
        else:
            make_writable(disk / "checkpoints")
        running.start("B")
        running.wait()
        assert local.outcome == undisturbed()
