"""A run folder, read for the page: every value checked before it is shown.

The folder may be another party's, so its files say what that party wants. A value that is no number where one belongs,
a name that is no party's, a text without end: each is a DataError with the file and the key, never with the value.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from vfgnn.errors import DataError
from vfgnn.files import FederationFile
from vfgnn.message_log import Entry, read_entries, seal_path

YEAR_10000 = 253_402_300_800  # seconds since 1970: calendars end before it
Count = Annotated[int, Field(ge=0, lt=2**63)]
Moment = Annotated[float, Field(ge=0, lt=YEAR_10000)]
Word = Annotated[str, Field(max_length=200)]
Sentence = Annotated[str, Field(max_length=2000)]
Content = TypeVar("Content")


class Record(BaseModel):
    """Of a file that a party wrote: types are strict, and keys that the page does not show are left alone."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class LeakReading(Record):
    """What the reveals of h0 gave away of a holder's features."""

    revealed: Count
    rank: Count
    share: float


class Ended(Record):
    """At the label holder: what was reached."""

    scores: dict[Word, float] = {}


class NoisedPart(Record):
    """One thing that was noised."""

    what: Word
    unit: Word
    mechanism: Sentence
    epsilon_per_release: float
    releases: dict[Word, Count]
    epsilon_total: float
    delta: float
    noise_multiplier: float | None = None
    adjacency: Word | None = None
    calibration: Word | None = None
    note: Sentence = ""


class Stated(Record):
    """What a holder's ledger came to."""

    guarantees: list[NoisedPart]
    not_covered: list[Sentence]


class About(Record):
    """run.json."""

    party: Word
    run: Word
    state: Word
    program: Word
    began: Word
    nodes: Count | None = None
    leak_meter: LeakReading | None = None
    privacy: Stated | None = None
    outcome: Ended | None = None


class Link(Record):
    """One direction of one link in one phase, of traffic.json."""

    sender: Word
    receiver: Word
    messages: Count
    bytes: Count
    waited_s: float


class Epoch(Record):
    """A line of metrics.jsonl."""

    epoch: Count
    loss: float | None
    val_accuracy: float | None


class Logged(Record):
    """What the page shows of a line of a message log."""

    at: Moment
    run: Word
    sender: Word
    receiver: Word
    kind: Word
    step: Count | None
    bytes: Count
    digest: Word


class Seal(Record):
    """Beside a message log."""

    signature: Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$", max_length=10_000)]
    certificate: Annotated[str, Field(max_length=100_000)]


@dataclass(frozen=True)
class Kept:
    """One party's run folder."""

    folder: Path
    about: About
    file: FederationFile
    traffic: tuple[Link, ...]
    metrics: tuple[Epoch, ...]
    entries: tuple[Entry, ...] | None  # of its message log; None: there is none

    @property
    def party(self) -> str:
        """Whose it is."""
        return self.about.party

    @staticmethod
    def read(folder: Path) -> "Kept":
        """A run folder, or a DataError that says what is missing or cannot be."""
        if missing := [name for name in ("run.json", "federation.json") if not (folder / name).is_file()]:
            raise DataError("not a run folder", expected=" and ".join(missing), where=str(folder))
        about = _read(folder / "run.json", TypeAdapter(About))
        file = _read(folder / "federation.json", TypeAdapter(FederationFile))
        _refuse_strangers(file.parties, folder / "run.json", party=about.party)
        traffic, log = folder / "traffic.json", folder / "messages.jsonl"
        links = _read(traffic, TypeAdapter(list[Link])) if traffic.is_file() else []
        for link in links:
            _refuse_strangers(file.parties, traffic, sender=link.sender, receiver=link.receiver)
        entries = tuple(entries_of(log, file.parties)) if log.is_file() else None
        return Kept(folder, about, file, tuple(links), tuple(_lines(folder / "metrics.jsonl")), entries)


def over_one_node(file: FederationFile) -> FederationFile:
    """For the schedule of kinds and links, the same for any number of nodes; a file may claim 10^18 of them."""
    if file.alignment is None:
        return FederationFile.model_validate({**file.document, "nodes": 1})
    alignment = file.alignment.model_copy(update={"max_ids": 1})
    return FederationFile.model_validate({**file.document, "alignment": alignment})


def entries_of(log: Path, names: Collection[str]) -> Iterator[Entry]:
    """A message log whose values are what they should be, and whose seal, if there is one, can be read."""
    if seal_path(log).is_file():
        _read(seal_path(log), TypeAdapter(Seal))
    found = read_entries(log)
    for number in count(1):
        where = f"{log}, line {number}"
        with _named(where):
            entry = next(found, None)
            if entry is None:
                return
            Logged.model_validate(entry, from_attributes=True)
        _refuse_strangers(names, where, sender=entry.sender, receiver=entry.receiver)
        yield entry


def _lines(metrics: Path) -> Iterator[Epoch]:
    """A kill may have cut the last line: it does not count."""
    if not metrics.is_file():
        return
    with _named(str(metrics)):
        whole = metrics.read_bytes().rpartition(b"\n")[0].splitlines()
    for number, line in enumerate(whole, start=1):
        with _named(f"{metrics}, line {number}"):
            yield Epoch.model_validate_json(line)


def _read(path: Path, kind: TypeAdapter[Content]) -> Content:
    with _named(str(path)):
        return kind.validate_json(path.read_bytes())


def _refuse_strangers(names: Collection[str], where: object, **found: str) -> None:
    for key, name in found.items():
        if name not in names:
            raise DataError(f"'{key}' is not a party", expected=" or ".join(names), where=str(where))


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Whatever is wrong with a file becomes a DataError with the key, and without the value."""
    try:
        yield
    except ValidationError as error:
        finding = error.errors(include_url=False, include_input=False)[0]
        key = _printable(".".join(map(str, finding["loc"]))) or "the whole"
        raise DataError(f"'{key}' cannot be used", expected=_printable(finding["msg"]), where=where) from None
    except OSError as error:
        raise DataError("a record that cannot be read", got=error.strerror, where=where) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError("a record that cannot be read", got=type(error).__name__, where=where) from None


def _printable(text: str) -> str:
    """For a terminal: the text may be another party's."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:200])
