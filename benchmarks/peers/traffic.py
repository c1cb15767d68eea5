"""Bytes on the loopback interface, headers included: those of a peer alone, where it runs in a namespace of its own."""

from pathlib import Path


def bytes_so_far() -> int:
    """Sent over loopback since the namespace was made."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return next(int(line.split()[9]) for line in lines if line.split()[0] == "lo:")
