"""The federation that is attacked, and good files of every kind, written by the program's own writers.

Everything lies under one folder: keys that are made anew each time, and what a small run would have left at A.
"""

import json
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import torch

from tests.network import small
from tests.tables import write
from vfgnn.checkpoint import Checkpoints
from vfgnn.files import Patience, to_toml
from vfgnn.message_log import MessageLog
from vfgnn.messages import Declared
from vfgnn.party import aligning
from vfgnn.party.cards import Card
from vfgnn.party.folder import RunFolder
from vfgnn.party.own_data import OwnData
from vfgnn.party.released import Released
from vfgnn.privacy.ledger import Ledger, Release
from vfgnn.privacy.statement import Guarantee, Statement
from vfgnn.records import EpochMetrics, Outcome, Traffic
from vfgnn.split.program import LOCAL_EMBEDDINGS
from vfgnn.split.steps import end_step
from vfgnn.transport import certificates

RUN = "0123456789abcdef"
PATIENCE = Patience(start_s=60, message_s=3, away_s=0.5)
Files = dict[str, bytes]


class Ground:
    """A federation of server, dealer, A (labels) and B, none of whom runs yet."""

    def __init__(self, folder: Path, *, write: bool = True) -> None:
        self.folder = folder
        self.local = small(folder / "federation", patience=PATIENCE, combine="confidence") if write else _load(folder)

    @cached_property
    def _names(self) -> list[tuple[bytes, bytes]]:
        """What differs from one federation to the next, and the words for it in a case that is kept."""
        pairs = [(str(self.folder), "<folder>")]
        for name, party in self.local.file.parties.items():
            pem = (party.certificate or "").strip()
            pairs += [(pem, f"<certificate {name}>"), (json.dumps(pem)[1:-1], f"<certificate {name} in JSON>")]
            address = party.address or ""
            pairs += [(address, f"<address {name}>"), (address.replace("localhost", "127.0.0.1"), f"<listen {name}>")]
        return [(here.encode(), word.encode()) for here, word in pairs]

    def portable(self, content: bytes | None) -> bytes | None:
        for here, word in self._names if content is not None else ():
            content = content.replace(here, word)
        return content

    def here(self, content: bytes | None) -> bytes | None:
        for here, word in self._names if content is not None else ():
            content = content.replace(word, here)
        return content

    def files(self, reader: str) -> Files:
        """The good files that a reader of files.py begins with, relative to its folder."""
        if reader not in self._seeds:
            folder = self.folder / "seeds" / reader
            if not folder.exists():
                folder.mkdir(parents=True)
                SEEDS[reader](self, folder)
            found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".lock")
            self._seeds[reader] = {str(path.relative_to(folder)): path.read_bytes() for path in found}
        return self._seeds[reader]

    @cached_property
    def _seeds(self) -> dict[str, Files]:
        return {}


def _load(folder: Path):
    from vfgnn.lab.local_files import LocalFederation

    return LocalFederation.load(folder / "federation")


def _home(ground: Ground, folder: Path) -> None:
    """What `vfgnn run` reads at A."""
    copied = ["federation.toml", "A/party.toml", "A/A.certificate.pem", "A/A.key.pem"]
    for name in [*copied, "A/data/holding.safetensors", "A/data/labels.safetensors"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ground.local.folder / name).read_bytes())


def _card(ground: Ground, folder: Path) -> None:
    party = ground.local.file.parties["A"]
    card = Card(name="A", certificate=party.certificate, address=party.address, features=3, edges=True, classes=2)
    (folder / "A.card.toml").write_text(to_toml(card.model_dump()))


def _tables(ground: Ground, folder: Path, suffix: str = "csv") -> None:
    ids = [f"P{number:03d}" for number in range(12)]
    rows = [[one, number / 3, number % 4, ("red", "blue")[number % 2]] for number, one in enumerate(ids)]
    write(folder / "nodes.csv", ["id", "a", "b", "colour"], rows)
    pairs = [[one, other, 1 + number / 4] for number, (one, other) in enumerate(pairwise(ids))]
    write(folder / "edges.csv", ["source", "target", "amount"], pairs)
    labels = [[one, ("good", "bad")[number % 2], number] for number, one in enumerate(ids)]
    write(folder / "labels.csv", ["id", "label", "day"], labels)
    tables = {name: f"{name}.{suffix}" for name in ("nodes", "edges", "labels")}
    columns = {"weight": "amount", "time": "day", "categories": {"colour": ["red", "blue"]}, "drop": ["b"]}
    party = {"name": "A", "key": "A.key", "certificate": "A.pem", "data": {**tables, "columns": columns}}
    (folder / "party.toml").write_text(to_toml(party))
    (folder / "A.key").write_text("what splits the labels")
    if suffix == "parquet":
        for name, file in tables.items():
            pyarrow.parquet.write_table(pyarrow.csv.read_csv(folder / f"{name}.csv"), folder / file)
            (folder / f"{name}.csv").unlink()


