"""The Python API."""

import pytest
import torch
from torch import nn

import vfgnn
from tests.conftest import random_graph
from vfgnn.errors import ConfigError, DataError


class Mine(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x, edge_index):
        return self.linear(x).index_add(0, edge_index[1], x[edge_index[0]])


SMALL = {"dim": 8, "epochs": 5, "layers": 2}


def test_a_pyg_graph_and_a_module_of_ones_own():
    result = vfgnn.simulate(random_graph(), holders=3, gnn=Mine, dim=8, epochs=5)
    assert set(result.isolated) == {"A alone", "B alone", "C alone"}
    assert result.logits.shape == (40, 3)
    assert result.settings.gnn == "own"


def test_the_same_seed_gives_the_same_result():
    first, second = (vfgnn.simulate(random_graph(), seed=4, **SMALL) for _ in range(2))
    assert torch.equal(first.logits, second.logits)
    assert first.federated == second.federated
    assert first.joint == second.joint


def test_another_seed_gives_another_partition():
    first, second = (vfgnn.simulate(random_graph(), seed=seed, compare=False, **SMALL) for seed in (1, 2))
    assert not torch.equal(first.logits, second.logits)
    assert first.isolated == {}


@pytest.mark.parametrize("gnn", ["sage_mean", "sage_lstm", "sage_pool", "gcn", "gat", "appnp"])
def test_every_gnn_by_name(gnn):
    result = vfgnn.simulate(random_graph(), compare=False, **(SMALL | {"gnn": gnn}))
    assert 0 <= result.test_accuracy <= 1


def test_everyone_hears_of_every_epoch():
    heard = []
    vfgnn.simulate(random_graph(), on_epoch=lambda model, metrics: heard.append((model, metrics.epoch)), **SMALL)
    for model in ("federated", "A alone", "B alone", "joint"):
        assert [epoch for name, epoch in heard if name == model] == list(range(6))


def test_bytes_are_those_that_were_sent():
    """5 training steps and the last evaluation: by hand for two holders of d = 8, 4-byte floats, 8-byte words."""
    result = vfgnn.simulate(random_graph(), compare=False, publish="all", evaluate_every=5, **SMALL)
    rows, word, real = 40 * 8, 8, 4
    joint = 5 * (2 + 2) * rows * word  # refreshes at steps 1 .. 5: two updates, two shares
    forward = 6 * 2 * rows * real + 5 * rows * real + rows * real + 2  # rows; z_L; z_L evaluated; two control bytes
    backward = 5 * (1 + 2) * rows * real
    assert result.bytes_per_epoch == (joint + forward + backward) // 5


def test_bad_data_is_refused():
    graph = random_graph()
    graph.x[2, 3] = float("nan")
    with pytest.raises(DataError, match="row 2, column 3"):
        vfgnn.simulate(graph, **SMALL)
    graph = random_graph()
    graph.edge_index[0, 0] = 99
    with pytest.raises(DataError, match="node range"):
        vfgnn.simulate(graph, **SMALL)
    graph = random_graph()
    del graph.y
    with pytest.raises(DataError, match="labels missing"):
        vfgnn.simulate(graph, **SMALL)
    with pytest.raises(ConfigError, match="holders"):
        vfgnn.simulate(random_graph(), holders=0)


@pytest.mark.slow
def test_citeseer_through_the_whole_protocol():
    """The preset's own run on a real graph: every loss and every logit is that of the clear layer."""
    secure, clear = (
        vfgnn.simulate("citeseer", compare=False, joint_layer=layer) for layer in ("secure", "insecure_clear")
    )
    assert secure.federated == clear.federated
    assert torch.equal(secure.logits, clear.logits)
    assert secure.test_accuracy > 0.69


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("gnn", ["sage_mean", "sage_lstm", "sage_pool", "gcn", "gat", "appnp"])
@pytest.mark.parametrize("publish", ["needed", "all"])
def test_the_same_model_on_a_gpu(gnn, publish):
    """float64, dropout off: the same sums in another order, and on a GPU in no fixed order.

    After 5 steps a weight may differ by 5 * 1e-6 (Adam's division, derived in test_equals_autograd), a logit of d = 8
    such weights and a row of length 1 at most by sqrt(8) times that.
    """
    changes = SMALL | {"gnn": gnn, "precision": "float64", "dropout": 0.0, "publish": publish}
    on_cpu, on_gpu = (
        vfgnn.simulate(random_graph(), compare=False, device=device, **changes) for device in ("cpu", "cuda")
    )
    assert float((on_cpu.logits - on_gpu.logits).abs().max()) < 8**0.5 * 5e-6
