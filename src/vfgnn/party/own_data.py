"""What a holder brings to a run, from its own disk: tables with ids, or tensors that are aligned already.

Read by the holder alone. A server and a dealer bring nothing, and this module is loaded at holders only where there is
something to read.
"""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from pydantic import ValidationError

from vfgnn import randomness
from vfgnn.agreement import DEALER, SERVER, Agreement
from vfgnn.errors import ConfigError, DataError, TableError
from vfgnn.explained import explain
from vfgnn.files import DataFiles, FederationFile, PartyFile, TableKind

if TYPE_CHECKING:
    from vfgnn.data.feature_maps import FeatureMap
    from vfgnn.data.holdings import Holding, Labels
    from vfgnn.data.label_table import LabelTable
    from vfgnn.data.sources import Source
    from vfgnn.data.tables import Columns, EdgeTable, NodeTable


PSI_LIBRARY = "private_set_intersection"


@dataclass(frozen=True, repr=False)
class Fitted:
    """What training made of a holder's columns, kept in its own run folder: every prediction makes the same."""

    rows: int | None  # of its node table: means, deviations and words are those of so many first rows
    columns: "FeatureMap | None"  # sealed: the map of its columns


@dataclass(frozen=True, repr=False)
class OwnTables:
    """A holder's tables, in its own order of nodes."""

    nodes: "NodeTable"
    edges: "EdgeTable | None"
    labels: "LabelTable | None"
    columns: "FeatureMap | None" = None  # sealed: what has been made of the columns

    def aligned(self, rows: torch.Tensor, *, local_neighbours: bool, trained: bool = False) -> "OwnData":
        """The same over the common nodes: `rows` of the node table, in the common order."""
        from vfgnn.data.tables import holding_of

        holding = holding_of(self.nodes, self.edges, rows, local_neighbours=local_neighbours)
        return OwnData(holding, None if self.labels is None else self._labels(rows, trained), self)

    @property
    def whole(self) -> "Holding":
        """Over all rows of the node table, common or not."""
        from vfgnn.data.holdings import Holding

        edges, none = self.edges, torch.empty(2, 0, dtype=torch.int64)
        return Holding(self.nodes.x, none if edges is None else torch.stack([edges.source, edges.target]))

    def _labels(self, rows: torch.Tensor, trained: bool) -> "Labels":
        from vfgnn.data.holdings import Labels

        found = self.labels
        if found is None:
            raise DataError("no labels")
        y = torch.full((len(self.nodes.ids),), -1)
        part = torch.full((len(self.nodes.ids),), -1)
        y[found.rows], part[found.rows] = found.y, found.split.long()
        y, part = y[rows], part[rows]
        train, val, test = ((part == number).nonzero()[:, 0] for number in range(3))
        return Labels(y=y, train=train, val=val, test=test, classes=len(found.classes), trained=trained)

    def digest(self, rows: torch.Tensor) -> str:
        """For this holder's own folder: which ids stand in which order, which columns there are, and which classes."""
        import pyarrow as pa

        common = self.nodes.ids.take(pa.array(rows.numpy())).to_pylist()
        classes = () if self.labels is None else self.labels.classes
        content = "\x01".join("\x00".join(part) for part in (common, self.nodes.names, classes))
        return hashlib.sha256(content.encode()).hexdigest()

    def feature_digest(self, rows: torch.Tensor) -> str:
        """Likewise: their values."""
        return hashlib.sha256(self.nodes.x[rows].contiguous().numpy().data).hexdigest()


