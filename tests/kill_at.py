"""Run a party's command in this process, note what its messages carry (recording.py), and kill it (-9) at moments.

    python kill_at.py MOMENTS FOLDER python -m vfgnn run ...

MOMENTS is a list such as `offline:12,quotient:1:done,kept:2,told:1`: before this process's twelfth message of the
phase `offline` is noted; when its first message of the kind `quotient` has left, or has come; when its second
checkpoint is on the disk; when something has been counted as opened for the first time and nothing of it has left. Each
happens once: FOLDER keeps what has happened. `reused`: every start draws its masks under one name.
"""

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from threading import Lock

from recording import recorded  # beside this script
from vfgnn.channel import Channel
from vfgnn.checkpoint import Checkpoints
from vfgnn.cli.main import main
from vfgnn.message_log import MessageLog
from vfgnn.party import train
from vfgnn.privacy.openings import Account


class Moments:
    """Those that have not come yet."""

    def __init__(self, wanted, folder):
        self._wanted, self._folder = wanted, folder
        self._counts, self._lock = Counter(), Lock()

    def pass_by(self, name, suffix=""):
        """One more of this name; the last if it is to be so."""
        with self._lock:
            self._counts[name, suffix] += 1
            moment = f"{name}:{self._counts[name, suffix]}{suffix}"
            marker = self._folder / moment
            if moment in self._wanted and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)


def watched(moments):
    """The places where a process may be killed."""
    note, send, receive = Channel._note, Channel.send, Channel.receive
    write, charge = Checkpoints.write, Account.charge

    def note_or_die(self, message, *arguments, **keywords):
        for name in (self._phase, message.kind):
            moments.pass_by(name)
        note(self, message, *arguments, **keywords)

    def send_and_die(self, receiver, kind, payload):
        send(self, receiver, kind, payload)
        for name in (self._phase, kind):
            moments.pass_by(name, ":done")

    def receive_and_die(self, sender, kind, **keywords):
        found = receive(self, sender, kind, **keywords)
        for name in (self._phase, kind):
            moments.pass_by(name, ":done")
        return found

    def write_and_die(self, *arguments):
        found = write(self, *arguments)
        moments.pass_by("kept")
        return found

    def charge_and_die(self):
        charge(self)
        moments.pass_by("told")

    Channel._note, Channel.send, Channel.receive = note_or_die, send_and_die, receive_and_die
    Checkpoints.write, Account.charge = write_and_die, charge_and_die


if __name__ == "__main__":
    wanted, folder = sys.argv[1].split(","), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    watched(Moments(wanted, folder))
    if "reused" in wanted:
        contribution_of = train.contribution_of
        train.contribution_of = lambda *own, run, **more: contribution_of(*own, run="one name", **more)
    MessageLog.add = recorded(MessageLog.add)
    sys.argv = ["vfgnn", *sys.argv[6:]]
    main()
