"""A file that is whole or not there, whatever ends the process or the machine while it is written.

The content goes to a temporary file in the same folder, is flushed to the disk, and takes its place by a rename. Two
writers never share a temporary file: the last rename counts.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

Content = str | bytes | Callable[[Path], object]
"""Text, bytes, or whatever writes the file that it is given the path of."""


def write_whole(path: Path, content: Content, *, private: bool = False, overwrite: bool = True) -> None:
    """Write a file, and the folders above it; after an error, what was there before is still there.

    `private`: only its owner can read it, from its first moment on. Without `overwrite`, a file that is already there
    raises FileExistsError. A link stays a link, and a file that is replaced keeps its mode.
    """
    if path.exists() and not path.is_file():  # a pipe or a device: nothing may take its place
        _fill(path, content)
        return
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    known = stat.S_IMODE(path.stat().st_mode) if path.exists() and not private else None
    mode = 0o666 if known is None and not private else 0o600  # less the umask
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


def remove_unfinished(folder: Path, name: str = "*") -> None:
    """Remove what a killed writer left of files with such a name; for a folder that nobody else writes in now."""
    for half in folder.glob(f".{name}.*.tmp"):
        half.unlink()


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


def _fill(path: Path, content: Content) -> None:
    if isinstance(content, str):
        path.write_text(content)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)
