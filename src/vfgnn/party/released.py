"""What a holder keeps by id of nodes that came after training, so that nothing is released or opened a second time.

In its own run folder, of one trained model, over passes and restarts. `Released`: noised rows, which are sent again as
they were. Written after a pass: a kill before that draws, and pays, once more; over, never under. `OpenedById`: rows
of a sealed model whose prediction was opened to the label holder, and at the label holder what was opened. What
training released or opened is in the state that it left. `AskedById`: this holder's share of what a pass tells, until
another pass begins: one that is interrupted tells the same again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from vfgnn.errors import CheckpointRefused
from vfgnn.sealed.state import AskedState
from vfgnn.tensor_file import read_tensors, write_tensors
from vfgnn.writing import remove


class RowsById:
    """Rows of one trained model."""

    kept: str  # the file
    tensor: str  # its name in the file
    what: str
    hint: str

    def __init__(self, run_folder: Path, run: str | None) -> None:
        self._path, self._run = run_folder / self.kept, run
        self._rows: dict[str, torch.Tensor] = {}
        if self._path.is_file():
            self._rows = self._read()

    @property
    def ids(self) -> list[str]:
        """In the order in which they came."""
        return list(self._rows)

    def of(self, ids: Sequence[str]) -> list[torch.Tensor | None]:
        """What is kept of each id, if anything is."""
        return [self._rows.get(one) for one in ids]

    def add(self, ids: Sequence[str], rows: torch.Tensor) -> None:
        """Keep more rows; the first ones of an id stay."""
        new = {one: row for one, row in zip(ids, rows, strict=True) if one not in self._rows}
        if not new:
            return
        self._rows |= {one: row.clone() for one, row in new.items()}
        tensors = {"ids": _as_bytes(list(self._rows)), self.tensor: torch.stack(list(self._rows.values()))}
        write_tensors(self._path, tensors, {"run": self._run})

    def _read(self) -> dict[str, torch.Tensor]:
        wanted = ("ids", self.tensor)
        about, tensors = read_tensors(self._path, self.what, CheckpointRefused, names=wanted, hint=self.hint)
        if about.get("run") != self._run:
            return {}  # of another model: another row
        return _by_id(tensors["ids"], tensors[self.tensor], self.what, self._path, self.hint)


def _as_bytes(ids: Sequence[str]) -> torch.Tensor:
    return torch.frombuffer(bytearray(json.dumps(ids).encode()), dtype=torch.uint8)


def _by_id(ids: torch.Tensor, rows: torch.Tensor, what: str, path: Path, hint: str) -> dict[str, torch.Tensor]:
    try:
        return dict(zip(json.loads(ids.numpy().tobytes()), rows, strict=True))
    except (ValueError, TypeError):
        raise CheckpointRefused(f"{what} cannot be used", where=str(path), hint=hint) from None


class Released(RowsById):
    """Noised rows."""

    kept, tensor, what = "released.safetensors", "noised", "the list of released rows"
    hint = "restore the file; removing it draws, and charges, once more"


class OpenedById(RowsById):
    """Rows of a sealed model: classes [1] or scores [C] at the label holder, nothing [0] at the others."""

    kept, tensor, what = "opened.safetensors", "values", "the list of opened rows"
    hint = "restore the file: a row of a model is opened once"


@dataclass(frozen=True, repr=False)
class AskedRows:
    """What a pass has made, and its name."""

    start: str
    rows: dict[str, torch.Tensor]  # by id: this holder's share of what is told

    def among(self, ids: Sequence[str]) -> AskedState:
        """Those that are still there, at their places."""
        known = [(place, self.rows[one]) for place, one in enumerate(ids) if one in self.rows]
        places = torch.tensor([place for place, _ in known], dtype=torch.int64)
        return AskedState(places, torch.stack([row for _, row in known]) if known else torch.empty((0, 0)))


class AskedById:
    """Of the last pass with a sealed model, if there was any."""

    kept, what = "asked.safetensors", "the share of what is told"
    hint = "move the file away: rows that were told with it are not told again"

    def __init__(self, run_folder: Path, run: str | None) -> None:
        self._path, self._run = run_folder / self.kept, run
        self.last: AskedRows | None = self._read() if self._path.is_file() else None

    def put(self, ids: Sequence[str], made: torch.Tensor, start: str) -> None:
        """In the place of what a pass before has made."""
        self.last = AskedRows(start, dict(zip(ids, made, strict=True)))
        write_tensors(self._path, {"ids": _as_bytes(ids), "made": made}, {"run": self._run, "start": start})

    def clear(self) -> None:
        """The label holder has it, or nobody has told it."""
        self.last = None
        if self._path.is_file():
            remove(self._path)

    def _read(self) -> AskedRows | None:
        names = ("ids", "made")
        about, tensors = read_tensors(self._path, self.what, CheckpointRefused, names=names, hint=self.hint)
        if about.get("run") != self._run:
            return None  # of another model
        rows = _by_id(tensors["ids"], tensors["made"], self.what, self._path, self.hint)
        return AskedRows(str(about.get("start")), rows)
