"""A party's process that was started by another process of ours ends with it, however that one ends.

Nothing else is imported here: every role's process loads this.
"""

import os
import signal
import sys
import threading


def end_with_parent() -> None:
    """End when the pipe to standard input closes, which is when the parent is gone."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
