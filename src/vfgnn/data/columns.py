"""The columns of a holder's own CSV or Parquet file: found by name, read, and made into text, numbers or features.

Run by each holder over its own files; nothing leaves, and no message shows a value: file, column and data row (from 1).
In a CSV, ids, labels, splits and columns with a stated vocabulary are text as they stand ("007" stays "007"); the other
columns have the type that all of their values fit. Missing: null, NaN, empty text, and among a CSV's numbers NA.

    text     as it is, nothing stripped; integer 12 and text "12" are the same
    numbers  integers, floats, decimals, truth values as 0 and 1; infinities are refused
    feature  numbers: (x - mean) / standard deviation of the values that are there, a constant column is 0, and a column
             with missing values gets a second one, "<name> missing"; text: one column "<name>=<word>" for each word of
             its vocabulary, all 0 for a missing value and for any other word; dates and the rest are refused

So the number of features follows from the schema, the vocabularies, and which columns have missing values.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from pydantic import BaseModel, ConfigDict, Field, model_validator

from vfgnn.errors import DataError

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Missing = Literal["mean", "zero", "refuse"]
Block = tuple[list[str], npt.NDArray[np.float32]]  # names and [rows, names]

# One thread: only then does the reader say in which row it failed.
ONE_THREAD = pyarrow.csv.ReadOptions(use_threads=False)
PARSING = pyarrow.csv.ParseOptions(newlines_in_values=True)
DECIMAL = r"^[+-]?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?$"
LOOKED_AT = 1000  # values, to tell whether a column of text was written from floats
LISTED = 30  # column names in a message
AS_TEXT = "write whole numbers without decimals (pandas: astype('Int64') keeps gaps), anything else as text"
AS_DROPPED = "list it under drop in [data.columns]"
AS_NUMBERS = f"convert it to numbers (a date to days, say), or {AS_DROPPED}"


class Columns(BaseModel):
    """Which column is what, and what to do with gaps and repeats: [data.columns] in a holder's own party.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = "id"  # nodes and labels
    source: str = "source"  # edges
    target: str = "target"
    weight: str | None = None
    label: str = "label"  # labels
    split: str | None = None  # train, val or test in each row
    time: str | None = None  # or: the oldest 60 % train, the newest 20 % test
    drop: tuple[str, ...] = ()  # node columns that are not features
    categories: dict[str, tuple[str, ...]] = {}  # the vocabulary of a column
    most_categories: Annotated[int, Field(ge=1)] = 100  # distinct words of a text column without one
    missing: Missing = "mean"  # numbers: mean is 0 after standardising, zero is 0 before it
    directed: bool = False  # False: an edge counts both ways
    duplicates: Literal["sum", "first", "refuse"] = "sum"  # several edges of one pair: weights added, or one kept

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.split is not None and self.time is not None:
            raise ValueError("split and time: name one of them")
        if both := set(self.drop) & self.categories.keys():
            raise ValueError(f"dropped, and yet with a vocabulary: {', '.join(sorted(both))}")
        for name, words in self.categories.items():
            if "" in words or len(set(words)) < len(words):
                raise ValueError(f"the vocabulary of {name} has an empty or a repeated word")
        return self


@dataclass(frozen=True, repr=False)
class Column:
    """One column of a file, and where it came from."""

    path: Path
    name: str
    values: pa.ChunkedArray

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.path}, column {self.name}"

    def refuse(self, bad: Mask, what: str, *, expected: str, hint: str | None = None) -> None:
        """Count the bad rows and name the first, if there are any."""
        if not bad.any():
            return
        where = f"{self.where}, first at row {int(bad.argmax()) + 1}"
        raise DataError(what, expected=expected, got=f"{int(bad.sum())} such row(s)", where=where, hint=hint)

    def refuse_type(self, what: str, *, expected: str, hint: str) -> None:
        """The same where the whole column is wrong."""
        where = f"{self.where}, from row 1"
        raise DataError(what, expected=expected, got=f"a column of {self.values.type}", where=where, hint=hint)

    def text(self) -> pa.ChunkedArray:
        """Text as it is, integers in digits, truth values as true and false; null where there is nothing."""
        kind, types = self.values.type, pa.types
        known = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean, types.is_null)
        if not any(of_type(kind) for of_type in known):
            self.refuse_type("a column that is neither text nor integers", expected="text or integers", hint=AS_TEXT)
        text = self.values.cast(pa.string())
        return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)

    def keys(self) -> pa.ChunkedArray:
        """Text that stands for something: not what a float became on its way into a file (12 as 12.0)."""
        text = self.text()
        if pc.all(pc.match_substring_regex(text.slice(0, LOOKED_AT), DECIMAL)).as_py():
            self.refuse_type("numbers with decimals as names", expected="text or integers", hint=AS_TEXT)
        return text

    def ids(self) -> pa.ChunkedArray:
        """Canonical ids, one in each row."""
        if pa.types.is_boolean(self.values.type):
            self.refuse_type("truth values as ids", expected="text or integers", hint=AS_TEXT)
        ids = self.keys()
        self.refuse(ids.is_null().to_numpy(), "a row without an id", expected="text or an integer in each row")
        return ids

    def numbers(self) -> Floats:
        """As float64, NaN where there is nothing."""
        kind, types = self.values.type, pa.types
        known = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
        if not any(of_type(kind) for of_type in known):
            self.refuse_type("a column that is not of numbers", expected="numbers", hint=AS_NUMBERS)
        numbers: Floats = pc.cast(self.values, pa.float64(), safe=False).to_numpy()  # safe: refuses beyond 2^53
        self.refuse(np.isinf(numbers), "infinite numbers", expected="finite numbers", hint="correct or empty them")
        return numbers


