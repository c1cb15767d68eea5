"""Who saw what: every message this party sent or received, in an order that cannot be changed afterwards.

An entry has direction, peer, kind, phase, step, dtype, shape, bytes and a digest of the payload; never the content. It
is written before the message leaves, or before what came is used, and its hash covers the entry before it; at the end
of a run the party signs the last hash with the key of its certificate. Two parties' logs of one link must agree, digest
by digest.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from vfgnn.errors import LogRefused
from vfgnn.messages import Declared
from vfgnn.records import write_json

FIRST = "0" * 64  # what the first entry's hash covers
Sign = Callable[[bytes], tuple[bytes, str]]
"""Signs bytes with the party's key: the signature, and the PEM certificate that verifies it."""


@dataclass(frozen=True)
class Entry:
    """One message, as one line of the log."""

    number: int
    at: float  # seconds since 1970, by this party's clock
    run: str  # of one start; a run that was resumed has several
    sender: str
    receiver: str
    kind: str
    phase: str
    step: int | None
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    digest: str
    hash: str


def digest_of(payload: torch.Tensor) -> str:
    """SHA-256 of the words as they are sent."""
    flat = payload.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().data if flat.numel() else b"").hexdigest()


def _hash(before: str, fields: dict[str, object]) -> str:
    return hashlib.sha256(before.encode() + json.dumps(fields, sort_keys=True).encode()).hexdigest()


class MessageLog:
    """Appends to one party's log; goes on where a killed process left it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._head, self._count = FIRST, 0
        if path.is_file():
            kept = path.read_bytes()
            whole = kept[: kept.rfind(b"\n") + 1]  # a kill may have cut the last line: its message never left
            if len(whole) < len(kept):
                os.truncate(path, len(whole))
            for entry in read_entries(path):
                self._head, self._count = entry.hash, entry.number
        self._file = path.open("ab", buffering=0)

    def add(self, run: str, message: Declared, payload: torch.Tensor, *, phase: str, step: int | None) -> None:
        """Write one entry; it has left this process before the message does."""
        fields: dict[str, object] = {
            "number": self._count + 1,
            "at": round(time.time(), 6),
            "run": run,
            "sender": message.sender,
            "receiver": message.receiver,
            "kind": str(message.kind),
            "phase": phase,
            "step": step,
            "dtype": str(message.dtype).removeprefix("torch."),
            "shape": list(message.shape),
            "bytes": message.bytes,
            "digest": digest_of(payload),
        }
        self._head, self._count = _hash(self._head, fields), self._count + 1
        line = json.dumps({**fields, "hash": self._head}).encode() + b"\n"
        if self._file.write(line) != len(line):
            raise LogRefused("a message could not be logged", expected="room on the disk", where=str(self._path))

    def seal(self, sign: Sign) -> None:
        """Sign the last hash, beside the log."""
        content = json.dumps({"entries": self._count, "head": self._head}, sort_keys=True)
        signature, certificate = sign(content.encode())
        sealed = {"entries": self._count, "head": self._head, "signature": signature.hex(), "certificate": certificate}
        write_json(seal_path(self._path), sealed)

    def close(self) -> None:
        """Nothing more will be written."""
        self._file.close()


def seal_path(log: Path) -> Path:
    """Where the signature of a log is."""
    return log.with_name("messages.seal.json")


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of a log, each checked against the one before."""
    before = FIRST
    with path.open() as lines:
        for number, line in enumerate(lines, start=1):
            try:
                fields = json.loads(line)
                found = fields.pop("hash")
            except (ValueError, KeyError, AttributeError):
                raise LogRefused("a message log that cannot be read", where=f"{path}, line {number}") from None
            if found != _hash(before, fields) or fields.get("number") != number:
                raise LogRefused(
                    "a message log that was altered",
                    expected="an entry that follows the one before it",
                    where=f"{path}, line {number}",
                )
            before = found
            yield Entry(**{**fields, "shape": tuple(fields["shape"])}, hash=found)
