"""A holder's tables as they would be read: what each column becomes, what is dropped, and everything that is wrong.

Run by each holder over its own tables, before any key exists; nothing leaves. Readers stop at the first fault; a
profile goes on with what can be read, so that all are found at once. It has counts, names of columns and classes, and
words and ranges of a column for a histogram. It never has the value of an id.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vfgnn.data.column import Column, Floats
from vfgnn.data.columns import LIKE_DATES, Block, Columns, features
from vfgnn.data.dialect import Dialect
from vfgnn.data.disasters import disasters
from vfgnn.data.faults import DataFinding, TableFault
from vfgnn.data.ids import kind_of_ids, matching, with_leading_zeros
from vfgnn.data.label_table import PARTS, LabelTable, read_labels
from vfgnn.data.sources import Source, refuse_dialect
from vfgnn.data.tables import EdgeTable, NodeTable, distinct, read_columns, read_edges, table_of
from vfgnn.errors import TableError

BARS, MOST_BARS = 20, 12  # of a histogram of numbers, and of words
MANY_GAPS, MOSTLY = 0.5, 0.9
NUMBER = r"^[-+]?\d+([.,]\d+)?$"


@dataclass(frozen=True)
class TableSources:
    """A holder's tables, before they are read."""

    nodes: Source
    edges: Source | None = None
    labels: Source | None = None


@dataclass(frozen=True)
class Histogram:
    """Of one column: how many rows have each word, or numbers in each of the ranges between `edges`."""

    counts: tuple[int, ...]
    words: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()


@dataclass(frozen=True)
class IdsProfile:
    """What the ids look like."""

    column: str
    kind: str
    leading_zeros: int
    missing: int
    repeated: int


@dataclass(frozen=True)
class ColumnProfile:
    """One column of the node table, and what becomes of it."""

    name: str
    kind: str
    becomes: str
    features: int
    gaps: int
    different: int
    histogram: Histogram | None = field(default=None, repr=False)


@dataclass(frozen=True)
class NodesProfile:
    """The node table."""

    file: str
    dialect: Dialect | None
    rows: int
    ids: IdsProfile
    columns: tuple[ColumnProfile, ...]

    @property
    def features(self) -> int:
        """Of all columns together."""
        return sum(column.features for column in self.columns)


@dataclass(frozen=True)
class EdgesProfile:
    """The edge table."""

    file: str
    dialect: Dialect | None
    rows: int
    known: int  # rows with both ends in the node table
    dropped: int
    loops: int
    repeated: int
    kept: int  # entries, each direction of an undirected edge one


@dataclass(frozen=True)
class LabelsProfile:
    """The label table."""

    file: str
    dialect: Dialect | None
    classes: Mapping[str, int]
    splits: Mapping[str, int]
    unknown: int
    empty: int


@dataclass(frozen=True)
class Profile:
    """Everything; a part that cannot be read is None."""

    nodes: NodesProfile | None
    edges: EdgesProfile | None
    labels: LabelsProfile | None
    findings: tuple[DataFinding, ...]

    @property
    def errors(self) -> tuple[DataFinding, ...]:
        """What keeps a run from beginning."""
        return tuple(one for one in self.findings if one.level == "error")

    def to_json(self) -> dict[str, object]:
        """What `vfgnn data check --json` writes."""
        return {"findings": [one.to_json() for one in self.findings]}


def make_profile(tables: TableSources, columns: Columns, accepted: Collection[str] = ()) -> Profile:
    """Look at all tables. `accepted`: disasters that the party accepts; they become warnings."""
    look = _Look(columns)
    nodes = look.nodes(tables.nodes)
    edges = labels = None
    if look.table is not None and tables.edges is not None:
        edges = look.edges(tables.edges, look.table)
    if look.table is not None and tables.labels is not None:
        labels = look.labels(tables.labels, look.table)
    findings = [*look.findings, *look.disasters()]
    findings = [replace(one, level="warning") if one.code in accepted else one for one in findings]
    findings.sort(key=lambda one: one.level)  # errors first, otherwise as they were found
    return Profile(nodes, edges, labels, tuple(findings))


