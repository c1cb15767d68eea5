"""A whole federation on this machine, each party a process of its own: for the demo, benchmarks and tests.

The processes are started with the `vfgnn run` that users call, in folders like those of separate hosts:

    FOLDER/federation.toml                 public, the same for all
    FOLDER/NAME/party.toml                 at NAME only, with NAME.key.pem, NAME.certificate.pem, data/ and run/

Children end with their parent, however it ends.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from vfgnn.config import DEALER, SERVER, Federation, Settings
from vfgnn.data import prepared
from vfgnn.data.holdings import Holding, Labels
from vfgnn.errors import ConfigError, VfgnnError
from vfgnn.files import FederationFile, ListedHolder, Patience, Reachable, to_toml
from vfgnn.records import Outcome, Traffic
from vfgnn.run.folder import read_outcome, read_ticks, read_traffic
from vfgnn.run.scenario import federation_of
from vfgnn.transport import certificates

MARKER = "federation.toml"
DAYS = 30  # the certificates of a federation on one machine
STOP_S = 10.0  # for a party to say goodbye before it is killed
POLL_S = 0.1
PATIENCE = Patience(start_s=120, message_s=300, away_s=20)
"""All parties are on one machine: whoever is not there soon will not come."""


class PartyFailed(VfgnnError):
    """One of the processes ended with an error."""


@dataclass(frozen=True)
class LocalFederation:
    """The files of a federation whose parties all live under one folder."""

    folder: Path
    file: FederationFile

    @property
    def names(self) -> tuple[str, ...]:
        """All parties."""
        return tuple(self.file.parties)

    @property
    def federation_toml(self) -> Path:
        """The public file."""
        return self.folder / MARKER

    def party_toml(self, name: str) -> Path:
        """A party's own file."""
        return self.folder / name / "party.toml"

    def run_folder(self, name: str) -> Path:
        """A party's own records."""
        return self.folder / name / "run"

    @property
    def outcome(self) -> Outcome:
        """What the label holder wrote down."""
        return read_outcome(self.run_folder(self.file.label_holder))

    @property
    def ticks(self) -> list[float]:
        """When the label holder ended each epoch, in seconds."""
        return read_ticks(self.run_folder(self.file.label_holder))

    @property
    def traffic(self) -> Traffic:
        """What crossed all links together, counted by its senders."""
        total = Traffic()
        for name in self.names:
            total.links.update(read_traffic(self.run_folder(name), name).links)
        return total


def write_federation(
    folder: Path,
    holdings: Sequence[Holding],
    labels: Labels,
    settings: Settings,
    *,
    insecure_seed: int | None = None,
    threads: int | None = 1,
    patience: Patience = PATIENCE,
) -> LocalFederation:
    """Keys, certificates, data and both kinds of file for a federation on loopback.

    Here one program makes all keys; in earnest each party makes its own, and only certificates meet.
    """
    federation = federation_of(holdings, labels, settings)
    names = [SERVER, *([DEALER] if federation.dealt else []), *federation.holder_names]
    ports = free_ports(len(names))
    reachable = {}
    for name, port in zip(names, ports, strict=True):
        _, certificate = certificates.write(folder / name, name, days=DAYS, passphrase=None)
        reachable[name] = Reachable(address=f"localhost:{port}", certificate=certificate.read_text())
        party = {
            "name": name,
            "key": f"{name}.key.pem",
            "certificate": f"{name}.certificate.pem",
            "listen": f"127.0.0.1:{port}",
            "run_folder": "run",
            "threads": threads,
            "insecure_seed": insecure_seed,
            "data": _write_data(folder / name, name, federation, holdings, labels),
        }
        (folder / name / "party.toml").write_text(to_toml(party))
    file = _federation_file(federation, reachable, patience)
    (folder / MARKER).write_text(to_toml(file.document))
    return LocalFederation(folder, file)


