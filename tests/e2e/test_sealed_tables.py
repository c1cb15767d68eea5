"""Tables in, a sealed training: holders that bring ids, as processes."""

import json

import pytest
import torch

from tests.tables import sealed_federation_of_tables
from vfgnn.files import load_party
from vfgnn.lab.processes import LocalProcesses
from vfgnn.model.ridge_training import train_ridge
from vfgnn.party import aligning
from vfgnn.party.own_data import load_data
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
    assert not torch.equal(own[0].holding.edge_index, own[1].holding.edge_index)
