"""The federation that a notebook works with (`vfgnn.Federation`): each holder's own graph, by name.

Whoever makes one has everybody's data in one place: it is for a first look, experiments and tests. In earnest each
organisation keeps its own and runs `vfgnn run`, and what all of them know of each other is `agreement.Agreement`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch_geometric.data import Data

from vfgnn.data import datasets
from vfgnn.data.holdings import Holding, Labels
from vfgnn.data.partition import EdgeSplit, holder_names, partition
from vfgnn.errors import DataError
from vfgnn.lab.tables import AlignedTables, Tables, aligned

MASKS = ("train_mask", "val_mask", "test_mask")


@dataclass(frozen=True, repr=False)
class Federation:
    """Graphs over the same nodes, in the same order. The first holder has the labels."""

    title: str  # the data set's name, which chooses a preset's values
    names: tuple[str, ...]
    holdings: tuple[Holding, ...]
    labels: Labels
    whole: Holding  # all of it in one place: what a federation is compared with
    ids: tuple[str, ...] = ()  # of the nodes, where holders bring tables; predictions are in this order
    classes: tuple[str, ...] = ()  # likewise: their names, in the order of their numbers

    @staticmethod
    def of(holders: Mapping[str, Data] | Mapping[str, Tables], *, seed: int = 0) -> "Federation":
        """From what each holder has: `Tables`, or `Data` over the same nodes in one order.

        A `Data` has `x`, `edge_index`, both or neither; one of them `y` and the three masks too. `seed`: of the split
        of labels where holders bring tables.
        """
        tables = {name: one for name, one in holders.items() if isinstance(one, Tables)}
        graphs = {name: one for name, one in holders.items() if isinstance(one, Data)}
        if len(tables) == len(holders):
            return Federation._of_tables(aligned(tables, seed))
        if len(graphs) < len(holders):
            got = ", ".join(f"{name}: {type(one).__name__}" for name, one in holders.items())
            raise DataError("holders that cannot be put together", expected="Tables of all, or Data of all", got=got)
        return Federation._of_graphs(graphs)

    @staticmethod
    def _of_tables(found: AlignedTables) -> "Federation":
        weights = [held.edge_weight for held in found.holdings]
        whole = _whole(found.holdings)
        if any(weight is not None for weight in weights):
            counted = (
                torch.ones(held.edge_index.shape[1]) if weight is None else weight
                for held, weight in zip(found.holdings, weights, strict=True)
            )
            whole = replace(whole, edge_weight=torch.cat(list(counted)))
        return Federation("your data", found.names, found.holdings, found.labels, whole, found.ids, found.classes)

    @staticmethod
    def _of_graphs(holders: Mapping[str, Data]) -> "Federation":
        leaders = [name for name, data in holders.items() if data.get("y") is not None]
        if len(leaders) != 1:
            raise DataError("one holder must have the labels", expected="one Data with y", got=str(len(leaders)))
        names = (*leaders, *(name for name in holders if name not in leaders))
        held = [_holding(holders[name]) for name in names]
        if len({holding.nodes for holding in held}) > 1:
            counts = ", ".join(f"{name}: {holding.nodes}" for name, holding in zip(names, held, strict=True))
            raise DataError("holders with different nodes", expected="the same nodes at all, in one order", got=counts)
        return Federation("your data", names, tuple(held), labels_of(holders[leaders[0]]), _whole(held))

    @staticmethod
    def split(
        data: Data | str,
        *,
        holders: int = 2,
        seed: int = 0,
        proportions: Sequence[float] | None = None,
        edge_proportions: Sequence[float] | None = None,
        edge_split: EdgeSplit = "undirected",
        data_dir: Path | None = None,
    ) -> "Federation":
        """One graph (a PyG `Data`, or a benchmark by name) dealt out to holders as if they had never shared it."""
        title = data if isinstance(data, str) else "your data"
        graph = datasets.load(data, data_dir) if isinstance(data, str) else data
        labels = split_labels(graph)
        whole = Holding(x=graph.x, edge_index=graph.edge_index)
        parts = partition(
            whole.x,
            whole.edge_index,
            holders=holders,
            seed=seed,
            proportions=proportions,
            edge_proportions=edge_proportions,
            edge_split=edge_split,
        )
        return Federation(title, tuple(holder_names(holders)), tuple(parts), labels, whole)

    def data(self, name: str) -> Data:
        """What one holder has, as a PyG `Data`; the labels and masks are the first holder's."""
        if name not in self.names:
            raise DataError("no such holder", expected=f"one of {', '.join(self.names)}", got=name)
        held = self.holdings[self.names.index(name)]
        found = Data(x=held.x, edge_index=held.edge_index, num_nodes=held.nodes)
        if name == self.names[0]:
            found.y = self.labels.y
            for mask, rows in zip(MASKS, (self.labels.train, self.labels.val, self.labels.test), strict=True):
                found[mask] = torch.zeros(held.nodes, dtype=torch.bool).index_fill(0, rows, True)
        return found

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {held!r}" for name, held in zip(self.names, self.holdings, strict=True))
        return f"Federation({self.title}; {parts}; {self.labels!r} at {self.names[0]})"


def split_labels(data: Data) -> Labels:
    """The label holder's part of a whole graph."""
    _demand(data, "x", "edge_index")
    return labels_of(data)


def labels_of(data: Data) -> Labels:
    """`y` and the masks of a PyG `Data`."""
    _demand(data, "y", *MASKS)
    y = data.y.reshape(-1).long()
    train, val, test = (data[mask].nonzero()[:, 0] for mask in MASKS)
    classes = int(y.max()) + 1 if len(y) else 0
    return Labels(y=y, train=train, val=val, test=test, classes=max(classes, 2))


def _demand(data: Data, *names: str) -> None:
    for name in names:
        if data.get(name) is None:
            what = "labels missing" if name == "y" else f"{name} missing"
            raise DataError(what, expected=f"a PyG Data with {name}", hint="add it, or use a data set that has it")


def _whole(held: Sequence[Holding]) -> Holding:
    """All columns side by side, and every edge that anybody has."""
    return Holding(
        x=torch.cat([holding.x for holding in held], dim=1),
        edge_index=torch.cat([holding.edge_index for holding in held], dim=1),
    )


def _holding(data: Data) -> Holding:
    """Features and edges of a `Data` that may lack one of them."""
    if data.num_nodes is None:
        raise DataError("how many nodes there are is not known", expected="x, y or num_nodes in every holder's Data")
    x = torch.empty(data.num_nodes, 0) if data.get("x") is None else data.x
    edges = torch.empty(2, 0, dtype=torch.int64) if data.get("edge_index") is None else data.edge_index
    return Holding(x=x, edge_index=edges)
