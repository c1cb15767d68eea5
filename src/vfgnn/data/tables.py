"""The tables a holder brings (CSV or Parquet): its nodes with their features, its edges, and, at one holder, labels.

Run by each holder over its own files; nothing leaves. `Columns` says which column is what; columns.py, how a column
becomes ids, numbers or features. A table is taken as a whole or refused, and no message shows a value.

    nodes   one row per id; every column that is neither the id nor dropped is a feature
    edges   both ends must be in the node table, or the edge is dropped and counted, as loops are. Undirected unless
            `directed`: a pair counts in either direction, and comes out in both. Several edges of one pair are merged
            by `duplicates`. Sorted, so the order of the rows does not matter
    labels  one row per id; ids outside the node table are counted and dropped, rows without a label too. Parts: by a
            column, by time, or 60/20/20 of each class in the order of a hash of the id
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from vfgnn.data.columns import Column, Columns, Floats, Mask, demand, features, header, read
from vfgnn.data.holdings import Holding
from vfgnn.errors import DataError

__all__ = [
    "Columns", "EdgeTable", "LabelTable", "NodeTable",
    "holding_of", "read_edges", "read_ids", "read_labels", "read_nodes",
]  # fmt: skip

Rows = npt.NDArray[np.int64]
PARTS = ("train", "val", "test")  # 0, 1, 2
PART_NAMES = {"train": 0, "val": 1, "validation": 1, "valid": 1, "test": 2}
LARGEST_WEIGHT = 1e30  # so that no sum leaves float32


@dataclass(frozen=True, repr=False)
class NodeTable:
    """One holder's nodes, in its own order."""

    ids: pa.Array  # of strings, canonical, no two alike
    x: torch.Tensor  # float32 [rows, p]
    names: tuple[str, ...]  # of the p columns; those of categories show a value

    def __repr__(self) -> str:
        return f"NodeTable(rows={len(self.ids)}, features={len(self.names)})"


@dataclass(frozen=True, repr=False)
class EdgeTable:
    """Its edges, by row number of the node table, sorted."""

    source: torch.Tensor  # int64
    target: torch.Tensor
    weight: torch.Tensor | None  # float32
    unknown: int  # rows dropped because an end is not in the node table
    loops: int  # rows dropped because both ends are the same

    def __repr__(self) -> str:
        weighted = self.weight is not None
        return f"EdgeTable({len(self.source)}, weighted={weighted}, unknown={self.unknown}, loops={self.loops})"


@dataclass(frozen=True, repr=False)
class LabelTable:
    """Its labels, by row number of the node table, sorted."""

    rows: torch.Tensor  # int64
    y: torch.Tensor  # int64, into classes
    classes: tuple[str, ...]
    split: torch.Tensor  # uint8, into PARTS
    unknown: int  # rows dropped because the id is not in the node table

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={int((self.split == part).sum())}" for part, name in enumerate(PARTS))
        return f"LabelTable(classes={len(self.classes)}, {parts}, unknown={self.unknown})"


def read_nodes(path: Path, columns: Columns, *, fitted: int | None = None) -> NodeTable:
    """The node table: ids and standardised features.

    `fitted`: with the means, deviations and words of so many first rows, as a trained model knows them.
    """
    there = header(path)
    demand(path, there, [columns.id, *columns.drop, *columns.categories])
    wanted = [columns.id, *(name for name in there if name not in (columns.id, *columns.drop))]
    table = read(path, wanted, text=[columns.id, *columns.categories])
    ids = _distinct(table.pop(columns.id))
    names: list[str] = []
    blocks = [np.zeros((len(ids), 0), dtype=np.float32)]
    for name in list(table):
        of_column, block = features(table.pop(name), columns, fitted)
        names += of_column
        blocks.append(block)
    return NodeTable(ids=ids, x=torch.from_numpy(np.concatenate(blocks, axis=1)), names=tuple(names))


def read_ids(path: Path, columns: Columns) -> pa.Array:
    """The canonical ids of any table, in its order, repeats and all."""
    return read(path, [columns.id], text=[columns.id])[columns.id].ids().combine_chunks()


