"""Who saw what: every message this party sent or received, in an order that cannot be changed afterwards.

An entry has direction, peer, kind, phase, step, dtype, shape, bytes and a digest of the payload; never the content. It
is written before the message leaves, or before what came is used, and its hash covers the entry before it; at the end
of a run the party signs the last hash with the key of its certificate.

The digest is BLAKE3 under a key of this one message, so that nobody finds a short payload by trying all of them. Both
ends of a link compute the same one: the sender has told the receiver its log key (transport/endpoint.py), and the
message's key follows from that and from the message's place on the link. Two parties' logs of one link must agree,
digest by digest, which needs no key. Each party keeps the log keys of its links in `messages.keys.jsonl`, to open
single messages to an auditor later. Whoever has a log and its keys can try payloads: the keys stay at home.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import torch
from blake3 import blake3

from vfgnn import chain
from vfgnn.chain import Chain
from vfgnn.errors import LogRefused
from vfgnn.messages import Declared
from vfgnn.randomness import derive_key
from vfgnn.records import write_json
from vfgnn.shown import shown

WHAT, KEYS = "message log", "list of log keys"
FORMAT = 2
"""Of a log's lines. Format 1 had the payload's SHA-256, which gives short messages away."""
ALGORITHM = "blake3"
Sign = Callable[[bytes], tuple[bytes, str]]
"""Signs bytes with the party's key: the signature, and the PEM certificate that verifies it."""
YEAR_10000 = 253_402_300_800  # seconds since 1970: calendars end before it
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Word = Annotated[str, msgspec.Meta(max_length=200)]  # a log may be another party's
Digest = Annotated[str, msgspec.Meta(pattern=rf"^{ALGORITHM}:[0-9a-f]{{64}}\Z")]
Key = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class LogLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every line has."""

    number: Count
    hash: str
    format: int
    run: Word  # of one start; a run that was resumed has several
    sender: Word
    receiver: Word


class Entry(LogLine, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One message, as one line of the log."""

    at: Annotated[float, msgspec.Meta(ge=0, lt=YEAR_10000)]  # seconds since 1970, by this party's clock
    place: Count  # among the messages from this sender to this receiver in this start, from 1
    kind: Word
    phase: Word
    step: Count | None
    dtype: Word
    shape: tuple[Count, ...]
    bytes: Count
    digest: Digest


class LogKey(LogLine, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The key that the digests of one link in one start follow from, as one line of the list of keys."""

    key: Key


class Seal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A party's signature under the last hash of its log."""

    entries: Count
    head: str
    signature: Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{2})*\Z", max_length=10_000)]
    certificate: Annotated[str, msgspec.Meta(max_length=100_000)]


def message_key(log_key: bytes, run: str, sender: str, receiver: str, place: int) -> bytes:
    """The key of one message's digest; it tells nothing of the key of another."""
    return derive_key(log_key, "message digest", run, sender, receiver, place)


def digest_of(payload: torch.Tensor, key: bytes) -> str:
    """Keyed BLAKE3 of the words as they are sent, in one thread: the other cores have a party's work to do."""
    flat = payload.detach().cpu().contiguous().reshape(-1)
    words = flat.view(torch.uint8).numpy().data if flat.numel() else b""
    return f"{ALGORITHM}:{blake3(words, key=key).hexdigest()}"


def verify(payload: torch.Tensor, entry: Entry, key: bytes) -> bool:
    """Whether this payload is what the entry tells of; `key`: the message's own (`message_key`).

    Reveals: to whoever is given the key and the log, a way to test guesses of this one message.
    """
    return compare_digest(digest_of(payload, key), entry.digest)


@dataclass
class _Link:
    """How many messages there were on a link of this start, and the key of their digests."""

    key: bytes = field(repr=False)
    messages: int = 0


class MessageLog:
    """Appends to one party's log; goes on where a killed process left it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.is_file():
            next(read_entries(path), None)  # a log of another format is not gone on with
        self._chain = Chain(path, WHAT, LogRefused)
        self._keys = Chain(keys_path(path), KEYS, LogRefused)
        self._run, self._links = "", dict[tuple[str, str], _Link]()

    def add(
        self, run: str, message: Declared, payload: torch.Tensor, log_key: bytes, *, phase: str, step: int | None
    ) -> None:
        """Write one entry; it has left this process before the message does. `log_key`: of this link in this start."""
        link = self._link(run, message, log_key)
        place = link.messages + 1
        key = message_key(link.key, run, message.sender, message.receiver, place)
        fields: dict[str, object] = {
            "format": FORMAT,
            "at": round(time.time(), 6),
            "run": run,
            "sender": message.sender,
            "receiver": message.receiver,
            "place": place,
            "kind": str(message.kind),
            "phase": phase,
            "step": step,
            "dtype": str(message.dtype).removeprefix("torch."),
            "shape": list(message.shape),
            "bytes": message.bytes,
            "digest": digest_of(payload, key),
        }
        self._chain.append(fields)
        link.messages = place

    def _link(self, run: str, message: Declared, log_key: bytes) -> _Link:
        """Where a link's next entry stands; a key is written down before it is used for the first time."""
        if run != self._run:
            self._run, self._links = run, {}
        ends = message.sender, message.receiver
        if ends not in self._links:
            about: dict[str, object] = {"format": FORMAT, "run": run, "sender": ends[0], "receiver": ends[1]}
            self._keys.append({**about, "key": log_key.hex()})
            self._links[ends] = _Link(log_key)
        return self._links[ends]

    def seal(self, sign: Sign) -> None:
        """Sign the last hash, beside the log."""
        content = json.dumps({"entries": self._chain.count, "head": self._chain.head}, sort_keys=True)
        signature, certificate = sign(content.encode())
        sealed = Seal(self._chain.count, self._chain.head, signature.hex(), certificate)
        write_json(seal_path(self._path), msgspec.to_builtins(sealed))

    def close(self) -> None:
        """Nothing more will be written."""
        self._chain.close()
        self._keys.close()


def seal_path(log: Path) -> Path:
    """Where the signature of a log is."""
    return log.with_name("messages.seal.json")


def keys_path(log: Path) -> Path:
    """Where a party keeps the keys of its log's digests."""
    return log.with_name("messages.keys.jsonl")


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of a log, each checked against the one before."""
    return _read(path, WHAT, Entry)


def read_keys(path: Path) -> dict[tuple[str, str, str], bytes]:
    """The log keys beside the log at `path`, by start, sender and receiver."""
    lines = _read(keys_path(path), KEYS, LogKey)
    return {(line.run, line.sender, line.receiver): bytes.fromhex(line.key) for line in lines}


Some = TypeVar("Some", bound=LogLine)


def _read(path: Path, what: str, kind: type[Some]) -> Iterator[Some]:
    for number, fields in enumerate(chain.read(path, what, LogRefused), start=1):
        written = fields.get("format", 1)
        if written != FORMAT:
            raise LogRefused(
                f"a {what} of format {written}; this vfgnn writes format {FORMAT}",
                where=str(path),
                hint="read it with the vfgnn that wrote it (`program` in run.json); begin a new run with --fresh",
            )
        try:
            yield msgspec.convert(fields, kind)
        except msgspec.ValidationError as error:
            got = shown(str(error), most=120)
            raise LogRefused(f"a {what} that cannot be read", got=got, where=f"{path}, line {number}") from None
