"""Who saw what: every message this party sent or received, in an order that cannot be changed afterwards.

An entry has direction, peer, kind, phase, step, dtype, shape, bytes and a digest of the payload; never the content. It
is written before the message leaves, or before what came is used, and its hash covers the entry before it; at the end
of a run the party signs the last hash with the key of its certificate. Two parties' logs of one link must agree, digest
by digest.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from vfgnn import chain
from vfgnn.chain import Chain
from vfgnn.errors import LogRefused
from vfgnn.messages import Declared
from vfgnn.records import write_json

WHAT = "message log"
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


class MessageLog:
    """Appends to one party's log; goes on where a killed process left it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chain = Chain(path, WHAT, LogRefused)

    def add(self, run: str, message: Declared, payload: torch.Tensor, *, phase: str, step: int | None) -> None:
        """Write one entry; it has left this process before the message does."""
        fields: dict[str, object] = {
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
        self._chain.append(fields)

    def seal(self, sign: Sign) -> None:
        """Sign the last hash, beside the log."""
        content = json.dumps({"entries": self._chain.count, "head": self._chain.head}, sort_keys=True)
        signature, certificate = sign(content.encode())
        sealed = {
            "entries": self._chain.count,
            "head": self._chain.head,
            "signature": signature.hex(),
            "certificate": certificate,
        }
        write_json(seal_path(self._path), sealed)

    def close(self) -> None:
        """Nothing more will be written."""
        self._chain.close()


def seal_path(log: Path) -> Path:
    """Where the signature of a log is."""
    return log.with_name("messages.seal.json")


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of a log, each checked against the one before."""
    for fields in chain.read(path, WHAT, LogRefused):
        yield Entry(**{**fields, "shape": tuple(fields["shape"])})  # type: ignore[arg-type]