@dataclass(frozen=True, repr=False)
class OwnData:
    """What a holder brings; a server and a dealer bring nothing. Tables become a holding once they are aligned."""

    holding: "Holding | None" = None
    labels: "Labels | None" = None
    tables: OwnTables | None = None

    def in_words(self) -> str:
        """Sizes alone, for its owner."""
        holding, labels = self.everything, self.labels
        if holding is None:
            return "none, as it should be"
        told = [
            f"{holding.size:,} nodes, {holding.x.shape[1]:,} features, {holding.edge_index.shape[1]:,} edge entries"
        ]
        if self.tables is not None and self.tables.edges is not None and self.tables.edges.unknown:
            told.append(f"{self.tables.edges.unknown:,} rows of edges dropped: an end is not in the node table")
        if self.tables is not None and self.tables.labels is not None:
            found = self.tables.labels
            told.append(f"{len(found.rows):,} labels of {len(found.classes)} classes")
        elif labels is not None:
            parts = ((name, len(getattr(labels, name))) for name in ("train", "val", "test"))
            told.append(f"{labels.classes} classes; " + ", ".join(f"{name} {count:,}" for name, count in parts))
        return "; ".join(told)

    @property
    def everything(self) -> "Holding | None":
        """All rows that there are: of tables also those that are not common."""
        return self.holding if self.tables is None else self.tables.whole


def load_data(file: FederationFile, party: PartyFile, *, fitted: Fitted | None = None) -> OwnData:
    """A holder's own files, held against what the federation file declares of it.

    `fitted`: what training made of its columns, where there is a trained model.
    """
    agreement, data = file.agreement, party.data
    if party.name in (SERVER, DEALER):
        if data is not None:
            raise ConfigError(f"the {party.name} has data", expected="no [data] in its party.toml: it may hold none")
        return OwnData()
    leads = party.name == agreement.label_holder
    if data is None or (data.labels is None) == leads:
        wanted = (
            "nodes (or holding) and labels" if leads else "nodes (or holding), and no labels: another party has them"
        )
        raise ConfigError("other data than the role needs", expected=f"[data] with {wanted}", where="party.toml")
    if file.alignment is not None and file.alignment.method == "psi" and find_spec(PSI_LIBRARY) is None:
        raise ConfigError("alignment by psi needs the OpenMined PSI library", hint="pip install 'vfgnn[psi]'")
    if (data.nodes is None) != (file.alignment is None):
        wanted = (
            "tables: nodes = ..." if data.nodes is None else "holding = ..., or an [alignment] in the federation file"
        )
        raise ConfigError("data of another kind than the federation file expects", expected=wanted, where="party.toml")
    found = _load_tables(file, party, fitted) if data.holding is None else _load_prepared(agreement, party)
    if agreement.sealed and fitted is None:  # a trained model's nodes are looked at when its role is made
        from vfgnn.party.sealed_data import refuse_unfit

        refuse_unfit(agreement, party.name, found)
    return found


def _load_prepared(agreement: Agreement, party: PartyFile) -> OwnData:
    from vfgnn.data import prepared
    from vfgnn.data.feature_maps import mapped

    data = party.data
    if data is None or data.holding is None:
        raise ConfigError("no data", expected="[data] in party.toml")
    holding = prepared.load_holding(data.holding)
    if agreement.sealed:
        holding = mapped(holding, agreement.settings.sealed)
    prepared.check_declared(agreement, party.name, holding)
    if data.labels is None:
        return OwnData(holding)
    labels = prepared.load_labels(data.labels)
    prepared.check_declared_labels(agreement, labels)
    return OwnData(holding, labels)


def columns_of(party: PartyFile) -> "Columns":
    """[data.columns], checked."""
    return checked_columns(party.data)


def checked_columns(data: DataFiles | None) -> "Columns":
    """The same, also where there is no party.toml yet."""
    from vfgnn.data.tables import Columns

    try:
        return Columns.model_validate({} if data is None else data.columns)
    except ValidationError as error:
        raise explain(error, "[data.columns] in party.toml", Columns) from None


def table_of(data: DataFiles, kind: TableKind) -> "Source | None":
    """One of this holder's tables, and how it is written."""
    from vfgnn.data.dialect import Dialect
    from vfgnn.data.sources import source_of

    path: Path | None = getattr(data, kind)
    try:
        dialect = Dialect.model_validate(data.csv.get(kind, {}))
    except ValidationError as error:
        raise explain(error, f"[data.csv.{kind}] in party.toml", Dialect) from None
    return None if path is None else source_of(path, dialect=dialect)