@dataclass
class _Look:
    """What has been found so far."""

    columns: Columns
    findings: list[DataFinding] = field(default_factory=list)
    table: NodeTable | None = None
    edge_table: EdgeTable | None = None
    label_table: LabelTable | None = None

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """A reader's refusal becomes a finding."""
        try:
            yield
        except TableError as error:
            self.findings.append(DataFinding.of(error))

    def _note(self, code: TableFault, file: str, column: str | None, count: int, found: str, to_do: str = "") -> None:
        if count:
            self.findings.append(DataFinding(code, "warning", file, column, count, found, to_do))

    # nodes

    def nodes(self, source: Source) -> NodesProfile | None:
        """Every column by itself, so that one that cannot be read hides no other."""
        with self._going_on():
            refuse_dialect(source, [self.columns.id])
            read = read_columns(source, self.columns)
            key = read.pop(self.columns.id)
            ids = self._ids(key)
            blocks: dict[str, Block] = {}
            found = [self._column(column, blocks) for column in read.values()]
            dropped = [ColumnProfile(name, "-", "dropped, as drop says", 0, 0, 0) for name in self.columns.drop]
            rows = len(key.values)
            known = key.values.cast(pa.string()).combine_chunks() if ids.kind != "-" else pa.nulls(rows, pa.string())
            self.table = table_of(source, known, blocks)
            return NodesProfile(source.name, _written(source), rows, ids, (*found, *dropped))
        return None

    def _ids(self, key: Column) -> IdsProfile:
        with self._going_on():
            distinct(key)
        try:
            text = key.text().drop_null()
        except TableError:
            return IdsProfile(key.name, "-", 0, 0, 0)
        missing, repeated = len(key.values) - len(text), len(text) - pc.count_distinct(text).as_py()
        return IdsProfile(key.name, kind_of_ids(text), with_leading_zeros(text), missing, repeated)

    def _column(self, column: Column, blocks: dict[str, Block]) -> ColumnProfile:
        gaps, different = _gaps(column), _different(column)
        becomes, block = "cannot be read", None
        with self._going_on():
            block = features(column, self.columns)
            blocks[column.name] = block
            becomes = _becomes(column, block)
            self._doubts(column, block, gaps, different)
        made = 0 if block is None else len(block.names)
        drawn = (
            None if block is None or _is_like_id(column, block, different) else histogram(column, block, self.columns)
        )
        return ColumnProfile(column.name, _kind(column), becomes, made, gaps, different, drawn)

    def _doubts(self, column: Column, block: Block, gaps: int, different: int) -> None:
        """What can be read and is worth a look."""
        file, name, rows = column.source.name, column.name, len(column.values)
        drop = f"list {name} under drop in [data.columns]"
        if block.kind == "empty":
            self._note(TableFault.EMPTY_COLUMN, file, name, rows, "nothing in it, so it is dropped")
            return
        if gaps > MANY_GAPS * rows:
            self._note(TableFault.GAPS, file, name, gaps, "most values are missing", f"fill them in, or {drop}")
        if len(block.names) == 0 or (block.values == block.values[0]).all():
            self._note(TableFault.CONSTANT, file, name, rows, "the same value in each row: it says nothing", drop)
        elif _is_like_id(column, block, different):
            what = "a different value in each row: an id?"
            self._note(TableFault.LOOKS_LIKE_ID, file, name, rows, what, drop)
        if block.kind == "words" and name not in self.columns.categories:
            self._words(column, block, drop)

    def _words(self, column: Column, block: Block, drop: str) -> None:
        words = pa.array([one.removeprefix(f"{column.name}=") for one in block.names], pa.string())
        if len(words) and matching(words, LIKE_DATES) == len(words):
            hint = 'state their format under dates in [data.columns], as { opened = "%d.%m.%Y" }'
            what = "dates in a format that is not stated become one column for each"
            self._note(TableFault.DATES_AS_TEXT, column.source.name, column.name, len(words), what, hint)
        elif len(words) > 1 and matching(words, NUMBER) >= MOSTLY * len(words):
            what = "numbers among other words become one column for each"
            hint = f"empty the cells that are no numbers, or {drop}"
            self._note(TableFault.NUMBERS_AS_TEXT, column.source.name, column.name, len(words), what, hint)

    # edges and labels

    def edges(self, source: Source, nodes: NodeTable) -> EdgesProfile | None:
        """As they would be read."""
        columns, name = self.columns, source.name
        with self._going_on():
            refuse_dialect(source, [columns.source, columns.target])
            found = self.edge_table = read_edges(source, columns, nodes)
            if 2 * found.unknown <= found.rows:  # more is a disaster
                what = f"{found.unknown:,} of {found.rows:,} edges have an end that is not in the node table: dropped"
                self._note(TableFault.EDGES_DROPPED, name, columns.source, found.unknown, what)
            self._note(TableFault.LOOPS, name, None, found.loops, "edges from a node to itself: dropped")
            what = f"pairs that stand there already: {columns.duplicates}"
            self._note(TableFault.REPEATED_EDGES, name, None, found.repeated, what)
            return EdgesProfile(
                name, _written(source), found.rows, found.rows - found.unknown, found.unknown, found.loops,
                found.repeated, len(found.source),
            )  # fmt: skip
        return None

    def labels(self, source: Source, nodes: NodeTable) -> LabelsProfile | None:
        """As they would be read; the split by a keyed hash has the same counts under every key."""
        columns, name = self.columns, source.name
        with self._going_on():
            refuse_dialect(source, [columns.id, columns.label])
            found = self.label_table = read_labels(source, columns, nodes)
            what = "labels of ids that are not in the node table: dropped"
            self._note(TableFault.UNKNOWN_LABELS, name, columns.id, found.unknown, what)
            self._note(TableFault.NO_LABEL, name, columns.label, found.empty, "rows without a label: not trained on")
            counts = np.bincount(found.y.numpy(), minlength=len(found.classes)).tolist()
            parts = np.bincount(found.split.numpy(), minlength=len(PARTS)).tolist()
            return LabelsProfile(
                name, _written(source), dict(zip(found.classes, counts, strict=True)),
                dict(zip(PARTS, parts, strict=True)), found.unknown, found.empty,
            )  # fmt: skip
        return None

    def disasters(self) -> Iterator[DataFinding]:
        """Over all tables together."""
        if self.table is not None:
            yield from disasters(self.table, self.edge_table, self.label_table, self.columns)