def header(path: Path) -> list[str]:
    """The names of a file's columns."""
    with _reading(path):
        if _is_parquet(path):
            with pyarrow.parquet.ParquetFile(path) as file:
                names: list[str] = file.schema_arrow.names
        else:
            with pyarrow.csv.open_csv(path, read_options=ONE_THREAD, parse_options=PARSING) as file:
                names = file.schema.names
    if len(set(names)) < len(names):
        raise DataError("two columns of one name", expected="a different name for each", where=str(path))
    return names


def read(path: Path, names: Sequence[str], *, text: Collection[str] = ()) -> dict[str, Column]:
    """Some columns of a file, each with at least one row; those in `text` are text, whatever they look like."""
    demand(path, header(path), names)
    with _reading(path):
        if _is_parquet(path):
            with pyarrow.parquet.ParquetFile(path) as file:
                table = file.read(columns=list(names))
        else:
            types = {name: pa.string() for name in text}
            wanted = pyarrow.csv.ConvertOptions(include_columns=list(names), column_types=types)
            table = pyarrow.csv.read_csv(path, ONE_THREAD, PARSING, wanted)
    if table.num_rows == 0:
        raise DataError("an empty table", expected="at least one row", where=str(path))
    return {name: Column(path, name, _decoded(table[name])) for name in names}


def demand(path: Path, there: Collection[str], names: Collection[str]) -> None:
    """Refuse a file without these columns. A first line with numbers in it is data, and is not shown."""
    missing = [name for name in names if name not in there]
    if not missing:
        return
    shown = ", ".join(list(there)[:LISTED]) + (f" and {len(there) - LISTED} more" if len(there) > LISTED else "")
    if any(re.fullmatch(r"[-+.\deE]*\d[-+.\deE]*", name) for name in there):
        shown = f"{len(there)} columns; the first line has numbers in it: is it data?"
    raise DataError(
        "no such column",
        expected=", ".join(missing),
        got=shown,
        where=str(path),
        hint="give the file a header, or name its columns in [data.columns] of party.toml",
    )


def features(column: Column, columns: Columns, fitted: int | None = None) -> Block:
    """What one column of the node table gives.

    `fitted`: mean, deviation and words are those of so many first rows (a trained model's); None: of all.
    """
    kind = column.values.type
    if column.name == "" or column.name.startswith("__index_level_"):
        raise DataError("a column without a name", where=column.where, hint=f"write no index, or {AS_DROPPED}")
    if column.name in columns.categories:
        return _one_hot(column, columns.categories[column.name])
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _one_hot(column, _vocabulary(column, columns.most_categories, fitted))
    if pa.types.is_temporal(kind):
        column.refuse_type("dates and times are no features", expected="numbers or text", hint=AS_NUMBERS)
    return _numeric(column, columns.missing, fitted)


def _numeric(column: Column, missing: Missing, fitted: int | None) -> Block:
    numbers = column.numbers()
    gaps = np.isnan(numbers)
    if missing == "refuse":
        column.refuse(gaps, "missing numbers", expected="none", hint='fill them in, or set missing = "mean"')
    blocks = [standardised(numbers, zero=missing == "zero", fitted=fitted)] + [gaps] * bool(gaps[:fitted].any())
    names = [column.name, f"{column.name} missing"]
    return names[: len(blocks)], np.column_stack(blocks).astype(np.float32)


def standardised(numbers: Floats, *, zero: bool = False, fitted: int | None = None) -> Floats:
    """(x - mean) / standard deviation (population) of what is there; a gap counts as the mean, or as 0.

    `fitted`: mean and deviation are those of so many first rows; None: of all.
    """
    present = numbers[:fitted][~np.isnan(numbers[:fitted])]
    if len(present) == 0 or present.min() == present.max():
        return np.zeros_like(numbers)
    largest = np.abs(present).max()  # divided by first, so that no square overflows
    present = present / largest
    mean = present.mean()
    filled = np.nan_to_num(numbers / largest, nan=0.0 if zero else mean)
    return np.asarray((filled - mean) / present.std(), dtype=np.float64)


def _vocabulary(column: Column, most: int, fitted: int | None) -> tuple[str, ...]:
    words = pc.unique(column.text().slice(0, fitted)).drop_null()
    if len(words) > most:
        raise DataError(
            "a text column with too many different words",
            expected=f"at most {most} (most_categories)",
            got=str(len(words)),
            where=column.where,
            hint=f"{AS_DROPPED}, or state the words that count under categories",
        )
    return tuple(sorted(words.to_pylist()))


def _one_hot(column: Column, words: Sequence[str]) -> Block:
    found = pc.index_in(column.text(), value_set=pa.array(words, pa.string())).fill_null(-1).to_numpy()
    hot = np.zeros((len(found), len(words)), dtype=np.float32)
    rows = np.flatnonzero(found >= 0)
    hot[rows, found[rows]] = 1
    return [f"{column.name}={word}" for word in words], hot


def _decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _is_parquet(path: Path) -> bool:
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        raise DataError("a table in an unknown format", expected=".csv, .csv.gz or .parquet", where=str(path))
    return name.endswith(".parquet")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """The reader's own messages quote the file, so only their positions are passed on."""
    if not path.is_file():
        raise DataError("no such table", expected="a .csv, .csv.gz or .parquet file", where=str(path))
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        row = re.search(r"^(?:In CSV column #\d+: |CSV parse error: )Row #(\d+): ", str(error))
        raise DataError(
            "a table that cannot be read",
            expected="a whole Parquet file, or CSV in UTF-8 with commas and as many values in each row as names",
            where=f"{path}, row {int(row[1]) - 1}" if row else str(path),
        ) from None
