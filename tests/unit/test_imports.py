"""Who may know what, seen from what a fresh interpreter really loads."""

import subprocess
import sys
from pathlib import Path

import pytest


def loaded_by(statement):
    code = (
        f"import sys; {statement}; print(' '.join(m for m in sys.modules if m.startswith(('vfgnn', 'torch', 'numba'))))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_server_loads_neither_data_nor_mpc():
    loaded = loaded_by("import vfgnn.split.server")
    assert "vfgnn.split.server" in loaded
    forbidden = ("vfgnn.data", "vfgnn.mpc", "vfgnn.model.cg1", "vfgnn.model.cg3", "torch_geometric", "numba")
    assert not [name for name in loaded if name.startswith(forbidden)]


def test_the_joint_layer_needs_no_numba_before_it_multiplies_on_a_cpu():
    assert "numba" not in loaded_by("import vfgnn.split.joint_layer, vfgnn.mpc.gpu")


def test_the_dealer_loads_neither_data_nor_model():
    loaded = loaded_by("import vfgnn.split.dealer")
    assert "vfgnn.mpc.correlations" in loaded
    assert not [name for name in loaded if name.startswith(("vfgnn.data", "vfgnn.model", "torch_geometric"))]


def test_a_process_loads_no_role_before_it_knows_its_own():
    loaded = loaded_by("import vfgnn.party.train")
    assert "vfgnn.transport.network" in loaded
    forbidden = ("vfgnn.data", "vfgnn.mpc", "vfgnn.model", "vfgnn.split.holder", "torch_geometric", "numba")
    assert not [name for name in loaded if name.startswith(forbidden)]


@pytest.mark.parametrize("statement", ["import vfgnn", "import vfgnn.cli.main"])
def test_the_command_line_starts_without_torch(statement):
    assert "torch" not in loaded_by(statement)


ROOT = Path(__file__).parents[2]
FOREIGN = {"spu_jobs.py", "crypten_jobs.py"}  # of engines with environments of their own
WHOLE = {"quickstart.py"}  # runs when it is imported: tests/e2e/test_cli.py does that
SCRIPTS = [
    path
    for folder in ("tools", "examples", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.name not in FOREIGN | WHOLE and not any(part.startswith(".venv") for part in path.parts)
]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_script_can_be_imported(path):
    """In a process of its own, as it is started; `__name__` is not `__main__`, so that nothing runs but definitions."""
    code = f"import runpy; runpy.run_path({str(path)!r}, run_name='imported')"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=path.parent, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_the_python_api_is_there_when_asked_for():
    assert "vfgnn.lab.simulate" in loaded_by("from vfgnn import simulate")
