"""`vfgnn predict`: all parties take part once more, with the weights of a finished run; only the label holder learns.

Each party loads the state that its run ended with. The holders publish the rows of all nodes, so that nobody sees which
ones were asked for; z_L goes to the label holder, which writes classes and probabilities of the ids it was asked for.
Rows that were noised are sent again as they were (parties/holder.py).
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
from vfgnn.checkpoint import Checkpoints
from vfgnn.errors import CheckpointRefused, ConfigError, ProtocolError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.message_log import MessageLog
from vfgnn.parties import schedule
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

    def predict(self, ids: pa.Array | None) -> pa.Table | None:
        """At the label holder a table: id, status, class, and a probability for each class."""
        file, party = self.file, self.party
        federation = file.federation("before predicting")
        end = schedule.end_step(federation)
        kept = Checkpoints(
            party.run_folder / "checkpoints", party=party.name, federation=federation.digest, scheduled=[end]
        )
        _refuse_unfinished(party, kept, end)
        data, nodes = load_data(file, party), None
        rows = torch.arange(0)
        if file.alignment is not None:
            nodes, rows = aligning.kept(party.run_folder, kept.run, data)
            data = aligning.over(file, data, rows)
        folder = _new_folder(party.run_folder)
        logs.configure(party.name, file=folder / "log.jsonl", as_json=False)
        log = MessageLog(folder / "messages.jsonl")
        logits = self._ask(kept, end, data, nodes, log)
        seal(log, party)
        return None if logits is None else self._table(logits, ids, data, rows)

    def _ask(
        self, kept: Checkpoints, end: int, data: OwnData, nodes: int | None, log: MessageLog
    ) -> torch.Tensor | None:
        """Reveals: rows of all nodes to the server, z_L of all nodes to the label holder."""
        endpoint = Endpoint(self.file, self.party, run=kept.run, steps=(end,))
        network = Network(endpoint, capacities(self.file, self.party.name), on_event=logs.event)
        privacy = self.file.settings.privacy
        ledger = None if self.party.data is None or privacy.off else Ledger(self.party.privacy_ledger)
        try:
            start = network.open(wait_s=self.file.patience.start_s)
            if (start.run, start.step) != (kept.run, end):
                raise ProtocolError("a peer has another model", expected=f"run {kept.run}", got=f"run {start.run}")
            channel = Channel(self.party.name, network, log=log, start=start.start)
            federation = self.file.federation(start.start, nodes)
            made = make_party(federation, self.party, channel, data, lambda metrics: None, ledger)
            made.load(kept.load(end))
            channel.enter("predict", schedule.predict_messages(federation))
            made.predict()
            channel.finish()
            made.close()
            network.close()
        except BaseException as error:
            network.close(error)
            raise
        logits: torch.Tensor | None = getattr(made, "logits", None)  # the label holder's
        return logits

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
