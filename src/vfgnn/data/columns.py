"""Which column of a holder's tables is what, and the features that come of the columns of its node table.

Run by each holder over its own tables; nothing leaves.

    number  (x - mean) / standard deviation of the values that are there; a constant column is 0, and a column with
            missing values gets a second one, "<name> missing"
    moment  a date or time as a number (column.py says which), then as a number
    words   one column "<name>=<word>" for each word of its vocabulary, all 0 for a missing value and for any other word
    empty   a column with nothing in it gives no feature, unless its vocabulary is stated

So the number of features follows from the schema, the vocabularies, which columns are empty and which have missing
values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, model_validator

from vfgnn.data.column import AS_DROPPED, AS_NUMBERS, Column, Floats
from vfgnn.data.faults import TableFault

Missing = Literal["mean", "zero", "refuse"]
Kind = Literal["number", "moment", "words", "empty"]
PLAIN = r"^[-+]?\d+$"
THOUSANDS = r"^[-+]?(\d+|\d{1,3}([,.' \x{a0}\x{202f}]\d{3})+)([.,]\d+)?$"  # or without
WITH_DECIMALS = {",": r"^[-+]?\d+(,\d+)?$", ".": r"^[-+]?\d+(\.\d+)?$"}  # or without
SPOKEN = {",": "comma", ".": "point"}
LIKE_DATES = r"^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T]\d{1,2}:\d{2}.*)?$"
AS_DATES = 'state their format under dates in [data.columns], as { opened = "%d.%m.%Y" }'


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
    dates: dict[str, str] = {}  # the format of dates that are text, as %d.%m.%Y
    missing: Missing = "mean"  # numbers: mean is 0 after standardising, zero is 0 before it
    directed: bool = False  # False: an edge counts both ways
    duplicates: Literal["sum", "first", "refuse"] = "sum"  # several edges of one pair: weights added, or one kept

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.split is not None and self.time is not None:
            raise ValueError("split and time: name one of them")
        special = {"dropped": set(self.drop), "with a vocabulary": set(self.categories), "of dates": set(self.dates)}
        for one, other in (
            ("dropped", "with a vocabulary"),
            ("dropped", "of dates"),
            ("of dates", "with a vocabulary"),
        ):
            if both := special[one] & special[other]:
                raise ValueError(f"{one}, and yet {other}: {', '.join(sorted(both))}")
        for name, words in self.categories.items():
            if "" in words or len(set(words)) < len(words):
                raise ValueError(f"the vocabulary of {name} has an empty or a repeated word")
        return self


@dataclass(frozen=True, repr=False)
class Block:
    """The features that come of one column."""

    kind: Kind
    names: tuple[str, ...]
    values: npt.NDArray[np.float32]  # [rows, names]


def features(column: Column, columns: Columns, fitted: int | None = None) -> Block:
    """What one column of the node table gives.

    `fitted`: mean, deviation and words are those of so many first rows (a trained model's); None: of all.
    """
    if column.name == "" or column.name.startswith("__index_level_"):
        column.fail(
            TableFault.UNNAMED_COLUMN,
            "a column without a name",
            expected="a name",
            hint=f"write no index, or {AS_DROPPED}",
        )
    if column.name in columns.categories:
        return _one_hot(column, columns.categories[column.name])
    if Column(column.source, column.name, column.values.slice(0, fitted)).is_empty:
        return Block("empty", (), np.zeros((len(column.values), 0), dtype=np.float32))
    if column.name in columns.dates:
        return _numeric(column, column.with_dates(columns.dates[column.name]).moments(), "moment", columns, fitted)
    if pa.types.is_temporal(column.values.type):
        return _numeric(column, column.moments(), "moment", columns, fitted)
    if column.is_text:
        return _one_hot(column, _vocabulary(column, columns.most_categories, fitted))
    return _numeric(column, column.numbers(), "number", columns, fitted)


def _numeric(column: Column, numbers: Floats, kind: Kind, columns: Columns, fitted: int | None) -> Block:
    gaps, missing = np.isnan(numbers), columns.missing
    if missing == "refuse":
        hint = 'fill them in, or set missing = "mean"'
        column.refuse(TableFault.GAPS, gaps, "missing numbers", expected="none", hint=hint)
    blocks = [standardised(numbers, zero=missing == "zero", fitted=fitted)] + [gaps] * bool(gaps[:fitted].any())
    names = (column.name, f"{column.name} missing")
    return Block(kind, names[: len(blocks)], np.column_stack(blocks).astype(np.float32))


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
    refuse_numbers(column, words)
    if len(words) > most:
        dates = bool(pc.all(pc.match_substring_regex(words, LIKE_DATES)).as_py())
        column.fail(
            TableFault.DATES_AS_TEXT if dates else TableFault.TOO_MANY_WORDS,
            "dates in a format that is not stated" if dates else "a text column with too many different words",
            expected=f"at most {most} (most_categories)",
            got=f"{len(words)}",
            count=len(words),
            hint=AS_DATES if dates else f"{AS_DROPPED}, or state the words that count under categories",
        )
    return tuple(sorted(words.to_pylist()))


def refuse_numbers(column: Column, words: pa.Array) -> None:
    """Numbers with another decimal sign than stated, or with thousands separators, are no words."""

    def all_are(form: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(words, form)).as_py())

    if not len(words) or not all_are(THOUSANDS) or all_are(PLAIN):
        return
    stated = column.source.dialect.decimal
    other = "," if stated == "." else "."
    grouped = all_are(rf"^[-+]?\d{{1,3}}(\{other}\d{{3}})*$")  # 1,234 beside 12
    if all_are(WITH_DECIMALS[other]) and not grouped:
        column.fail(
            TableFault.DECIMAL_SIGN,
            f"numbers with a decimal {SPOKEN[other]}",
            expected=f"a decimal {SPOKEN[stated]}, as stated for this table",
            count=len(words),
            hint=f'set decimal = "{other}" for this table under [data.csv] in party.toml'
            if column.source.is_csv
            else AS_NUMBERS,
        )
    if not all_are(WITH_DECIMALS[stated]):
        what = "numbers with thousands separators"
        column.fail(TableFault.NUMBERS_AS_TEXT, what, expected="numbers without", count=len(words), hint=AS_NUMBERS)


def _one_hot(column: Column, words: Sequence[str]) -> Block:
    found = pc.index_in(column.text(), value_set=pa.array(words, pa.string())).fill_null(-1).to_numpy()
    hot = np.zeros((len(found), len(words)), dtype=np.float32)
    rows = np.flatnonzero(found >= 0)
    hot[rows, found[rows]] = 1
    return Block("words", tuple(f"{column.name}={word}" for word in words), hot)
