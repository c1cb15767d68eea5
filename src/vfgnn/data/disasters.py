"""Tables that can be read and are hardly meant so: refused before a run unless the party accepts them by name.

Run by each holder over its own tables; nothing leaves, and no finding shows a value.

    LABEL_AMONG_FEATURES  a node column has the name of the label or of the split: the model would learn to copy it
    DETERMINES_LABEL      a node column says nearly every label by itself, as what is known only after the fact does
    UNKNOWN_ENDS          most edges have an end that is not in the node table
    LOST_ZEROS            unknown ids of edges or labels would be known but for leading zeros
    CLASSES_ALIKE         classes whose names differ by case or blanks alone
"""

from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np

from vfgnn.data.columns import Block, Columns
from vfgnn.data.faults import DataFinding, TableFault
from vfgnn.data.label_table import LabelTable
from vfgnn.data.tables import EdgeTable, NodeTable, Rows
from vfgnn.errors import TableError

DETERMINED = 0.95  # of the labels that the most frequent class gets wrong, so many are right by the column alone
BIN = 5  # rows of a bin of numbers, at least
MOST_VALUES = 20  # a number with so few different values is taken as words
FEWEST_ROWS = 20  # labelled rows; fewer say nothing


def disasters(
    nodes: NodeTable, edges: EdgeTable | None, labels: LabelTable | None, columns: Columns
) -> Iterator[DataFinding]:
    """All that are there, whether a party accepts them or not."""
    if labels is not None:
        yield from _named_like_labels(nodes, columns)
        yield from _determining(nodes, labels, columns)
        yield from _alike(labels, columns)
        yield from _zeros(labels.file, columns.id, labels.lost_zeros, labels.unknown)
    if edges is not None:
        yield from _zeros(edges.file, columns.source, edges.lost_zeros, edges.unknown)
        if 2 * edges.unknown > edges.rows and 2 * edges.lost_zeros <= edges.unknown:
            what = f"{edges.unknown:,} of {edges.rows:,} edges have an end that is not in the node table"
            hint = "are the ids written alike in both tables, and do source and target name the right columns?"
            yield _error(TableFault.UNKNOWN_ENDS, edges.file, columns.source, edges.unknown, what, hint)


def refuse_disasters(found: Iterator[DataFinding], accepted: Collection[str]) -> None:
    """Raise for the first one that the party does not accept."""
    for one in found:
        if one.code not in accepted:
            raise TableError(one.code, one.found, file=one.file, column=one.column, count=one.count, hint=one.advice)


def _error(code: TableFault, file: str, column: str | None, count: int, found: str, to_do: str) -> DataFinding:
    return DataFinding(code, "error", file, column, count, found, to_do)


def _named_like_labels(nodes: NodeTable, columns: Columns) -> Iterator[DataFinding]:
    roles = {"label": columns.label, "split": columns.split}
    for role, name in roles.items():
        for column in nodes.blocks:
            if name is not None and column.casefold() == name.casefold():
                what = f"a feature has the name of the {role}"
                yield _error(TableFault.LABEL_AMONG_FEATURES, nodes.file, column, 0, what, _drop(column))


def _drop(column: str) -> str:
    return f"list {column} under drop in [data.columns]"


def _determining(nodes: NodeTable, labels: LabelTable, columns: Columns) -> Iterator[DataFinding]:
    y, rows = labels.y.numpy(), labels.rows.numpy()
    named = {name.casefold() for name in (columns.label, columns.split) if name is not None}
    for name, block in nodes.blocks.items():
        if name.casefold() in named:
            continue
        told = determined(block, rows, y)
        if told >= DETERMINED:
            what = f"it says {told:.0%} of the labels that the most frequent class gets wrong: is it known beforehand?"
            yield _error(TableFault.DETERMINES_LABEL, nodes.file, name, 0, what, _drop(name))


def determined(block: Block, rows: Rows, y: Rows) -> float:
    """Of the labels that the most frequent class gets wrong, the share that this column alone gets right.

    Rows are put in bins by the column, and each row's label is guessed from the other rows of its bin, so a column with
    a value of its own in each row guesses nothing.
    """
    counts = np.bincount(y)
    rare = len(y) - int(counts.max(initial=0))
    if len(y) < FEWEST_ROWS or rare == 0 or not block.names:
        return 0.0
    _, bins = np.unique(_bins(block, rows), return_inverse=True)
    table = np.zeros((int(bins.max()) + 1, len(counts)), dtype=np.int64)
    np.add.at(table, (bins, y), 1)
    own, ordered = table[bins, y], np.sort(table, axis=1)
    most, second = ordered[bins, -1], ordered[bins, -2]
    other = np.where(own == most, second, most)  # the largest other class; where two lead, each is the other's
    return 1 - int((own - 1 <= other).sum()) / rare


def _bins(block: Block, rows: Rows) -> Rows:
    values = block.values[rows]
    if block.kind == "words":
        return np.where(values.any(axis=1), values.argmax(axis=1), -1)
    numbers = values[:, 0]
    different, codes = np.unique(numbers, return_inverse=True)
    if len(different) > MOST_VALUES:
        size = np.bincount(codes)
        before = np.cumsum(size) - size  # rows with smaller values: equal ones share a bin
        codes = (before // BIN)[codes]
    gaps = values[:, 1] > 0 if len(block.names) > 1 else np.zeros(len(values), dtype=bool)
    return np.where(gaps, -1, codes)


def _alike(labels: LabelTable, columns: Columns) -> Iterator[DataFinding]:
    counts = np.bincount(labels.y.numpy(), minlength=len(labels.classes))
    folded = [" ".join(name.split()).casefold() for name in labels.classes]
    several = {name for name, times in Counter(folded).items() if times > 1}
    if several:
        count = sum(int(n) for name, n in zip(folded, counts, strict=True) if name in several)
        alike = sum(name in several for name in folded)
        what = f"{alike} classes differ from another by case or blanks alone"
        hint = "write each class in one way"
        yield _error(TableFault.CLASSES_ALIKE, labels.file, columns.label, count, what, hint)


def _zeros(file: str, column: str, lost: int, unknown: int) -> Iterator[DataFinding]:
    if 2 * lost > unknown:
        what = f"{lost:,} of {unknown:,} unknown ids would be in the node table but for leading zeros"
        hint = "write ids as text in every table, so that no program drops their zeros"
        yield _error(TableFault.LOST_ZEROS, file, column, lost, what, hint)
