"""A holder's tables where they are: CSV and Parquet files, or tables that a program has in memory.

Run by each holder over its own data; nothing leaves, and no message shows a value. Of a table in memory (pandas,
polars, Arrow) an index is left out, and a copy in Arrow's types is read; neither library is imported here.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from vfgnn.data.dialect import NOT_WHOLE, Dialect, differing, sniff
from vfgnn.data.faults import TableFault
from vfgnn.errors import DataError, TableError

AS_USUAL = Dialect()
LISTED = 30  # column names in a message
IN_CODE = "a pandas or polars DataFrame, an Arrow table, or the path of a .csv, .csv.gz or .parquet file"


@dataclass(frozen=True, repr=False)
class Source:
    """One table: a file and how it is written, or an Arrow table; `name` stands in messages."""

    name: str
    path: Path | None = None
    table: pa.Table | None = None
    dialect: Dialect = AS_USUAL

    @property
    def is_csv(self) -> bool:
        """Whether a dialect matters."""
        return self.path is not None and not _is_parquet(self.path)

    def __repr__(self) -> str:
        return f"Source({self.name})"


def source_of(given: object, name: str = "table", dialect: Dialect | None = None) -> Source:
    """A path, a data frame or an Arrow table; `name` is that of a table in memory."""
    if isinstance(given, Source):
        return given
    if isinstance(given, (str, Path)):
        return Source(str(given), path=Path(given), dialect=dialect or AS_USUAL)
    return Source(name, table=_arrow(given, name))


def sniffed(path: Path, names: Collection[str]) -> Source:
    """A file in the dialect that it looks like; `names`: columns that should be there."""
    source = source_of(path)
    try:
        looks = sniff(path, names) if source.is_csv else AS_USUAL
    except NOT_WHOLE:
        return source  # whoever reads it says why it cannot be read
    return source_of(path, dialect=looks)


def _arrow(given: object, name: str) -> pa.Table:
    library = type(given).__module__.partition(".")[0]
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, pa.Table):
        return given
    if library == "polars" and hasattr(given, "to_arrow") and hasattr(given, "columns"):
        return given.to_arrow()
    if library == "pandas" and hasattr(given, "columns"):
        return _from_pandas(given, name)
    raise DataError(f"{name} is no table", expected=IN_CODE, got=type(given).__name__)


def _from_pandas(frame: object, name: str) -> pa.Table:
    """Column by column, so that one of mixed types is named; the reader's own words quote a value."""
    names = [str(column) for column in frame.columns]  # type: ignore[attr-defined]
    arrays = []
    for number, column in enumerate(names):
        try:
            arrays.append(pa.Array.from_pandas(frame.iloc[:, number]))  # type: ignore[attr-defined]
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise TableError(
                TableFault.COLUMN_TYPE,
                "a column of mixed types",
                expected="one type of values",
                file=name,
                column=column,
                hint="convert it, with astype('string') for text",
            ) from None
    return pa.table(arrays, names=names)


def header(source: Source, wanted: Collection[str] = ()) -> list[str]:
    """The names of a table's columns; `wanted`: some that should be among them."""
    if source.table is not None:
        names: list[str] = source.table.column_names
    else:
        with _reading(source, wanted) as path:
            if not source.is_csv:
                with pyarrow.parquet.ParquetFile(path) as file:
                    names = file.schema_arrow.names
            else:
                with pyarrow.csv.open_csv(path, read_options=_read(source), parse_options=_parse(source)) as file:
                    names = file.schema.names
    if len(set(names)) < len(names):
        raise TableError(
            TableFault.REPEATED_COLUMN,
            "two columns of one name",
            expected="a different name for each",
            file=source.name,
            count=len(names) - len(set(names)),
        )
    return names


def read(source: Source, names: Sequence[str], *, text: Collection[str] = ()) -> pa.Table:
    """Some columns of a table with at least one row; those in `text` are text, whatever they look like in a CSV."""
    demand(source, header(source, names), names)
    if source.table is not None:
        table = source.table.select(names)
    else:
        with _reading(source, names) as path:
            if not source.is_csv:
                with pyarrow.parquet.ParquetFile(path) as file:
                    table = file.read(columns=list(names))
            else:
                wanted = pyarrow.csv.ConvertOptions(
                    include_columns=list(names),
                    column_types={name: pa.string() for name in text},
                    decimal_point=source.dialect.decimal,
                )
                table = pyarrow.csv.read_csv(path, _read(source), _parse(source), wanted)
    if source.is_csv and any(pa.types.is_binary(column.type) for column in table.columns):
        refuse_dialect(source, names)  # text that cannot be decoded comes as bytes
    if table.num_rows == 0:
        raise TableError(TableFault.NO_ROWS, "an empty table", expected="at least one row", file=source.name)
    return table


def demand(source: Source, there: Collection[str], names: Collection[str]) -> None:
    """Refuse a table without these columns. A first line that looks like data is not shown."""
    missing = [name for name in names if name not in there]
    if not missing:
        return
    refuse_dialect(source, names)
    shown = ", ".join(list(there)[:LISTED]) + (f" and {len(there) - LISTED} more" if len(there) > LISTED else "")
    raise TableError(
        TableFault.NO_COLUMN,
        "no such column",
        expected=", ".join(missing),
        got=shown,
        file=source.name,
        column=missing[0],
        hint="give the file a header, or name its columns in [data.columns] of party.toml",
    )


def refuse_dialect(source: Source, names: Collection[str]) -> None:
    """Say what a CSV looks like, if that is another dialect than the stated one."""
    other = differing(source.path, source.dialect, names) if source.path is not None and source.is_csv else None
    if other is not None:
        raise other


def _read(source: Source) -> pyarrow.csv.ReadOptions:
    """One thread: only then does the reader say in which row it failed."""
    dialect = source.dialect
    return pyarrow.csv.ReadOptions(
        use_threads=False, encoding=dialect.encoding, autogenerate_column_names=not dialect.header
    )


def _parse(source: Source) -> pyarrow.csv.ParseOptions:
    return pyarrow.csv.ParseOptions(newlines_in_values=True, delimiter=source.dialect.delimiter)


def _is_parquet(path: Path) -> bool:
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        raise TableError(
            TableFault.UNREADABLE,
            "a table in an unknown format",
            expected=".csv, .csv.gz or .parquet",
            file=str(path),
        )
    return name.endswith(".parquet")


@contextmanager
def _reading(source: Source, names: Collection[str]) -> Iterator[Path]:
    """The reader's own messages quote the file, so only their positions are passed on."""
    path = source.path
    if path is None or not path.is_file():
        raise TableError(
            TableFault.UNREADABLE,
            "no such table",
            expected="a .csv, .csv.gz or .parquet file",
            file=source.name,
        )
    try:
        yield path
    except (pa.ArrowException, OSError, ValueError) as error:
        row = re.search(r"^(?:In CSV column #\d+: |CSV parse error: )Row #(\d+): ", str(error))
        at = f"row {int(row[1]) - source.dialect.header}" if row else None
        other = differing(path, source.dialect, names, at=at) if source.is_csv else None
        if other is not None:
            raise other from None
        raise TableError(
            TableFault.UNREADABLE,
            "a table that cannot be read",
            expected="CSV with as many values in each row as names, in the dialect of party.toml"
            if source.is_csv
            else "a whole Parquet file",
            file=source.name,
            at=at,
        ) from None