def read_tables(party: PartyFile, *, stratified: bool = True, fitted: int | None = None) -> OwnTables:
    """This holder's tables; labels that will be noised are split without regard to their classes.

    `fitted`: of a trained model. Without it, tables that are hardly meant so are refused (data/disasters.py).
    """
    from vfgnn.data import tables
    from vfgnn.data.disasters import disasters, refuse_disasters
    from vfgnn.data.label_table import read_labels

    data, columns = party.data, columns_of(party)
    source = None if data is None else table_of(data, "nodes")
    if data is None or source is None:
        raise ConfigError("no tables", expected="[data] nodes = ... in party.toml")
    nodes = tables.read_nodes(source, columns, fitted=fitted)
    source = table_of(data, "edges")
    edges = None if source is None else tables.read_edges(source, columns, nodes)
    labels, source = None, table_of(data, "labels")
    if source is not None:
        # The key only this party has: nobody else can tell from an id whether its label trains.
        secret = randomness.derive_key(hashlib.sha256(_key_of(party)).digest(), "label split")
        labels = read_labels(source, columns, nodes, key=secret, stratified=stratified)
    if fitted is None:
        refuse_disasters(disasters(nodes, edges, labels, columns), party.accept)
    return OwnTables(nodes, edges, labels)


def _key_of(party: PartyFile) -> bytes:
    try:
        return party.key.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"no key of {party.name}",
            expected="key = ... in party.toml, a file that can be read",
            got=error.strerror,
            where=str(party.key),
            hint=f"vfgnn keys new {party.name}, or correct party.toml",
        ) from None


def _refuse_lost_zeros(file: FederationFile, party: PartyFile, found: OwnTables) -> None:
    """Ids that another holder has with leading zeros, by what the federation file says of how they are written."""
    from vfgnn.data.faults import TableFault
    from vfgnn.data.ids import shape_of_ids

    own = shape_of_ids(found.nodes.ids)
    for other in file.holders:
        theirs = other.ids
        if theirs is None or other.name == party.name or TableFault.LOST_ZEROS in party.accept:
            continue
        if own.has_lost_zeros_of(theirs):
            raise TableError(
                TableFault.LOST_ZEROS,
                f"ids of {other.name} have leading zeros, those of {party.name} have none",
                expected=f"ids written alike at all holders: digits with leading zeros, up to {theirs.longest}",
                file=found.nodes.file,
                hint="write them as text, so that no program drops their zeros; "
                f'or accept = ["{TableFault.LOST_ZEROS}"] in party.toml',
            )


def _load_tables(file: FederationFile, party: PartyFile, fitted: Fitted | None) -> OwnData:
    agreement = file.agreement
    stratified, known = agreement.settings.privacy.label_epsilon is None, fitted or Fitted(None, None)
    found = read_tables(party, stratified=stratified, fitted=known.rows)
    if agreement.sealed:
        from vfgnn.party import sealed_tables

        sealed_tables.refuse_edges(found, columns_of(party))
        found = sealed_tables.mapped(found, agreement.settings.sealed, known.columns)
    if fitted is None:
        _refuse_lost_zeros(file, party, found)
    shape = next(holder for holder in agreement.holders if holder.name == party.name)
    has_edges = found.edges is not None and len(found.edges.source) > 0
    declared = [("features", shape.features, int(found.nodes.x.shape[1])), ("edges", shape.edges, has_edges)]
    if found.labels is not None:
        declared.append(("classes", agreement.classes, len(found.labels.classes)))
    for key, wanted, here in declared:
        if wanted != here:
            raise DataError(
                f"the tables of {party.name} are not what the federation file declares",
                expected=f"{key} = {wanted}",
                got=f"{key} = {here}",
                hint="`vfgnn init party` counts them anew; the federation file must stay the same at all parties",
            )
    return OwnData(tables=found)
