"""Everything vfgnn raises on purpose.

    VfgnnError                 what was expected, what came, where, and what to do
    ├── ConfigError            a setting, a key, a preset, a proportion
    ├── DataError              a file or a tensor that cannot be what it should be
    ├── ModuleError            a user's own code (GNN, combine, mechanism) that cannot take part
    ├── CorrelationReused      a mask that has been used once
    ├── CheckpointRefused      a checkpoint that is not whole, not ours, or not of this run
    ├── LogRefused             a message log that was altered
    ├── LedgerRefused          a privacy ledger that was altered or rolled back
    ├── BudgetSpent            a release that the privacy budget does not cover
    ├── PeerRefused            a peer that is not who, or does not have what, the federation file says
    └── ProtocolError          a message that the schedule does not name
        ├── ChannelClosed      the other end is gone
        │   ├── PeerFailed     it failed, and said why
        │   └── PeerRestarted  it came back as a new process: all go back to the step they have in common
        ├── DeadlinePassed     the other end is there but silent for too long
        └── Overflow           a result that the ring cannot hold

The command line turns every one of them into one message and exit code 2.
None of them ever carries a private value: shapes, names and positions only.
"""

SHOWN_AS = "error: "
"""What the command line puts before the message, so that it is found in what a process printed."""


class VfgnnError(Exception):
    """`what` went wrong; the keywords become the rest of the message."""

    def __init__(
        self,
        what: str,
        *,
        expected: str | None = None,
        got: str | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.what, self.expected, self.got, self.where, self.hint = what, expected, got, where, hint
        parts = [what]
        parts += [f"  expected: {expected}"] if expected else []
        parts += [f"  got:      {got}"] if got else []
        parts += [f"  where:    {where}"] if where else []
        parts += [f"  to do:    {hint}"] if hint else []
        super().__init__("\n".join(parts))


class ConfigError(VfgnnError):
    """A setting, key, preset or proportion that cannot be used."""


class DataError(VfgnnError):
    """A file or tensor that cannot be what it should be."""


class ModuleError(VfgnnError):
    """A user's own code (GNN, combine, mechanism) that cannot take part."""


class CorrelationReused(VfgnnError):
    """A mask that has been used once; a second use would show what it hides."""


class CheckpointRefused(VfgnnError):
    """A checkpoint that is not whole, not this party's, or not of this run; nothing of it was used."""


class LogRefused(VfgnnError):
    """A message log whose entries do not follow each other, or whose seal does not fit."""


class LedgerRefused(VfgnnError):
    """A privacy ledger whose entries do not follow each other, or that has fewer of them than before."""


class BudgetSpent(VfgnnError):
    """A release that the privacy budget does not cover; it was not made."""


class PeerRefused(VfgnnError):
    """A peer whose certificate, name, version or federation file is not the expected one; nothing was sent to it."""


class ProtocolError(VfgnnError):
    """A message that the schedule does not name; nothing of it was used."""


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