def _trained(ground: Ground, folder: Path) -> None:
    """What `vfgnn predict` and `vfgnn serve` read at A: the last checkpoint, the rows that were released."""
    _home(ground, folder)
    agreement, run = ground.local.file.agreement, folder / "A" / "run"
    end = end_step(agreement)
    kept = Checkpoints(run / "checkpoints", party="A", federation=agreement.digest, scheduled=[end])
    kept.run = RUN
    kept.remember(end, {"weights": torch.rand(3, 4), "step": torch.tensor(4)})
    kept.write(end)
    Released(run, RUN).add(["a", "b"], torch.rand(2, 4))
    (run / "run.json").write_text(json.dumps({"party": "A", "run": RUN, "state": "finished"}))


def _alignment(ground: Ground, folder: Path) -> None:
    aligning.keep(folder, RUN, 3, torch.tensor([2, 0, 1]), OwnData())


def _ledger(ground: Ground, folder: Path) -> None:
    ledger = Ledger(folder / "privacy_ledger.jsonl")
    for step in range(3):
        ledger.charge(Release(RUN, step, "rows", "row", ("train", "val"), "zero_out", noise_multiplier=2.0))
    ledger.charge(Release(RUN, None, "edges", "edge", ("all",), epsilon=4.0))
    ledger.close()


def _run_folder(ground: Ground, folder: Path) -> None:
    """All records of a finished run at A, the label holder."""
    records, path = RunFolder(folder / "run", "A"), folder / "run"
    records.begin(RUN, 0, ground.local.file)
    log, traffic, payload = MessageLog(path / "messages.jsonl"), Traffic(), torch.rand(2, 3)
    message = Declared(LOCAL_EMBEDDINGS, "A", "server", payload.dtype, (2, 3))
    for step in range(3):
        log.add(RUN, message, payload, bytes(32), phase="forward", step=step)
        traffic.count(phase="forward", sender="A", receiver="server", size=message.bytes, waited_s=0.1)
        records.add_metrics(EpochMetrics(step, 1.0 / (step + 1), 0.5))
    home = ground.local.folder / "A"
    log.seal(lambda content: certificates.sign(content, home / "A.key.pem", None, home / "A.certificate.pem"))
    log.close()
    records.note("leak_meter", {"revealed": 8, "rank": 6, "share": 1.33})
    noised = Guarantee("published rows", "one row", "Gaussian", 1.0, {"of train rows": 3}, 2.0, 1e-5, 2.0, 0.5,
                       "zero_out", "analytic", "a note")  # fmt: skip
    records.note("privacy", Statement((noised,), ("edges",), ("a note",)).to_json())
    records.note("nodes", 40)
    scores = {"accuracy": 0.5, "f1": 0.5, "auc": 0.5, "average_precision": 0.5}
    outcome = Outcome(1, 0.5, 0.5, (), scores)
    records.end(traffic, revealed={"h0": 3}, outcome=outcome, error=None)


def _private_run(ground: Ground, folder: Path) -> None:
    """The same of a run with noise, so that the page has its section on privacy too."""
    _run_folder(ground, folder)
    path = folder / "run" / "federation.json"
    document = json.loads(path.read_text())
    document["settings"]["privacy"] |= {"edge_epsilon": 4.0}
    path.write_text(json.dumps(document))


SEEDS = {
    "home": _home,
    "card": _card,
    "csv": _tables,
    "parquet": lambda ground, folder: _tables(ground, folder, "parquet"),
    "trained": _trained,
    "alignment": _alignment,
    "ledger": _ledger,
    "run folder": _run_folder,
    "log": _run_folder,
    "page": _private_run,
    "page with figures": _private_run,
}


def rechained(path: Path, lines: list[dict[str, object]]) -> bytes:
    """The lines as a chain again, whatever they say: anybody who can write the file can do that."""
    from vfgnn.chain import Chain
    from vfgnn.errors import LogRefused

    path.unlink(missing_ok=True)
    chain = Chain(path, "chain", LogRefused)
    for line in lines:
        chain.append({key: value for key, value in line.items() if key not in ("number", "hash")})
    chain.close()
    content = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    return content
