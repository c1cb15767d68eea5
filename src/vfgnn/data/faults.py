"""What can be wrong with a table, by name: for `vfgnn data check --json`, for `accept` in party.toml, for tests.

An error keeps `vfgnn init` and `vfgnn run` from going on. Those in `files.Acceptable` are disasters that nobody would
notice: the tables can be read, and yet are hardly meant so. A party may accept them in its own party.toml. The others
can only be mended.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from vfgnn.errors import TableError
from vfgnn.files import ACCEPTABLE

Level = Literal["error", "warning"]


class TableFault(StrEnum):
    """One kind of fault. docs/tables.md has the same list."""

    # the file
    UNREADABLE = "UNREADABLE"  # missing, cut, of another format, or with rows of different lengths
    DELIMITER = "DELIMITER"  # a CSV with another delimiter than stated
    DECIMAL_SIGN = "DECIMAL_SIGN"  # numbers with another decimal sign than stated
    ENCODING = "ENCODING"  # a CSV in another encoding than stated
    NO_HEADER = "NO_HEADER"  # the first line looks like data
    NO_COLUMN = "NO_COLUMN"  # a column that is named in [data.columns] is not there
    REPEATED_COLUMN = "REPEATED_COLUMN"  # two columns of one name
    UNNAMED_COLUMN = "UNNAMED_COLUMN"  # an index that was written too
    NO_ROWS = "NO_ROWS"
    # ids
    ID_TYPE = "ID_TYPE"  # decimals, dates or truth values as ids
    ID_MISSING = "ID_MISSING"
    ID_REPEATED = "ID_REPEATED"
    LOST_ZEROS = "LOST_ZEROS"  # "7" here, "007" in another table or at another holder
    # columns of nodes
    COLUMN_TYPE = "COLUMN_TYPE"  # neither numbers nor text nor dates
    INFINITE = "INFINITE"
    GAPS = "GAPS"  # missing numbers; an error with missing = "refuse", a warning where most are missing
    TOO_MANY_WORDS = "TOO_MANY_WORDS"  # text with more different words than most_categories
    NUMBERS_AS_TEXT = "NUMBERS_AS_TEXT"  # thousands separators, or words among numbers
    DATES_AS_TEXT = "DATES_AS_TEXT"  # dates in a format that is not stated
    DATE_FORMAT = "DATE_FORMAT"  # dates in another format than the stated one
    EMPTY_COLUMN = "EMPTY_COLUMN"  # dropped
    CONSTANT = "CONSTANT"  # says nothing
    LOOKS_LIKE_ID = "LOOKS_LIKE_ID"  # a different value in each row
    LABEL_AMONG_FEATURES = "LABEL_AMONG_FEATURES"  # a node column has the name of the label or of the split
    DETERMINES_LABEL = "DETERMINES_LABEL"  # a node column says nearly every label by itself
    # edges
    WEIGHTS = "WEIGHTS"  # below 0, missing or too large
    REPEATED_EDGES = "REPEATED_EDGES"
    LOOPS = "LOOPS"
    EDGES_DROPPED = "EDGES_DROPPED"  # an end is not in the node table
    UNKNOWN_ENDS = "UNKNOWN_ENDS"  # of most edges
    # labels
    LABEL_TYPE = "LABEL_TYPE"  # decimals or dates as classes
    TOO_FEW_CLASSES = "TOO_FEW_CLASSES"
    UNKNOWN_CLASS = "UNKNOWN_CLASS"
    CLASSES_ALIKE = "CLASSES_ALIKE"  # classes whose names differ by case or blanks alone
    UNKNOWN_LABELS = "UNKNOWN_LABELS"  # ids that are not in the node table
    NO_LABEL = "NO_LABEL"  # rows without one
    SPLIT = "SPLIT"  # a row of no part, or a part without rows
    TIME = "TIME"  # a column that is no time, or rows without one


@dataclass(frozen=True)
class DataFinding:
    """One thing that was found in a holder's tables; never a value of theirs."""

    code: str
    level: Level
    file: str
    column: str | None
    count: int  # rows; 0: the file or the column as a whole
    found: str
    to_do: str = ""

    @classmethod
    def of(cls, error: TableError) -> "DataFinding":
        """What a reader refused."""
        told = f"{error.what}; {error.got}" if error.got else error.what
        to_do = error.hint or (f"expected {error.expected}" if error.expected else "")
        return cls(error.code, "error", error.file, error.column, error.count, told, to_do)

    @property
    def advice(self) -> str:
        """What to do, with the name that `accept` takes where it takes one."""
        accepts = self.level == "error" and self.code in ACCEPTABLE
        return f'{self.to_do}; or accept = ["{self.code}"] in party.toml' if accepts else self.to_do

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return {key: getattr(self, key) for key in ("code", "level", "file", "column", "count")}
