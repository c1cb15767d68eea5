"""What a party sent and received, contents too, for `vfgnn audit`: only with `record_view = true` in its party.toml.

It stays in the party's own run folder. `view.key` has a key of its own; each process of the run writes one file into
`view/`. Of each kind on each link it keeps the first messages and the last one. The last ones wait in memory until the
process ends, so a killed process leaves only the first ones.

    file       32 random bytes, then frames of at most 16 MiB
    frame      length, then ChaCha20-Poly1305 under a key that only this file has; the nonce is the frame's number
    message    one frame with its description in JSON, then its words
    the end    a frame whose nonce says that it is the last (STREAM: Hoang, Reyhanitabar, Rogaway & Vizar 2015)

So a frame that was changed, moved, left out or added is found, and so is a file that was cut.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import torch
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from vfgnn.errors import ViewRefused
from vfgnn.messages import Declared
from vfgnn.randomness import SEED_BYTES, derive_key, new_seed
from vfgnn.tensor_file import DTYPES
from vfgnn.writing import Lines, make_folder, write_whole

FIRST = 3  # messages of each kind and link that are kept, and the last one: all of them would be GBs
MORE = {"h0_share": 32}  # each tells more of the same columns; the leak meter counts them
FRAME = 1 << 24  # bytes
ABOUT = 1024  # bytes of a message's description, or of what a frame adds, at most
LENGTH, NUMBER, TAG = 4, 11, 16  # bytes of a frame's length, of its number in a nonce, of its authentication
PURPOSE, ENDS = "recorded view", ("kind", "sender", "receiver")
HINT = "set record_view = true in party.toml before the run"
RESTORE = "restore the file, or run again"
TYPES = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES}
Link = tuple[str, str, str]  # kind, sender, receiver


def key_path(run_folder: Path) -> Path:
    """Where a party keeps the key of its view."""
    return run_folder / "view.key"


def view_folder(run_folder: Path) -> Path:
    """Where a party keeps its view."""
    return run_folder / "view"


def most_bytes(party: str, messages: Iterable[Declared]) -> int:
    """What one process may write at most, if these are all messages that there may be, each at its largest."""
    largest: dict[Link, int] = {}
    for one in messages:
        if party in (one.sender, one.receiver):
            link = str(one.kind), one.sender, one.receiver
            largest[link] = max(largest.get(link, 0), one.bytes)
    kept = ((first_of(kind) + 1) * (size + ABOUT * (1 + size // FRAME)) for (kind, *_), size in largest.items())
    return ABOUT + sum(kept)


def first_of(kind: str) -> int:
    """How many of the first messages of a kind are kept of each link."""
    return MORE.get(kind, FIRST)


@dataclass(frozen=True, repr=False)
class RecordedMessage:
    """One message of a view."""

    about: Mapping[str, Any]  # start, phase, step, kind, sender, receiver, dtype, shape
    payload: torch.Tensor

    @property
    def link(self) -> Link:
        """Its kind and its ends."""
        kind, sender, receiver = (str(self.about[key]) for key in ENDS)
        return kind, sender, receiver


@dataclass
class _Seen:
    """The messages of one kind on one link."""

    count: int = 0
    last: RecordedMessage | None = field(default=None, repr=False)


class ViewRecorder:
    """Writes one process's part of a view; nothing of it ever leaves the party."""

    def __init__(self, run_folder: Path) -> None:
        folder, salt = make_folder(view_folder(run_folder)), new_seed()
        self._cipher = _cipher(_own_key(run_folder), salt)
        numbers = (int(path.stem) for path in folder.glob("*.view") if path.stem.isdecimal())
        self._lines = Lines(folder / f"{max(numbers, default=0) + 1:04d}.view")
        self._lines.add(salt)
        self._ended, self._frames, self._seen = False, 0, dict[Link, _Seen]()

    def add(self, start: str, message: Declared, payload: torch.Tensor, *, phase: str, step: int | None) -> None:
        """Keep a message: on the disk if it is one of the first, in memory if it may be the last."""
        about = {
            "start": start,
            "phase": phase,
            "step": step,
            "kind": str(message.kind),
            "sender": message.sender,
            "receiver": message.receiver,
            "dtype": str(message.dtype).removeprefix("torch."),
            "shape": list(message.shape),
        }
        kept = RecordedMessage(about, payload.detach().to("cpu", copy=True).contiguous())
        seen = self._seen.setdefault(kept.link, _Seen())
        seen.count += 1
        if seen.count <= first_of(message.kind):
            self._write(kept)
        else:
            seen.last = kept

    def close(self) -> None:
        """Write the last messages, and the end; a second time does nothing."""
        if self._ended:
            return
        self._ended = True
        for seen in self._seen.values():
            if seen.last is not None:
                self._write(seen.last)
        self._frame(b"", last=True)
        self._lines.close()

    def _write(self, message: RecordedMessage) -> None:
        self._frame(json.dumps(message.about).encode())
        flat = message.payload.reshape(-1)
        words = flat.view(torch.uint8).numpy().data if flat.numel() else memoryview(b"")
        for at in range(0, len(words), FRAME):
            self._frame(words[at : at + FRAME])

    def _frame(self, content: bytes | memoryview, *, last: bool = False) -> None:
        sealed = self._cipher.encrypt(_nonce(self._frames, last=last), bytes(content), None)
        self._lines.add(len(sealed).to_bytes(LENGTH, "little") + sealed)
        self._frames += 1


