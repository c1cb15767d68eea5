"""A record that lacks a key, or has something else in it, is refused by name; no mutation ends in a traceback."""

import copy
import json
import os
from types import SimpleNamespace

import pyarrow as pa
import pytest
import torch

from tests.conftest import random_graph
from tests.network import small
from vfgnn.checkpoint import Checkpoints
from vfgnn.data import prepared
from vfgnn.data.partition import partition
from vfgnn.errors import CheckpointRefused, DataError, VfgnnError
from vfgnn.lab.federation import split_labels
from vfgnn.lab.processes import LocalProcesses, Progress
from vfgnn.party import aligning
from vfgnn.party.folder import (
    RunFolder,
    read_cpu_seconds,
    read_outcome,
    read_peak_bytes,
    read_run_seconds,
    read_ticks,
    read_traffic,
)
from vfgnn.party.own_data import OwnData
from vfgnn.party.released import Released
from vfgnn.records import EpochMetrics, Outcome, Traffic
from vfgnn.tensor_file import read_tensors, write_tensors

OTHERS = [None, -1, 2**70, 0.5, "x", "../../x", [], [[]], {}, {"a": 1}, float("nan"), float("inf"), True]


def mutations(content):
    """The same document with each key or entry, at any depth, gone or something else."""
    yield from OTHERS
    for place in places(content):
        for other in (..., *OTHERS):
            changed = copy.deepcopy(content)
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            if other is ...:
                del inner[place[-1]]
            else:
                inner[place[-1]] = other
            yield changed


def places(content, above=()):
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in inner:
        yield (*above, key)
        yield from places(value, (*above, key))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """A label holder's records of a run of two epochs."""
    local = small(tmp_path_factory.mktemp("records") / "federation")
    folder = RunFolder(local.run_folder("A"), "A")
    folder.begin("run", 0, local.file)
    for epoch in range(2):
        folder.add_metrics(EpochMetrics(epoch, 1.0, 0.5))
    traffic = Traffic()
    traffic.count(phase="forward", sender="A", receiver="B", size=8)
    outcome = Outcome(1, 0.5, 0.5, (), {"accuracy": 0.5})
    folder.end(traffic, revealed={"h0": 3}, outcome=outcome, error=None)
    folder.log.write_text(json.dumps({"event": "epoch", "epoch": 1, "cpu_s": 1.5}) + "\n")
    return local


def read_all(local, path):
    """Everything that reads a run folder's records; how often one was refused."""

    def again():
        begun = RunFolder(path, "A")
        begun.begin("run", 1, local.file)

    def watched():
        running = LocalProcesses(SimpleNamespace(run_folder=lambda name: path))
        running.progress["A"], running._read["A"] = Progress(), (0, 0)
        running._read_logs()

    refused = 0
    readers = (read_outcome, read_peak_bytes, read_ticks, read_cpu_seconds, read_traffic, read_run_seconds)
    for read in (*(lambda one=one: one(path) for one in readers), watched, again):
        try:
            read()
        except VfgnnError as error:
            refused += 1
            assert isinstance(error, DataError)
            assert str(path) in str(error)
    return refused


@pytest.mark.parametrize("name", ["run.json", "traffic.json", "metrics.jsonl", "log.jsonl"])
def test_records_of_a_run(local, tmp_path, name):
    home, refused = local.run_folder("A"), 0
    originals = {path.name: path.read_text() for path in home.iterdir() if path.is_file()}
    lines = name.endswith("l")
    content = json.loads(originals[name].splitlines()[0]) if lines else json.loads(originals[name])
    for number, changed in enumerate(mutations(content)):
        folder = tmp_path / str(number)
        folder.mkdir()
        for one, text in originals.items():
            (folder / one).write_text(text)
        (folder / name).write_text(json.dumps(changed) + "\n")
        refused += read_all(local, folder)
    assert refused > 10


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 100_000, b"{"])
@pytest.mark.parametrize("name", ["run.json", "traffic.json", "metrics.jsonl", "log.jsonl"])
def test_records_that_are_no_json(local, tmp_path, name, content):
    for path in local.run_folder("A").iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(content + b"\n" if path.name == name else path.read_bytes())
    assert read_all(local, tmp_path)


