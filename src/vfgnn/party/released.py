"""What a holder keeps by id of nodes that came after training, so that nothing is released or opened a second time.

In its own run folder, of one trained model, over passes and restarts. `Released`: noised rows, which are sent again as
they were. Written after a pass: a kill before that draws, and pays, once more; over, never under. `OpenedById`: rows
of a sealed model whose prediction was opened to the label holder, and at the label holder what was opened. What
training released or opened is in the state that it left.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from vfgnn.errors import CheckpointRefused
from vfgnn.tensor_file import read_tensors, write_tensors


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
        names = torch.frombuffer(bytearray(json.dumps(list(self._rows)).encode()), dtype=torch.uint8)
        tensors = {"ids": names, self.tensor: torch.stack(list(self._rows.values()))}
        write_tensors(self._path, tensors, {"run": self._run})

    def _read(self) -> dict[str, torch.Tensor]:
        wanted = ("ids", self.tensor)
        about, tensors = read_tensors(self._path, self.what, CheckpointRefused, names=wanted, hint=self.hint)
        if about.get("run") != self._run:
            return {}  # of another model: another row
        try:
            ids = json.loads(tensors["ids"].numpy().tobytes())
            return dict(zip(ids, tensors[self.tensor], strict=True))
        except (ValueError, TypeError):
            raise CheckpointRefused(f"{self.what} cannot be used", where=str(self._path), hint=self.hint) from None


class Released(RowsById):
    """Noised rows."""

    kept, tensor, what = "released.safetensors", "noised", "the list of released rows"
    hint = "restore the file; removing it draws, and charges, once more"


class OpenedById(RowsById):
    """Rows of a sealed model: classes [1] or scores [C] at the label holder, nothing [0] at the others."""

    kept, tensor, what = "opened.safetensors", "values", "the list of opened rows"
    hint = "restore the file: a row of a model is opened once"
