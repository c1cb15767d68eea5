"""Your own graph, your own GNN, three organisations that may not pool their data: python examples/quickstart.py"""

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

import vfgnn

# A PyG graph: 600 nodes in 3 communities, noisy features, and who trains, validates, tests.
draw = torch.Generator().manual_seed(0)
y = torch.arange(600) % 3
x = torch.randn(600, 30, generator=draw) + 0.25 * torch.randn(3, 30, generator=draw)[y]
ends = torch.randint(600, (2, 4000), generator=draw)
ends = ends[:, (y[ends[0]] == y[ends[1]]) | (torch.rand(4000, generator=draw) < 0.2)]
part = torch.rand(600, generator=draw)
data = Data(x=x, y=y, edge_index=torch.unique(torch.cat([ends, ends.flip(0)], dim=1), dim=1))
data.train_mask, data.val_mask, data.test_mask = part < 0.1, (part >= 0.1) & (part < 0.4), part >= 0.4


class MyGnn(torch.nn.Module):
    """Any module (x, edge_index) -> x of the same shape; every holder trains its own copy on its own edges."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.first, self.second = GraphConv(dim, dim, aggr="mean"), GraphConv(dim, dim, aggr="mean")

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return out


result = vfgnn.simulate(data, holders=3, gnn=MyGnn, dim=16, epochs=60)
for name, outcome in {**result.isolated, "federated": result.federated, "joint": result.joint}.items():
    print(f"{name:10} test accuracy {outcome.test_accuracy:.3f}" if outcome else f"{name:10} was not trained")
