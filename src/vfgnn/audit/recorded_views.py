"""Views and truths of a real run, from the folders of its parties.

A party that was run with `record_view = true` has its view in its run folder; its party.toml says where its data is.
With one holder's folder alone this is a self-audit. Of every other party's view the holder knows what it sent there,
and that is what is attacked, with its own data as the truth. Nothing outside of that party's folder is opened.
With folders or truths of several parties (a test federation) each whole view is attacked.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor

from vfgnn.agreement import DEALER, SERVER, Agreement
from vfgnn.audit.case import Attacked, Case
from vfgnn.audit.views import Messages, Opened, Truth, View
from vfgnn.checkpoint import Checkpoints
from vfgnn.data.holdings import Holding, Labels
from vfgnn.errors import DataError
from vfgnn.files import FederationFile, PartyFile, load_party
from vfgnn.messages import Kind
from vfgnn.model.ridge_training import pooled_scores
from vfgnn.party import aligning
from vfgnn.party.folder import RunState, read_about
from vfgnn.party.own_data import OwnData, load_data
from vfgnn.party.programs import end_step
from vfgnn.records import read_json, reading
from vfgnn.sealed.label_holder import opened_predictions
from vfgnn.sealed.state import LabelHolderState
from vfgnn.view_file import Link, first_of, read_view, view_folder

PARTY_FILE = "party.toml"


@dataclass(frozen=True, repr=False)
class RecordedParty:
    """One party of a finished or a failed run, by its own folder."""

    name: str
    folder: Path
    run: str
    file: FederationFile
    agreement: Agreement
    messages: dict[Link, list[Tensor]]
    data: OwnData  # nothing where its party.toml is not there, and at a server or a dealer

    @staticmethod
    def read(folder: Path, party_file: Path | None = None, *, viewed: bool = True) -> "RecordedParty":
        """From a run folder; `party_file`: where it is not beside the folder; not `viewed`: its data alone."""
        about, file = read_about(folder), _federation(folder)
        name, run = about.get("party"), about.get("run")
        if not isinstance(name, str) or not isinstance(run, str) or name not in file.parties:
            raise DataError("not a run folder", expected="run.json of a run that began", where=str(folder))
        messages = defaultdict[Link, list[Tensor]](list)
        finished = about.get("state") == RunState.FINISHED
        for one in read_view(folder, finished=finished) if viewed else ():
            messages[one.link].append(one.payload)
        for link, kept in messages.items():
            del kept[first_of(link[0]) : -1]  # of several starts: the first of all, and the last
        beside = folder.parent / PARTY_FILE
        own = party_file or (beside if beside.is_file() else None)
        nodes, data = _nodes_and_data(folder, run, file, None if own is None else _own_file(own, name, folder))
        return RecordedParty(name, folder, run, file, file.agreement_over(nodes), dict(messages), data)

    @property
    def view(self) -> View:
        """All that it has."""
        kept = _by_kind(self.messages)
        return View(self.name, self.agreement, kept, self.data.holding, self.data.labels, self._opened())

    def _opened(self) -> Opened | None:
        """By the checkpoint that a finished sealed training left at its label holder."""
        agreement, folder = self.agreement, self.folder / "checkpoints"
        if not agreement.sealed or self.name != agreement.label_holder or not folder.is_dir():
            return None
        end = end_step(agreement)
        kept = Checkpoints(folder, party=self.name, federation=self.file.agreement.digest, scheduled=[end])
        if end not in kept.steps:
            return None
        state = LabelHolderState.from_tensors(kept.load(end))
        return None if state.opened is None else Opened(opened_predictions(state, agreement))

    @property
    def digest(self) -> str:
        """Of everything that an attack may look at."""
        found = sha256(f"{self.run} {self.name} {self.agreement.digest}".encode())
        for path in sorted(view_folder(self.folder).glob("*.view")):
            found.update(path.read_bytes())
        for tensor in _tensors(self.data):
            found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
        return found.hexdigest()


def recorded_case(folders: Sequence[Path], party_files: Sequence[Path] = ()) -> Case:
    """What these folders allow to attack. `party_files`: of parties whose data is the truth, too."""
    named = {load_party(path).name: path for path in party_files}
    parties = [RecordedParty.read(folder, named.pop(_party_of(folder), None)) for folder in folders]
    seen = [one.name for one in parties]
    parties += [RecordedParty.read(load_party(path).run_folder, path, viewed=False) for path in named.values()]
    if len({(one.run, one.file.digest) for one in parties}) != 1:
        raise DataError("folders of different runs", expected="run folders of the parties of one run")
    if len({one.name for one in parties}) != len(parties):
        raise DataError("several folders of one party", expected="one run folder of each party")
    first = parties[0]
    known = [one for one in parties if one.data.holding is not None]
    names = " and ".join(one.name for one in parties)
    views = _views([one for one in parties if one.name in seen], [one.name for one in known])
    if not known:
        raise DataError(
            f"the folder of {names} says what was seen, and nothing to hold guesses against",
            expected="a holder's run folder, with its party.toml beside it",
            hint="add --truth PARTY.toml, of a holder",
        )
    return Case(
        title=f"run {first.run[:16]}, by the records of {names}",
        protocol=first.agreement.settings.protocol,
        agreement=first.agreement,
        parties=tuple(views),
        digest=sha256(" ".join(one.digest for one in parties).encode()).hexdigest(),
        make=lambda: Attacked(views, _truth(known)),
        by_itself=first.name if len(parties) == 1 else None,
    )


def _views(parties: Sequence[RecordedParty], known: Sequence[str]) -> dict[str, View]:
    """The whole view of who has a folder here, if there is a truth about anybody else; of others what these sent."""
    views = {}
    for name in parties[0].agreement.parties:
        own = next((one for one in parties if one.name == name), None)
        if own is not None:
            if set(known) - {name}:
                views[name] = own.view
            continue
        telling = [one for one in parties if one.name in known]
        sent = {link: kept for one in telling for link, kept in one.messages.items() if link[1:] == (one.name, name)}
        if sent:
            views[name] = View(name, parties[0].agreement, _by_kind(sent))
    return views


def _truth(known: Sequence[RecordedParty]) -> Truth:
    """Of the parties whose data are here."""
    holdings = {one.name: one.data.holding for one in known if one.data.holding is not None}
    agreement = known[0].agreement
    sent = {link: kept for one in known for link, kept in one.messages.items() if link[1] == one.name}
    labels = next((one.data.labels for one in known if one.data.labels is not None), None)
    pooled: Callable[[Labels], Tensor] | None = None
    if agreement.sealed and set(holdings) == set(agreement.holder_names):
        as_they_are = {"columns": "as they are", "own_degree": False, "scaled": False}  # maps are applied already
        chosen = agreement.settings.sealed.model_copy(update=as_they_are)
        settings = agreement.settings.model_copy(update={"sealed": chosen})
        pooled = pooled_scores([holdings[name] for name in agreement.holder_names], settings)
    return Truth(holdings, labels, _by_kind(sent), pooled)


def _by_kind(messages: dict[Link, list[Tensor]]) -> Messages:
    return {(Kind(kind, ""), sender, receiver): kept for (kind, sender, receiver), kept in messages.items()}


def _party_of(folder: Path) -> str:
    return str(read_about(folder).get("party"))


def _federation(folder: Path) -> FederationFile:
    path = folder / "federation.json"
    if not path.is_file():
        raise DataError("not a run folder", expected="federation.json", where=str(folder))
    with reading(path):
        return FederationFile.model_validate(read_json(path))


def _own_file(path: Path, name: str, folder: Path) -> PartyFile:
    """A party.toml, which has to be of the party whose folder this is."""
    party = load_party(path)
    if party.name != name:
        raise DataError("a party file of somebody else", expected=f"that of {name}", got=party.name, where=str(path))
    return party.model_copy(update={"run_folder": folder})


def _nodes_and_data(
    folder: Path, run: str, file: FederationFile, party: PartyFile | None
) -> tuple[int | None, OwnData]:
    """The number of common nodes, and this party's data over them as they were when the run began."""
    holds = party is not None and party.data is not None and party.name not in (SERVER, DEALER)
    if party is None or not holds:
        return (None if file.alignment is None else aligning.kept(folder, run, OwnData())[0]), OwnData()
    if file.alignment is None:
        return None, load_data(file, party)
    data = load_data(file, party, fitted=aligning.fitted(folder))
    nodes, rows = aligning.kept(folder, run, data)
    return nodes, aligning.over(file, data, rows)


def _tensors(data: OwnData) -> Iterable[Tensor]:
    holding, labels = data.holding, data.labels
    if isinstance(holding, Holding):
        yield from (holding.x, holding.edge_index)
    if isinstance(labels, Labels):
        yield from (labels.y, labels.train, labels.val, labels.test)
