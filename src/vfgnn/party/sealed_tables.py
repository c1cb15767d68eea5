"""A holder's own tables as the sealed protocol takes them: mapped columns, and edges that are there or are not.

Maps are fitted to all rows of the holder's own node table and to all its own edges, before the holders meet. So the
number of columns does not depend on which nodes are common. Predictions use the maps that training fitted.
Runs at the holder. Nothing leaves but what `declared_bound` proposes for its card.
"""

from dataclasses import replace

from vfgnn.data.feature_maps import FeatureMap, fitted_map
from vfgnn.data.tables import Columns
from vfgnn.errors import ConfigError
from vfgnn.party.own_data import OwnTables
from vfgnn.party.sealed_data import counted_entries
from vfgnn.sealed.own_edges import proposed_bound
from vfgnn.settings import Sealed


def mapped(tables: OwnTables, chosen: Sealed, kept: FeatureMap | None = None) -> OwnTables:
    """The same with the columns that the settings ask for; `kept`: the map of training, where there is one."""
    own = tables.whole
    columns = fitted_map(own, chosen) if kept is None else kept
    if columns is None:
        return tables
    nodes = replace(tables.nodes, x=columns.apply(own), names=columns.names(tables.nodes.names))
    return replace(tables, nodes=nodes, columns=columns)


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


def declared_bound(tables: OwnTables, wanted: int | None) -> int:
    """What the holder declares: what it wants to, or its own count, rounded up so that it tells little."""
    found = counted_entries(tables.whole)
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
