"""A party's log on its own disk: a disk that is full for a while loses no line and stops nobody.

Events come from the network's thread too, which may not wait for a disk. What cannot be written is kept in memory and
written with the next event; the fault is told once, and once more when it is over.
"""

import logging
import os
from collections import deque
from pathlib import Path

from vfgnn.writing import Lines

KEPT = 10_000  # lines in memory while the disk fails; older ones are then lost


class LogFile(logging.Handler):
    """Appends one line for each event."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._lines = Lines(path)
        self._lines.open()  # what cannot be written at all is refused before anything begins
        self._waiting: deque[bytes] = deque(maxlen=KEPT)
        self._fails = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write what waits and this; never raises, and never prints a traceback."""
        self._waiting.append(f"{self.format(record)}\n".encode())
        try:
            while self._waiting:
                self._lines.add_once(self._waiting[0])
                self._waiting.popleft()
        except OSError as error:
            self._tell(fails=True, reason=os.strerror(error.errno or 0))
        else:
            self._tell(fails=False)

    def _tell(self, *, fails: bool, **fields: object) -> None:
        if fails != self._fails:
            self._fails = fails
            what = "the log cannot be written: kept in memory" if fails else "the log is written again"
            told = {"where": str(self._lines.path), **fields}
            logging.getLogger("vfgnn.run").info(what, extra={"fields": told})

    def close(self) -> None:
        """Nothing more will be written."""
        self._lines.close()
        super().close()
