"""How a CSV file is written: delimiter, decimal sign, encoding, and whether its first line names the columns.

Run by each holder over its own files; nothing leaves, and nothing of a file is shown. `sniff` guesses from the
beginning of a file, once: `vfgnn init party` writes what it finds into party.toml. From then on the stated dialect is
used, and `differing` names what the file looks like where it cannot be read so.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from vfgnn.data.faults import TableFault
from vfgnn.errors import TableError

BEGINNING = 1 << 18  # bytes that are looked at
ROWS = 200  # rows that are looked at
CHUNK = 1 << 20
NOT_WHOLE = (OSError, EOFError, zlib.error)
DELIMITERS = ("\t", ";", "|", ",")  # a comma may also be a decimal sign, so it comes last
NAMES = {",": "','", ";": "';'", "|": "'|'", "\t": "a tab"}
MARKS = (  # byte order marks; those of UTF-32 begin with those of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SPOKEN = {"latin-1": "Latin-1", "cp1252": "Windows-1252", "utf-16": "UTF-16", "utf-32": "UTF-32", "utf-8": "UTF-8"}
NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,]*([eE][-+]?\d+)?")
DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T]\d{1,2}:\d{2}.*)?")
WITH_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+")
WITH_POINT = re.compile(r"[-+]?(\d+|\d{1,3}(,\d{3})+)\.\d+([eE][-+]?\d+)?")
LONG_ID, DIGITS_IN_ID = 16, 4  # no name of a column is so long and has so many digits


def _known(encoding: str) -> str:
    try:
        "".encode(encoding)
    except (LookupError, UnicodeError):
        raise ValueError("an encoding such as utf-8, latin-1, cp1252 or utf-16") from None
    return encoding


class Dialect(BaseModel):
    """[data.csv.nodes], [data.csv.edges] and [data.csv.labels] in a holder's own party.toml; of Parquet nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    delimiter: Annotated[str, Field(pattern=r"^[\t !#-~]$")] = ","
    decimal: Literal[".", ","] = "."
    encoding: Annotated[str, AfterValidator(_known)] = "utf-8"
    header: bool = True  # False: the columns are called f0, f1, ...

    def __str__(self) -> str:
        named = "" if self.header else ", no header"
        delimiter = NAMES.get(self.delimiter, repr(self.delimiter))
        return f"delimiter {delimiter}, decimal sign '{self.decimal}', {spoken(self.encoding)}{named}"


def spoken(encoding: str) -> str:
    """The name of an encoding for people."""
    return SPOKEN.get(encoding, encoding)


def sniff(path: Path, names: Collection[str] = (), *, otherwise: str = ",") -> Dialect:
    """What the beginning of the file looks like; `names`: columns that should be there.

    `otherwise`: the delimiter of a file of one column. Raises one of NOT_WHOLE.
    """
    encoding = _encoding(path)
    text = _beginning(path, encoding)
    delimiter = _delimiter(text, names, otherwise)
    rows = _rows(text, delimiter)
    header = not _is_data(rows, names)
    cells = [cell.strip() for row in rows[header:] for cell in row]
    commas, points = (sum(bool(one.fullmatch(cell)) for cell in cells) for one in (WITH_COMMA, WITH_POINT))
    decimal: Literal[".", ","] = "," if delimiter != "," and commas > points else "."
    return Dialect(delimiter=delimiter, decimal=decimal, encoding=encoding, header=header)


def differing(path: Path, stated: Dialect, names: Collection[str] = (), *, at: str | None = None) -> TableError | None:
    """What is wrong with the stated dialect, if the file looks like another one; `at`: where reading failed."""
    try:
        found = sniff(path, names, otherwise=stated.delimiter)
    except NOT_WHOLE:
        return None
    for key, fault in (
        ("encoding", TableFault.ENCODING),
        ("delimiter", TableFault.DELIMITER),
        ("header", TableFault.NO_HEADER),
    ):
        if getattr(found, key) != getattr(stated, key) and not (key == "encoding" and _reads(path, stated.encoding)):
            return _error(fault, path, stated, found, at)
    return None


