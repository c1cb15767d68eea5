"""An append-only file whose past cannot be changed unnoticed: JSON lines, each with a hash that covers the one before.

Under the message log (who saw what) and the privacy ledger (what it cost). Written by one party on its own disk.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from vfgnn.errors import VfgnnError
from vfgnn.writing import Lines, insist

FIRST = "0" * 64  # what the first line's hash covers
Fields = dict[str, object]


def _hash(before: str, fields: Fields) -> str:
    return hashlib.sha256(before.encode() + json.dumps(fields, sort_keys=True).encode()).hexdigest()


def read(path: Path, what: str, refused: type[VfgnnError]) -> Iterator[Fields]:
    """The lines of a chain, each with its hash, checked against the one before; anything else is refused by name."""
    before = FIRST
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):  # cut by a kill, before what it tells could happen
                    return
                fields = _parsed(line)
                if fields is None:
                    raise refused(f"a {what} that cannot be read", where=f"{path}, line {number}")
                found = fields.pop("hash", None)
                if found != _hash(before, fields) or fields.get("number") != number:
                    raise refused(
                        f"a {what} that was altered",
                        expected="an entry that follows the one before it",
                        where=f"{path}, line {number}",
                    )
                before = str(found)
                yield {**fields, "hash": found}
    except OSError as error:
        raise refused(f"a {what} that cannot be read", got=error.strerror, where=str(path)) from None


def _parsed(line: bytes) -> Fields | None:
    """One line's content, or None: bytes that are no text, no JSON or no object."""
    try:
        fields = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


class Chain:
    """Appends to such a file; goes on where a killed process left it.

    `durable`: a line is on the disk, not only out of this process, before `append` returns.
    """

    def __init__(self, path: Path, what: str, refused: type[VfgnnError], *, durable: bool = False) -> None:
        self._durable = durable
        self.head, self.count = FIRST, 0
        self._lines = Lines(path)
        if path.is_file():
            content = insist(path, path.read_bytes, doing="read")
            whole = content[: content.rfind(b"\n") + 1]  # a kill may have cut the last line: nothing came after it
            if len(whole) < len(content):
                insist(path, lambda: os.truncate(path, len(whole)))
            for fields in read(path, what, refused):
                self.head, self.count = str(fields["hash"]), self.count + 1

    def append(self, fields: Fields) -> None:
        """Write one line, numbered and chained."""
        numbered = {"number": self.count + 1, **fields}
        head = _hash(self.head, numbered)
        line = json.dumps({**numbered, "hash": head}).encode() + b"\n"
        self._lines.add(line, durable=self._durable)
        self.head, self.count = head, self.count + 1

    def close(self) -> None:
        """Nothing more will be written."""
        self._lines.close()
