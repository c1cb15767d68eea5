"""A party's run folder: its own records of its own run, never shared.

run.json        which run, of which federation, since when, how it ended, how much memory it took, how many values were
                opened from shares, by kind; at the label holder the outcome; of a sealed training what was opened
                to whom and what that allows, bytes of this party's links, rounds
federation.json the public federation file as it was compared with all peers
metrics.jsonl   label holder only: loss and validation accuracy of each epoch
traffic.json    messages, bytes and seconds waited, for each phase, link and direction
log.jsonl       events
noised/         while a run with row noise goes on: copies of noised messages, for steps that may be done again
"""

import json
import resource
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from vfgnn.errors import CheckpointRefused, DataError
from vfgnn.files import FederationFile
from vfgnn.locks import lock
from vfgnn.logs import Event
from vfgnn.message_log import read_entries
from vfgnn.records import (
    EpochMetrics,
    Outcome,
    Traffic,
    a_number,
    read_json,
    read_lines,
    reading,
    write_json,
)
from vfgnn.version import __version__
from vfgnn.writing import Lines, insist, make_folder, move, tidy, write_whole

KEPT = ("opened", "rounds")  # of run.json, when another process goes on with the run


class RunState(StrEnum):
    """What run.json says of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


def hold(path: Path, party: str) -> int:
    """One process at a time uses a party's run folder, until the descriptor that is returned is closed.

    Two with one name would take each other's place at the others, and a new run puts the model of a service aside.
    """
    make_folder(path.parent, narrow=False)
    refusal = CheckpointRefused(
        f"another process of {party} uses this run folder",
        where=str(path),
        hint="end that `vfgnn run`, `vfgnn serve` or `vfgnn predict` first",
    )
    return lock(path.with_name(f"{path.name}.lock"), refusal)  # beside it: the folder itself may be put aside


def starting_folder(path: Path) -> Path:
    """Where a new run writes until all take part in it: the run folder still has the run before.

    The log of a start that was refused stays here until the next start.
    """
    return path.with_name(f"{path.name}.starting")


def log_of(path: Path) -> Path:
    """The log of the last `vfgnn run` with this run folder."""
    folder = starting_folder(path)
    return (folder if folder.is_dir() else path) / "log.jsonl"


class RunFolder:
    """Writes what a party keeps of a run.

    A finished run, or with `fresh` any, is put aside under its name by `take_place`; until then a new one `is_new`.
    """

    def __init__(self, path: Path, party: str, *, fresh: bool = False) -> None:
        self._place, self._party = path, party
        self._began = time.perf_counter()
        self.last_metrics: EpochMetrics | None = None
        starting, found = starting_folder(path), read_about(path)
        began = not fresh and "run" in read_about(starting)  # and was stopped before it could take its place
        if starting.is_dir() and not began:
            insist(starting, lambda: shutil.rmtree(starting), doing="removed")
        self.is_new = began or (path.is_dir() and (fresh or found.get("state") == RunState.FINISHED))
        self.path = starting if self.is_new else path
        make_folder(self.path)
        tidy(self.path)
        self._about = read_about(self.path)

    @property
    def log(self) -> Path:
        """Where events go."""
        return self.path / "log.jsonl"

    @property
    def messages(self) -> Path:
        """The message log."""
        return self.path / "messages.jsonl"

    @property
    def checkpoints(self) -> Path:
        """This party's own state."""
        return self.path / "checkpoints"

    @property
    def noised(self) -> Path:
        """Copies of noised messages, for steps that may be done again."""
        return self.path / "noised"

    def begin(self, run: str, step: int, file: FederationFile, *, first: int = 0) -> None:
        """All peers agree: note what on. Metrics of steps that will be done again are taken back.

        `first`: the number that metrics give the first step.
        """
        self._began = time.perf_counter()
        metrics = self.path / "metrics.jsonl"
        if metrics.is_file():
            with reading(metrics):
                kept = [line for line in read_lines(metrics) if a_number(line["epoch"]) < first + step]
                self._began -= a_number(kept[-1]["at_s"]) if kept else 0.0  # the clock of the run goes on
            write_whole(metrics, "".join(f"{json.dumps(line)}\n" for line in kept))
        known = self._about if step and self._about.get("run") == run else {}
        self._about = {
            **{key: known[key] for key in KEPT if key in known},
            "party": self._party,
            "run": run,
            "state": RunState.RUNNING,
            "program": __version__,
            "federation": file.digest,
            "began": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_json(self.path / "federation.json", file.document)
        write_json(self.path / "run.json", self._about)

    def take_place(self) -> None:
        """Put the run before aside. When all take part in this one: a start that was refused leaves it where it is."""
        if self._place.is_dir():
            name = str(read_about(self._place).get("run") or "")
            name = name if name.isalnum() else datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
            move(self._place, self._place.with_name(f"{self._place.name}-{name}"))
        move(self.path, self._place)
        self.path, self.is_new = self._place, False

    @property
    def is_known_unfinished(self) -> bool:
        """Whether a peer failed, and said so, before the run was over."""
        return self._about.get("peer_failed") is True

    def add_metrics(self, metrics: EpochMetrics) -> None:
        """Label holder only: one epoch."""
        self.last_metrics = metrics
        line = json.dumps({**asdict(metrics), "at_s": time.perf_counter() - self._began})
        lines = Lines(self.path / "metrics.jsonl")
        lines.add(f"{line}\n".encode())
        lines.close()

    def note(self, key: str, value: object) -> None:
        """Something for run.json, written at the end."""
        self._about[key] = value

    def note_now(self, **noted: object) -> None:
        """What a later process of this run cannot find out again."""
        self._about |= noted
        write_json(self.path / "run.json", self._about)

    def traffic(self, of_this_process: Traffic) -> Traffic:
        """In all starts of the run, by its message log; seconds waited are those of this process."""
        return _all_starts(self.messages, of_this_process)

    def end(self, traffic: Traffic, *, revealed: Mapping[str, int], outcome: Outcome | None, error: str | None) -> None:
        """How it ended, and what crossed each link: in all starts of the run, by its message log.

        Seconds waited, and the values that were opened from shares (`revealed`, by kind), are those of this process.
        """
        traffic = self.traffic(traffic)
        write_json(
            self.path / "traffic.json",
            [
                {"phase": phase, "sender": sender, "receiver": receiver, **asdict(link)}
                for (phase, sender, receiver), link in traffic.links.items()
            ],
        )
        self._about |= {
            "state": RunState.FINISHED if error is None else RunState.FAILED,
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": time.perf_counter() - self._began,
            "peak_bytes": peak_bytes(),
            "revealed": dict(revealed),
        }
        if error is not None:
            self._about["error"] = error
        if outcome is not None:
            chosen = ("best_epoch", "val_accuracy", "test_accuracy", "scores")
            self._about["outcome"] = {key: getattr(outcome, key) for key in chosen}
        write_json(self.path / "run.json", self._about)


def peak_bytes() -> int:
    """The most memory that this process has had.

    Of Linux's own record where there is one: that of `getrusage` begins with what the parent had when it started us.
    """
    try:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def read_peak_bytes(path: Path) -> int:
    """The most memory that a finished run took at this party."""
    with reading(path / "run.json"):
        return int(a_number(read_json(path / "run.json")["peak_bytes"]))


def read_run_seconds(path: Path) -> float:
    """From the moment when all parties had met to the end of a finished run."""
    with reading(path / "run.json"):
        return a_number(read_json(path / "run.json")["seconds"])


def read_outcome(path: Path) -> Outcome:
    """What the label holder's run folder says of a finished run."""
    about, lines = read_json(path / "run.json"), read_lines(path / "metrics.jsonl")
    with reading(path / "metrics.jsonl"):
        history = tuple(
            EpochMetrics(int(a_number(line["epoch"])), _maybe(line["loss"]), _maybe(line["val_accuracy"]))
            for line in lines
        )
    with reading(path / "run.json"):
        found = about["outcome"]
        return Outcome(
            best_epoch=int(a_number(found["best_epoch"])),
            val_accuracy=a_number(found["val_accuracy"]),
            test_accuracy=a_number(found["test_accuracy"]),
            history=history,
            scores={str(name): a_number(value) for name, value in found["scores"].items()},
        )


def _maybe(value: object) -> float | None:
    return None if value is None else a_number(value)


def read_ticks(path: Path) -> list[float]:
    """The seconds at which the label holder ended each epoch."""
    with reading(path / "metrics.jsonl"):
        return [a_number(line["at_s"]) for line in read_lines(path / "metrics.jsonl")]


def read_cpu_seconds(path: Path) -> list[float]:
    """The processor time that this party's process had used at the end of each epoch."""
    with reading(path / "log.jsonl"):
        return [a_number(line["cpu_s"]) for line in read_lines(path / "log.jsonl") if line["event"] == Event.EPOCH]


def read_traffic(path: Path) -> Traffic:
    """What a party sent and received, and how long it waited, by its own record."""
    traffic, record = Traffic(), path / "traffic.json"
    with reading(record):
        for line in read_json(record):
            link = traffic.links[str(line["phase"]), str(line["sender"]), str(line["receiver"])]
            link.messages, link.bytes = int(a_number(line["messages"])), int(a_number(line["bytes"]))
            link.waited_s = a_number(line["waited_s"])
    return traffic


def _all_starts(log: Path, of_this_process: Traffic) -> Traffic:
    if not log.is_file():
        return of_this_process
    total = Traffic()
    for entry in read_entries(log):
        total.count(phase=entry.phase, sender=entry.sender, receiver=entry.receiver, size=entry.bytes)
    for link, found in of_this_process.links.items():
        total.links[link].waited_s = found.waited_s
    return total


def read_about(path: Path) -> dict[str, object]:
    """What run.json says; nothing if there is none, or one that cannot be read."""
    try:
        found = read_json(path / "run.json")
    except DataError:
        return {}
    return found if isinstance(found, dict) else {}
