"""Disks that are full, that fail at a certain moment, or that cannot be written to."""

import errno
import os
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from vfgnn import writing


@contextmanager
def small_disk(folder, size="4m"):
    """A real one, mounted at `folder`; needs the right to mount."""
    folder.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip(f"no right to mount a disk: {made.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def make_read_only(folder):
    """A folder in which no file is open for writing just now."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    deadline = time.monotonic() + 10
    while subprocess.run(["mount", "-o", "remount,bind,ro", folder], capture_output=True).returncode:
        assert time.monotonic() < deadline  # a file was being written


def make_writable(folder):
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder):
    """Until nothing more goes in."""
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(b"0" * 4096)


class Faults:
    """Counts what is done with the disk, and lets the k-th fail: once, or from then on."""

    def __init__(self, monkeypatch, at, *, code=errno.ENOSPC, for_good=False):
        self.at, self.code, self.for_good = at, code, for_good
        self.count = 0
        self.failed = False
        for owner, name in ((os, "write"), (os, "fsync"), (os, "open"), (writing, "_fill"), (Path, "mkdir")):
            monkeypatch.setattr(owner, name, self._wrapped(getattr(owner, name), half=name == "_fill"))
        for name in ("replace", "rename", "unlink"):
            monkeypatch.setattr(Path, name, self._wrapped(getattr(Path, name)))

    def _wrapped(self, real, *, half=False):
        def call(*arguments, **keywords):
            self.count += 1
            if self.count == self.at or (self.for_good and self.count > self.at):
                self.failed = True
                if half:
                    arguments[0].write_text("half of it")
                raise OSError(self.code, os.strerror(self.code))
            return real(*arguments, **keywords)

        return call
