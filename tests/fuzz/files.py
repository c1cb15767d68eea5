"""Target: files that commands read. Only our own errors may come out, whatever is in them (formats.py changes them)."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import torch

from tests.fuzz.case import Case, Outcome, judge
from tests.fuzz.formats import mutate_file, simple_faults
from tests.fuzz.ground import RUN, Ground
from vfgnn.files import load_federation, load_party
from vfgnn.message_log import MessageLog, read_entries
from vfgnn.party import aligning
from vfgnn.party.cards import read_card
from vfgnn.party.data_check import profile_of, with_dialects
from vfgnn.party.folder import RunFolder
from vfgnn.party.own_data import OwnData, load_data, read_tables
from vfgnn.party.programs import of_run
from vfgnn.party.trained import TrainedParty
from vfgnn.privacy.ledger import Ledger, read_releases
from vfgnn.privacy.statement import spent
from vfgnn.report.run.audit import audit
from vfgnn.transport.endpoint import Endpoint

NAME = "files"


def _home(folder: Path, ground: Ground) -> None:
    """As `vfgnn run` and `vfgnn doctor` begin."""
    file, party = load_federation(folder / "federation.toml"), load_party(folder / "A" / "party.toml")
    endpoint = Endpoint(file, party)
    for peer in file.parties:
        endpoint.dials(peer)
    load_data(file, party)
    # The good port is the live party's; any other name would be asked for in the network.
    ours = (ground.local.file.parties["A"].address or "").replace("localhost", "127.0.0.1")
    if party.listen is not None and party.listen != ours and party.listen.startswith("127.0.0.1:"):
        sock = endpoint.listening_socket()
        if sock is not None:
            sock.close()


def _tables(folder: Path, ground: Ground) -> None:
    party = load_party(folder / "party.toml")
    if party.data is not None and party.data.nodes is not None:
        profile_of(with_dialects(party.data), party.accept)
    found = read_tables(party)
    found.aligned(torch.arange(len(found.nodes.ids)), local_neighbours=False)


def _trained(folder: Path, ground: Ground) -> None:
    file, party = load_federation(folder / "federation.toml"), load_party(folder / "A" / "party.toml")
    trained = TrainedParty(file, party)
    try:
        trained.load()
    finally:
        trained.close()


def _alignment(folder: Path, ground: Ground) -> None:
    aligning.fitted(folder)
    aligning.kept(folder, RUN, OwnData())


def _ledger(folder: Path, ground: Ground) -> None:
    Ledger(folder / "privacy_ledger.jsonl").close()
    if (folder / "privacy_ledger.jsonl").is_file():
        spent(read_releases(folder / "privacy_ledger.jsonl"), 1e-4)


def _log(folder: Path, ground: Ground) -> None:
    file, run = ground.local.file, folder / "run"
    if (run / "messages.jsonl").is_file():
        audit(run, "A", of_run(file), file.parties["A"].certificate)
        list(read_entries(run / "messages.jsonl"))
        MessageLog(run / "messages.jsonl").close()


def _run_folder(folder: Path, ground: Ground) -> None:
    """A run that goes on after a kill."""
    RunFolder(folder / "run", "A").begin(RUN, 2, ground.local.file)


READERS: dict[str, Callable[[Path, Ground], None]] = {
    "home": _home,
    "card": lambda folder, ground: read_card(folder / "A.card.toml") and None,
    "csv": _tables,
    "parquet": _tables,
    "trained": _trained,
    "alignment": _alignment,
    "ledger": _ledger,
    "log": _log,
    "run folder": _run_folder,
}


READ = {
    "trained": ("A/run/",),
    "log": ("messages.jsonl", "messages.seal.json"),
    "run folder": ("run.json", "metrics.jsonl"),
}
"""The files that matter to a reader, by a part of their names; of the other readers all do."""


def make(rng: Random, number: int, ground: Ground) -> Case:
    """Each simple fault of each file once, then one or two files of one reader changed at random."""
    first = _first(ground)
    if number < len(first):
        reader, name, content = first[number]
        return Case(NAME, reader, ((name, content),))
    reader = rng.choice(list(READERS))
    files, names = ground.files(reader), _names(reader, ground)
    chosen = rng.sample(names, min(len(names), rng.choice((1, 1, 1, 2))))
    return Case(NAME, reader, tuple((name, mutate_file(rng, name, files[name], ground)) for name in chosen))


def _names(reader: str, ground: Ground) -> list[str]:
    """Keys are left alone, so that none is ever kept."""
    wanted = READ.get(reader, ("",))
    named = [name for name in ground.files(reader) if any(part in name for part in wanted)]
    return [name for name in named if not name.endswith((".key", ".key.pem"))]


@cache
def _first(ground: Ground) -> list[tuple[str, str, bytes | None]]:
    every = [(reader, name) for reader in READERS for name in _names(reader, ground)]
    return [(reader, name, made) for reader, name in every for made in simple_faults(name, ground.files(reader)[name])]


def run(case: Case, ground: Ground) -> Outcome:
    """Good files, those of the case in their place, and the reader over them."""
    return judge(caught(lambda folder: READERS[case.way](folder, ground), case, ground), case)


def caught(act: Callable[[Path], object], case: Case, ground: Ground) -> BaseException | None:
    """What `act` raised over the files of a case."""
    folder = ground.folder / "case"
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in {**ground.files(case.way), **dict(case.parts)}.items():
        if content is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(ground.here(content) or b"")
    try:
        act(folder)
    except Exception as error:  # noqa: BLE001 (it is what we are looking for)
        return error
    return None
