"""One column of a holder's own table: as text, ids or numbers, or refused.

Run by each holder over its own tables; nothing leaves. No message shows a value: table, column and data row (from 1).
In a CSV, ids, labels, splits and columns with a stated vocabulary are text as they stand ("007" stays "007"); the other
columns have the type that all of their values fit. Missing: null, NaN, empty text, and among a CSV's numbers NA.

    text     as it is, nothing stripped; integer 12 and text "12" are the same
    numbers  integers, floats, decimals, truth values as 0 and 1; infinities are refused
    moments  dates and time stamps as days since 1970-01-01 (UTC), times of day as hours, durations as days
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vfgnn.data import sources
from vfgnn.data.faults import TableFault
from vfgnn.data.sources import Source
from vfgnn.errors import TableError

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

DECIMAL = r"^[+-]?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?$"
LOOKED_AT = 1000  # values, to tell whether a column of text was written from floats
AS_TEXT = "write whole numbers without decimals (pandas: astype('Int64') keeps gaps), anything else as text"
AS_DROPPED = "list it under drop in [data.columns]"
AS_NUMBERS = f"convert it to numbers, or {AS_DROPPED}"
DAY_US, HOUR_US = 86_400e6, 3_600e6
IS_TEXT = (pa.types.is_string, pa.types.is_large_string)
IS_NUMBER = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)


def read(source: Source, names: Sequence[str], *, text: Collection[str] = ()) -> dict[str, "Column"]:
    """Some columns of a table, each with at least one row."""
    table = sources.read(source, names, text=text)
    return {name: Column(source, name, _decoded(table[name])) for name in names}


@dataclass(frozen=True, repr=False)
class Column:
    """One column of a table, and where it came from."""

    source: Source
    name: str
    values: pa.ChunkedArray

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.source.name}, column {self.name}"

    def refuse(self, code: TableFault, bad: Mask, what: str, *, expected: str, hint: str | None = None) -> None:
        """Count the bad rows and name the first, if there are any."""
        if bad.any():
            count, at = int(bad.sum()), f"first at row {int(bad.argmax()) + 1}"
            self.fail(code, what, expected=expected, got=f"{count} such row(s)", count=count, at=at, hint=hint)

    def refuse_type(self, code: TableFault, what: str, *, expected: str, hint: str) -> NoReturn:
        """The same where the whole column is wrong."""
        self.fail(code, what, expected=expected, got=f"a column of {self.values.type}", at="from row 1", hint=hint)

    def fail(
        self,
        code: TableFault,
        what: str,
        *,
        expected: str,
        got: str | None = None,
        count: int = 0,
        at: str | None = None,
        hint: str | None = None,
    ) -> NoReturn:
        """Refuse it."""
        raise TableError(
            code, what, file=self.source.name, column=self.name, count=count, at=at,
            expected=expected, got=got, hint=hint,
        )  # fmt: skip

    @property
    def is_text(self) -> bool:
        """Whether its values are words."""
        return any(of_type(self.values.type) for of_type in IS_TEXT)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it: nulls, NaN and empty text."""
        values = self.values
        if self.is_text:
            return not pc.any(pc.not_equal(values, "")).as_py()
        return values.null_count == len(values) or bool(pc.all(values.is_null(nan_is_null=True)).as_py())

    def text(self, code: TableFault = TableFault.COLUMN_TYPE) -> pa.ChunkedArray:
        """Text as it is, integers in digits, truth values as true and false; null where there is nothing."""
        kind, types = self.values.type, pa.types
        known = (*IS_TEXT, types.is_integer, types.is_boolean, types.is_null)
        if not any(of_type(kind) for of_type in known):
            what = "a column that is neither text nor integers"
            self.refuse_type(code, what, expected="text or integers", hint=AS_TEXT)
        text = self.values.cast(pa.string())
        return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)

    def keys(self, code: TableFault) -> pa.ChunkedArray:
        """Text that stands for something: not what a float became on its way into a file (12 as 12.0)."""
        text = self.text(code)
        if pc.all(pc.match_substring_regex(text.slice(0, LOOKED_AT), DECIMAL)).as_py():
            self.refuse_type(code, "numbers with decimals as names", expected="text or integers", hint=AS_TEXT)
        return text

    def ids(self) -> pa.ChunkedArray:
        """Canonical ids, one in each row."""
        if pa.types.is_boolean(self.values.type):
            self.refuse_type(TableFault.ID_TYPE, "truth values as ids", expected="text or integers", hint=AS_TEXT)
        ids = self.keys(TableFault.ID_TYPE)
        missing = ids.is_null().to_numpy()
        self.refuse(TableFault.ID_MISSING, missing, "a row without an id", expected="text or an integer in each row")
        return ids

    def numbers(self) -> Floats:
        """As float64, NaN where there is nothing."""
        if not any(of_type(self.values.type) for of_type in IS_NUMBER):
            what = "a column that is not of numbers"
            self.refuse_type(TableFault.COLUMN_TYPE, what, expected="numbers", hint=AS_NUMBERS)
        numbers: Floats = pc.cast(self.values, pa.float64(), safe=False).to_numpy()  # safe: refuses beyond 2^53
        what, hint = "infinite numbers", "correct or empty them"
        self.refuse(TableFault.INFINITE, np.isinf(numbers), what, expected="finite numbers", hint=hint)
        return numbers

    def moments(self) -> Floats:
        """Dates, time stamps, times of day and durations as float64, NaN where there is nothing."""
        values, types = self.values, pa.types
        if types.is_date(values.type):
            values = values.cast(pa.date32()).cast(pa.int32()).cast(pa.float64())
            return np.asarray(values.to_numpy(), dtype=np.float64)
        by = HOUR_US if types.is_time(values.type) else DAY_US
        unit = pa.time64("us") if types.is_time(values.type) else None
        if types.is_timestamp(values.type):
            unit = pa.timestamp("us", values.type.tz)
        elif types.is_duration(values.type):
            unit = pa.duration("us")
        micros = values.cast(unit, safe=False).cast(pa.int64())
        return np.asarray(pc.cast(micros, pa.float64(), safe=False).to_numpy(), dtype=np.float64) / by

    def with_dates(self, form: str) -> "Column":
        """Text as time stamps, by the stated format."""
        text = self.text()
        try:
            parsed = pc.strptime(text, format=form, unit="s", error_is_null=True)
        except (pa.ArrowException, ValueError):
            hint = "such as %d.%m.%Y"
            self.fail(TableFault.DATE_FORMAT, "a format of dates that cannot be used", expected=hint)
        bad = parsed.is_null().to_numpy() & ~text.is_null().to_numpy()
        self.refuse(
            TableFault.DATE_FORMAT, bad, "dates of another format", expected=f"{form}, as [data.columns] dates says"
        )
        return Column(self.source, self.name, parsed)


def _decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionaries and views as plain values."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return values.cast(pa.string()) if str(values.type) == "string_view" else values