def _write_data(
    home: Path, name: str, federation: Federation, holdings: Sequence[Holding], labels: Labels
) -> dict[str, object] | None:
    if name not in federation.holder_names:
        return None
    prepared.save_holding(home / "data" / "holding.safetensors", holdings[federation.holder_names.index(name)])
    if name != federation.label_holder:
        return {"holding": "data/holding.safetensors"}
    prepared.save_labels(home / "data" / "labels.safetensors", labels)
    return {"holding": "data/holding.safetensors", "labels": "data/labels.safetensors"}


def _federation_file(federation: Federation, reachable: Mapping[str, Reachable], patience: Patience) -> FederationFile:
    return FederationFile(
        nodes=federation.nodes,
        classes=federation.classes,
        label_holder=federation.label_holder,
        holders=tuple(
            ListedHolder(**holder.model_dump(), **reachable[holder.name].model_dump()) for holder in federation.holders
        ),
        server=reachable[SERVER],
        dealer=reachable.get(DEALER),
        patience=patience,
        settings=federation.settings,
    )


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on."""
    with ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [int(sock.getsockname()[1]) for sock in sockets]


def fresh_folder(folder: Path) -> Path:
    """An empty folder; what an earlier federation of ours left there is removed, anything else is refused."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARKER).is_file():
            raise ConfigError(
                "the folder has something else in it",
                expected="an empty folder, or one that an earlier demo made",
                got=str(folder),
                hint="name another with --folder",
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass
class Progress:
    """What a party's log says of where it is."""

    state: str = "starting"
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
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    progress: dict[str, Progress] = field(default_factory=dict)

    def __enter__(self) -> Self:
        for name in self.local.names:
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
        command = [sys.executable, "-m", "vfgnn", "run", str(self.local.federation_toml), str(home / "party.toml")]
        with (home / "output.txt").open("ab") as output:
            self.children[name] = subprocess.Popen(  # noqa: S603 (our own program, our own files)
                [*self.wrap(name), *command, "--with-parent"],
                stdin=subprocess.PIPE,  # closes when this process ends, and so ends the child
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for this process, which then ends its children in order
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
            )
        self.progress[name] = Progress()
        self._offsets.setdefault(name, 0)

    _offsets: dict[str, int] = field(default_factory=dict)

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
        """As a power cut would."""
        self.children[name].kill()
        self.children[name].wait()
        self.progress[name].state = "killed"

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
        failed = [name for name, child in self.children.items() if child.poll() not in (None, 0)]
        if not failed:
            return
        # Whoever failed first tells the others, which then fail too: the one that does not blame a peer began it.
        said = {name: self.said(name) for name in failed}
        first = next((name for name in failed if "gave up" not in said[name]), failed[0])
        raise PartyFailed(f"{first} failed", got=said[first], where=str(self.local.folder / first / "output.txt"))

    def said(self, name: str) -> str:
        """The last thing a party printed."""
        lines = (self.local.folder / name / "output.txt").read_text(errors="replace").strip().splitlines()
        begins = [i for i, line in enumerate(lines) if line.startswith("error: ")]
        return "\n".join(lines[begins[-1] :] if begins else lines[-1:])

    def _read_logs(self) -> None:
        for name, progress in self.progress.items():
            path = self.local.run_folder(name) / "log.jsonl"
            if not path.is_file():
                continue
            with path.open("rb") as log:
                log.seek(self._offsets[name])
                for line in log:
                    if not line.endswith(b"\n"):
                        break
                    self._offsets[name] += len(line)
                    _follow(progress, json.loads(line))


def _follow(progress: Progress, event: dict[str, object]) -> None:
    states = {
        "connected": "connecting",
        "run begins": "training",
        "run goes on": "training",
        "going back to a common step": "going back",
        "run ended": "done",
        "run failed": "failed",
    }
    progress.state = states.get(str(event["event"]), progress.state)
    if event["event"] == "epoch":
        for key in ("epoch", "of", "sent", "received", "loss", "val_accuracy"):
            if event.get(key) is not None:
                setattr(progress, key, event[key])
