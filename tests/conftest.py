"""Small graphs that tests share, and what keeps two workers (`pytest -n 2`) apart."""

import pytest
import torch
from torch_geometric.data import Data

from vfgnn.lab import local_files


def pytest_configure(config):
    """A worker has ports of its own: a federation's are free until its parties start, and while one is killed."""
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        number = int(worker["workerid"].removeprefix("gw"))
        local_files.PORTS = local_files.PORTS[number :: worker["workercount"]]


def random_graph(*, nodes=40, features=12, classes=3, edges=70, seed=0, integer=False):
    """A connected-ish random graph with learnable labels; every split is non-empty."""
    draw = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (nodes,), generator=draw)
    x = torch.rand(nodes, features, generator=draw) * (torch.rand(nodes, features, generator=draw) < 0.4)
    x = x.round() if integer else x
    x[torch.arange(nodes), y] += 1.0
    ends = torch.randint(nodes, (2, edges), generator=draw)
    ends = ends[:, ends[0] != ends[1]]
    edge_index = torch.unique(torch.cat([ends, ends.flip(0)], dim=1), dim=1)
    part = torch.arange(nodes) % 4
    return Data(
        x=x,
        edge_index=edge_index,
        y=y,
        train_mask=part < 2,
        val_mask=part == 2,
        test_mask=part == 3,
    )


@pytest.fixture
def graph():
    return random_graph()
