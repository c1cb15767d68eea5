"""One process at a time: a lock that ends with whoever holds it, however that ends."""

import fcntl
import os
from pathlib import Path

from vfgnn.errors import VfgnnError


def lock(path: Path, refusal: VfgnnError) -> int:
    """Hold `path` until the descriptor that is returned is closed; `refusal` is raised if another process has it."""
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise refusal from None
    return held
