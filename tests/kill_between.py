"""Run a party's command in this process, write down which rows it sends, and kill it (-9) at given moments.

    python kill_between.py KILLS FOLDER python -m vfgnn run ...

KILLS is a list such as `copied:5,charged:9,sent:14`: at step 5 when the copy of the noised message is on the disk, at
step 9 when the ledger has its line, at step 14 when the message was given to the channel. Each happens once: FOLDER
keeps what has happened, and `sent.txt` with the step and the digest of each message. `forgetful`: no copy is found.
"""

import hashlib
import os
import signal
import sys
from pathlib import Path

from vfgnn.cli.main import main
from vfgnn.privacy import publishing
from vfgnn.privacy.ledger import Ledger
from vfgnn.split.holder import Holder

kills, folder = sys.argv[1].split(","), Path(sys.argv[2])
folder.mkdir(exist_ok=True)
charge, write_copy, publish = Ledger.charge, publishing.write_copy, Holder._publish


def now(where, step):
    marker = folder / f"{where}:{step}"
    if marker.name in kills and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def charge_and_die(self, release):
    charge(self, release)
    now("charged", release.step)


def write_copy_and_die(path, what, copy):
    write_copy(path, what, copy)
    now("copied", int(path.name.split("-")[1]) if path.name.startswith("step-") else None)


def publish_and_die(self, rows, moment):
    step = None if moment is None else moment.step.number
    with (folder / "sent.txt").open("a") as file:
        file.write(f"{step} {hashlib.sha256(rows.cpu().numpy().tobytes()).hexdigest()}\n")
    publish(self, rows, moment)
    now("sent", step)


Ledger.charge, publishing.write_copy, Holder._publish = charge_and_die, write_copy_and_die, publish_and_die
if "forgetful" in kills:
    publishing.read_copy = lambda path, what: None
sys.argv = ["vfgnn", *sys.argv[6:]]
main()
