"""The tables a holder brings: its nodes with their features, and its edges; labels are in label_table.py.

Run by each holder over its own tables; nothing leaves. `Columns` says which column is what; columns.py, how a column
becomes features. A table is taken as a whole or refused, and no message shows a value.

    nodes   one row per id; every column that is neither the id nor dropped is a feature
    edges   both ends must be in the node table, or the edge is dropped and counted, as loops are. Undirected unless
            `directed`: a pair counts in either direction, and comes out in both. Several edges of one pair are merged
            by `duplicates`. Sorted, so the order of the rows does not matter
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from vfgnn.data.column import Column, Floats, Mask, read
from vfgnn.data.columns import Block, Columns, features
from vfgnn.data.faults import TableFault
from vfgnn.data.holdings import Holding
from vfgnn.data.sources import Source, demand, header, source_of
from vfgnn.errors import DataError

__all__ = [
    "Columns", "EdgeTable", "NodeTable",
    "distinct", "holding_of", "lost_zeros", "read_columns", "read_edges", "read_ids", "read_nodes", "rows_of",
    "table_of",
]  # fmt: skip

Rows = npt.NDArray[np.int64]
LARGEST_WEIGHT = 1e30  # so that no sum leaves float32


@dataclass(frozen=True, repr=False)
class NodeTable:
    """One holder's nodes, in its own order."""

    ids: pa.Array  # of strings, canonical, no two alike
    x: torch.Tensor  # float32 [rows, p]
    names: tuple[str, ...]  # of the p columns; those of categories show a value
    blocks: Mapping[str, Block]  # what came of each column of the table
    file: str = ""

    def __repr__(self) -> str:
        return f"NodeTable(rows={len(self.ids)}, features={len(self.names)})"


@dataclass(frozen=True, repr=False)
class EdgeTable:
    """Its edges, by row number of the node table, sorted."""

    source: torch.Tensor  # int64
    target: torch.Tensor
    weight: torch.Tensor | None  # float32
    rows: int  # of the table
    unknown: int  # rows dropped because an end is not in the node table
    lost_zeros: int  # of these: rows whose ends would be there but for leading zeros
    loops: int  # rows dropped because both ends are the same
    repeated: int  # rows of a pair that another row has already
    file: str = ""

    def __repr__(self) -> str:
        weighted = self.weight is not None
        return f"EdgeTable({len(self.source)}, weighted={weighted}, unknown={self.unknown}, loops={self.loops})"


def read_nodes(given: Source | Path, columns: Columns, *, fitted: int | None = None) -> NodeTable:
    """The node table: ids and standardised features.

    `fitted`: with the means, deviations and words of so many first rows, as a trained model knows them.
    """
    source = source_of(given)
    table = read_columns(source, columns)
    ids = distinct(table.pop(columns.id))
    return table_of(source, ids, {name: features(table.pop(name), columns, fitted) for name in list(table)})


def read_columns(source: Source, columns: Columns) -> dict[str, Column]:
    """The id and every column that is not dropped."""
    named = [columns.id, *columns.drop, *columns.categories, *columns.dates]
    there = header(source, named)
    demand(source, there, named)
    wanted = [columns.id, *(name for name in there if name not in (columns.id, *columns.drop))]
    return read(source, wanted, text=[columns.id, *columns.categories, *columns.dates])


def table_of(source: Source, ids: pa.Array, blocks: Mapping[str, Block]) -> NodeTable:
    """Ids with the features of their columns."""
    names = tuple(name for block in blocks.values() for name in block.names)
    values = [np.zeros((len(ids), 0), dtype=np.float32), *(block.values for block in blocks.values())]
    return NodeTable(ids, torch.from_numpy(np.concatenate(values, axis=1)), names, blocks, source.name)


def read_ids(given: Source | Path, columns: Columns) -> pa.Array:
    """The canonical ids of any table, in its order, repeats and all."""
    return read(source_of(given), [columns.id], text=[columns.id])[columns.id].ids().combine_chunks()


def read_edges(given: Source | Path, columns: Columns, nodes: NodeTable) -> EdgeTable:
    """The edges among the nodes of the node table."""
    ends, file = [columns.source, columns.target], source_of(given)
    table = read(file, ends + ([columns.weight] if columns.weight is not None else []), text=ends)
    ids = [table[end].ids() for end in ends]
    source, target = (rows_of(one, nodes) for one in ids)
    weight = None if columns.weight is None else _weights(table[columns.weight])
    known, loop = (source >= 0) & (target >= 0), source == target
    padded = [(rows >= 0) | lost_zeros(one, rows, nodes) for one, rows in zip(ids, (source, target), strict=True)]
    kept = np.flatnonzero(known & ~loop)
    source, target = source[kept], target[kept]
    if not columns.directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    size = len(nodes.ids)
    pairs, weight = _merged(table[columns.source], columns.duplicates, kept, source * size + target, weight)
    source, target, single = pairs // size, pairs % size, len(pairs)
    if not columns.directed:
        order = np.argsort(np.concatenate([pairs, target * size + source]))
        source, target = np.concatenate([source, target])[order], np.concatenate([target, source])[order]
        weight = None if weight is None else np.tile(weight, 2)[order]
    return EdgeTable(
        source=torch.from_numpy(source),
        target=torch.from_numpy(target),
        weight=None if weight is None else torch.from_numpy(weight.astype(np.float32)),
        rows=len(known),
        unknown=int((~known).sum()),
        lost_zeros=int((~known & padded[0] & padded[1]).sum()),
        loops=int((known & loop).sum()),
        repeated=len(kept) - single,
        file=file.name,
    )


