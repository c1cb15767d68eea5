"""Everything vfgnn raises on purpose, and the exit code with which the command line then ends.

    VfgnnError                 1  what was expected, what came, where, and what to do
    ├── ConfigError            2  a setting, a key, a preset, a proportion
    ├── DataError              2  a file or a tensor that cannot be what it should be
    ├── ModuleError            2  a user's own code (GNN, combine, mechanism) that cannot take part
    ├── CheckpointRefused      2  a checkpoint that is not whole, not ours, or not of this run
    ├── DiskError              2  a file or folder of this party that its disk does not take
    ├── LogRefused             2  a message log that was altered
    ├── ViewRefused            2  a recorded view that is not there, was altered or was cut
    ├── PolicyRefused          4  a run or a release that would reveal more than the parties have agreed to
    │   ├── BudgetSpent        4  a release that the privacy budget does not cover
    │   ├── LimitExceeded      4  an audit that found more than its limit allows
    │   └── LedgerRefused      4  a privacy ledger that was altered or rolled back
    ├── PeerRefused            3  a peer that is not who, or does not have what, the federation file says
    │   └── NameTaken          3  a second process with the key of a party that is connected
    ├── NotThere               3  nobody answers at a peer's address yet
    ├── ProtocolError          3  a message that the schedule does not name
    │   ├── ChannelClosed      3  the other end is gone
    │   │   ├── PeerFailed     3  it failed, and said why
    │   │   └── PeerRestarted  3  it came back as a new process: all go back to the step they have in common
    │   ├── DeadlinePassed     3  the other end is there but silent for too long
    │   └── Overflow           2  a result that the ring cannot hold: settings or features have to change
    ├── CorrelationReused      1  a mask that has been used once: only an error in our own code asks for it again
    └── PartyFailed            1  a process that this one started failed; the instance has the code of that process

None of them ever carries a private value: shapes, names and positions only. What a peer or a file said is shown with
its control characters made visible, each part on one line, so that nobody else's text can look like ours.
"""

import errno
import os
from enum import IntEnum
from pathlib import Path
from typing import ClassVar, Self

from vfgnn.shown import shown

SHOWN_AS = "error: "
"""What the command line puts before the message, so that it is found in what a process printed."""
SIGNALLED = 128
"""Added to the number of the signal that ended a process, as shells do."""


class ExitCode(IntEnum):
    """How a command ends that did not do what it was asked for, and what that means to whoever started it."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """A number with its meaning."""
        made = int.__new__(cls, code)
        made._value_, made.meaning = code, meaning
        return made

    OUR_FAULT = 1, "an error in vfgnn itself; please report it with the lines it printed"
    BAD_INPUT = 2, "a command, setting, file or table cannot be used; correct it here"
    PEER = 3, "a peer or the network failed; once that is mended, start the same command again"
    REFUSED = 4, "refused for privacy: more is revealed (or an audit found more) than agreed, or the ledger was altered"


class VfgnnError(Exception):
    """`what` went wrong; the keywords become the rest of the message."""

    exit_code: int = ExitCode.OUR_FAULT
    several_lines: ClassVar[bool] = False  # whether a part of it may have line breaks

    def __init__(
        self,
        what: str,
        *,
        expected: str | None = None,
        got: str | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.what = self._shown(what)
        self.expected, self.got = expected and self._shown(expected), got and self._shown(got)
        self.where, self.hint = where and self._shown(where), hint and self._shown(hint)
        parts = [self.what]
        parts += [f"  expected: {self.expected}"] if expected else []
        parts += [f"  got:      {self.got}"] if got else []
        parts += [f"  where:    {self.where}"] if where else []
        parts += [f"  to do:    {self.hint}"] if hint else []
        super().__init__("\n".join(parts))

    def _shown(self, part: str) -> str:
        return shown(part, lines=self.several_lines)


class ConfigError(VfgnnError):
    """A setting, key, preset or proportion that cannot be used."""

    exit_code = ExitCode.BAD_INPUT


class DataError(VfgnnError):
    """A file or tensor that cannot be what it should be."""

    exit_code = ExitCode.BAD_INPUT


class ModuleError(VfgnnError):
    """A user's own code (GNN, combine, mechanism) that cannot take part."""

    exit_code = ExitCode.BAD_INPUT


