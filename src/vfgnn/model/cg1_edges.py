"""CG1, edges (paper 3.3, Algorithm 2 lines 3-10): local node embeddings from a holder's own edges.

Runs at every holder that publishes. It sees h0 (or its own initial embeddings) and its own edges; what leaves is
`h_local`, the L2-normalised rows that the step needs, to the server.

A published row is a function of the weights alone (no dropout at holders), so one message serves training and
evaluation alike. The convolutions are PyG's.
"""

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import APPNP, GATConv, GCNConv, LSTMAggregation, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from vfgnn import randomness
from vfgnn.data.holdings import entries_of
from vfgnn.errors import ConfigError, ModuleError
from vfgnn.model.own_modules import check_module
from vfgnn.settings import Gnn, Settings

OwnModule = Callable[[int], nn.Module]
"""A user's own GNN: called with the width d, gives a module (x [nodes, d], edge_index) -> x [nodes, d]."""

LSTM_NEIGHBOURS = 10  # bounds the padded batch that PyG's LSTM aggregator builds


class BoundedLstm(LSTMAggregation):  # type: ignore[misc]
    """PyG's LSTM aggregator over exactly LSTM_NEIGHBOURS places, zeros where there are fewer neighbours.

    PyG pads to the largest degree that is present, so that a row would depend on which others it is computed with.
    """

    def forward(self, x: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        """As PyG's."""
        out: torch.Tensor = super().forward(x, *args, **{**kwargs, "max_num_elements": LSTM_NEIGHBOURS})
        return out


class LstmSage(SAGEConv):  # type: ignore[misc]
    """SAGEConv under a name of its own.

    PyG generates code once for each class, for the first instance it sees; that of an LSTM cannot do sparse means.
    """


@dataclass(frozen=True)
class GnnSpecification:
    """What this file must know of a GNN. A new one is an entry in `GNNS` and a name in `config.Gnn`."""

    make: Callable[[Settings, OwnModule | None], nn.Module]  # (x, edges) -> x: one layer, or all of them (`layered`)
    layered: bool = True  # one module for each layer; False: one for all, and no `fanout` (config refuses it)
    projects: bool = False  # a linear map of its input comes first
    activation: Callable[[torch.Tensor], torch.Tensor] | None = torch.tanh  # after each module
    normalises: bool = False  # edges are weighted as in GCN, with self-loops; only such a GNN takes edge weights
    narrows: bool = False  # also ((x, x of fewer nodes), edges) -> rows of these fewer
    takes_csr: bool = False  # also a CSR adjacency in the place of an edge list
    neighbours: int | None = None  # hears so many at most, drawn among all of them
    hears_everything: bool = False  # how far it reaches is not known: all nodes go in


def _own(settings: Settings, own: OwnModule | None) -> nn.Module:
    if own is None:
        raise ModuleError("gnn = own needs a module", expected="a holder's own module", hint="give one")
    return check_module(own(settings.dim))


GNNS: Mapping[Gnn, GnnSpecification] = {
    "sage_mean": GnnSpecification(lambda s, _: SAGEConv(s.dim, s.dim, aggr="mean"), narrows=True, takes_csr=True),
    "sage_lstm": GnnSpecification(
        lambda s, _: LstmSage(s.dim, s.dim, aggr=BoundedLstm(s.dim, s.dim)), narrows=True, neighbours=LSTM_NEIGHBOURS
    ),
    "sage_pool": GnnSpecification(
        lambda s, _: SAGEConv(s.dim, s.dim, aggr="max", project=True), narrows=True, takes_csr=True
    ),
    "gcn": GnnSpecification(
        lambda s, _: GCNConv(s.dim, s.dim, normalize=False, add_self_loops=False), normalises=True, takes_csr=True
    ),
    "gat": GnnSpecification(lambda s, _: GATConv(s.dim, s.dim)),
    "appnp": GnnSpecification(
        lambda s, _: APPNP(s.layers, s.teleport, normalize=False),
        layered=False,
        projects=True,
        normalises=True,
        takes_csr=True,
    ),
    "own": GnnSpecification(_own, layered=False, activation=None, hears_everything=True),
}


@dataclass(frozen=True)
class Neighbourhood:
    """What a GNN needs in order to compute certain rows: the nodes around them and the edges among these."""

    nodes: torch.Tensor | None  # whose rows go in; None: all
    computed: torch.Tensor | None  # positions among `nodes` of those whose rows come out; None: all of `nodes`
    rows: torch.Tensor | None  # after the last layer, positions of the wanted rows among what came out; None: all
    edge_index: torch.Tensor  # [2, edges]: from `nodes` to `nodes`, or to `computed` where the convolution can do that
    edge_weight: torch.Tensor | None
    adjacency: torch.Tensor | None  # CSR of edge_index (target by source), where the convolution can use it


@dataclass(frozen=True)
class Draw:
    """At most `count` of the edges into a node: those with the smallest keys, in their order."""

    count: int
    keys: Callable[[torch.Tensor], torch.Tensor]  # numbers of edges -> random numbers in [0, 1)


class LocalGraph:
    """A holder's own edges, prepared once for its GNN."""

    def __init__(
        self,
        edge_index: torch.Tensor,
        nodes: int,
        settings: Settings,
        device: torch.device,
        edge_weight: torch.Tensor | None = None,
    ) -> None:
        self.nodes = nodes
        self.degree = torch.bincount(edge_index[1], minlength=nodes).to(device)
        self._settings, self._gnn, self._device = settings, GNNS[settings.gnn], device
        weight: torch.Tensor | None = None
        if self._gnn.normalises:
            # Normalised over the whole graph, so that a row does not depend on which neighbourhood it is computed in.
            given = None if edge_weight is None else edge_weight.to(settings.dtype)
            edge_index, weight = gcn_norm(edge_index, given, num_nodes=nodes, dtype=settings.dtype)
        elif edge_weight is not None:
            raise ConfigError(
                f"gnn = {settings.gnn} does not use edge weights",
                expected=" or ".join(name for name, gnn in GNNS.items() if gnn.normalises),
                hint="leave the weight column out of [data.columns], or agree on another gnn",
            )
        order = torch.argsort(edge_index[1], stable=True)  # sorted by target, as the LSTM aggregator wants them
        self._edge_index = edge_index[:, order].to(device)
        self._pointer = torch.searchsorted(self._edge_index[1], torch.arange(nodes + 1, device=device))
        self._edge_weight = None if weight is None else weight[order].to(device)

    @property
    def sampled(self) -> bool:
        """Whether the neighbourhood of a row is drawn anew in each training step."""
        return self._settings.fanout is not None or self._gnn.neighbours is not None

    def around(self, rows: torch.Tensor | None, generator: torch.Generator | None = None) -> list[Neighbourhood]:
        """The neighbourhood of `rows` (None: of all nodes): one for all layers, or one per layer with `fanout`.

        With one per layer each computes what the next one hears, and no more. `generator` draws the sampled neighbours;
        without it only the GNN's own bound is drawn, always the same way. The cost is that of the edges into the nodes
        that are reached, not of the whole graph.
        """
        draws = self._draws(generator)
        if rows is None or self._gnn.hears_everything:
            return [self._everywhere(rows, draw) for draw in draws]
        wanted = nodes = torch.unique(rows)
        found: list[Neighbourhood] = []
        for layer in reversed(range(self._settings.layers)):  # what a layer hears is what the one before computes
            computed, edges = nodes, self._incoming(nodes, draws[min(layer, len(draws) - 1)])
            nodes = torch.unique(torch.cat([nodes, self._edge_index[0, edges]]))
            if len(draws) > 1:
                found.insert(0, self._cut(nodes, computed, torch.searchsorted(wanted, rows), edges))
        return found or [self._cut(nodes, None, torch.searchsorted(nodes, rows), edges)]

    def _draws(self, generator: torch.Generator | None) -> list[Draw | None]:
        """For each neighbourhood that is asked for, how edges are drawn; None: all are taken."""
        fanout, bound = self._settings.fanout, self._gnn.neighbours
        if fanout is not None and generator is not None:
            counts = [count if bound is None else min(count, bound) for count in fanout]
            return [Draw(count, self._keys(generator)) for count in counts]
        if bound is not None:
            return [Draw(bound, self._keys(generator or torch.Generator().manual_seed(0)))]
        return [None]

    def _keys(self, generator: torch.Generator) -> Callable[[torch.Tensor], torch.Tensor]:
        """A random number in [0, 1) for each edge of the graph, the same whichever edges are looked at."""
        if self._settings.batch_rows is None:
            drawn = torch.rand(self._edge_index.shape[1], generator=generator, dtype=torch.float64).to(self._device)
            return lambda edges: drawn[edges]
        salt = int(torch.randint(2**62, (1,), generator=generator))  # to draw for all edges in each batch is too slow
        return lambda edges: randomness.scattered(edges, salt)

    def _incoming(self, nodes: torch.Tensor, draw: Draw | None) -> torch.Tensor:
        """Numbers of the edges into `nodes` (ascending), by target: all of them, or as many as are drawn."""
        edges = entries_of(self._pointer, nodes)
        if draw is None:
            return edges
        target = self._edge_index[1, edges]
        order = torch.argsort(target + draw.keys(edges))  # by target, in random order within each
        rank = torch.arange(len(edges), device=self._device) - torch.searchsorted(target, target)
        return edges[order[rank < draw.count]]

    def _everywhere(self, rows: torch.Tensor | None, draw: Draw | None) -> Neighbourhood:
        """All nodes go in."""
        if draw is None:
            return self._neighbourhood(None, None, rows, self._edge_index, self._edge_weight, self.nodes)
        edges = self._incoming(torch.arange(self.nodes, device=self._device), draw)
        weight = None if self._edge_weight is None else self._edge_weight[edges]
        return self._neighbourhood(None, None, rows, self._edge_index[:, edges], weight, self.nodes)

    def _cut(
        self, nodes: torch.Tensor, computed: torch.Tensor | None, rows: torch.Tensor, edges: torch.Tensor
    ) -> Neighbourhood:
        """Some edges among `nodes` (ascending), renumbered; all of a layer's edges into what it must compute."""
        weight = None if self._edge_weight is None else self._edge_weight[edges]
        source, target = self._edge_index[:, edges]
        targets = computed if computed is not None and self._gnn.narrows else nodes
        edge_index = torch.stack([torch.searchsorted(nodes, source), torch.searchsorted(targets, target)])
        places = None if computed is None else torch.searchsorted(nodes, computed)
        return self._neighbourhood(nodes, places, rows, edge_index, weight, len(nodes), len(targets))

    def _neighbourhood(
        self,
        nodes: torch.Tensor | None,
        computed: torch.Tensor | None,
        rows: torch.Tensor | None,
        edge_index: torch.Tensor,
        edge_weight: torch.Tensor | None,
        sources: int,
        targets: int | None = None,
    ) -> Neighbourhood:
        adjacency = None
        if self._gnn.takes_csr and self._device.type == "cpu":
            size = (sources if targets is None else targets, sources)
            adjacency = _csr(edge_index, edge_weight, size, self._settings.dtype)
        return Neighbourhood(nodes, computed, rows, edge_index, edge_weight, adjacency)


def _csr(
    edge_index: torch.Tensor, weight: torch.Tensor | None, size: tuple[int, int], dtype: torch.dtype
) -> torch.Tensor:
    """Target by source, of edges that are sorted by target; repeated ones stay repeated, as in the edge list."""
    source, target = edge_index
    pointer = torch.searchsorted(target.contiguous(), torch.arange(size[0] + 1, device=target.device))
    values = torch.ones(len(source), dtype=dtype, device=target.device) if weight is None else weight
    return torch.sparse_csr_tensor(pointer, source, values.to(dtype), size, check_invariants=False)


class LocalGnn(nn.Module):
    """K layers over a holder's own edges, then unit rows: h_local = normalise(GNN(h0)).

    SAGE: h^k = tanh(W_1 AGG(h_u) + W_2 h_v), AGG one of mean, LSTM, max-pooling after a projection (GraphSAGE).
    APPNP: tanh(PPR(h0 W)). GCN, GAT: tanh of their layers.
    """

    def __init__(self, settings: Settings, own: OwnModule | None = None) -> None:
        super().__init__()
        self._settings, self._gnn = settings, GNNS[settings.gnn]
        self.linear = nn.Linear(settings.dim, settings.dim, bias=False) if self._gnn.projects else None
        modules = settings.layers if self._gnn.layered else 1
        self.convolutions = nn.ModuleList([self._gnn.make(settings, own) for _ in range(modules)])
        self.to(settings.dtype)
        _remove_generated_files()

    def forward(self, h0: torch.Tensor, around: list[Neighbourhood]) -> torch.Tensor:
        """Unit rows [rows, d]; normalise(0) = 0."""
        return self.over(h0 if around[0].nodes is None else h0[around[0].nodes], around)

    def over(self, x: torch.Tensor, around: list[Neighbourhood]) -> torch.Tensor:
        """The same from the rows of h0 that `around` names."""
        if self._settings.embedding_activation == "tanh":
            x = x.tanh()
        if self.linear is not None:
            x = self.linear(x)
        for k, convolution in enumerate(self.convolutions):
            x = self._convolve(convolution, x, around[min(k, len(around) - 1)])
            if self._gnn.activation is not None:
                x = self._gnn.activation(x)
        rows = around[-1].rows
        x = x if rows is None else x.index_select(0, rows)
        # A node without features, biases and neighbours has a row of zeros, and the gradient of 0 / |0| has no bound.
        return F.normalize(x, dim=1).masked_fill((x == 0).all(dim=1, keepdim=True), 0.0)

    def _convolve(self, convolution: nn.Module, x: torch.Tensor, around: Neighbourhood) -> torch.Tensor:
        computed = around.computed
        if computed is not None and self._gnn.narrows:
            narrowed: torch.Tensor = convolution((x, x.index_select(0, computed)), _edges(around))
            return narrowed
        if around.adjacency is None and around.edge_weight is not None:
            out = convolution(x, around.edge_index, around.edge_weight)
        else:
            out = convolution(x, _edges(around))
        if not isinstance(out, torch.Tensor) or out.shape != x.shape:
            got = list(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
            raise ModuleError(
                "a GNN must keep the shape of its input", expected=f"a tensor {list(x.shape)}", got=str(got)
            )
        return out if computed is None else out.index_select(0, computed)


def confidence_weight(degree: torch.Tensor, full_degree: int) -> torch.Tensor:
    """w(v) = (min(deg, D) + 1/2) / (D + 1/2), in (0, 1]: what a holder scales its unit rows by.

    Reveals: to the server, the holder's own degree of each published node up to D.
    """
    return (degree.clamp_max(full_degree) + 0.5) / (full_degree + 0.5)


def _edges(around: Neighbourhood) -> torch.Tensor:
    return around.edge_index if around.adjacency is None else around.adjacency


def _remove_generated_files() -> None:
    """PyG writes the code that it generates for a convolution into the temporary folder, and leaves it there."""
    temporary = Path(tempfile.gettempdir())
    for name, module in sys.modules.copy().items():
        file = getattr(module, "__file__", None)
        if name.endswith(("_propagate", "_edge_updater")) and file is not None and Path(file).parent == temporary:
            Path(file).unlink(missing_ok=True)
            Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)
