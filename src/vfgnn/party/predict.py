"""`vfgnn predict`: all parties take part once more, with the weights of a finished run; only the label holder learns.

What a pass is, and who sees what of it, is in trained.py; here a party connects, takes part in one, and goes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from vfgnn import logs
from vfgnn.errors import ConfigError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.message_log import MessageLog
from vfgnn.party.own_data import columns_of
from vfgnn.party.programs import of_model
from vfgnn.party.session import NetworkSession, disk_patience
from vfgnn.party.train import seal
from vfgnn.party.trained import PREDICTIONS, Predictions, TrainedParty, new_folder
from vfgnn.writing import remove_unfinished, write_whole

FORMULA = r"^[=+\-@\t\r\n']"  # how a cell begins that a spreadsheet does not take for text, and the apostrophe itself


@dataclass(frozen=True)
class Predictor:
    """One party of a finished run, asked again."""

    file: FederationFile
    party: PartyFile
    new_nodes: bool = False  # align anew; all parties must say the same

    def predict(self, ids: pa.Array | None) -> pa.Table | None:
        """At the label holder a table: id, status, class, and a probability for each class if there are any."""
        model = TrainedParty(self.file, self.party)
        try:
            if self.new_nodes:
                model.refuse_new_nodes()
            folder = new_folder(self.party.run_folder, PREDICTIONS)
            logs.configure(self.party.name, file=folder / "log.jsonl", as_json=False)
            log = MessageLog(folder / "messages.jsonl")
            found = self._ask(model, log, None if ids is None else set(ids.to_pylist()))
            seal(log, self.party)
        finally:
            model.close()
        return None if found is None else found.table(ids)

    def _ask(self, model: TrainedParty, log: MessageLog, ids: Collection[str] | None) -> Predictions | None:
        """Reveals: what `TrainedParty.ask` does."""
        trained = model.load()  # before anything is sent: what cannot be read is refused at home
        endpoint = model.endpoint("predict --new-nodes" if self.new_nodes else "predict")
        session = NetworkSession(endpoint, of_model(self.file, self.party.name), log=log)
        session.resize([])  # a pass makes room when it knows for how many nodes
        with session.met(wait_s=self.file.patience.start_s) as start, disk_patience(self.file):
            model.meet(start)
            return model.ask(session, trained, run=start.start, new_nodes=self.new_nodes, ids=ids)


def wanted_ids(party: PartyFile, path: Path | None) -> pa.Array | None:
    """The ids of a table, as the node table writes them; a CSV may be written in any way that can be told."""
    if path is None:
        return None
    from vfgnn.data.sources import sniffed  # at the label holder only: nobody else's process may load it
    from vfgnn.data.tables import read_ids

    columns = columns_of(party)
    return read_ids(sniffed(path, [columns.id]), columns)


def write_table(table: pa.Table, path: Path) -> None:
    """CSV or Parquet, by the name; the file is whole or not there, and only its owner's."""
    write, content = pyarrow.parquet.write_table, table
    if path.suffix != ".parquet":
        write, content = pyarrow.csv.write_csv, without_formulas(table)
    remove_unfinished(path.parent, path.name)
    write_whole(path, lambda temporary: write(content, temporary))


def without_formulas(table: pa.Table) -> pa.Table:
    """For CSV: a spreadsheet runs a cell that begins like a formula, and an id or a class may be anybody's text.

    Such a cell gets an apostrophe before it, and so does one that begins with an apostrophe: to take one away from the
    beginning gives every cell back as it was.
    """
    for number, column in enumerate(table.columns):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            begins = pc.match_substring_regex(column, FORMULA)
            told = pc.binary_join_element_wise(pa.scalar("'", column.type), column, pa.scalar("", column.type))
            table = table.set_column(number, table.column_names[number], pc.if_else(begins, told, column))
    return table


def check_out(path: Path) -> None:
    """Refuse before anything is sent what could not be written afterwards."""
    if path.suffix not in (".csv", ".parquet"):
        raise ConfigError("predictions cannot be written so", expected="--out NAME.csv or NAME.parquet", got=path.name)
