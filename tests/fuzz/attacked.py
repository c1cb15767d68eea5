"""The process that is attacked: a real party on a real port, and the readers of files; asked over a pipe, in JSON.

`Victim` is what lives in it (and, when one case is run again, in the process that runs it). `Attacked` is the other end
of the pipe: it waits only so long for an answer, ends a process that does not give one, and starts another.
"""

import gc
import json
import logging
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import dp_accounting.pld  # noqa: F401 (a ledger loads it when it first needs it, which would look like growth)
import torch

from tests.fuzz import files, frames, hellos, records
from tests.fuzz.case import HUNG, Case, Outcome, from_json, judge
from tests.fuzz.ground import Ground
from tests.network import Party
from vfgnn.errors import ChannelClosed
from vfgnn.transport.endpoint import QUIET

INSIDE = {target.NAME: target.run for target in (frames, hellos, files, records)}
ANSWER_S = 60.0  # start of a process included
MORE_MEMORY = 6 * 2**30  # beyond what it has at its start; more is an error, not the end of the machine
PAGE = resource.getpagesize()


class Faults(logging.Handler):
    """Exceptions that nobody handled, as asyncio and websockets log them."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if record.name == "asyncio" or "connection handler failed" in record.getMessage():
            self.found.append(f"{record.getMessage().splitlines()[0][:60]} ({type(error).__name__})")


class Victim:
    """A party A that lives whenever it is needed, and everything that reads files."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.party, self.faults_seen = ground, None, Faults()
        for logger in (QUIET, logging.getLogger("asyncio")):
            logger.addHandler(self.faults_seen)
        self._hooks, found = (threading.excepthook, sys.unraisablehook), self.faults_seen.found
        threading.excepthook = lambda raised: found.append(f"a thread ended ({raised.exc_type.__name__})")
        sys.unraisablehook = self._cannot_raise

    def _cannot_raise(self, raised: Any) -> None:
        """Python's complaint about a server name that is no ASCII has no cure: `logs.pass_over` names it in a party."""
        if not isinstance(raised.object, bytes):
            self.faults_seen.found.append(f"a traceback was printed ({raised.exc_type.__name__})")

    def ask(self, *, do: str, **more: Any) -> Any:
        """Every request that the other end may make."""
        return getattr(self, f"_{do}")(**more)

    def _inside(self, case: dict[str, Any]) -> dict[str, str]:
        made = from_json(case)
        return asdict(INSIDE[made.target](made, self.ground))

    def _live(self, channel: bool = False) -> None:
        """A port that answers; with `channel`, the first message is one that a schedule names."""
        self._channel = channel
        if self.party is None or not self.party.thread.is_alive():
            self.party = Party(self.ground.local, "A", self._use_all)
            self.party.begin()

    def _use_all(self, network, peer: str) -> None:
        """The party's work: to use whatever comes, until an error ends it."""
        if self._channel:
            frames.receive_one(network)
        while True:
            network.get(peer)

    def _ended(self, seconds: float, target: str, way: str) -> dict[str, str]:
        """How the party ended."""
        case = Case(target, way, ())
        self.party.thread.join(seconds)
        if self.party.thread.is_alive():
            return asdict(Outcome(HUNG, "the party did not end", f"{target} {way}: the party did not end"))
        error, self.party = self.party.error, None
        return asdict(judge(error, case))

    def _faults(self, some: bool = False) -> list[str]:
        """Those since the last time; `some`: there is one, but a connection is closed before it is logged."""
        deadline = time.monotonic() + 2.0
        while some and not self.faults_seen.found and time.monotonic() < deadline:
            time.sleep(0.01)
        found = list(self.faults_seen.found)
        self.faults_seen.found.clear()
        return found

    def _rest(self) -> None:
        gc.collect()

    def close(self) -> None:
        for logger in (QUIET, logging.getLogger("asyncio")):
            logger.removeHandler(self.faults_seen)
        threading.excepthook, sys.unraisablehook = self._hooks
        if self.party is not None:
            self.party.network._links["B"].fail(ChannelClosed("the attack is over"))
            self.party.thread.join()


def live(pipe: Connection, folder: Path) -> None:
    """The main function of the attacked process."""
    os.nice(5)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # torch's, about tensors of odd types
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other end decides
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * PAGE + MORE_MEMORY,) * 2)
    victim = Victim(Ground(folder, write=False))
    with suppress(EOFError):
        while True:
            pipe.send_bytes(json.dumps(victim.ask(**json.loads(pipe.recv_bytes()))).encode())


class Dead(Exception):
    """The process died (`hung` False), or gave no answer in time and was ended."""

    def __init__(self, why: str, *, hung: bool) -> None:
        super().__init__(why)
        self.hung = hung


class Attacked:
    """This side of the pipe."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._earlier_mb, self._first_mb, self._last_mb = folder, 0.0, 0.0, 0.0
        self._start()

    @property
    def growth_mb(self) -> float:
        """Of resident memory, after the warm-up; of the process that grew most, if there were several."""
        return max(self._earlier_mb, self._last_mb - self._first_mb)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=live, args=(theirs, self._folder), daemon=True)
        self._process.start()
        theirs.close()
        self._earlier_mb, self._first_mb, self._last_mb = self.growth_mb, 0.0, 0.0

    def ask(self, **request: Any) -> Any:
        """The answer, or `Dead`; there is a new process then."""
        try:
            self._pipe.send_bytes(json.dumps(request).encode())
            if self._pipe.poll(ANSWER_S):
                return json.loads(self._pipe.recv_bytes())
            why, hung = f"no answer within {ANSWER_S:g} s", True
        except (EOFError, OSError):
            self._process.join(5)
            why, hung = f"the process ended with {self._process.exitcode}", False
        self.stop()
        self._start()
        raise Dead(why, hung=hung)

    def measure(self) -> None:
        """Resident memory: the first call after a start sets what later ones are compared with."""
        with suppress(Dead):
            self.ask(do="rest")
        self._last_mb = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * PAGE / 1e6
        self._first_mb = self._first_mb or self._last_mb

    def stop(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()
