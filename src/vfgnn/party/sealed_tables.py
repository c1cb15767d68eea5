"""A holder's own tables as the sealed protocol takes them: mapped columns, and edges that are there or are not.

Maps are fitted to all rows of the holder's own node table and to all its own edges, before the holders meet. So the
number of columns does not depend on which nodes are common. Predictions use the maps that training fitted.
Runs at the holder. Nothing leaves but what `declared_bound` proposes for its card.
"""

from dataclasses import replace

import torch

from vfgnn.agreement import Agreement
from vfgnn.data.feature_maps import FeatureMap, fitted_map
from vfgnn.data.holdings import Holding
from vfgnn.data.tables import Columns, NodeTable
from vfgnn.errors import ConfigError, DataError
from vfgnn.mpc.fixed_point import FixedPoint
from vfgnn.party.own_data import OwnTables
from vfgnn.sealed.formats import feature_bits
from vfgnn.sealed.own_edges import entries_of, proposed_bound
from vfgnn.settings import Sealed


def mapped(tables: OwnTables, chosen: Sealed, kept: FeatureMap | None = None) -> OwnTables:
    """The same with the columns that the settings ask for; `kept`: the map of training, where there is one."""
    own = _holding(tables)
    columns = fitted_map(own, chosen) if kept is None else kept
    if columns is None:
        return tables
    nodes = tables.nodes
    named = NodeTable(ids=nodes.ids, x=columns.apply(own), names=columns.names(nodes.names))
    return replace(tables, nodes=named, columns=columns)


def refuse_edges(tables: OwnTables, columns: Columns) -> None:
    """Refuse edges that are more than there or not there."""
    if tables.edges is None:
        return
    if tables.edges.weight is not None:
        raise ConfigError(
            "edges with weights cannot be used in the sealed protocol",
            expected="edges without a weight column",
            where="party.toml",
            hint="leave weight out of [data.columns], or use protocol = split",
        )
    if columns.directed:
        raise ConfigError(
            "directed edges cannot be used in the sealed protocol",
            expected="directed = false: an edge counts both ways",
            where="party.toml",
            hint="leave directed out of [data.columns], or use protocol = split",
        )


def refuse_unfit(agreement: Agreement, name: str, tables: OwnTables) -> None:
    """Hold all rows and edges of the tables against what is declared, before anything is sent."""
    shape = next(holder for holder in agreement.holders if holder.name == name)
    found = counted_entries(tables, quota=agreement.degree_quota)
    if shape.integer and not is_whole(tables):
        raise DataError(
            f"the tables of {name} are not what the federation file declares",
            expected="whole numbers (integer = true)",
            got="other numbers too",
            hint="`vfgnn init party` looks anew; the federation file must stay the same at all parties",
        )
    if found > shape.entry_bound:
        raise DataError(
            "more directed entries than the holder has declared",
            expected=f"at most {shape.entry_bound} (entry_bound)",
            got=str(found),
            where=f"edges of {name}",
            hint="declare a larger bound with `vfgnn init party --entry-bound`, or leave out edges",
        )
    bound = FixedPoint(feature_bits(integer=shape.integer), agreement.settings.feature_bound)
    bound.encode(tables.nodes.x, f"the features of {name}")


def is_whole(tables: OwnTables) -> bool:
    """Whether all its columns are whole numbers."""
    x = tables.nodes.x
    return not x.is_floating_point() or bool((x == x.round()).all())


def counted_entries(tables: OwnTables, *, quota: int | None = None) -> int:
    """Directed entries among all nodes of the table; `quota`: of each node no more edges than that are counted."""
    own = _holding(tables)
    return int(entries_of(own.edge_index, own.size, quota=own.size if quota is None else quota).shape[1])


def declared_bound(tables: OwnTables, wanted: int | None) -> int:
    """What the holder declares: what it wants to, or its own count, rounded up so that it tells little."""
    found = counted_entries(tables)
    if wanted is None:
        return proposed_bound(found)
    if wanted < found:
        raise ConfigError(
            "an entry bound below the number of entries",
            expected=f"at least {found} directed entries: two for each edge",
            got=str(wanted),
            where="--entry-bound",
        )
    return wanted


def _holding(tables: OwnTables) -> Holding:
    """All rows of the node table, common or not."""
    edges = tables.edges
    none = torch.empty(2, 0, dtype=torch.int64)
    return Holding(tables.nodes.x, none if edges is None else torch.stack([edges.source, edges.target]))