class CheckpointRefused(VfgnnError):
    """A checkpoint that is not whole, not this party's, or not of this run; nothing of it was used."""

    exit_code = ExitCode.BAD_INPUT


TO_DO = {
    errno.ENOSPC: "make room on this disk",
    errno.EDQUOT: "make room, or ask for a larger quota",
    errno.EROFS: "mount this disk so that it can be written to",
    errno.EACCES: "let this user write there",
    errno.EPERM: "let this user write there",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise this machine's limit of open files",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
}


class DiskError(VfgnnError):
    """This party's own disk does not take what it has to write; the party may come back when that is mended."""

    exit_code = ExitCode.BAD_INPUT

    @classmethod
    def of(cls, path: Path, fault: OSError, doing: str) -> Self:
        """What could not be written, where, why, and what to do."""
        reason = os.strerror(fault.errno) if fault.errno else type(fault).__name__
        hint = TO_DO.get(fault.errno or 0, "see whether this folder can be written to")
        return cls(
            f"{path.name} cannot be {doing}: {reason}",
            where=str(path),
            hint=f"{hint}, then start the same command again",
        )


class LogRefused(VfgnnError):
    """A message log whose entries do not follow each other, or whose seal does not fit."""

    exit_code = ExitCode.BAD_INPUT


class ViewRefused(VfgnnError):
    """A recorded view that is not there, was altered or was cut; nothing of it was used."""

    exit_code = ExitCode.BAD_INPUT


class PolicyRefused(VfgnnError):
    """A run or a release that would reveal more than the parties have agreed to; it was not made."""

    exit_code = ExitCode.REFUSED


class BudgetSpent(PolicyRefused):
    """A release that the privacy budget does not cover; it was not made."""


class LimitExceeded(PolicyRefused):
    """An audit that found more than its limit allows."""


class LedgerRefused(PolicyRefused):
    """A privacy ledger whose entries do not follow each other, or that has fewer of them than before."""


class PeerRefused(VfgnnError):
    """A peer whose certificate, name, version or federation file is not the expected one; nothing was sent to it."""

    exit_code = ExitCode.PEER


class NameTaken(PeerRefused):
    """A second process has the name and the key of a party that is connected; the first one goes on."""


class NotThere(VfgnnError):
    """Nobody answers at a peer's address; it may come later."""

    exit_code = ExitCode.PEER


class ProtocolError(VfgnnError):
    """A message that the schedule does not name; nothing of it was used."""

    exit_code = ExitCode.PEER


class ChannelClosed(ProtocolError):
    """The other end is gone before the schedule was through."""


class PeerFailed(ChannelClosed):
    """A peer failed and said why: the cause lies with it, or with whomever it names."""

    def __init__(self, peer: str, reason: str, *, where: str) -> None:
        super().__init__(f"{peer} gave up: {reason}", where=where)
        self.peer = peer


class PeerRestarted(ChannelClosed):
    """A peer came back as a new process, or has heard of one that did."""


class DeadlinePassed(ProtocolError):
    """A message that did not come in time, although its sender may still be there."""


class Overflow(ProtocolError):
    """A revealed value that is too large to be told from a wrap-around of the ring."""

    exit_code = ExitCode.BAD_INPUT


class CorrelationReused(VfgnnError):
    """A mask that has been used once; a second use would show what it hides."""


class PartyFailed(VfgnnError):
    """A process that this one started ended with an error; this one ends with the same code."""

    several_lines = True  # the lines of that process's own error

    def __init__(self, party: str, *, code: int, said: str, where: str) -> None:
        super().__init__(f"{party} failed", got=said, where=where)
        self.party = party
        self.exit_code = code if code > 0 else SIGNALLED - code