def read_view(run_folder: Path, *, finished: bool) -> Iterator[RecordedMessage]:
    """The messages of a view, file after file.

    A file whose process was killed ends early; so does one that was cut between two frames. The last file of a
    `finished` run has to have its end.
    """
    files = sorted(view_folder(run_folder).glob("*.view"))
    if not files:
        raise ViewRefused("there is no recorded view", where=str(run_folder), hint=HINT)
    key = read_key(run_folder)
    for path in files:
        reader = _Reader(path, key)
        yield from reader.messages()
        if finished and path == files[-1] and not reader.ended:
            raise ViewRefused("a view that was cut", expected="its last frame", where=str(path), hint=RESTORE)


class _Reader:
    """One file of a view."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path, self._key, self.ended = path, key, False

    def messages(self) -> Iterator[RecordedMessage]:
        """All of them, in the order of the file."""
        frames = self._frames()
        for frame in frames:
            about, shape, dtype = self._described(frame)
            size, parts, found = prod(shape) * dtype.itemsize, list[bytes](), 0
            while found < size and (part := next(frames, None)) is not None:
                parts.append(part)
                found += len(part)
            if found < size and not self.ended:
                return  # the process was killed here
            if found != size:
                raise self._refusal("a view that cannot be read")
            words = torch.frombuffer(bytearray(b"".join(parts)), dtype=dtype) if size else torch.empty(0, dtype=dtype)
            yield RecordedMessage(about, words.reshape(shape))

    def _described(self, frame: bytes) -> tuple[dict[str, Any], tuple[int, ...], torch.dtype]:
        try:
            about = json.loads(frame)
            shape, dtype = tuple(int(length) for length in about["shape"]), TYPES[about["dtype"]]
            if min(shape, default=0) < 0 or not all(isinstance(about[key], str) for key in ENDS):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._refusal("a view that cannot be read") from None
        return about, shape, dtype

    def _frames(self) -> Iterator[bytes]:
        """Each as it was before it was sealed; the last one, which is empty, is not given."""
        try:
            with self._path.open("rb") as file:
                cipher = _cipher(self._key, file.read(SEED_BYTES))
                for number in count():
                    sealed = _sealed_frame(file)
                    if sealed is None:
                        return  # the process was killed here
                    content = _opened(cipher, _nonce(number, last=False), sealed)
                    if content is None:
                        self._end(_opened(cipher, _nonce(number, last=True), sealed), file.read(1))
                        return
                    yield content
        except OSError as error:
            raise ViewRefused("a view that cannot be read", got=error.strerror, where=str(self._path)) from None

    def _end(self, content: bytes | None, after: bytes) -> None:
        if content != b"" or after:
            raise self._refusal("a view that was altered")
        self.ended = True

    def _refusal(self, what: str) -> ViewRefused:
        return ViewRefused(what, expected="the file as this party wrote it", where=str(self._path), hint=RESTORE)


def _sealed_frame(file: BinaryIO) -> bytes | None:
    """The next one, or None where the file ends before it does."""
    head = file.read(LENGTH)
    size = int.from_bytes(head, "little") if len(head) == LENGTH else 0
    if not TAG <= size <= FRAME + TAG:
        return None if len(head) < LENGTH else head  # of an impossible length: nothing opens it
    sealed = file.read(size)
    return sealed if len(sealed) == size else None


def _opened(cipher: ChaCha20Poly1305, nonce: bytes, sealed: bytes) -> bytes | None:
    try:
        return cipher.decrypt(nonce, sealed, None)
    except InvalidTag:
        return None


def read_key(run_folder: Path) -> bytes:
    """The key of a party's view."""
    path = key_path(run_folder)
    try:
        key = bytes.fromhex(path.read_text())
    except (OSError, ValueError):
        key = b""
    if len(key) != SEED_BYTES:
        raise ViewRefused("there is no key of a recorded view", where=str(path), hint=HINT)
    return key


def _own_key(run_folder: Path) -> bytes:
    """The key that is there, or a new one."""
    path = key_path(run_folder)
    if not path.exists():
        write_whole(path, new_seed().hex() + "\n")
    return read_key(run_folder)


def _cipher(key: bytes, salt: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(derive_key(key, PURPOSE, salt.hex()))


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(NUMBER, "little") + bytes([last])