def read_edges(path: Path, columns: Columns, nodes: NodeTable) -> EdgeTable:
    """The edges among the nodes of the node table."""
    ends = [columns.source, columns.target]
    table = read(path, ends + ([columns.weight] if columns.weight is not None else []), text=ends)
    source, target = (_rows(table[end].ids(), nodes) for end in ends)
    weight = None if columns.weight is None else _weights(table[columns.weight])
    known, loop = (source >= 0) & (target >= 0), source == target
    kept = np.flatnonzero(known & ~loop)
    source, target = source[kept], target[kept]
    if not columns.directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    size = len(nodes.ids)
    pairs, weight = _merged(table[columns.source], columns.duplicates, kept, source * size + target, weight)
    source, target = pairs // size, pairs % size
    if not columns.directed:
        order = np.argsort(np.concatenate([pairs, target * size + source]))
        source, target = np.concatenate([source, target])[order], np.concatenate([target, source])[order]
        weight = None if weight is None else np.tile(weight, 2)[order]
    return EdgeTable(
        source=torch.from_numpy(source),
        target=torch.from_numpy(target),
        weight=None if weight is None else torch.from_numpy(weight.astype(np.float32)),
        unknown=int((~known).sum()),
        loops=int((known & loop).sum()),
    )


def read_labels(
    path: Path,
    columns: Columns,
    nodes: NodeTable,
    classes: Sequence[str] | None = None,
    *,
    key: bytes = b"",
    stratified: bool = True,
) -> LabelTable:
    """The labels of nodes of the node table; `classes` if they are known already.

    `stratified`: the split by hash takes its shares of each class; how many rows train then tells something of the
    classes, so that noised labels are split without regard to them.
    `key`, secret, goes before each id where the split is by hash: which rows train is announced, and with the hash of
    every id it would say something of the class where a class is small.
    """
    by = columns.split if columns.split is not None else columns.time
    text = [name for name in (columns.id, columns.label, columns.split) if name is not None]
    table = read(path, list(dict.fromkeys([*text, *([] if by is None else [by])])), text=text)
    ids, label = _distinct(table[columns.id]), _label_text(table[columns.label])
    rows = _rows(ids, nodes)
    kept = (rows >= 0) & label.is_valid().to_numpy()
    classes = _classes(table[columns.label], label.filter(pa.array(kept)), classes)
    y = pc.index_in(label, value_set=pa.array(classes, pa.string())).fill_null(-1).to_numpy().astype(np.int64)
    table[columns.label].refuse(kept & (y < 0), "labels of no class", expected=f"one of the {len(classes)} classes")
    if by is None:
        split = _by_hash(ids.filter(pa.array(kept)), y[kept] if stratified else np.zeros_like(y[kept]), key)
    else:
        split = _by_time(table[by], kept) if columns.split is None else _by_column(table[by], kept)
    _refuse_empty_parts(path, split)
    order = np.argsort(rows[kept])
    of_rows, of_y, parts = (torch.from_numpy(part[order]) for part in (rows[kept], y[kept], split.astype(np.uint8)))
    return LabelTable(rows=of_rows, y=of_y, classes=tuple(classes), split=parts, unknown=int((rows < 0).sum()))


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


def _distinct(column: Column) -> pa.Array:
    ids = column.ids().combine_chunks()
    codes = ids.dictionary_encode().indices.to_numpy()  # numbered as they first appear
    again = np.zeros(len(codes), dtype=bool)
    again[1:] = codes[1:] <= np.maximum.accumulate(codes)[:-1]
    column.refuse(again, "an id in several rows", expected="one row for each id", hint="merge or remove the others")
    return ids


def _rows(ids: pa.Array, nodes: NodeTable) -> Rows:
    """Row numbers in the node table; -1 for an id that is not there."""
    found: Rows = pc.index_in(ids, value_set=nodes.ids).fill_null(-1).to_numpy().astype(np.int64)
    return found


