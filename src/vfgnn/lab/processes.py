"""A whole federation on this machine, each party a process of its own: for the demo, benchmarks and tests.

The processes are started with the `vfgnn run` that users call. They end with their parent, however it ends.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Self

from vfgnn.errors import SHOWN_AS, ExitCode, PartyFailed
from vfgnn.lab.local_files import LocalFederation
from vfgnn.logs import Event
from vfgnn.party.folder import log_of
from vfgnn.writing import insist, open_private

VFGNN = (sys.executable, "-m", "vfgnn", "run")
STOP_S = 10.0  # for a party to say goodbye before it is killed
POLL_S = 0.1
CAUSE_S = 5.0  # for the party that began a failure to end, when one that blames it has ended already


class State(StrEnum):
    """Where a party is."""

    STARTING = "starting"
    CONNECTING = "connecting"
    TRAINING = "training"
    GOING_BACK = "going back"
    DONE = "done"
    FAILED = "failed"
    KILLED = "killed"  # by `kill`, which is no failure


STATES: dict[str, State] = {
    Event.CONNECTED: State.CONNECTING,
    Event.RUN_BEGINS: State.TRAINING,
    Event.RUN_GOES_ON: State.TRAINING,
    Event.GOING_BACK: State.GOING_BACK,
    Event.RUN_ENDED: State.DONE,
    Event.RUN_FAILED: State.FAILED,
}


@dataclass
class Progress:
    """What a party's log says of where it is."""

    state: State = State.STARTING
    blames: str | None = None  # the peer that failed before it, and said so
    epoch: int = 0
    of: int = 0
    sent: int = 0
    received: int = 0
    loss: float | None = None
    val_accuracy: float | None = None


@dataclass
class LocalProcesses:
    """The running processes; a `with` block ends them all, however it is left."""

    local: LocalFederation
    wrap: Callable[[str], Sequence[str]] = lambda name: ()  # what a party's command is put behind, e.g. a namespace
    names: Sequence[str] = ()  # only these, if any are given
    command: Sequence[str] = VFGNN  # what is given the two files, and
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)  # a party's own options
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _failing_since: float | None = None
    progress: dict[str, Progress] = field(default_factory=dict)
    _read: dict[str, tuple[int, int]] = field(default_factory=dict)  # which file each log was, and how far it was read

    def __enter__(self) -> Self:
        for name in self.names or self.local.names:
            self.start(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, name: str) -> None:
        """Start one party, with the command a user would give."""
        self._close_input(name)
        home = self.local.folder / name
        command = [*self.command, str(self.local.federation_toml), str(home / "party.toml")]
        said = home / "output.txt"
        output = insist(said, lambda: open_private(said, os.O_WRONLY | os.O_APPEND))
        try:
            self.children[name] = subprocess.Popen(  # noqa: S603 (our own program, our own files)
                [*self.wrap(name), *command, *self.words.get(name, ()), "--with-parent"],
                stdin=subprocess.PIPE,  # closes when this process ends, and so ends the child (child.py)
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for this process, which then ends its children in order
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
            )
        finally:
            os.close(output)
        self.progress[name] = Progress()
        self._read.setdefault(name, (0, 0))

    def wait(self, on_progress: Callable[[dict[str, Progress]], None] | None = None) -> None:
        """Until all have ended well; the first that did not is named, with what it said."""
        while self.alive():
            self.look(on_progress)
            time.sleep(POLL_S)
        self.look(on_progress)

    def alive(self) -> bool:
        """Whether any of them still runs."""
        return any(child.poll() is None for child in self.children.values())

    def look(self, on_progress: Callable[[dict[str, Progress]], None] | None = None) -> None:
        """Read how far they are; a party that failed is raised."""
        self._read_logs()
        if on_progress is not None:
            on_progress(self.progress)
        self._raise_failure()

    def kill(self, name: str) -> None:
        """As `kill -9` does."""
        self.children[name].kill()
        self.children[name].wait()
        self.progress[name].state = State.KILLED

    def stop(self) -> None:
        """End what still runs: first politely, then not."""
        alive = [child for child in self.children.values() if child.poll() is None]
        for child in alive:
            child.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        for child in alive:
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        for name in self.children:
            self._close_input(name)

    def _close_input(self, name: str) -> None:
        child = self.children.get(name)
        if child is not None and child.stdin is not None:
            child.stdin.close()

    def _raise_failure(self) -> None:
        codes = {name: child.poll() for name, child in self.children.items()}
        failed = {name: code for name, code in codes.items() if code and self.progress[name].state is not State.KILLED}
        if not failed:
            return
        if all(code == ExitCode.PEER for code in failed.values()) and self.alive() and not self._waited_for_cause():
            return
        # Whoever failed first tells the others, which then fail too: the one that does not blame a peer began it.
        self._read_logs()  # to their end: those that failed write no more
        first = min(failed, key=lambda name: (failed[name] == ExitCode.PEER, self.progress[name].blames is not None))
        where = self.local.folder / first / "output.txt"
        raise PartyFailed(first, code=failed[first], said=self.said(first), where=str(where))

    def _waited_for_cause(self) -> bool:
        """Whether the party that all others blame has had its time to end by itself."""
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        return now - self._failing_since > CAUSE_S

    def said(self, name: str) -> str:
        """The last thing a party printed."""
        lines = (self.local.folder / name / "output.txt").read_text(errors="replace").strip().splitlines()
        begins = [i for i, line in enumerate(lines) if line.startswith(SHOWN_AS)]
        return "\n".join(lines[begins[-1] :] if begins else lines[-1:])

    def _read_logs(self) -> None:
        for name, progress in self.progress.items():
            path = log_of(self.local.run_folder(name))
            if not path.is_file():
                continue
            with path.open("rb") as log:
                known, offset = self._read[name]
                file = os.fstat(log.fileno()).st_ino
                offset = log.seek(offset if file == known else 0)  # a new run puts the log of the one before aside
                for line in log:
                    if not line.endswith(b"\n"):
                        break
                    offset += len(line)
                    with suppress(
                        ValueError, KeyError, TypeError, RecursionError
                    ):  # a line that is no event tells nothing
                        _follow(progress, json.loads(line))
                self._read[name] = file, offset


def _follow(progress: Progress, event: dict[str, object]) -> None:
    name = str(event["event"])
    progress.state = STATES.get(name, progress.state)
    if name == Event.PEER_FAILED:
        progress.blames = str(event["peer"])
    if name == Event.EPOCH:
        for key in ("epoch", "of", "sent", "received", "loss", "val_accuracy"):
            if isinstance(event.get(key), (int, float)):
                setattr(progress, key, event[key])