def histogram(column: Column, block: Block, columns: Columns) -> Histogram | None:
    """How the values of a column are spread; None for one without any."""
    if block.kind == "words":
        sums = block.values.sum(axis=0).astype(int)
        order = np.argsort(-sums, kind="stable")[:MOST_BARS]
        words = [block.names[i].removeprefix(f"{column.name}=") for i in order]
        rest = int(sums.sum() - sums[order].sum())
        more = (f"{len(sums) - len(order)} more",) if rest else ()
        return Histogram((*map(int, sums[order]), *([rest] if rest else [])), words=(*words, *more))
    numbers = _numbers(column, block, columns)
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return None
    with np.errstate(all="ignore"):
        low, high = np.quantile(numbers, (0.01, 0.99))  # a few far values would make one bar of all others
        if not np.isfinite(high - low) or low == high:
            low, high = float(numbers.min()), float(numbers.max())
        if not np.isfinite(high - low):
            return None
        counts, edges = np.histogram(np.clip(numbers, low, high), bins=BARS)
    return Histogram(tuple(map(int, counts)), edges=tuple(map(float, edges)))


def _numbers(column: Column, block: Block, columns: Columns) -> Floats:
    if block.kind != "moment":
        return column.numbers()
    form = columns.dates.get(column.name)
    return (column if form is None else column.with_dates(form)).moments()


def _written(source: Source) -> Dialect | None:
    return source.dialect if source.is_csv else None


def _gaps(column: Column) -> int:
    missing = column.values.null_count if column.is_text else pc.sum(column.values.is_null(nan_is_null=True)).as_py()
    return int(missing or 0) + (matching(column.values, "^$") if column.is_text else 0)


def _different(column: Column) -> int:
    """Values that are not alike; 0 where lists and the like cannot be compared."""
    try:
        return int(pc.count_distinct(column.values).as_py())
    except pa.ArrowNotImplementedError:
        return 0


def _kind(column: Column) -> str:
    """The type of a column, for people."""
    kind, types = column.values.type, pa.types
    names = {
        "text": column.is_text,
        "truth values": types.is_boolean(kind),
        "whole numbers": types.is_integer(kind),
        "numbers": types.is_floating(kind) or types.is_decimal(kind),
        "dates": types.is_date(kind),
        "time stamps": types.is_timestamp(kind),
        "times of day": types.is_time(kind),
        "durations": types.is_duration(kind),
        "nothing": types.is_null(kind),
    }
    return next((name for name, fits in names.items() if fits), str(kind))


def _becomes(column: Column, block: Block) -> str:
    """What a model sees of it."""
    kind = column.values.type
    if block.kind == "empty":
        return "dropped: empty"
    if block.kind == "words":
        return f"a column for each of {len(block.names)} words"
    number = "number"
    if block.kind == "moment":
        number = "days since 1970-01-01"
        if pa.types.is_time(kind):
            number = "hours since midnight"
        elif pa.types.is_duration(kind):
            number = "days"
    gaps = ", and where it is missing" if len(block.names) > 1 else ""
    return f"{number}, standardised{gaps}"


def _is_like_id(column: Column, block: Block, different: int) -> bool:
    """Whole numbers or words of which no two are alike: values of such a column are not drawn."""
    whole = pa.types.is_integer(column.values.type) or block.kind == "words"
    return whole and len(column.values) > 1 and different == len(column.values)