def _weights(column: Column) -> Floats:
    weight = column.numbers()
    bad = ~((weight >= 0) & (weight <= LARGEST_WEIGHT))  # NaN too
    column.refuse(bad, "weights that cannot be used", expected=f"numbers from 0 to {LARGEST_WEIGHT:.0e}, none missing")
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
        column.refuse(again, "several edges of one pair", expected="one", hint='or set duplicates = "sum" or "first"')
    if weight is not None:
        weight = np.add.reduceat(weight[order], first) if rule == "sum" else weight[order][first]
    return pairs[first], weight


def _label_text(column: Column) -> pa.ChunkedArray:
    """Truth values are true and false however a CSV spells them."""
    text = column.keys()
    lower = pc.utf8_lower(text)
    truths = pc.all(pc.is_in(lower.drop_null(), value_set=pa.array(["true", "false"]))).as_py()
    return lower if truths else text


def _classes(column: Column, labels: pa.ChunkedArray, classes: Sequence[str] | None) -> Sequence[str]:
    found: list[str] = pc.unique(labels).to_pylist() if classes is None else list(classes)
    if len(set(found)) < max(len(found), 2):
        raise DataError(
            "too few classes",
            expected="at least two, no two alike",
            got=f"{len(set(found))} in {len(labels)} labelled rows of nodes in the node table",
            where=column.where,
            hint="if there should be more: are the ids written alike in both tables?",
        )
    if classes is not None:
        return found
    whole = all(re.fullmatch(r"-?[0-9]{1,18}", word) for word in found)
    return sorted(found, key=lambda word: (int(word), word)) if whole else sorted(found)


def _by_column(column: Column, kept: Mask) -> Rows:
    found = pc.index_in(column.text(), value_set=pa.array(list(PART_NAMES))).fill_null(-1).to_numpy()
    column.refuse(
        kept & (found < 0),
        "labelled rows that belong to no part",
        expected=", ".join(PART_NAMES),
        hint="leave the label of a row empty that is for nothing",
    )
    parts: Rows = np.array(list(PART_NAMES.values()))[found[kept]]
    return parts


def _by_time(column: Column, kept: Mask) -> Rows:
    kind, types = column.values.type, pa.types
    known = (types.is_integer, types.is_floating, types.is_decimal, types.is_date, types.is_timestamp)
    if not any(of_type(kind) for of_type in known):
        column.refuse_type("a column that is no time", expected="numbers, dates or timestamps", hint="convert it")
    missing = column.values.is_null(nan_is_null=True).to_numpy()
    column.refuse(kept & missing, "labelled rows without a time", expected="a time in each")
    order = pc.sort_indices(column.values.filter(pa.array(kept))).to_numpy()  # stable
    split = np.empty(len(order), dtype=np.int64)
    split[order] = _part(np.arange(len(order)), np.array(len(order)))
    return split


def _by_hash(ids: pa.Array, y: Rows, key: bytes) -> Rows:
    """60/20/20 of each class. There is no vectorised SHA-256; a million ids take a second."""
    digests = b"".join(hashlib.sha256(key + text.encode()).digest()[:8] for text in ids.to_pylist())
    order = np.lexsort((np.frombuffer(digests, dtype=">u8"), y))
    sizes = np.bincount(y)
    position = np.arange(len(y)) - (np.cumsum(sizes) - sizes)[y[order]]
    split = np.empty(len(y), dtype=np.int64)
    split[order] = _part(position, sizes[y[order]])
    return split


def _part(position: Rows, size: Rows) -> Rows:
    """Of the row at `position` of `size`; three rows give one to each part."""
    part: Rows = (position >= size * 6 // 10).astype(np.int64) + (position >= size * 8 // 10)
    return part


def _refuse_empty_parts(path: Path, split: Rows) -> None:
    counts = np.bincount(split, minlength=len(PARTS))
    if (counts == 0).any():
        got = ", ".join(f"{name} {count}" for name, count in zip(PARTS, counts, strict=True))
        raise DataError("a part without rows", expected="labelled rows in each part", got=got, where=str(path))