def holding_of(
    nodes: NodeTable, edges: EdgeTable | None, rows: torch.Tensor, *, local_neighbours: bool = False
) -> Holding:
    """Features and edges of the common nodes, in the common order that `rows` of the node table give.

    With `local_neighbours` the other rows of the table come after them, with all their edges.
    """
    size = len(nodes.ids)
    common = torch.zeros(size, dtype=torch.bool)
    if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= size):
        raise DataError("common nodes outside the node table", expected=f"row numbers from 0 to {size - 1}")
    common[rows] = True
    if int(common.sum()) < len(rows):
        raise DataError("a common node twice", expected=f"{len(rows)} rows", got=f"{int(common.sum())} different ones")
    order = torch.cat([rows, (~common).nonzero()[:, 0]]) if local_neighbours else rows
    number = torch.full((size,), -1)
    number[order] = torch.arange(len(order))
    edge_index, weight = torch.empty(2, 0, dtype=torch.int64), None
    if edges is not None:
        edge_index = torch.stack([number[edges.source], number[edges.target]])
        kept = (edge_index >= 0).all(dim=0).nonzero()[:, 0]
        kept = kept[torch.argsort(edge_index[0, kept] * size + edge_index[1, kept])]
        edge_index = edge_index[:, kept]
        weight = None if edges.weight is None else edges.weight[kept]
    local = len(order) - len(rows)
    return Holding(x=nodes.x[order], edge_index=edge_index, edge_weight=weight, local=local, rank=_rank(nodes, rows))


def _rank(nodes: NodeTable, rows: torch.Tensor) -> torch.Tensor:
    """The place of each common node among them all in the order of their ids."""
    sorted_ids = pc.sort_indices(nodes.ids.take(pa.array(rows.numpy()))).to_numpy().astype(np.int64)
    return torch.argsort(torch.from_numpy(sorted_ids))


def distinct(column: Column) -> pa.Array:
    """Ids, no two alike."""
    ids = column.ids().combine_chunks()
    codes = ids.dictionary_encode().indices.to_numpy()  # numbered as they first appear
    again = np.zeros(len(codes), dtype=bool)
    again[1:] = codes[1:] <= np.maximum.accumulate(codes)[:-1]
    what, hint = "an id in several rows", "merge or remove the others"
    column.refuse(TableFault.ID_REPEATED, again, what, expected="one row for each id", hint=hint)
    return ids


def rows_of(ids: pa.Array, nodes: NodeTable) -> Rows:
    """Row numbers in the node table; -1 for an id that is not there."""
    found: Rows = pc.index_in(ids, value_set=nodes.ids).fill_null(-1).to_numpy().astype(np.int64)
    return found


def lost_zeros(ids: pa.ChunkedArray | pa.Array, rows: Rows, nodes: NodeTable) -> Mask:
    """Unknown ids that would be in the node table but for leading zeros: 7 for 007, or 007 for 7."""
    lost = np.zeros(len(rows), dtype=bool)
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        known = pc.unique(_without_zeros(nodes.ids))
        found = pc.is_in(_without_zeros(ids.take(pa.array(unknown))), value_set=known, skip_nulls=True)
        lost[unknown] = found.to_numpy(zero_copy_only=False)
    return lost


def _without_zeros(ids: pa.Array) -> pa.Array:
    """Whole numbers without leading zeros; null for other ids."""
    whole = pc.match_substring_regex(ids, "^[0-9]+$")
    return pc.if_else(whole, pc.utf8_ltrim(ids, "0"), pa.scalar(None, pa.string()))


def _weights(column: Column) -> Floats:
    weight = column.numbers()
    bad = ~((weight >= 0) & (weight <= LARGEST_WEIGHT))  # NaN too
    expected = f"numbers from 0 to {LARGEST_WEIGHT:.0e}, none missing"
    column.refuse(TableFault.WEIGHTS, bad, "weights that cannot be used", expected=expected)
    return weight


def _merged(column: Column, rule: str, kept: Rows, pairs: Rows, weight: Floats | None) -> tuple[Rows, Floats | None]:
    """Each pair once, sorted. Weights are sorted before they are added: a sum of floats depends on the order."""
    weight = None if weight is None else weight[kept]
    order = np.lexsort((weight if weight is not None and rule == "sum" else kept, pairs))
    pairs = pairs[order]
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    if rule == "refuse":
        again = np.zeros(len(column.values), dtype=bool)
        again[np.delete(kept[order], first)] = True
        what, hint = "several edges of one pair", 'or set duplicates = "sum" or "first"'
        column.refuse(TableFault.REPEATED_EDGES, again, what, expected="one", hint=hint)
    if weight is not None:
        weight = np.add.reduceat(weight[order], first) if rule == "sum" else weight[order][first]
    return pairs[first], weight
