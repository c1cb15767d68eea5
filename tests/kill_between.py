"""Run a party's command in this process, and kill it (-9) right after its ledger has a line more, before the message.

    python kill_between.py COUNT MARKER python -m vfgnn run ...

Only the first time: MARKER says that it has happened. What its messages carry is noted as in recording.py.
"""

import os
import signal
import sys
from pathlib import Path

from recording import recorded
from vfgnn.cli.main import main
from vfgnn.message_log import MessageLog
from vfgnn.privacy.ledger import Ledger

count, marker = int(sys.argv[1]), Path(sys.argv[2])
charge = Ledger.charge


def charge_and_die(self, release):
    charge(self, release)
    if self.count == count and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


Ledger.charge = charge_and_die
MessageLog.add = recorded(MessageLog.add)
sys.argv = ["vfgnn", *sys.argv[6:]]
main()
