"""Who may know what, seen from what the processes that users start have really loaded."""

import sys

import pytest

from tests.tables import federation_of_tables
from vfgnn.bench.serve import Served
from vfgnn.lab.processes import LocalProcesses

TELLING = (sys.executable, "-X", "importtime", "-m", "vfgnn")  # one line on standard error for each import
HOLDERS = (
    "vfgnn.model.contribution",
    "vfgnn.model.cg1",
    "vfgnn.model.cg3",
    "vfgnn.model.central",
    "vfgnn.split.holder",
    "vfgnn.split.label_holder",
    "vfgnn.split.joint_layer",
)
EVERYBODY = ("vfgnn.lab.processes", "vfgnn.lab.simulate", "vfgnn.lab.scenario")  # who is here has everybody's data
FORBIDDEN = {
    "server": ("vfgnn.data", "vfgnn.mpc", "torch_geometric", "numba", *HOLDERS, *EVERYBODY),
    "dealer": ("vfgnn.data", "vfgnn.model", "torch_geometric", *HOLDERS, *EVERYBODY),
}


def loaded(local, name):
    """The modules that a party's last process imported, by its own standard error; the file is then empty."""
    output = local.folder / name / "output.txt"
    lines = output.read_text(errors="replace").splitlines()
    output.unlink()
    found = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert "vfgnn.transport.network" in found, "\n".join(lines[-5:])
    return found


def unfit(local):
    """What server and dealer have loaded and may not, by party."""
    modules = {name: loaded(local, name) for name in local.names}
    assert "vfgnn.split.holder" in modules["bank"]  # the look is not a blind one
    return {name: sorted(m for m in modules[name] if m.startswith(FORBIDDEN[name])) for name in FORBIDDEN}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Three commands in a row: the run whose processes are looked at leaves the model of the other two."""
    flags, settings = ("--alignment", "tokens"), ["accept_h0_leak=true", "epochs=4", "dim=8"]
    local = federation_of_tables(
        tmp_path_factory.mktemp("loaded") / "federation", mode="collaborative", dealer=True, flags=flags,
        settings=settings,
    )  # fmt: skip
    with LocalProcesses(local, command=(*TELLING, "run")) as running:
        running.wait()
    return local, unfit(local)


def test_run(trained):
    assert trained[1] == {"server": [], "dealer": []}


def test_predict(trained, tmp_path):
    local, _ = trained
    words = dict.fromkeys(local.names, ("--new-nodes",))
    words["bank"] += ("--out", str(tmp_path / "predictions.csv"))
    with LocalProcesses(local, command=(*TELLING, "predict"), words=words) as running:
        running.wait()
    assert unfit(local) == {"server": [], "dealer": []}


def test_serve(trained):
    local, _ = trained
    served = Served(local)
    served.processes.command = (*TELLING, "serve")
    with served:
        pass
    assert unfit(local) == {"server": [], "dealer": []}


def test_the_look_can_fail(trained, tmp_path):
    """What `vfgnn run` once imported at every party would be found."""
    local, _ = trained
    once = "import vfgnn.lab.processes; from vfgnn.cli.main import main; main()"
    words = {"bank": ("--out", str(tmp_path / "predictions.csv"))}
    command = (sys.executable, "-X", "importtime", "-c", once, "predict")
    with LocalProcesses(local, command=command, words=words) as running:
        running.wait()
    found = unfit(local)
    assert {"vfgnn.data.holdings", "vfgnn.model.central", "torch_geometric"} <= set(found["server"]) & set(
        found["dealer"]
    )
