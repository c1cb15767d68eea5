"""Copies of what a holder noised: sent again it costs nothing, noised again it would cost as much once more.

1. The copy is on the disk, with a random name of its own (`copy_id`).
2. The ledger has a line with that name.
3. The message leaves.

A kill at any moment is therefore counted exactly: whoever finds a copy whose name the ledger does not know writes the
line before the copy leaves. The same holds under another ledger. A copy is private until its message has left (0600),
and whole or not there.
"""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

from vfgnn.errors import LedgerRefused
from vfgnn.randomness import new_seed
from vfgnn.tensor_file import read_tensors, write_tensors
from vfgnn.writing import make_folder, remove_unfinished


def new_copy_id() -> str:
    """Nobody has drawn it before."""
    return new_seed().hex()[:32]


@dataclass(frozen=True, repr=False)
class NoisedCopy:
    """A file of noised data. `copy_id`: of its line in the ledger; empty where an earlier version wrote none."""

    noised: torch.Tensor
    copy_id: str


def write_copy(path: Path, what: str, copy: NoisedCopy) -> None:
    """When this returns, the copy is on the disk."""
    remove_unfinished(path.parent, path.name)
    write_tensors(path, {what: copy.noised.detach().cpu()}, {"copy_id": copy.copy_id})


def read_copy(path: Path, what: str) -> NoisedCopy | None:
    """None where there is no such file; one that cannot be read is refused."""
    if not path.is_file():
        return None
    hint = "restore the file; removing it draws, and charges, once more"
    about, tensors = read_tensors(path, f"a file of noised {what}", LedgerRefused, names=[what], hint=hint)
    return NoisedCopy(tensors[what], str(about.get("copy_id", "")))


class MessageCopies:
    """The noised messages of one run since the oldest step that its party can go back to."""

    def __init__(self, folder: Path, run: str) -> None:
        self.run, self._folder = run, folder
        make_folder(folder)
        remove_unfinished(folder)

    def path(self, what: str, step: int | None, rows: torch.Tensor) -> Path:
        """Where the message of a step (None: the prediction) with these rows is kept.

        The name stands for run, step and rows: no other message is found under it.
        """
        digest = hashlib.sha256(json.dumps([self.run, what, step, len(rows)]).encode())
        digest.update(rows.cpu().contiguous().numpy().tobytes())
        when = "prediction" if step is None else f"step-{step:08d}"
        return self._folder / f"{when}-{what}-{digest.hexdigest()[:32]}.safetensors"

    def forget(self, *, before: int) -> None:
        """Nobody can go back to a step before this one."""
        for path in self._folder.glob("step-*.safetensors"):
            if int(path.name.split("-")[1]) < before:
                path.unlink()


def remove_copies(folder: Path) -> None:
    """At the end of a run, to which nobody goes back."""
    if folder.is_dir():
        shutil.rmtree(folder)
