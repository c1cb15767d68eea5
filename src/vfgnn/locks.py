"""One process at a time: a lock that ends with whoever holds it, however that ends."""

import fcntl
import os
from pathlib import Path

from vfgnn.errors import VfgnnError
from vfgnn.writing import insist, open_private


def lock(path: Path, refusal: VfgnnError) -> int:
    """Hold `path` until the descriptor that is returned is closed; `refusal` is raised if another process has it."""
    held = insist(path, lambda: open_private(path, os.O_RDWR))
    try:
        insist(path, lambda: fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB), doing="locked")
    except BlockingIOError:
        os.close(held)
        raise refusal from None
    except BaseException:
        os.close(held)
        raise
    return held
