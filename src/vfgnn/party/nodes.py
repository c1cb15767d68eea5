"""The nodes of a prediction, and a party's own data over them: those of training, or with what came after it.

Runs at each party of a finished run. What aligning anew reveals is in alignment/.
"""

from dataclasses import dataclass

import pyarrow as pa
import torch

from vfgnn.channel import Channel
from vfgnn.checkpoint import Checkpoints
from vfgnn.files import FederationFile, PartyFile
from vfgnn.party import aligning
from vfgnn.party.own_data import OwnData, load_data
from vfgnn.split.new_nodes import in_trained_order


@dataclass(frozen=True, repr=False)
class Nodes:
    """The nodes of a pass, and this party's data over them."""

    data: OwnData
    nodes: int | None  # None: as the federation file says
    rows: torch.Tensor  # of this holder's node table, in the common order

    @property
    def ids(self) -> list[str]:
        """Of the common nodes, as this holder's table writes them; none where there is no table."""
        tables = self.data.tables
        return [] if tables is None else tables.nodes.ids.take(pa.array(self.rows.numpy())).to_pylist()

    @staticmethod
    def load(file: FederationFile, party: PartyFile, kept: Checkpoints) -> "Nodes":
        """As they were in training, standardised as then."""
        if file.alignment is None:
            return Nodes(load_data(file, party), None, torch.arange(0))
        data = load_data(file, party, fitted=aligning.fitted(party.run_folder))
        nodes, rows = aligning.kept(party.run_folder, kept.run, data)
        return Nodes(aligning.over(file, data, rows, trained=True), nodes, rows)

    def aligned_anew(self, file: FederationFile, channel: Channel) -> "Nodes":
        """With the ids that all holders have now. Reveals: what an alignment reveals (alignment/)."""
        nodes, rows = aligning.align(file, channel, self.data)
        rows = in_trained_order(self.rows, rows)
        return Nodes(aligning.over(file, self.data, rows, trained=True), nodes, rows)
