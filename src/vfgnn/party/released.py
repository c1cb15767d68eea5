"""The noised rows of nodes that came after training, by id: what a holder has released once it sends again as it was.

In the holder's own run folder, so that nothing is drawn or paid for again after a restart, nor when `vfgnn predict` is
asked twice. What training released is in the state that it left. Written after a pass: a kill before that draws, and
pays, once more; over, never under.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from vfgnn.errors import CheckpointRefused
from vfgnn.tensor_file import read_tensors, write_tensors

KEPT = "released.safetensors"
WHAT, HINT = "the list of released rows", "restore the file; removing it draws, and charges, once more"


class Released:
    """Rows by id, of one trained model."""

    def __init__(self, run_folder: Path, run: str | None) -> None:
        self._path, self._run = run_folder / KEPT, run
        self._rows: dict[str, torch.Tensor] = {}
        if self._path.is_file():
            self._rows = self._read()

    def of(self, ids: Sequence[str]) -> list[torch.Tensor | None]:
        """What was released of each id, if anything was."""
        return [self._rows.get(one) for one in ids]

    def add(self, ids: Sequence[str], noised: torch.Tensor) -> None:
        """Keep rows that have been sent; the first ones of an id stay."""
        new = {one: row for one, row in zip(ids, noised, strict=True) if one not in self._rows}
        if not new:
            return
        self._rows |= {one: row.clone() for one, row in new.items()}
        names = torch.frombuffer(bytearray(json.dumps(list(self._rows)).encode()), dtype=torch.uint8)
        tensors = {"ids": names, "noised": torch.stack(list(self._rows.values()))}
        write_tensors(self._path, tensors, {"run": self._run})

    def _read(self) -> dict[str, torch.Tensor]:
        about, tensors = read_tensors(self._path, WHAT, CheckpointRefused, names=("ids", "noised"), hint=HINT)
        if about.get("run") != self._run:
            return {}  # of another model: another row
        try:
            ids = json.loads(tensors["ids"].numpy().tobytes())
            return dict(zip(ids, tensors["noised"], strict=True))
        except (ValueError, TypeError):
            raise CheckpointRefused(f"{WHAT} cannot be used", where=str(self._path), hint=HINT) from None
