"""Tables in, a sealed training: holders that bring ids, as processes."""

import json
import re

import pytest
import torch

from tests.e2e.test_tables import predict, rows_of
from tests.network import rewrite
from tests.tables import sealed_federation_of_tables, write
from vfgnn.errors import ExitCode, PartyFailed
from vfgnn.files import load_party
from vfgnn.lab.processes import LocalProcesses
from vfgnn.model.ridge_training import train_ridge
from vfgnn.party import aligning
from vfgnn.party.own_data import load_data
from vfgnn.party.trained import NOT_SHARED, OK
from vfgnn.privacy.openings import read_openings
from vfgnn.settings import Settings


def run(local):
    with LocalProcesses(local) as running:
        running.wait()
    return {name: json.loads((local.run_folder(name) / "run.json").read_text()) for name in local.names}


def over_common_nodes(local, name):
    """What a holder's process had when its training began."""
    data, folder = load_data(local.file, load_party(local.party_toml(name))), local.run_folder(name)
    about = json.loads((folder / "run.json").read_text())
    return aligning.over(local.file, data, aligning.kept(folder, about["run"], data)[1])


@pytest.mark.parametrize(
    ("holders", "settings"),
    [
        (("bank", "shop"), ()),
        pytest.param(("bank", "shop", "phone"), ("sealed.opens=scores",), marks=pytest.mark.slow),
        pytest.param(("bank", "shop"), ("sealed.order=features",), marks=pytest.mark.slow),
    ],
)
def test_tables_are_trained_on_as_in_the_clear(tmp_path, holders, settings):
    """Two holders by PSI without a server, three by tokens with one; the model is that of everything in one place."""
    local = sealed_federation_of_tables(tmp_path / "federation", holders, settings=settings, count=200)
    assert list(local.names) == [*(["server"] if len(holders) > 2 else []), "dealer", *holders]
    about = run(local)
    own = [over_common_nodes(local, name) for name in holders]
    nodes = own[0].holding.nodes
    assert {found["nodes"] for found in about.values()} == {nodes}
    assert {name for name, found in about.items() if "outcome" in found} == {"bank"}
    sealed = local.file.settings.sealed.model_copy(
        update={"columns": "as they are", "own_degree": False, "scaled": False}
    )
    asked = Settings(**{**local.file.settings.model_dump(), "sealed": sealed.model_dump()})
    expected = train_ridge([one.holding for one in own], own[0].labels, asked)
    found = about["bank"]["outcome"]["scores"]
    assert set(found) == (
        {"accuracy", "f1", "auc", "average_precision"} if settings == ("sealed.opens=scores",) else {"accuracy", "f1"}
    )
    # One of 40 test rows may lie so close to the border that a rounding error of 1e-3 takes it across.
    assert found["accuracy"] == pytest.approx(expected.test_accuracy, abs=1 / len(own[0].labels.test) + 1e-9)
    assert found["accuracy"] > 0.6
    alone = train_ridge([own[0].holding], own[0].labels, asked)  # in the clear at both: the same numbers
    assert about["bank"]["alone"]["scores"] == alone.scores and "alone" not in about["shop"]
    said = (local.folder / "bank" / "output.txt").read_text()
    assert re.search(rf"accuracy +{alone.test_accuracy:.4f} +{found['accuracy']:.4f}", said)
    assert not torch.equal(own[0].holding.edge_index, own[1].holding.edge_index)


@pytest.mark.parametrize(
    ("settings", "limits", "said"),
    [
        ((), {"max_opened_rows": 50}, "shop refuses to open more: max_opened_rows = 50 would be exceeded"),
        pytest.param(("sealed.opens=scores",), {}, "shop does not allow scores to be opened", marks=pytest.mark.slow),
    ],
)
def test_more_than_was_agreed_is_refused_by_the_other_holder(tmp_path, settings, limits, said):
    """By its name, before anything is opened: its ledger has no line, and the label holder no outcome."""
    local = sealed_federation_of_tables(tmp_path / "federation", settings=settings)
    party = local.party_toml("shop")
    party.write_text(re.sub("^allow_scores = true", "", party.read_text(), flags=re.MULTILINE))
    with pytest.raises(PartyFailed, match=said) as failed:
        run(rewrite(local, limits=limits))
    assert failed.value.exit_code == ExitCode.REFUSED
    ledger = local.folder / "shop" / "opened_ledger.jsonl"
    assert not ledger.is_file() or read_openings(ledger) == []
    assert not list((local.folder / "bank").rglob("metrics.jsonl"))


@pytest.mark.slow
def test_ids_that_came_after_training_are_opened_once_and_counted(tmp_path):
    """Those that are asked for; the nodes of training are answered from what the label holder kept."""
    local = sealed_federation_of_tables(tmp_path / "federation")
    room = {"entry_bound": 1000}
    local = rewrite(local, bank=room, shop=room)
    nodes = run(local)["bank"]["nodes"]
    predict(local, "--out", tmp_path / "before.csv")
    before = rows_of(tmp_path / "before.csv")
    for name in ("bank", "shop"):
        with (local.folder / name / "nodes.csv").open("a") as table:
            table.write("new-1,4.5,3\nnew-2,-3.0,1\nnew-3,0.1,2\n" + f"new-only-{name},0.0,0\n")
        with (local.folder / name / "edges.csv").open("a") as table:
            table.write("new-1,new-2\n")
    ledger = local.folder / "shop" / "opened_ledger.jsonl"
    for ids, opened in ((["new-1", "new-2", "new-only-bank"], 2), (["new-2", "new-3"], 1), (["new-1"], 0)):
        counted = len(read_openings(ledger))
        write(tmp_path / "ask.csv", ["id"], [[one] for one in [*before, *ids]])
        predict(local, "--nodes", tmp_path / "ask.csv", "--out", tmp_path / "after.csv", all_say=["--new-nodes"])
        after = rows_of(tmp_path / "after.csv")
        assert {one: after[one] for one in before} == before and len(before) == nodes
        for one in ids:
            assert after[one]["status"] == (NOT_SHARED if one == "new-only-bank" else OK)
            assert (after[one]["class"] in ("good", "bad")) == (after[one]["status"] == OK)
        assert [one.rows for one in read_openings(ledger)[counted:]] == [opened] * bool(opened)
    assert not (local.folder / "bank" / "opened_ledger.jsonl").exists()
