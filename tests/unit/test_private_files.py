"""What a party writes is its owner's alone, whatever the umask is; and there is one way to write."""

import ast
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest
import torch

import vfgnn
from tests.network import open_to_others, small
from tests.unit.test_message_log import PAYLOAD, message
from vfgnn import logs, writing
from vfgnn.checkpoint import Checkpoints
from vfgnn.files import load_party
from vfgnn.lab.processes import LocalProcesses
from vfgnn.locks import lock
from vfgnn.message_log import MessageLog
from vfgnn.party.folder import RunFolder, hold
from vfgnn.party.predict import write_table
from vfgnn.party.train import seal
from vfgnn.party.trained import PREDICTIONS, SERVING, Predictions, new_folder
from vfgnn.privacy.ledger import Ledger, Release
from vfgnn.records import EpochMetrics, Traffic

SOURCES = Path(vfgnn.__file__).parent


@pytest.fixture(params=[0o000, 0o022], ids=["umask 000", "umask 022"])
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def write_everything(home):
    """Each file of a party that is one of several kinds, written as the commands do."""
    local = small(home / "federation")
    party = load_party(local.party_toml("A"))
    held = hold(party.run_folder, "A")
    folder = RunFolder(party.run_folder, "A")
    logs.configure("A", file=folder.log, as_json=False)
    folder.begin("run", 0, local.file)
    folder.add_metrics(EpochMetrics(0, 1.0, 0.5))
    kept = Checkpoints(folder.checkpoints, party="A", federation="f", scheduled=[0])
    kept.go_back("run", 0)
    kept.remember(0, {"w": torch.ones(2)})
    kept.write(0)
    log = MessageLog(folder.messages)
    log.add("start", message(), PAYLOAD, bytes(32), phase="forward", step=3)
    seal(log, party)
    ledger = Ledger(party.privacy_ledger)
    ledger.charge(Release("r", 0, "rows", "row", ("train",), adjacency="zero_out", noise_multiplier=2.0))
    ledger.close()
    folder.end(Traffic(), revealed={}, outcome=None, error=None)
    for kind in (PREDICTIONS, SERVING):
        logs.configure("A", file=new_folder(party.run_folder, kind) / "log.jsonl", as_json=False)
    os.close(held)
    ids = pa.array(["a"])
    found = Predictions(ids, ids, ("x", "y"), torch.tensor([[0.5, 0.5]], dtype=torch.float64))
    for name in ("out.csv", "out.parquet"):
        write_table(found.table(None), local.folder / "A" / name)
    running = LocalProcesses(local, command=("true",), names=["A"])
    with running:
        running.children["A"].wait()
    return local.folder


def test_all_that_a_party_writes_is_its_owners_alone(tmp_path, umask):
    folder = write_everything(tmp_path)
    assert open_to_others(folder) == []
    names = {path.name for path in folder.rglob("*")}
    assert {"metrics.jsonl", "run.json", "federation.json", "traffic.json", "log.jsonl", "messages.jsonl"} <= names
    assert {"messages.seal.json", "privacy_ledger.jsonl", "privacy_ledger.jsonl.count", "run.lock"} <= names
    assert {"output.txt", "out.csv", "out.parquet", "party.toml", "federation.toml", "A.certificate.pem"} <= names


@pytest.mark.parametrize("guard", ["FILE", "FOLDER"])
def test_without_the_rule_they_would_be_readable(tmp_path, monkeypatch, guard):
    monkeypatch.setattr(writing, "_narrow", lambda path: None)
    monkeypatch.setattr(writing, guard, {"FILE": 0o644, "FOLDER": 0o755}[guard])
    before = os.umask(0o022)
    try:
        assert open_to_others(write_everything(tmp_path))
    finally:
        os.umask(before)


def test_what_an_older_version_left_open_is_narrowed(tmp_path):
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    for name in ("log.jsonl", "metrics.jsonl", "run.json", "checkpoints/old", "program"):
        (folder / name).write_text("{}")
        (folder / name).chmod(0o755 if name == "program" else 0o664)
    (folder / "elsewhere").symlink_to(tmp_path)
    tmp_path.chmod(0o755)
    RunFolder(folder, "A")
    assert open_to_others(folder) == []
    assert stat.S_IMODE((folder / "program").stat().st_mode) == 0o700
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755  # what is not ours stays as it was, also behind a link


def test_files_that_only_grow_are_narrowed_when_they_are_opened(tmp_path):
    for name in ("ledger.jsonl", "ledger.jsonl.lock"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o666)
    os.close(lock(tmp_path / "ledger.jsonl.lock", ValueError()))
    lines = writing.Lines(tmp_path / "ledger.jsonl")
    lines.open()
    lines.close()
    assert open_to_others(tmp_path) == []


def test_files_for_others_are_the_certificate_the_card_and_the_federation_file(tmp_path):
    from tests.tables import federation_of_tables

    before = os.umask(0o022)
    try:
        folder = federation_of_tables(tmp_path / "federation", count=20).folder
    finally:
        os.umask(before)
    meant = {path.name for path in open_to_others(folder) if path.is_file() and path.suffix != ".csv"}
    cards = {f"{name}.{kind}" for name in ("server", "bank", "shop") for kind in ("certificate.pem", "card.toml")}
    assert meant == {*cards, "federation.toml"}


# one way to write

CALLS = {"write_text", "write_bytes", "mkdir", "makedirs", "rename", "touch", "save_file", "FileHandler"}
ELSEWHERE = {
    "data/datasets.py": {"mkdir", "rename"},  # public data sets, in a cache
    "experiments/runner.py": {"mkdir"},  # results on public data sets
    "experiments/search.py": {"mkdir"},
    "experiments/batched/jobs.py": {"write_text"},  # where a search runs there may be torch and numpy alone
    "experiments/batched/main.py": {"open"},
    "bench/load.py": {"mkdir"},  # made-up tables in a temporary folder
    "tensor_file.py": {"open"},  # the temporary file of write_whole
}


def writes(tree):
    """The names of calls that write a file or make a folder."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            owner = getattr(getattr(node.func, "value", None), "id", None)
            given = [*node.args, *(one.value for one in node.keywords)]
            modes = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            opens = name == "open" and (owner == "os" or any(mode[:1] in ("a", "w", "x") for mode in modes))
            if opens or name in CALLS:
                yield name


def test_files_are_written_in_one_place():
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        here = set(writes(ast.parse(path.read_text())))
        if here and path.name != "writing.py":
            found[str(path.relative_to(SOURCES))] = here
    assert found == ELSEWHERE


OTHER_WAYS = """
path.open("a")
open(path, "wb")
path.open(mode="w")
path.write_text("x")
path.mkdir(parents=True)
os.open(path, 1)
save_file(tensors, path)
logging.FileHandler(path)
path.rename(other)
os.makedirs(path)
"""


@pytest.mark.parametrize("line", OTHER_WAYS.strip().splitlines())
def test_the_look_finds_other_ways(line):
    assert list(writes(ast.parse(line)))


@pytest.mark.parametrize("line", ["path.open()", 'path.open("rb")', "desk.open()", "open(path)"])
def test_the_look_leaves_reading_alone(line):
    assert not list(writes(ast.parse(line)))
