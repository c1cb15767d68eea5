"""What `vfgnn doctor` found: one line each, and the exit code that follows from all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vfgnn.errors import ExitCode, VfgnnError


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    about: str
    state: Literal["ok", "note", "fault"]
    found: str
    to_do: str = ""
    at_peer: bool = False  # not at home

    @property
    def bad(self) -> bool:
        """Whether a run would fail."""
        return self.state == "fault"


def exit_code(findings: Sequence[Finding]) -> int:
    """Of the command: 0 if a run would not fail. Faults at home count first, because they are mended first."""
    faults = [finding for finding in findings if finding.bad]
    if not faults:
        return 0
    return ExitCode.PEER if all(fault.at_peer for fault in faults) else ExitCode.BAD_INPUT


def as_finding(about: str, error: VfgnnError) -> Finding:
    """An error as a finding: what it says, and what to do about it."""
    found = error.what + "".join(f"; {word} {text}" for word, text in (("got", error.got), ("at", error.where)) if text)
    wanted = f"expected {error.expected}" if error.expected else "see the message"
    return Finding(about, "fault", found, error.hint or wanted)