def _error(fault: TableFault, path: Path, stated: Dialect, found: Dialect, at: str | None) -> TableError:
    if fault is TableFault.NO_HEADER and stated.header:
        what, expected = "the first line looks like data", "a first line that names the columns"
        hint = "give the file a header, or set header = false for it under [data.csv]: its columns are then f0, f1, …"
    elif fault is TableFault.NO_HEADER:
        what, expected = "the first line looks like names of columns", "data: header is false"
        hint = "leave header = false out of [data.csv]"
    elif fault is TableFault.DELIMITER:
        what, expected = f"the delimiter looks like {NAMES[found.delimiter]}", NAMES.get(stated.delimiter, "another")
        hint = _fix("delimiter", found.delimiter.replace("\t", "\\t"))
    else:
        what, expected = f"not {spoken(stated.encoding)}: {spoken(found.encoding)}?", spoken(stated.encoding)
        hint = _fix("encoding", found.encoding)
    return TableError(fault, what, expected=f"{expected}, as party.toml says", file=str(path), at=at, hint=hint)


def _fix(key: str, value: str) -> str:
    return f'set {key} = "{value}" for this table under [data.csv] in party.toml, or write the file anew'


def _open(path: Path) -> io.BufferedReader | gzip.GzipFile:
    return gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")


def _reads(path: Path, encoding: str) -> bool:
    """Whether the whole file can be decoded."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with _open(path) as file:
            while chunk := file.read(CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def _encoding(path: Path) -> str:
    with _open(path) as file:
        begins = file.read(BEGINNING)
    for mark, encoding in MARKS:
        if begins.startswith(mark):
            return encoding
    if _reads(path, "utf-8"):
        return "utf-8"
    # Where Latin-1 has control characters, Windows-1252 has dashes, quotes and the euro.
    return "cp1252" if any(0x80 <= byte < 0xA0 for byte in begins) and _reads(path, "cp1252") else "latin-1"


def _beginning(path: Path, encoding: str) -> str:
    """Whole lines, as far as that can be told."""
    with _open(path) as file:
        raw = file.read(BEGINNING)
    text = codecs.getincrementaldecoder(encoding)("ignore").decode(raw).removeprefix("\ufeff")
    return text if len(raw) < BEGINNING else text[: text.rfind("\n") + 1]


def _rows(text: str, delimiter: str) -> list[list[str]]:
    try:
        return [row for row in islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), ROWS) if row]
    except csv.Error:
        return []


def _delimiter(text: str, names: Collection[str], otherwise: str) -> str:
    """The one that gives the columns that should be there, or else rows that are all as long as the first."""

    def fit(delimiter: str) -> tuple[bool, float]:
        rows = _rows(text, delimiter)
        if not rows or len(rows[0]) < 2:
            return False, 0.0
        return any(name in rows[0] for name in names), sum(len(row) == len(rows[0]) for row in rows) / len(rows)

    best = max(DELIMITERS, key=fit)
    return best if fit(best)[1] > 0.5 else otherwise


def _is_data(rows: Sequence[Sequence[str]], names: Collection[str]) -> bool:
    """Whether the first line is one of the rows: numbers, dates, or what is written like the values below it."""
    if not rows or any(name in rows[0] for name in names):
        return False
    first, below = rows[0], rows[1:]
    for i, cell in enumerate(first):
        own = cell.strip()
        others = {row[i].strip() for row in below if len(row) > i}
        if own and (NUMBER.fullmatch(own) or DATE.fullmatch(own) or own in others):
            return True
        digits = sum(one.isdigit() for one in own)
        if digits and (_shape(own) in {_shape(other) for other in others}):
            return True
        if len(own) >= LONG_ID and digits >= DIGITS_IN_ID:
            return True
    return False


def _shape(text: str) -> str:
    """The same for ids of one kind: ACC0012345 and ACC7."""
    return re.sub(r"\d+", "9", text)
