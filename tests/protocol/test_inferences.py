"""Two inferences that need no side knowledge: label clusters from one gradient, 0/1 columns from one reveal of h0."""

import pytest
import torch

from tests.conftest import random_graph
from vfgnn.audit.columns_from_h0 import binary_columns, columns_found
from vfgnn.audit.labels_from_gradient import clusters, clusters_found, in_majority
from vfgnn.audit.simulated_run import train_and_record
from vfgnn.audit.statistics import LEAKS
from vfgnn.data.holdings import Holding
from vfgnn.data.partition import partition
from vfgnn.lab.federation import split_labels
from vfgnn.settings import make_settings


def viewed(holdings, labels, **changes):
    values = {"dim": 16, "epochs": 2, "accept_h0_leak": True, "joint_layer": "insecure_clear", **changes}
    return train_and_record(holdings, labels, make_settings(values, where="test"), seed=1).views


@pytest.mark.parametrize("party", ["server", "B"])
@pytest.mark.parametrize("gradient_epsilon", [None, 0.5])
def test_one_gradient_splits_the_training_rows_by_label_unless_it_is_noised(party, gradient_epsilon):
    graph = random_graph(nodes=200, edges=400)
    labels = split_labels(graph)
    holdings = partition(graph.x, graph.edge_index, holders=2, seed=0)
    # without dropout and hidden layers, as the own gradient of a holder passes through them
    privacy = {"gradient_epsilon": gradient_epsilon, "delta": 1e-3}
    views = viewed(holdings, labels, hidden_layers=0, accept_row_leak=True, dropout=0.0, privacy=privacy)
    finding, rand = clusters_found(views[party], labels.y[labels.train])
    if gradient_epsilon is None:
        assert (finding.measured.attack.value, rand, finding.measured.verdict) == (1.0, 1.0, LEAKS)
    else:
        assert rand < 0.1
        assert finding.measured.verdict != LEAKS


def test_clusters_and_purity():
    rows = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 3.0]])
    found = clusters(rows, 2)
    assert found[0] == found[1] != found[2] == found[3]
    assert in_majority(found, torch.tensor([0, 0, 1, 0])).tolist() in (
        [True, True, True, False],
        [True] * 2 + [False, True],
    )


def table(columns, *, nodes=300, density=0.15, seed=0):
    """0/1 columns that are mostly 0, and edges."""
    draw = torch.Generator().manual_seed(seed)
    x = (torch.rand(nodes, columns, generator=draw) < density).float()
    return Holding(x, torch.randint(nodes, (2, 2 * nodes), generator=draw))


@pytest.mark.parametrize(("columns", "found"), [(8, True), (24, False)])  # d = 16
def test_one_reveal_gives_the_columns_away_where_the_width_is_no_less(columns, found):
    own, other = table(8, seed=1), table(columns, seed=2)
    labels = split_labels(random_graph(nodes=300))
    view = viewed([own, other], labels, joint_layer_epochs=0, epochs=1)["A"]
    finding = columns_found(view, "B", other.x, torch.Generator().manual_seed(0))
    assert finding.measured.attack.value == (1.0 if found else 0.0)
    assert (finding.measured.verdict == LEAKS) == found


def test_nothing_is_found_in_noise():
    draw = torch.Generator().manual_seed(0)
    own = table(8).x
    assert binary_columns(torch.randn(300, 16, generator=draw, dtype=torch.float64), own, draw).shape == (300, 0)
