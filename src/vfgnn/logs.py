"""What a party tells its operator: named events with fields, as text or as JSON lines. Sizes, names and times only.

Through the standard `logging`, logger `vfgnn.run`, so that an organisation's own handlers can be added to it.
"""

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

LOGGER = logging.getLogger("vfgnn.run")


def event(name: str, /, **fields: object) -> None:
    """Something happened."""
    LOGGER.info(name, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """One JSON object per event."""

    def __init__(self, party: str) -> None:
        super().__init__()
        self._party = party

    def format(self, record: logging.LogRecord) -> str:
        """Time, party, event, then the event's own fields."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = getattr(record, "fields", {})
        return json.dumps({"time": time, "party": self._party, "event": record.getMessage(), **fields}, default=str)


class Text(JsonLines):
    """The same for people."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        fields = " ".join(f"{key}={value}" for key, value in getattr(record, "fields", {}).items())
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        return f"{time} {self._party}: {record.getMessage()} {fields}".rstrip()


def configure(party: str, *, file: Path, as_json: bool) -> None:
    """Events go to `file` as JSON lines, and to standard error as text or JSON."""
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    for handler in list(LOGGER.handlers):
        LOGGER.removeHandler(handler)
        handler.close()
    on_disk, on_screen = logging.FileHandler(file), logging.StreamHandler()
    on_disk.setFormatter(JsonLines(party))
    on_screen.setFormatter(JsonLines(party) if as_json else Text(party))
    LOGGER.addHandler(on_disk)
    LOGGER.addHandler(on_screen)
