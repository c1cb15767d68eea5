"""`vfgnn predict`: all parties take part once more, with the weights of a finished run; only the label holder learns.

Each party loads the state that its run ended with. The holders publish the rows of all nodes, so that nobody sees which
ones were asked for; z_L goes to the label holder, which writes classes and probabilities of the ids it was asked for.
Rows that were noised are sent again as they were (parties/holder.py).

New nodes: ids that came after training are aligned with the others' and predicted with the same weights. Holders append
them to their tables; what was there stays where it was (parties/new_nodes.py).
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import torch

from vfgnn import logs
from vfgnn.channel import Channel
from vfgnn.checkpoint import Checkpoints, State
from vfgnn.config import Federation
from vfgnn.errors import CheckpointRefused, ConfigError, ProtocolError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.message_log import MessageLog
from vfgnn.parties import loop, schedule
from vfgnn.parties.new_nodes import over_more_nodes, places_of, refuse_unfit
from vfgnn.privacy.ledger import Ledger
from vfgnn.run import aligning
from vfgnn.run.own_data import OwnData, columns_of, load_data
from vfgnn.run.party import capacities, make_party, seal
from vfgnn.transport.endpoint import Endpoint
from vfgnn.transport.network import Network

OK, NOT_SHARED, UNKNOWN = "ok", "not at all holders", "unknown"


@dataclass(frozen=True)
class Predictor:
    """One party of a finished run, asked again."""

    file: FederationFile
    party: PartyFile
    new_nodes: bool = False  # align anew; all parties must say the same

    def predict(self, ids: pa.Array | None) -> pa.Table | None:
        """At the label holder a table: id, status, class, and a probability for each class."""
        file, party = self.file, self.party
        federation = file.federation("before predicting")
        end = schedule.end_step(federation)
        kept = Checkpoints(
            party.run_folder / "checkpoints", party=party.name, federation=federation.digest, scheduled=[end]
        )
        _refuse_unfinished(party, kept, end)
        if self.new_nodes and file.alignment is None:
            raise ConfigError("new nodes need ids", expected="tables: [alignment] in the federation file")
        trained = Trained.load(file, party, kept)
        folder = _new_folder(party.run_folder)
        logs.configure(party.name, file=folder / "log.jsonl", as_json=False)
        log = MessageLog(folder / "messages.jsonl")
        logits, now = self._ask(kept, end, trained, log)
        seal(log, party)
        return None if logits is None else self._table(logits, ids, now.data, now.rows)

    def _ask(
        self, kept: Checkpoints, end: int, trained: "Trained", log: MessageLog
    ) -> tuple[torch.Tensor | None, "Trained"]:
        """Reveals: rows of all nodes to the server, z_L of all nodes to the label holder; what aligning reveals."""
        endpoint = Endpoint(self.file, self.party, run=kept.run, steps=(end,))
        network = Network(endpoint, capacities(self.file, self.party.name), on_event=logs.event)
        privacy = self.file.settings.privacy
        ledger = None if self.party.data is None or privacy.off else Ledger(self.party.privacy_ledger)
        try:
            start = network.open(wait_s=self.file.patience.start_s)
            if (start.run, start.step) != (kept.run, end):
                raise ProtocolError("a peer has another model", expected=f"run {kept.run}", got=f"run {start.run}")
            channel = Channel(self.party.name, network, log=log, start=start.start)
            now, state = trained, kept.load(end)
            if self.new_nodes:
                now = trained.aligned_anew(self.file, channel)
                state = now.extended(state, trained, self.file.federation(start.start, now.nodes))
            federation = self.file.federation(start.start, now.nodes)
            made = make_party(federation, self.party, channel, now.data, lambda metrics: None, ledger)
            made.load(state)
            loop.predict(made, new_nodes=self.new_nodes)
            made.close()
            network.close()
        except BaseException as error:
            network.close(error)
            raise
        logits: torch.Tensor | None = getattr(made, "logits", None)  # the label holder's
        return logits, now

    def _table(self, logits: torch.Tensor, ids: pa.Array | None, data: OwnData, rows: torch.Tensor) -> pa.Table:
        own, classes = self._names(logits, data, rows)
        common = own.take(pa.array(rows.numpy())) if data.tables is not None else own
        ids = common if ids is None else ids
        found = pc.index_in(ids, value_set=common)
        here = pc.is_in(ids, value_set=own)
        status = pc.if_else(pc.is_valid(found), OK, pc.if_else(here, NOT_SHARED, UNKNOWN))
        likely = logits.double().cpu().softmax(dim=1)
        names = pa.array(classes).take(pa.array(likely.argmax(dim=1).numpy()))
        columns = {"id": ids, "status": status, "class": names.take(found)}
        for number, name in enumerate(classes):
            columns[f"probability of {name}"] = pa.array(likely[:, number].numpy()).take(found)
        return pa.table(columns)

    def _names(self, logits: torch.Tensor, data: OwnData, rows: torch.Tensor) -> tuple[pa.Array, list[str]]:
        """Ids and classes as the label holder's tables name them; aligned tensors have numbers only."""
        if data.tables is None or data.tables.labels is None:
            return pa.array([str(row) for row in range(len(logits))]), [str(c) for c in range(logits.shape[1])]
        return data.tables.nodes.ids, list(data.tables.labels.classes)


