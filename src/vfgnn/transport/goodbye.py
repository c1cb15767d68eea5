"""How a party says goodbye: the close code and the reason that a peer hears."""

from vfgnn.errors import DiskError, PeerRestarted, VfgnnError

ENDED, LEFT, FAILED, RESTARTED = 1000, 1001, 1008, 1012
"""WebSocket close codes: all messages were used; this party was stopped, by its operator or by its disk, and may come
back; it gave up, and says why; somebody was started anew."""


def goodbye_code(error: BaseException) -> int:
    """How a party that could not finish says goodbye."""
    if isinstance(error, PeerRestarted):
        return RESTARTED
    return LEFT if isinstance(error, (KeyboardInterrupt, SystemExit, DiskError)) else FAILED


def brief(error: BaseException) -> str:
    """An error as a close reason, within the 123 bytes that a WebSocket allows.

    Reveals: to the peer, why. Our own errors carry no private value; of others only the kind is told.
    """
    if isinstance(error, VfgnnError):
        text = error.what
    elif isinstance(error, (KeyboardInterrupt, SystemExit)):
        text = "stopped by its operator"
    else:
        text = f"an error in its program ({type(error).__name__})"
    return text.encode()[:120].decode(errors="ignore")