def data_files(folder):
    graph = random_graph()
    sparse, dense = partition(graph.x, graph.edge_index, holders=2, seed=0)
    prepared.save_holding(folder / "sparse", type(dense)(x=torch.eye(40), edge_index=sparse.edge_index))
    prepared.save_holding(folder / "dense", type(dense)(x=dense.x + 1, edge_index=dense.edge_index))
    prepared.save_labels(folder / "labels", split_labels(graph))
    aligning.keep(folder, "run", 3, torch.arange(3), OwnData(tables=None))
    (folder / aligning.KEPT).rename(folder / "alignment")
    Released(folder, "run").add(["a", "b"], torch.ones(2, 3))
    (folder / "released.safetensors").rename(folder / "released")
    made = Checkpoints(folder / "steps", party="A", federation="f", scheduled=[0])
    made.go_back("run", 0)
    made.remember(0, {"w": torch.ones(2), "count": torch.tensor(1)})
    made.write(0)
    (folder / "steps" / "step-00000000.safetensors").rename(folder / "checkpoint")


class Tables:
    """As much of a holder's tables as aligning looks at."""

    nodes = SimpleNamespace(ids=pa.array(["a", "b", "c"]))

    def digest(self, rows):
        return "order"


READERS = {
    "sparse": prepared.load_holding,
    "dense": prepared.load_holding,
    "labels": prepared.load_labels,
    "alignment": lambda path: (
        aligning.fitted(path.parent),
        aligning.kept(path.parent, "run", OwnData(tables=None)),
        aligning.kept(path.parent, "run", SimpleNamespace(tables=Tables())),
    ),
    "released": lambda path: Released(path.parent, "run").of(["a"]),
    "checkpoint": lambda path: Checkpoints(path.parent, party="A", federation="f", scheduled=[0]),
}
NAMES = {
    "alignment": aligning.KEPT,
    "released": "released.safetensors",
    "checkpoint": "step-00000000.safetensors",
}


def changed_tensors(tensors):
    for name, tensor in tensors.items():
        without = {one: value for one, value in tensors.items() if one != name}
        yield without
        for other in (
            tensor.to(torch.float16),
            tensor.to(torch.int8),
            tensor.to(torch.int16),
            tensor.to(torch.bool),
            tensor.reshape(-1)[:1],
            tensor.reshape(-1)[:0],
            tensor.unsqueeze(0),
            tensor - 5 if tensor.dtype != torch.bool else tensor,
            torch.full_like(tensor, 100),
            torch.tensor(3),
        ):
            yield {**without, name: other}


@pytest.mark.parametrize("name", READERS)
def test_files_of_tensors(tmp_path, name):
    data_files(tmp_path / "made")
    about, tensors = read_tensors(tmp_path / "made" / name, "x", DataError)
    path, refused = tmp_path / NAMES.get(name, name), 0
    cases = [(one, tensors) for one in mutations(about)] + [(about, one) for one in changed_tensors(tensors)]
    for described, content in cases:
        write_tensors(path, content, described)
        try:
            READERS[name](path)
        except (DataError, CheckpointRefused) as error:
            refused += 1
            assert str(path) in str(error), error
    assert refused > len(cases) / 4


def test_the_missing_keys_that_were_found(tmp_path):
    data_files(tmp_path)
    _, tensors = read_tensors(tmp_path / "labels", "x", DataError)
    write_tensors(tmp_path / "labels", tensors, {"kind": "labels"})
    with pytest.raises(DataError, match="how many classes"):
        prepared.load_labels(tmp_path / "labels")
    _, tensors = read_tensors(tmp_path / "sparse", "x", DataError)
    write_tensors(tmp_path / "sparse", tensors, {"kind": "holding"})
    with pytest.raises(DataError, match="features that cannot be read"):
        prepared.load_holding(tmp_path / "sparse")