@dataclass(frozen=True)
class Trained:
    """The nodes of a model, and this party's data over them."""

    data: OwnData
    nodes: int | None  # None: as the federation file says
    rows: torch.Tensor  # of this holder's node table, in the common order

    @staticmethod
    def load(file: FederationFile, party: PartyFile, kept: Checkpoints) -> "Trained":
        """As they were in training, standardised as then."""
        if file.alignment is None:
            return Trained(load_data(file, party), None, torch.arange(0))
        data = load_data(file, party, fitted=aligning.fitted_rows(party.run_folder))
        nodes, rows = aligning.kept(party.run_folder, kept.run, data)
        return Trained(aligning.over(file, data, rows), nodes, rows)

    def aligned_anew(self, file: FederationFile, channel: Channel) -> "Trained":
        """With the ids that all holders have now. Reveals: what an alignment reveals (alignment/)."""
        nodes, rows = aligning.align(file, channel.party, channel, self.data)
        return Trained(aligning.over(file, self.data, rows), nodes, rows)

    def extended(self, state: State, trained: "Trained", federation: Federation) -> State:
        """A party's trained state over the nodes of now; only holders have anything that counts nodes."""
        if self.data.holding is None:
            return over_more_nodes(state, torch.arange(0), 0)
        places = places_of(trained.rows, self.rows)
        refuse_unfit(federation, places)
        return over_more_nodes(state, places, federation.nodes)


def wanted_ids(party: PartyFile, path: Path | None) -> pa.Array | None:
    """The ids of a table, as the node table writes them."""
    from vfgnn.data.tables import read_ids

    return None if path is None else read_ids(path, columns_of(party))


def write_table(table: pa.Table, path: Path) -> None:
    """CSV or Parquet, by the name; the file is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, temporary)
    else:
        pyarrow.csv.write_csv(table, temporary)
    temporary.replace(path)


def check_out(path: Path) -> None:
    """Refuse before anything is sent what could not be written afterwards."""
    if path.suffix not in (".csv", ".parquet"):
        raise ConfigError("predictions cannot be written so", expected="--out NAME.csv or NAME.parquet", got=path.name)


def _refuse_unfinished(party: PartyFile, kept: Checkpoints, end: int) -> None:
    try:
        state = json.loads((party.run_folder / "run.json").read_text()).get("state")
    except (OSError, ValueError):
        state = None
    if end not in kept.steps or state != "finished":
        raise CheckpointRefused(
            f"{party.name} has no trained model",
            expected="the run folder of a finished run of this federation",
            got="no finished run" if state is None else f"a run that is {state}",
            where=str(party.run_folder),
            hint="finish `vfgnn run` at all parties first",
        )


def _new_folder(run_folder: Path) -> Path:
    folder = run_folder / "predictions" / datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    folder.mkdir(parents=True)
    return folder
