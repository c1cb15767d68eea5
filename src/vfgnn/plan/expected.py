"""What a party knows of a run's sizes beforehand. What it does not know, it takes for the most that there can be."""

from dataclasses import dataclass

from vfgnn.agreement import Agreement
from vfgnn.errors import ConfigError
from vfgnn.files import FederationFile
from vfgnn.party.own_data import OwnData


@dataclass(frozen=True)
class Expected:
    """`assumed` says where it took the most."""

    agreement: Agreement
    train_rows: int
    val_rows: int
    assumed: tuple[str, ...] = ()


def expect(file: FederationFile, data: OwnData, *, nodes: int | None = None) -> Expected:
    """The sizes of a run as this party knows them; `nodes`: how many the holders of tables are said to share."""
    agreement, assumed = _over_nodes(file, data, nodes)
    if data.labels is not None:
        return Expected(agreement, len(data.labels.train), len(data.labels.val), assumed)
    if data.tables is not None and data.tables.labels is not None:
        split = data.tables.labels.split
        train, val = (min(int((split == part).sum()), agreement.nodes) for part in (0, 1))
        return Expected(agreement, train, val, assumed)
    if agreement.sealed:
        every = "all nodes train, and all validate: only the label holder knows how many do"
        return Expected(agreement, agreement.nodes, agreement.nodes, (*assumed, every))
    if agreement.settings.publish == "needed":
        assumed += ("all nodes are training rows: only the label holder knows how many are",)
    return Expected(agreement, agreement.nodes, 0, assumed)


def _over_nodes(file: FederationFile, data: OwnData, nodes: int | None) -> tuple[Agreement, tuple[str, ...]]:
    if file.alignment is None:
        if nodes not in (None, file.nodes):
            raise ConfigError("--nodes cannot be used", expected=f"the {file.nodes} nodes of the federation file")
        return file.agreement, ()
    own = None if data.tables is None else len(data.tables.nodes.ids)
    most = file.alignment.max_ids if own is None else min(own, file.alignment.max_ids)
    if nodes is None:
        why = "max_ids allows no more" if own is None else "this holder has no more"
        return file.agreement_over(most), (f"all holders share {most:,} nodes: {why}; give --nodes if you know",)
    if not 1 <= nodes <= most:
        raise ConfigError("--nodes cannot be used", expected=f"1 to {most}", got=str(nodes))
    return file.agreement_over(nodes), ()
