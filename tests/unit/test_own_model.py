"""What the label holder's own data gives by itself, after a run."""

import json

import pytest
import torch

from tests.conftest import random_graph
from vfgnn.data.holdings import Holding
from vfgnn.errors import ConfigError
from vfgnn.files import PartyFile
from vfgnn.lab.federation import labels_of
from vfgnn.model.central import CentralTraining
from vfgnn.party.folder import RunFolder
from vfgnn.party.own_data import OwnData
from vfgnn.party.own_model import note_alone, train_alone
from vfgnn.party.roles import seed_of
from vfgnn.settings import make_settings

SMALL = {"epochs": 4, "dim": 8, "layers": 2, "initial_embedding": "individual"}
PARTY = PartyFile(name="bank", key="k", certificate="c", insecure_seed=3)


def own_data(columns=12):
    graph = random_graph()
    return OwnData(Holding(graph.x[:, :columns], graph.edge_index), labels_of(graph))


@pytest.mark.parametrize("combine", ["concat", "mean", "regression", "confidence", "own"])
def test_the_federations_model_over_own_data(combine):
    data, settings = own_data(), make_settings({**SMALL, "combine": combine}, "here")
    reached = train_alone(PARTY, settings, data)
    if combine != "own":
        again = CentralTraining(data.holding, data.labels, settings, seed=seed_of(PARTY)).train()
        assert reached.scores == again.scores
    assert set(reached.scores) == {"accuracy", "f1", "auc", "average_precision"}


@pytest.mark.parametrize(
    ("columns", "changes", "why"),
    [(0, {}, "no columns to learn from"), (12, {"batch_rows": 8, "fanout": None}, "batch_rows is set")],
)
def test_where_there_is_no_such_model_the_record_says_why(tmp_path, columns, changes, why):
    settings, data = make_settings({**SMALL, **changes}, "here"), own_data(columns)
    with pytest.raises(ConfigError, match=why):
        train_alone(PARTY, settings, data)
    folder = RunFolder(tmp_path / "run", "bank")

    class Agreed:
        """Nothing of it is asked for but the settings."""

    agreed = Agreed()
    agreed.settings = settings
    note_alone(PARTY, agreed, data, folder)
    assert why in json.loads((folder.path / "run.json").read_text())["alone"]["reason"]
    note_alone(PARTY, agreed, OwnData(data.holding), folder)  # no labels: another holder


def test_it_can_be_switched_off(tmp_path):
    folder = RunFolder(tmp_path / "run", "bank")
    note_alone(PARTY.model_copy(update={"own_model": False}), None, own_data(), folder)
    assert not (folder.path / "run.json").is_file()


def test_sealed_columns_are_not_mapped_twice():
    data = own_data()
    sealed = {"kernel": "hops", "columns": "bins", "own_degree": True, "scaled": True}
    mapped = OwnData(Holding(data.holding.x.double(), data.holding.edge_index), data.labels)
    asked = [make_settings({"protocol": "sealed", "sealed": one}, "here") for one in (sealed, {"kernel": "hops"})]
    first, second = (train_alone(PARTY, settings, mapped) for settings in asked)
    assert first.scores == second.scores
    assert torch.equal(mapped.holding.x, data.holding.x.double())
