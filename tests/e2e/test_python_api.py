"""`vfgnn.Federation`, `train`, `predict`, and code of one's own in them."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import vfgnn
from tests.conftest import random_graph
from tests.network import small
from tests.own_code import DiscreteLaplace, WeightedMax
from vfgnn.errors import ConfigError, DataError, ModuleError
from vfgnn.files import load_party
from vfgnn.lab.processes import PartyFailed
from vfgnn.party.own_code import path_of
from vfgnn.privacy.ledger import read_releases

SMALL = {"dim": 8, "epochs": 4, "layers": 2}
ROOT = Path(__file__).parents[2]


def accuracy(answer, graph):
    return float((answer.y_pred == graph.y)[graph.test_mask].double().mean())


# holders' own graphs


def test_holders_own_graphs_are_what_a_split_gives():
    split = vfgnn.Federation.split(random_graph(), holders=3)
    again = vfgnn.Federation.of({name: split.data(name) for name in split.names})
    assert again.names == ("A", "B", "C")
    first, second = (vfgnn.simulate(one, compare=False, **SMALL) for one in (split, again))
    assert torch.equal(first.logits, second.logits)
    assert torch.equal(first.logits, vfgnn.simulate(random_graph(), holders=3, compare=False, **SMALL).logits)


def test_the_holder_with_the_labels_comes_first_and_others_may_lack_something():
    graph = random_graph()
    half = graph.edge_index[:, ::2]
    federation = vfgnn.Federation.of(
        {
            "shop": Data(x=graph.x[:, :6], edge_index=half),
            "registry": Data(x=graph.x[:, 6:]),
            "bank": Data(edge_index=graph.edge_index[:, 1::2], y=graph.y, num_nodes=40, **masks(graph)),
        }
    )
    assert federation.names == ("bank", "shop", "registry")
    result = vfgnn.simulate(federation, **SMALL)
    assert set(result.isolated) == {"bank alone", "shop alone", "registry alone"}
    assert federation.whole.x.shape == (40, 12) and federation.whole.edge_index.shape == graph.edge_index.shape
    assert "0.5" not in repr(federation) and "registry: Holding(nodes=40, features=6, edges=0)" in repr(federation)


def masks(graph):
    return {name: graph[name] for name in ("train_mask", "val_mask", "test_mask")}


def test_a_holders_graph_has_labels_only_where_they_are():
    graph = random_graph()
    federation = vfgnn.Federation.split(graph)
    assert torch.equal(federation.data("A").val_mask, graph.val_mask)
    assert set(federation.data("B").keys()) == {"x", "edge_index", "num_nodes"}
    with pytest.raises(DataError, match="no such holder"):
        federation.data("C")


@pytest.mark.parametrize(
    ("holders", "said"),
    [
        ({"A": Data(num_nodes=4), "B": Data(num_nodes=4)}, "one holder must have the labels"),
        ({"A": random_graph(), "B": random_graph()}, "one holder must have the labels"),
        ({"A": random_graph(), "B": Data(num_nodes=4)}, "different nodes"),
        ({"A": Data(y=torch.zeros(4), num_nodes=4), "B": Data(num_nodes=4)}, "train_mask missing"),
    ],
)
def test_what_is_no_federation_is_refused(holders, said):
    with pytest.raises(DataError, match=said):
        vfgnn.Federation.of(holders)


def test_a_federation_is_not_split_again():
    with pytest.raises(ConfigError, match="split already"):
        vfgnn.simulate(vfgnn.Federation.split(random_graph()), holders=3, **SMALL)
    with pytest.raises(ConfigError, match="holders need names"):
        vfgnn.simulate(vfgnn.Federation.of({"server": random_graph()}), **SMALL)


def test_predictions_of_a_simulation_are_a_graphs():
    graph = random_graph()
    result = vfgnn.simulate(graph, compare=False, **SMALL)
    answer = vfgnn.predict(result)
    assert isinstance(answer, Data) and answer.num_nodes == 40
    assert accuracy(answer, graph) == pytest.approx(result.test_accuracy)
    assert torch.allclose(answer.probability, result.logits.double().softmax(dim=1))
    assert torch.allclose(answer.logits.exp(), answer.probability)


# code of one's own


class Mean(nn.Module):
    def __init__(self, holders, dim):
        super().__init__()

    def forward(self, rows):
        return rows.mean(dim=0)


@pytest.mark.parametrize("publish", ["needed", "all"])
def test_a_combine_that_does_what_ours_does_trains_the_same_model(publish):
    ours, own = (
        vfgnn.simulate(random_graph(), combine=combine, compare=False, publish=publish, hidden_layers=1, **SMALL)
        for combine in ("mean", Mean)
    )
    assert own.settings.combine == "own"
    assert own.federated == ours.federated and torch.equal(own.logits, ours.logits)


def test_a_combine_with_weights_learns_and_is_compared():
    result = vfgnn.simulate(random_graph(), combine="tests.own_code:WeightedMax", holders=3, **SMALL)
    assert result.joint is not None and set(result.isolated) == {"A alone", "B alone", "C alone"}


def test_a_mechanism_is_charged_by_what_it_says_of_itself():
    settings = SMALL | {"combine": "mean", "privacy": {"row_epsilon": 8.0}}
    result = vfgnn.simulate(random_graph(), mechanism=DiscreteLaplace, compare=False, **settings)
    (rows,) = result.privacy.guarantees
    assert rows.mechanism == "DiscreteLaplace, the holder's own, on rows clipped to 1"
    assert rows.epsilon_per_release == 8.0 and rows.noise_multiplier is None
    assert rows.epsilon_total == pytest.approx(4 * 8.0, rel=1e-4)  # 4 releases of a training row; delta takes 1e-4 off
    with pytest.raises(ModuleError, match="not for these settings"):
        vfgnn.simulate(random_graph(), mechanism=DiscreteLaplace, compare=False, **SMALL)


def test_code_that_other_processes_cannot_find_is_refused_before_anything_is_started(tmp_path):
    class Local(Mean):
        pass

    with pytest.raises(ConfigError, match="other processes cannot find"):
        vfgnn.train(random_graph(), folder=tmp_path / "federation", combine=Local, **SMALL)
    assert not list(tmp_path.glob("federation/*"))
    assert path_of(WeightedMax) == "tests.own_code:WeightedMax"


# processes


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return vfgnn.train(random_graph(), folder=tmp_path_factory.mktemp("api") / "f", insecure_seed=0, **SMALL)


@pytest.mark.slow
def test_processes_train_and_predict_what_a_simulation_does(trained):
    graph = random_graph()
    simulated = vfgnn.simulate(graph, joint_layer="secure", compare=False, **SMALL)
    assert trained.federated.history == simulated.federated.history
    assert trained.test_accuracy == simulated.test_accuracy
    assert trained.bytes_per_epoch == simulated.bytes_per_epoch
    assert set(trained.folders) == {"server", "dealer", "A", "B"} and (trained.folder / "federation.toml").is_file()
    for answer in (vfgnn.predict(trained), vfgnn.predict(trained.folder)):
        assert torch.equal(answer.probability, vfgnn.predict(simulated).probability)


@pytest.mark.slow
def test_a_federation_that_was_never_trained_has_no_predictions(tmp_path):
    local = small(tmp_path / "federation")
    with pytest.raises(PartyFailed, match="no trained model"):
        vfgnn.predict(local.folder)


@pytest.mark.slow
def test_processes_find_a_users_own_code_by_its_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    held = vfgnn.Federation.split(random_graph())
    held = vfgnn.Federation.of({"bank": held.data("A"), "shop": held.data("B")})
    own = {"combine": WeightedMax, "mechanism": DiscreteLaplace, "privacy": {"row_epsilon": 8.0}}
    result = vfgnn.train(held, folder=tmp_path / "federation", insecure_seed=0, **SMALL, **own)
    assert load_party(result.folders["server"] / "party.toml").module == "tests.own_code:WeightedMax"
    assert load_party(result.folders["shop"] / "party.toml").mechanism == "tests.own_code:DiscreteLaplace"
    assert "own_code" not in (result.folder / "federation.toml").read_text()
    simulated = vfgnn.simulate(held, joint_layer="secure", compare=False, **SMALL, **own)
    assert result.federated.history == simulated.federated.history
    spent = read_releases(result.folders["shop"] / "privacy_ledger.jsonl")
    assert {(release.what, release.epsilon, release.noise_multiplier) for release in spent} == {("rows", 8.0, None)}
    assert result.privacy == simulated.privacy
