"""Tables in, predictions out: holders that bring ids, as processes."""

import csv
import json
import random
import re
import subprocess
import sys

import pyarrow.parquet
import pytest
import torch
from safetensors.torch import load_file

from tests.e2e.test_kills import survive
from tests.tables import federation_of_tables, vfgnn, write
from vfgnn.data.tables import Columns, read_nodes
from vfgnn.errors import PartyFailed
from vfgnn.files import load_party
from vfgnn.lab.processes import LocalProcesses
from vfgnn.party import aligning
from vfgnn.party.own_data import load_data
from vfgnn.party.trained import NOT_SHARED, OK, UNKNOWN
from vfgnn.report.run.page import make_page


def shared_ids(local, holders):
    known = [set(read_nodes(local.folder / name / "nodes.csv", Columns()).ids.to_pylist()) for name in holders]
    return set.intersection(*known)


def run(local):
    with LocalProcesses(local) as running:
        running.wait()
    return {name: json.loads((local.run_folder(name) / "run.json").read_text()) for name in local.names}


def predict(local, *words, all_say=()):
    """All parties at once; the output of the label holder, or what the first that failed said."""
    children = {}
    for name in local.names:
        own = [*all_say, *(str(word) for word in words if name == local.file.label_holder)]
        command = [
            sys.executable,
            "-m",
            "vfgnn",
            "predict",
            str(local.federation_toml),
            str(local.party_toml(name)),
            *own,
        ]
        children[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = {name: child.communicate(timeout=120)[0] for name, child in children.items()}
    assert {name: child.returncode for name, child in children.items()} == dict.fromkeys(children, 0), said
    return said


def rows_of(path):
    with path.open() as file:
        return {row["id"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    local = federation_of_tables(tmp_path_factory.mktemp("tables") / "federation")
    return local, run(local)


def test_all_agree_on_the_common_nodes(trained):
    local, about = trained
    common = shared_ids(local, ("bank", "shop"))
    assert {name: found["nodes"] for name, found in about.items()} == dict.fromkeys(local.names, len(common))
    assert set(about["bank"]["outcome"]["scores"]) == {"accuracy", "f1", "auc", "average_precision"}


def test_the_label_holder_sees_what_its_own_data_gives_by_itself(trained):
    local, about = trained
    federation, alone = about["bank"]["outcome"]["scores"], about["bank"]["alone"]["scores"]
    assert federation.keys() == alone.keys() and "alone" not in about["shop"] and "alone" not in about["server"]
    assert all(0 <= value <= 1 for value in alone.values())
    said = (local.folder / "bank" / "output.txt").read_text()
    for name, value in federation.items():
        assert re.search(rf"{name.replace('_', ' ')} +{alone[name]:.4f} +{value:.4f}", said)
    page = make_page([local.run_folder(name) for name in local.names])
    assert "Was it worth it?" in page and f"{alone['accuracy']:.4f}" in page and "bank alone" in page
    assert "Was it worth it?" not in make_page([local.run_folder("shop")])  # it does not know


def test_nothing_leaves_for_the_comparison(trained):
    """It begins when the run's log is sealed, and that has no message afterwards."""
    local, _ = trained
    lines = [json.loads(line) for line in (local.run_folder("bank") / "log.jsonl").read_text().splitlines()]
    events = [line["event"] for line in lines]
    begins = next(i for i, event in enumerate(events) if event.startswith("training on own data alone"))
    assert events.index("run ended") < begins
    sealed_at = (local.run_folder("bank") / "messages.seal.json").stat().st_mtime
    assert (local.run_folder("bank") / "messages.jsonl").stat().st_mtime <= sealed_at
    assert not [event for event in events[begins:] if "connect" in event]


def test_each_holder_is_told_how_many_of_its_ids_are_common(trained):
    local, about = trained
    for name in ("bank", "shop"):
        lines = [json.loads(line) for line in (local.run_folder(name) / "log.jsonl").read_text().splitlines()]
        (aligned,) = [line for line in lines if line["event"] == "nodes aligned"]
        own, common = len(rows_of(local.folder / name / "nodes.csv")), about[name]["nodes"]
        assert aligned["common"] == f"{common} of your {own} ids ({100 * common / own:.0f} %)"


def test_too_few_common_ids_end_a_run_at_who_says_so(tmp_path):
    local = federation_of_tables(tmp_path / "federation")
    path = local.party_toml("shop")
    path.write_text(path.read_text().replace("# min_common = 0.1", "min_common = 0.99"))
    with LocalProcesses(local) as running, pytest.raises(PartyFailed):
        running.wait()
    said = {name: (local.folder / name / "output.txt").read_text() for name in local.names}
    assert "too few ids of shop are common to all holders" in said["shop"] and "at least 99 %" in said["shop"]
    assert "yours are text of" in said["shop"] and "of your" in said["shop"]
    assert not (local.run_folder("shop") / aligning.KEPT).is_file()


def test_predictions_are_the_trained_models_and_say_where_there_are_none(trained, tmp_path):
    local, about = trained
    common, out = sorted(shared_ids(local, ("bank", "shop"))), tmp_path / "predictions.parquet"
    strangers = ["only-bank-0", "nobody", "only-shop-0", common[0]]
    write(tmp_path / "ask.csv", ["id"], [[one] for one in [*common, *strangers]])
    predict(local, "--nodes", tmp_path / "ask.csv", "--out", out)
    table = pyarrow.parquet.read_table(out)
    assert table["status"].to_pylist() == [OK] * len(common) + [NOT_SHARED, UNKNOWN, UNKNOWN, OK]
    assert table["class"].to_pylist()[len(common) : -1] == [None] * 3
    for row in table.to_pylist()[: len(common)]:
        assert row["probability of bad"] + row["probability of good"] == pytest.approx(1.0)
    party = load_party(local.party_toml("bank"))
    data = load_data(local.file, party)
    rows = load_file(party.run_folder / aligning.KEPT)["rows"]
    test = aligning.over(local.file, data, rows).labels.test
    ids = [data.tables.nodes.ids[int(row)].as_py() for row in rows[test]]
    labels = {one: row["label"] for one, row in rows_of(local.folder / "bank" / "labels.csv").items()}
    said = dict(zip(table["id"].to_pylist(), table["class"].to_pylist(), strict=True))
    right = sum(said[one] == labels[one] for one in ids) / len(ids)
    assert right == pytest.approx(about["bank"]["outcome"]["test_accuracy"])


def refused(*words, code=2):
    result = subprocess.run([sys.executable, "-m", "vfgnn", *map(str, words)], capture_output=True, text=True)
    assert result.returncode == code, result.stderr
    return result.stderr


def test_a_model_of_another_federation_is_refused(trained, tmp_path):
    local, _ = trained
    text = local.federation_toml.read_text().replace("epochs = 20", "epochs = 21")
    (tmp_path / "federation.toml").write_text(text)
    said = refused("predict", tmp_path / "federation.toml", local.party_toml("shop"))
    assert "checkpoint of another federation" in said


def test_a_table_that_changed_since_the_run_is_refused(trained):
    local, _ = trained
    path = local.folder / "shop" / "nodes.csv"
    before = path.read_text()
    header, first, second, *rest = before.splitlines()
    path.write_text("\n".join([header, second, first, *rest]) + "\n")
    try:
        assert "have changed since this run began" in refused(
            "predict", local.federation_toml, local.party_toml("shop")
        )
    finally:
        path.write_text(before)


def test_predict_before_a_run_is_refused(tmp_path):
    local = federation_of_tables(tmp_path / "federation")
    assert "no trained model" in refused("predict", local.federation_toml, local.party_toml("shop"))
    assert "--out" in refused("predict", local.federation_toml, local.party_toml("bank"))


def test_tables_that_are_not_as_declared_are_refused(tmp_path):
    local = federation_of_tables(tmp_path / "federation")
    path = local.folder / "shop" / "nodes.csv"
    path.write_text(
        "\n".join(line + ",1" if i else line + ",extra" for i, line in enumerate(path.read_text().splitlines()))
    )
    said = refused("run", local.federation_toml, local.party_toml("shop"))
    assert "features = 2" in said and "features = 3" in said


def test_the_plan_reads_tables(tmp_path):
    local = federation_of_tables(tmp_path / "federation")
    said = vfgnn("plan", local.federation_toml, local.party_toml("bank"))
    assert "rounds per epoch" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("holders", "mode", "flags"),
    [
        (("bank", "shop", "phone"), "individual", ["--keep-local-neighbours"]),
        (("bank", "shop", "phone", "rail"), "individual", []),
        (("bank", "shop"), "collaborative", []),
        (("bank", "shop", "phone"), "collaborative", []),
    ],
)
def test_more_holders_and_both_modes(tmp_path, holders, mode, flags):
    local = federation_of_tables(
        tmp_path / "federation",
        holders,
        mode=mode,
        dealer=mode == "collaborative",
        flags=flags,
        settings=["accept_h0_leak=true"],
        count=200,  # so that a test part has more than a handful of them: who is in it is drawn anew with every key
    )
    about = run(local)
    nodes = len(shared_ids(local, holders))
    assert {found["nodes"] for found in about.values()} == {nodes}
    out = tmp_path / "predictions.csv"
    predict(local, "--out", out)
    assert len(rows_of(out)) == nodes
    assert torch.tensor(about["bank"]["outcome"]["test_accuracy"]) > 0.3


@pytest.mark.slow
def test_kills_during_alignment_and_training_change_no_node(tmp_path):
    local = federation_of_tables(tmp_path / "federation", settings=["epochs=300", "patience=300"])
    done = survive(local, 6, random.Random(3))
    assert sum(done.values()) == 6
    about = {name: json.loads((local.run_folder(name) / "run.json").read_text()) for name in local.names}
    assert {found["nodes"] for found in about.values()} == {len(shared_ids(local, ("bank", "shop")))}
    assert {found["state"] for found in about.values()} == {"finished"}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["individual", "collaborative"])
def test_ids_that_came_after_training_are_predicted(tmp_path, mode):
    local = federation_of_tables(
        tmp_path / "federation", mode=mode, dealer=mode == "collaborative", settings=["accept_h0_leak=true"]
    )
    run(local)
    predict(local, "--out", tmp_path / "before.csv")
    common = sorted(shared_ids(local, ("bank", "shop")))
    for name in ("bank", "shop"):
        with (local.folder / name / "nodes.csv").open("a") as nodes:
            nodes.write("new-1,4.5,3\nnew-2,-3.0,1\n" + f"new-only-{name},0.0,0\n")
        with (local.folder / name / "edges.csv").open("a") as edges:
            edges.write("new-1,new-2\n")  # nobody else's neighbour: all other rows stay what they were
    write(tmp_path / "ask.csv", ["id"], [[one] for one in [*common, "new-1", "new-2", "new-only-bank"]])
    predict(local, "--nodes", tmp_path / "ask.csv", "--out", tmp_path / "after.csv", all_say=["--new-nodes"])
    before, after = rows_of(tmp_path / "before.csv"), rows_of(tmp_path / "after.csv")
    for one in common:
        assert float(after[one]["probability of bad"]) == pytest.approx(
            float(before[one]["probability of bad"]), abs=1e-4
        )
    assert after["new-1"]["status"] == after["new-2"]["status"] == OK
    assert after["new-only-bank"]["status"] == NOT_SHARED
    predict(local, "--out", tmp_path / "again.csv")  # without --new-nodes: the nodes of training alone
    assert set(rows_of(tmp_path / "again.csv")) == set(common)
