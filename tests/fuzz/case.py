"""A case: what is sent or read, how it ended, and how it is kept in tests/corpus.

A case says nothing of the federation that it was found with: ground.py writes names of its keys and addresses into it
before it is kept, and puts those of the federation of today in their place when it is run again.
"""

import base64
import hashlib
import json
import re
import traceback
from dataclasses import dataclass
from pathlib import Path

from vfgnn.errors import VfgnnError

ACCEPTED, REFUSED, UNNAMED, HUNG = "accepted", "refused", "unnamed", "hung"
CORPUS = Path(__file__).parent.parent / "corpus"
HIDDEN = re.compile(r"an error in its program \((\w+)\)")  # how the network tells of an error that has no name
Part = tuple[str, bytes | None]


@dataclass(frozen=True)
class Case:
    """Parts in order: frames with their kind, or files by name (None: the file is missing)."""

    target: str
    way: str  # which reader, or which way in
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        return sum(len(content or b"") for _, content in self.parts)


@dataclass(frozen=True)
class Outcome:
    """What came of a case; a signature is the same for all cases that fail in the same way."""

    verdict: str
    said: str = ""
    signature: str = ""

    @property
    def failed(self) -> bool:
        return self.verdict in (UNNAMED, HUNG)


def judge(error: BaseException | None, case: Case) -> Outcome:
    """Nothing, or one of our errors by name; anything else is a fault of ours."""
    if error is None:
        return Outcome(ACCEPTED)
    hidden = HIDDEN.search(error.what) if isinstance(error, VfgnnError) else None
    if isinstance(error, VfgnnError) and hidden is None:
        return Outcome(REFUSED, error.what)
    cause = (
        error.__context__ if hidden else error
    )  # of an error in the network's own thread nothing is left but its name
    name = hidden.group(1) if hidden else type(error).__name__
    said = "" if cause is None else str(cause)[:160]
    return Outcome(UNNAMED, f"{name}: {said}", f"{case.target} {case.way}: {name}{_place(cause)}")


def _place(error: BaseException | None) -> str:
    """The last function of ours that it passed; no line number, which any change moves."""
    if error is None:
        return ""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/vfgnn/" in frame.filename]
    return f" in {ours[-1].filename.rpartition('/vfgnn/')[2]} {ours[-1].name}" if ours else ""


def write_case(case: Case, outcome: Outcome, folder: Path = CORPUS) -> Path:
    """A file that `python -m tests.fuzz replay` and the corpus test read; one for each signature."""
    path = path_of(case, outcome, folder)
    folder.mkdir(parents=True, exist_ok=True)
    kept = {"failed_with": outcome.signature, "said": outcome.said, **to_json(case)}
    path.write_text(json.dumps(kept, indent=1) + "\n")
    return path


def to_json(case: Case) -> dict[str, object]:
    """Bytes that are text are shown as text."""
    parts = [[label, _shown(content)] for label, content in case.parts]
    return {"target": case.target, "way": case.way, "parts": parts}


def from_json(kept: dict) -> Case:
    return Case(kept["target"], kept["way"], tuple((label, _content(shown)) for label, shown in kept["parts"]))


def read_case(path: Path) -> Case:
    return from_json(json.loads(path.read_text()))


def path_of(case: Case, outcome: Outcome, folder: Path = CORPUS) -> Path:
    """Named after its signature."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", outcome.signature.partition(" ")[2]).strip("-").lower()[:60]
    return folder / f"{case.target}-{words}-{hashlib.sha256(outcome.signature.encode()).hexdigest()[:6]}.json"


def _shown(content: bytes | None) -> object:
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
    return {"text": text}


def _content(shown: dict[str, str] | None) -> bytes | None:
    if shown is None:
        return None
    return base64.b64decode(shown["base64"]) if "base64" in shown else shown["text"].encode()
