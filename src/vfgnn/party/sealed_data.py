"""A holder's data against what the federation file declares of it, before anything of a sealed training is sent.

Runs at the holder, in `vfgnn run` and in `vfgnn doctor`. Of tables all rows and edges are looked at, common or not.
"""

from vfgnn.agreement import Agreement, HolderShape
from vfgnn.data.holdings import Holding
from vfgnn.errors import DataError
from vfgnn.mpc.fixed_point import FixedPoint
from vfgnn.party.own_data import OwnData
from vfgnn.sealed.formats import feature_bits
from vfgnn.sealed.own_edges import entries_of


def refuse_unfit(agreement: Agreement, name: str, data: OwnData) -> None:
    """Refuse more entries than declared, other numbers than declared, and values beyond the bound."""
    holding = data.everything
    if holding is None:
        return
    shape, found = shape_of(agreement, name), counted_entries(holding, quota=agreement.degree_quota)
    if shape.integer and not is_whole(holding):
        raise DataError(
            f"the data of {name} is not what the federation file declares",
            expected="whole numbers (integer = true)",
            got="other numbers too",
            hint="set integer = false in the federation file, at all parties",
        )
    if found > shape.entry_bound:
        raise DataError(
            "more directed entries than the holder has declared",
            expected=f"at most {shape.entry_bound} (entry_bound)",
            got=str(found),
            where=f"edges of {name}",
            hint="declare more (tables: `vfgnn init party --entry-bound`), or leave out edges",
        )
    bound = FixedPoint(feature_bits(integer=shape.integer), agreement.settings.feature_bound)
    bound.encode(holding.x, f"the features of {name}")


def shape_of(agreement: Agreement, name: str) -> HolderShape:
    """What is declared of a holder."""
    return next(holder for holder in agreement.holders if holder.name == name)


def is_whole(holding: Holding) -> bool:
    """Whether all its columns are whole numbers."""
    x = holding.x
    return not x.is_floating_point() or bool((x == x.round()).all())


def counted_entries(holding: Holding, *, quota: int | None = None) -> int:
    """Directed entries of its edges; `quota`: of each node no more edges than that count."""
    size = holding.size
    return int(entries_of(holding.edge_index, size, quota=size if quota is None else quota).shape[1])
