"""What a party tells its operator: named events with fields, as text or as JSON lines. Sizes, names and times only.

Through the standard `logging`, logger `vfgnn.run`, so that an organisation's own handlers can be added to it.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from vfgnn.log_file import LogFile
from vfgnn.shown import shown

LOGGER = logging.getLogger("vfgnn.run")
TOLD_S, MOST_TOLD_S = 3.0, 300.0  # until the operator hears for whom this party waits; twice as long each time


class Event(StrEnum):
    """The events that programs read: lab/processes.py, party/folder.py and tests. Others are for people alone."""

    CONNECTED = "connected"
    CONNECTED_AGAIN = "connected again"
    CONNECTION_LOST = "connection lost"
    REFUSED = "refused"  # a caller was turned away
    PEER_FAILED = "peer failed"  # `peer` failed and said why; this party then fails too
    RUN_BEGINS = "run begins"
    RUN_GOES_ON = "run goes on"
    EPOCH = "epoch"
    GOING_BACK = "going back to a common step"
    RUN_ENDED = "run ended"
    RUN_FAILED = "run failed"


def event(name: str, /, **fields: object) -> None:
    """Something happened."""
    LOGGER.info(name, extra={"fields": fields})


def tell_waiting(wait: Callable[[float], object], fields: Callable[[], Mapping[str, object]]) -> None:
    """`wait`, for so many seconds, until it comes true; meanwhile the operator hears of it, ever less often."""
    pause, began = TOLD_S, time.monotonic()
    while not wait(pause):
        event("waiting", since_s=round(time.monotonic() - began), **fields())
        pause = min(2 * pause, MOST_TOLD_S)


class JsonLines(logging.Formatter):
    """One JSON object per event."""

    def __init__(self, party: str) -> None:
        super().__init__()
        self._party = party

    def format(self, record: logging.LogRecord) -> str:
        """Time, party, event, then the event's own fields."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        event = {"time": at, "party": self._party, "event": record.getMessage().strip()}
        return json.dumps({**event, **_fields(record)}, default=str)


class Text(JsonLines):
    """The same for people."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever a field says."""
        fields = " ".join(f"{key}={value}" for key, value in _fields(record).items())
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        return shown(f"{at} {self._party}: {record.getMessage().strip()} {fields}".rstrip())


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """An event's own; of an exception which it was and where, but not its words, which may quote what was read."""
    fields: dict[str, object] = getattr(record, "fields", {})
    if not record.exc_info or record.exc_info[0] is None:
        return fields
    *_, last = traceback.extract_tb(record.exc_info[2])
    return {**fields, "error": record.exc_info[0].__name__, "at": f"{Path(last.filename).name}:{last.lineno}"}


def pass_over(raised: "sys.UnraisableHookArgs") -> None:
    """An error that Python cannot raise, as in a caller's server name that is no ASCII, is told by its kind alone."""
    LOGGER.warning("passed over an error in a callback", extra={"fields": {"error": raised.exc_type.__name__}})


def adopt(name: str) -> None:
    """Warnings of a library's logger become events like ours."""
    logger = logging.getLogger(name)
    logger.setLevel(logging.WARNING)
    logger.parent, logger.propagate = LOGGER, True


def configure(party: str, *, file: Path, as_json: bool) -> None:
    """Events go to `file` as JSON lines, and to standard error as text or JSON."""
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    sys.unraisablehook = pass_over  # the one that is there prints a traceback
    for handler in list(LOGGER.handlers):
        LOGGER.removeHandler(handler)
        handler.close()
    on_disk, on_screen = LogFile(file), logging.StreamHandler()
    on_disk.setFormatter(JsonLines(party))
    on_screen.setFormatter(JsonLines(party) if as_json else Text(party))
    LOGGER.addHandler(on_disk)
    LOGGER.addHandler(on_screen)
