"""The files of a federation whose parties all live on this machine, in folders like those of separate hosts.

    FOLDER/federation.toml                 public, the same for all
    FOLDER/NAME/party.toml                 at NAME only, with NAME.key.pem, NAME.certificate.pem, data/ and run/

The demo has two of them, FOLDER/split and FOLDER/sealed.

For the demo, benchmarks and tests. One program makes all keys here; in earnest each party makes its own.
"""

import random
import shutil
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vfgnn.agreement import DEALER, SERVER, Agreement
from vfgnn.data import prepared
from vfgnn.data.feature_maps import mapped
from vfgnn.data.holdings import Holding, Labels
from vfgnn.errors import ConfigError
from vfgnn.files import FederationFile, ListedHolder, Patience, Reachable, load_federation, to_toml
from vfgnn.lab.scenario import agreement_of
from vfgnn.party.folder import read_outcome, read_ticks, read_traffic
from vfgnn.party.own_code import OwnCode
from vfgnn.records import Outcome, Traffic
from vfgnn.settings import Settings
from vfgnn.transport import certificates
from vfgnn.writing import insist, make_folder, write_whole

MARKER = "federation.toml"
PORTS = range(20_000, 32_000)  # below the ports of outgoing connections on Linux
DAYS = 30  # the certificates of a federation on one machine
PATIENCE = Patience(start_s=120, message_s=300, away_s=20)
"""All parties are on one machine: whoever is not there soon will not come."""


@dataclass(frozen=True)
class LocalFederation:
    """The files of a federation whose parties all live under one folder."""

    folder: Path
    file: FederationFile

    @staticmethod
    def load(folder: Path) -> "LocalFederation":
        """One that was written before."""
        return LocalFederation(folder, load_federation(folder / MARKER))

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
            if not (self.run_folder(name) / "traffic.json").is_file():
                continue  # it took no part: the baseline without a server
            total.links.update(read_traffic(self.run_folder(name)).sent_by(name))
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
    holders: Sequence[str] | None = None,
    code: OwnCode | None = None,
) -> LocalFederation:
    """Keys, certificates, data and both kinds of file for a federation on loopback.

    `holders`: their names, A, B, ... if None; `code`: the user's own, found by import path in every party's process.
    """
    shaped = [mapped(holding, settings.sealed) for holding in holdings] if settings.protocol == "sealed" else holdings
    agreement = agreement_of(shaped, labels, settings, holders)
    names = agreement.parties
    paths = {name: (code or OwnCode()).paths_at(name) for name in names}  # refuses before anything is written
    ports = free_ports(len(names))
    reachable = {}
    for name, port in zip(names, ports, strict=True):
        _, certificate = certificates.write(make_folder(folder / name), name, days=DAYS, passphrase=None)
        certificate.chmod(0o600)  # here it is one machine's alone
        reachable[name] = Reachable(address=f"localhost:{port}", certificate=certificate.read_text())
        party = {
            "name": name,
            "key": f"{name}.key.pem",
            "certificate": f"{name}.certificate.pem",
            "listen": f"127.0.0.1:{port}",
            "run_folder": "run",
            "threads": threads,
            "own_model": False,  # `Scenario.compare` trains every holder's
            "insecure_seed": insecure_seed,
            "allow_scores": True if settings.protocol == "sealed" and settings.sealed.opens == "scores" else None,
            **paths[name],
            "data": _write_data(folder / name, name, agreement, holdings, labels),
        }
        write_whole(folder / name / "party.toml", to_toml(party))
    file = _federation_file(agreement, reachable, patience)
    write_whole(folder / MARKER, to_toml(file.document))
    return LocalFederation(folder, file)


def _write_data(
    home: Path, name: str, agreement: Agreement, holdings: Sequence[Holding], labels: Labels
) -> dict[str, object] | None:
    if name not in agreement.holder_names:
        return None
    prepared.save_holding(home / "data" / "holding.safetensors", holdings[agreement.holder_names.index(name)])
    if name != agreement.label_holder:
        return {"holding": "data/holding.safetensors"}
    prepared.save_labels(home / "data" / "labels.safetensors", labels)
    return {"holding": "data/holding.safetensors", "labels": "data/labels.safetensors"}


def _federation_file(agreement: Agreement, reachable: Mapping[str, Reachable], patience: Patience) -> FederationFile:
    return FederationFile(
        nodes=agreement.nodes,
        classes=agreement.classes,
        label_holder=agreement.label_holder,
        holders=tuple(
            ListedHolder(**holder.model_dump(), **reachable[holder.name].model_dump()) for holder in agreement.holders
        ),
        server=reachable.get(SERVER),
        dealer=reachable.get(DEALER),
        patience=patience,
        settings=agreement.settings,
    )


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on.

    Not from the range that outgoing connections take theirs from: a party that was killed must find its own again.
    """
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(found) == count:
            break
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            found.append(port)
    return found


def fresh_folder(folder: Path) -> Path:
    """An empty folder; what earlier federations of ours left there is removed, anything else is refused."""
    if folder.exists() and any(folder.iterdir()):
        if not _is_ours(folder) and not all(one.is_dir() and _is_ours(one) for one in folder.iterdir()):
            raise ConfigError(
                "the folder has something else in it",
                expected="an empty folder, or one that an earlier demo made",
                got=str(folder),
                hint="name another with --folder",
            )
        insist(folder, lambda: shutil.rmtree(folder), doing="removed")
    return make_folder(folder)


def _is_ours(folder: Path) -> bool:
    """A federation's, or that of one that was not written yet."""
    return (folder / MARKER).is_file() or not any(folder.iterdir())
