"""Holders' tables in a notebook (`vfgnn.Tables`): data frames, Arrow tables or files, aligned by their ids.

Whoever makes a federation of them has everybody's tables in one place: it is for a first look. In earnest each
organisation keeps its own and runs `vfgnn init party` and `vfgnn run`. What is refused there is refused here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import torch
from pydantic import ValidationError

from vfgnn import randomness
from vfgnn.data.columns import Columns
from vfgnn.data.disasters import disasters, refuse_disasters
from vfgnn.data.holdings import Holding, Labels
from vfgnn.data.label_table import read_labels
from vfgnn.data.profile import Profile, TableSources, make_profile
from vfgnn.data.sources import Source, sniffed, source_of
from vfgnn.data.tables import read_edges, read_nodes
from vfgnn.errors import DataError
from vfgnn.explained import explain
from vfgnn.party.own_data import OwnTables


@dataclass(frozen=True, repr=False, eq=False)
class Tables:
    """One holder's tables: pandas or polars DataFrames, Arrow tables, or paths of CSV and Parquet files."""

    nodes: object
    edges: object = None
    labels: object = None
    columns: Mapping[str, object] = field(default_factory=dict)  # [data.columns] of a party.toml
    accept: tuple[str, ...] = ()  # what `profile` finds and is meant so

    def profile(self) -> Profile:
        """What `vfgnn data check` would say of them."""
        return make_profile(self._sources, self._checked, self.accept)

    def read(self, seed: int = 0) -> OwnTables:
        """As a run would read them; `seed` is that of the split into train, val and test where no column says it."""
        sources, columns = self._sources, self._checked
        nodes = read_nodes(sources.nodes, columns)
        edges = None if sources.edges is None else read_edges(sources.edges, columns, nodes)
        key = randomness.insecure_seed(seed)
        labels = None if sources.labels is None else read_labels(sources.labels, columns, nodes, key=key)
        refuse_disasters(disasters(nodes, edges, labels, columns), self.accept)
        return OwnTables(nodes, edges, labels)

    @property
    def _checked(self) -> Columns:
        try:
            return Columns.model_validate(dict(self.columns))
        except ValidationError as error:
            raise explain(error, "columns", Columns) from None

    @property
    def _sources(self) -> TableSources:
        columns = self._checked
        nodes = _source(self.nodes, "nodes", columns.id)
        edges = None if self.edges is None else _source(self.edges, "edges", columns.source, columns.target)
        labels = None if self.labels is None else _source(self.labels, "labels", columns.id, columns.label)
        return TableSources(nodes, edges, labels)

    def __repr__(self) -> str:
        there = (name for name in ("nodes", "edges", "labels") if getattr(self, name) is not None)
        return f"Tables({', '.join(there)})"


def _source(given: object, name: str, *names: str) -> Source:
    source = source_of(given, name)
    return source if source.path is None else sniffed(source.path, names)


@dataclass(frozen=True, repr=False)
class AlignedTables:
    """Tables over the nodes that all holders have, in the order of their ids."""

    names: tuple[str, ...]  # the label holder first
    holdings: tuple[Holding, ...]
    labels: Labels
    ids: tuple[str, ...]
    classes: tuple[str, ...]


def aligned(holders: Mapping[str, Tables], seed: int) -> AlignedTables:
    """Find the common ids in the clear: one process has them all."""
    leaders = [name for name, tables in holders.items() if tables.labels is not None]
    if len(leaders) != 1:
        raise DataError("one holder must have the labels", expected="one with labels=...", got=str(len(leaders)))
    names = (*leaders, *(name for name in holders if name not in leaders))
    read = [holders[name].read(seed) for name in names]
    common = reduce(lambda ids, one: ids.filter(pc.is_in(ids, value_set=one.nodes.ids)), read, read[0].nodes.ids)
    common = common.take(pc.sort_indices(common))
    if not len(common):
        hint = "are they written alike? Tables(...).profile() tells how each holder's are written"
        raise DataError("the holders have no node in common", expected="ids that all of them have", hint=hint)
    data = [one.aligned(_rows(common, one.nodes.ids), local_neighbours=False) for one in read]
    holdings = tuple(one.holding for one in data if one.holding is not None)
    labels, table = data[0].labels, read[0].labels
    if labels is None or table is None:
        raise DataError("no labels")
    return AlignedTables(names, holdings, labels, tuple(common.to_pylist()), table.classes)


def _rows(common: pa.Array, ids: pa.Array) -> torch.Tensor:
    return torch.tensor(pc.index_in(common, value_set=ids).to_numpy()).long()
