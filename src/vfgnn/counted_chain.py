"""A ledger on a party's own disk: a chain (chain.py) that one process at a time appends to, and nobody rolls back.

Each line is on the disk before `append` returns. The number of lines is also kept in a second file, so that a ledger
that has lost lines is refused. Under the privacy ledger and the ledger of openings.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from vfgnn.chain import Chain, read
from vfgnn.errors import VfgnnError
from vfgnn.locks import lock
from vfgnn.records import write_json
from vfgnn.writing import make_folder, remove_unfinished

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Line = TypeVar("Line", bound="DataclassInstance")


class CountedChain:
    """Open for one process, until it is closed."""

    def __init__(self, path: Path, what: str, refused: type[VfgnnError], *, lost: str) -> None:
        """`what`: the kind of ledger; `lost`: what whoever has lost lines of it must know."""
        self.path, self._what, self._refused, self._lost = path, what, refused, lost
        make_folder(path.parent, narrow=False)
        # Two that count for themselves would each spend the whole budget.
        refusal = refused(
            f"the {what} is in use by another process",
            where=str(path),
            hint="wait for the other run on this data to end",
        )
        self._lock: int | None = lock(path.with_name(f"{path.name}.lock"), refusal)
        self._chain: Chain | None = None
        try:
            remove_unfinished(path.parent, self._count_path.name)
            self._chain = Chain(path, what, refused, durable=True)
            self.refuse_fewer(self._known_lines())
        except BaseException:
            self.close()
            raise

    @property
    def count(self) -> int:
        """Lines so far."""
        return 0 if self._chain is None else self._chain.count

    def append(self, line: Mapping[str, object]) -> None:
        """Write one line; when this returns, it is on the disk."""
        if self._chain is not None:
            self._chain.append(dict(line))
            write_json(self._count_path, {"entries": self._chain.count})

    def refuse_fewer(self, known: int) -> None:
        """Refuse a ledger that has lost lines since somebody wrote down how many there were."""
        if self.count < known:
            raise self._refused(
                f"a {self._what} that was rolled back",
                expected=f"at least {known} entries, as were written before",
                got=f"{self.count}",
                where=str(self.path),
                hint=f"restore the newest copy: {self._lost}",
            )

    def close(self) -> None:
        """Nothing more will be written."""
        if self._chain is not None:
            self._chain.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def _count_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.count")

    def _known_lines(self) -> int:
        if not self._count_path.is_file():
            return 0
        try:
            return msgspec.json.decode(self._count_path.read_bytes(), type=dict[str, int])["entries"]
        except (msgspec.DecodeError, ValueError, KeyError, OSError, RecursionError):
            raise self._refused("the ledger's count was altered", where=str(self._count_path)) from None


def read_entries(path: Path, what: str, refused: type[VfgnnError], kind: type[Line]) -> Iterator[Line]:
    """The lines of a ledger as dataclasses, each checked against the one before; what is not known is refused."""
    known = {one.name for one in fields(kind)}
    for line in read(path, what, refused):
        content = {key: value for key, value in line.items() if key not in ("number", "hash")}
        try:
            entry = msgspec.convert(content, kind)
        except msgspec.ValidationError:
            raise refused(f"a {what} that cannot be read", where=str(path)) from None
        if content.keys() - known:  # it may cost something
            raise refused(f"a {what} that cannot be read", where=str(path))
        yield entry
