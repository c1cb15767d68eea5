"""The labels of a holder's nodes, from its own table: one row per id, and which rows train, validate and test.

Run by the label holder over its own table; nothing leaves. Ids outside the node table are counted and dropped, rows
without a label too. Parts: by a column, by time, or 60/20/20 of each class in the order of a keyed hash of the id.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from vfgnn.data.column import Column, Mask, read
from vfgnn.data.columns import Columns
from vfgnn.data.faults import TableFault
from vfgnn.data.sources import Source, source_of
from vfgnn.data.tables import NodeTable, Rows, distinct, lost_zeros, rows_of
from vfgnn.errors import TableError

PARTS = ("train", "val", "test")  # 0, 1, 2
PART_NAMES = {"train": 0, "val": 1, "validation": 1, "valid": 1, "test": 2}


@dataclass(frozen=True, repr=False)
class LabelTable:
    """Labels by row number of the node table, sorted."""

    rows: torch.Tensor  # int64
    y: torch.Tensor  # int64, into classes
    classes: tuple[str, ...]
    split: torch.Tensor  # uint8, into PARTS
    unknown: int  # rows dropped because the id is not in the node table
    lost_zeros: int = 0  # of these: rows whose id would be there but for leading zeros
    empty: int = 0  # rows of known ids without a label
    file: str = ""

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={int((self.split == part).sum())}" for part, name in enumerate(PARTS))
        return f"LabelTable(classes={len(self.classes)}, {parts}, unknown={self.unknown})"


def read_labels(
    given: Source | Path,
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
    source, by = source_of(given), columns.split if columns.split is not None else columns.time
    text = [name for name in (columns.id, columns.label, columns.split) if name is not None]
    table = read(source, list(dict.fromkeys([*text, *([] if by is None else [by])])), text=text)
    ids, label = distinct(table[columns.id]), _label_text(table[columns.label])
    rows = rows_of(ids, nodes)
    kept = (rows >= 0) & label.is_valid().to_numpy()
    classes = _classes(table[columns.label], label.filter(pa.array(kept)), classes)
    y = pc.index_in(label, value_set=pa.array(classes, pa.string())).fill_null(-1).to_numpy().astype(np.int64)
    what, expected = "labels of no class", f"one of the {len(classes)} classes"
    table[columns.label].refuse(TableFault.UNKNOWN_CLASS, kept & (y < 0), what, expected=expected)
    if by is None:
        split = _by_hash(ids.filter(pa.array(kept)), y[kept] if stratified else np.zeros_like(y[kept]), key)
    else:
        split = _by_time(table[by], kept) if columns.split is None else _by_column(table[by], kept)
    _refuse_empty_parts(source, split)
    order = np.argsort(rows[kept])
    of_rows, of_y, parts = (torch.from_numpy(part[order]) for part in (rows[kept], y[kept], split.astype(np.uint8)))
    return LabelTable(
        rows=of_rows,
        y=of_y,
        classes=tuple(classes),
        split=parts,
        unknown=int((rows < 0).sum()),
        lost_zeros=int(lost_zeros(ids, rows, nodes).sum()),
        empty=int(((rows >= 0) & ~kept).sum()),
        file=source.name,
    )


def _label_text(column: Column) -> pa.ChunkedArray:
    """Truth values are true and false however a CSV spells them."""
    text = column.keys(TableFault.LABEL_TYPE)
    lower = pc.utf8_lower(text)
    truths = pc.all(pc.is_in(lower.drop_null(), value_set=pa.array(["true", "false"]))).as_py()
    return lower if truths else text


def _classes(column: Column, labels: pa.ChunkedArray, classes: Sequence[str] | None) -> Sequence[str]:
    found: list[str] = pc.unique(labels).to_pylist() if classes is None else list(classes)
    if len(set(found)) < max(len(found), 2):
        column.fail(
            TableFault.TOO_FEW_CLASSES,
            "too few classes",
            expected="at least two, no two alike",
            got=f"{len(set(found))} in {len(labels)} labelled rows of nodes in the node table",
            hint="if there should be more: are the ids written alike in both tables?",
        )
    if classes is not None:
        return found
    whole = all(re.fullmatch(r"-?[0-9]{1,18}", word) for word in found)
    return sorted(found, key=lambda word: (int(word), word)) if whole else sorted(found)


def _by_column(column: Column, kept: Mask) -> Rows:
    found = pc.index_in(column.text(TableFault.SPLIT), value_set=pa.array(list(PART_NAMES))).fill_null(-1).to_numpy()
    column.refuse(
        TableFault.SPLIT,
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
        what, expected = "a column that is no time", "numbers, dates or timestamps"
        column.refuse_type(TableFault.TIME, what, expected=expected, hint="convert it")
    missing = column.values.is_null(nan_is_null=True).to_numpy()
    column.refuse(TableFault.TIME, kept & missing, "labelled rows without a time", expected="a time in each")
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


def _refuse_empty_parts(source: Source, split: Rows) -> None:
    counts = np.bincount(split, minlength=len(PARTS))
    if (counts == 0).any():
        got = ", ".join(f"{name} {count}" for name, count in zip(PARTS, counts, strict=True))
        what, expected = "a part without rows", "labelled rows in each part"
        raise TableError(TableFault.SPLIT, what, expected=expected, got=got, file=source.name)
