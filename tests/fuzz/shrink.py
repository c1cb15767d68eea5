"""A failing case made a little smaller: whatever can be left out without another signature is left out."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.case import Case, Outcome
from tests.fuzz.mutate import each_missing

ATTEMPTS, SECONDS = 60, 3.0
Run = Callable[[Case], Outcome]


def shrink(case: Case, outcome: Outcome, run: Run) -> Case:
    """At most ATTEMPTS runs, and SECONDS."""
    left, deadline = ATTEMPTS, time.monotonic() + SECONDS
    smaller: Case | None = case
    while smaller is not None:
        case, smaller = smaller, None
        for candidate in _candidates(case):
            left -= 1
            if left < 0 or time.monotonic() > deadline:
                return case
            if candidate.size < case.size and run(candidate).signature == outcome.signature:
                smaller = candidate
                break
    return case


def _candidates(case: Case) -> Iterator[Case]:
    """Larger steps first: a whole part, a branch of a tree, a half, a quarter and so on of the bytes."""
    if len(case.parts) > 1:
        for i in range(len(case.parts)):
            yield replace(case, parts=case.parts[:i] + case.parts[i + 1 :])
    for i, (label, content) in enumerate(case.parts):
        for less in _less(content or b""):
            yield replace(case, parts=(*case.parts[:i], (label, less), *case.parts[i + 1 :]))


def _less(content: bytes) -> Iterator[bytes]:
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError):
        tree = None
    if isinstance(tree, (dict, list)):
        yield from (
            json.dumps(less).encode() for less in sorted(each_missing(tree), key=lambda less: len(json.dumps(less)))
        )
        return
    size = len(content) // 2
    while size >= max(1, len(content) // 16):
        for at in range(0, len(content), size):
            yield content[:at] + content[at + size :]
        size //= 2
