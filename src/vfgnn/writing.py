"""Everything that is written to a disk: whole or not there, for its owner alone, and with errors that have names.

A file's content goes to a temporary file in the same folder, is flushed to the disk, and takes its place by a rename.
Two writers never share a temporary file: the last rename counts. Lines are appended whole or not at all.

Files are 0600 and folders 0700, whatever the umask is; `for_others` says of a file that it is meant to be read by
others too. An error of the disk is a DiskError. Inside `patient` it is first tried again for a while.
"""

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TypeVar

from vfgnn.errors import DiskError

Content = str | bytes | Callable[[Path], object]
"""Text, bytes, or whatever writes the file that it is given the path of."""
Made = TypeVar("Made")
FILE, FOLDER, OTHERS = 0o600, 0o700, 0o077
FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 5.0  # between two attempts to write; twice as long each time


def write_whole(path: Path, content: Content, *, for_others: bool = False, overwrite: bool = True) -> None:
    """Write a file, and the folders above it; after an error, what was there before is still there.

    Without `overwrite`, a file that is already there raises FileExistsError. A link stays a link. A file `for_others`
    has the mode that the umask gives it, and keeps its mode when it is replaced.
    """
    insist(path, lambda: _write_whole(path, content, for_others=for_others, overwrite=overwrite))


def _write_whole(path: Path, content: Content, *, for_others: bool, overwrite: bool) -> None:
    if path.exists() and not path.is_file():  # a pipe or a device: nothing may take its place
        _fill(path, content)
        return
    path = path.resolve()
    _make_folders(path.parent, for_others=for_others)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    known = stat.S_IMODE(path.stat().st_mode) if path.exists() and for_others else None
    mode = 0o666 if known is None and for_others else FILE  # less the umask
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    try:
        _fill(temporary, content)
        flush(temporary)
        if known is not None:
            temporary.chmod(known)
        if overwrite:
            temporary.replace(path)
        else:
            path.hardlink_to(temporary)  # unlike a rename, this fails if another writer came first
    finally:
        temporary.unlink(missing_ok=True)
    flush(path.parent)


def _fill(path: Path, content: Content) -> None:
    if isinstance(content, str):
        path.write_text(content)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)


class Lines:
    """An append-only file of the owner's: a line is in it whole, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._whole = 0  # bytes, up to the end of the last whole line

    def add(self, line: bytes, *, durable: bool = False) -> None:
        """Append; `durable`: it is on the disk, not only out of this process, when this returns."""
        insist(self.path, lambda: self.add_once(line, durable=durable))

    def add_once(self, line: bytes, *, durable: bool = False) -> None:
        """The same without a second attempt; raises OSError."""
        descriptor = self._open()
        if os.fstat(descriptor).st_size != self._whole:  # half a line, which could not be taken back at once
            os.ftruncate(descriptor, self._whole)
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if durable:
                os.fsync(descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, self._whole)
            raise
        self._whole += len(line)

    def open(self) -> None:
        """Now, and not with the first line: what cannot be written is refused at once."""
        insist(self.path, self._open)

    def _open(self) -> int:
        if self._descriptor is None:
            self._descriptor = open_private(self.path, os.O_WRONLY | os.O_APPEND)
            self._whole = os.fstat(self._descriptor).st_size
        return self._descriptor

    def close(self) -> None:
        """Nothing more will be written."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a file that is only its owner's, made if it is not there; raises OSError."""
    descriptor = os.open(path, flags | os.O_CREAT, FILE)
    if os.fstat(descriptor).st_mode & OTHERS:  # of an older version
        with suppress(PermissionError):  # it is somebody else's, who decides
            os.fchmod(descriptor, FILE)
    return descriptor


def make_folder(path: Path, *, narrow: bool = True) -> Path:
    """A folder that is only its owner's, and those above it that are not there yet.

    Without `narrow` one that is there already stays as it is: it may have been made for more than our files.
    """
    insist(path, lambda: _make_folders(path))
    if narrow:
        _narrow(path)
    return path


def _make_folders(path: Path, *, for_others: bool = False) -> None:
    if not path.is_dir():
        _make_folders(path.parent, for_others=for_others)
        path.mkdir(mode=0o777 if for_others else FOLDER, exist_ok=True)


def remove(path: Path) -> None:
    """A file that may be gone already."""
    insist(path, lambda: path.unlink(missing_ok=True), doing="removed")


def move(path: Path, to: Path) -> None:
    """Rename a file or folder."""
    insist(path, lambda: path.rename(to), doing="moved")


def tidy(folder: Path) -> None:
    """Remove what killed writers left in a folder of ours, and narrow what an older version left open to others.

    For a folder that nobody else writes in now.
    """
    for above, _, names in os.walk(folder):
        remove_unfinished(Path(above))
        for path in (Path(above), *(Path(above) / name for name in names)):
            _narrow(path)


def remove_unfinished(folder: Path, name: str | None = None) -> None:
    """Remove what a killed writer left of a file of this name, or of any; nobody else may write it now."""
    left = [*folder.glob(f".{escape(name) if name else '*'}.{'[0-9a-f]' * 16}.tmp")]
    if name is None:
        left += folder.glob(".tmp" + "[0-9A-Za-z]" * 6)  # by safetensors, which wrote our files before
    for half in left:
        remove(half)


def _narrow(path: Path) -> None:
    with suppress(OSError):  # somebody else's, or gone: left alone
        mode = path.lstat().st_mode
        if mode & OTHERS and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~OTHERS)


def keep_private() -> None:
    """For a process that is one party: whatever else writes a file in it, a library's too, writes it for the owner."""
    os.umask(OTHERS)


def flush(path: Path) -> None:
    """When this returns, a file's content or a folder's list of names is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not path.is_dir() or error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network disks flush no folder
            raise
    finally:
        os.close(descriptor)


# an error of the disk is named, and tried again while others can wait


@dataclass(frozen=True)
class _DiskPatience:
    seconds: float
    tell: Callable[..., None]


_PATIENT: ContextVar[_DiskPatience | None] = ContextVar("disk_patience", default=None)  # of one thread


@contextmanager
def patient(seconds: float, tell: Callable[..., None]) -> Iterator[None]:
    """Inside, what this thread cannot write is tried again for so long; `tell` hears of it once, and when it works."""
    token = _PATIENT.set(_DiskPatience(seconds, tell))
    try:
        yield
    finally:
        _PATIENT.reset(token)


def insist(path: Path, attempt: Callable[[], Made], *, doing: str = "written") -> Made:
    """Do something with the disk; an error of it has a name, after as many attempts as `patient` allows."""
    began, pause, patience, told = time.monotonic(), FIRST_PAUSE_S, _PATIENT.get(), False
    while True:
        try:
            made = attempt()
        except (FileExistsError, BlockingIOError):  # another process came first: no fault of the disk
            raise
        except OSError as error:
            fault = error
        else:
            if told and patience is not None:
                patience.tell("the disk works again", where=str(path), after_s=round(time.monotonic() - began, 1))
            return made
        left = 0.0 if patience is None else began + patience.seconds - time.monotonic()
        if patience is None or left <= 0:
            raise DiskError.of(path, fault, doing) from None
        if not told:
            told = True
            reason, for_s = os.strerror(fault.errno or 0), patience.seconds
            patience.tell("the disk fails: tried again", where=str(path), reason=reason, for_s=for_s)
        time.sleep(min(pause, left))
        pause = min(2 * pause, LAST_PAUSE_S)
