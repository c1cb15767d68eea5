"""The first thing of a run on tables: which nodes there are (alignment/), kept in the party's own run folder.

A run that goes on after a kill, and a prediction with its model, use the nodes that the run began with; tables that no
longer have them in the same rows are refused.
"""

from pathlib import Path
from typing import Any

import torch

from vfgnn.agreement import DEALER, SERVER
from vfgnn.channel import Channel
from vfgnn.errors import CheckpointRefused, ConfigError, DataError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.party.own_data import Fitted, OwnData
from vfgnn.party.programs import alignment_of, plan_of
from vfgnn.tensor_file import read_tensors, write_tensors

KEPT = "alignment.safetensors"
WHAT, HINT = "the list of this run's nodes", "restore the file, or begin a new run with --fresh at all parties"


def align(file: FederationFile, channel: Channel, data: OwnData) -> tuple[int, torch.Tensor]:
    """This party's part: the number of nodes and, at a holder, the rows of its own table in the common order."""
    from vfgnn.alignment.align import align as follow

    holds = channel.party not in (SERVER, DEALER)
    if holds and data.tables is None:
        raise ConfigError("a holder without tables", expected="[data] nodes = ... in party.toml")
    ids = None if data.tables is None else data.tables.nodes.ids
    aligned = follow(channel, plan_of(file), ids)
    return aligned.nodes, aligned.rows


def told_share(data: OwnData, nodes: int) -> str:
    """For this holder: how many of its own ids all holders have."""
    own = 0 if data.tables is None else len(data.tables.nodes.ids)
    return f"{nodes:,} of your {own:,} ids ({100 * nodes / max(1, own):.0f} %)"


def refuse_few(party: PartyFile, data: OwnData, nodes: int) -> None:
    """Too few common ids to be meant so. Reveals: to the others, that it is so; they know the number of common ids."""
    if data.tables is None or nodes >= party.min_common * len(data.tables.nodes.ids):
        return
    from vfgnn.data.ids import kind_of_ids

    raise DataError(
        f"too few ids of {party.name} are common to all holders",
        expected=f"at least {100 * party.min_common:g} % of them (min_common in party.toml)",
        got=told_share(data, nodes),
        where=data.tables.nodes.file,
        hint=f"yours are {kind_of_ids(data.tables.nodes.ids)}: are they written so at all holders? "
        "If so few are common, lower min_common",
    )


def keep(folder: Path, run: str, nodes: int, rows: torch.Tensor, data: OwnData) -> None:
    """Write down which nodes this run has."""
    about: dict[str, object] = {"run": run, "nodes": nodes}
    if data.tables is not None:
        tables = data.tables
        about |= {"order": tables.digest(rows), "table_rows": len(tables.nodes.ids)}
        about |= {"features": tables.feature_digest(rows)}
        about |= {} if tables.columns is None else {"columns": tables.columns.to_json()}
    write_tensors(folder / KEPT, {"rows": rows}, about)


def fitted(folder: Path) -> Fitted:
    """What this holder made of its columns when the run began; predictions make the same of them."""
    about, _ = _read(folder / KEPT)
    columns = about.get("columns")
    if columns is None:
        return Fitted(about.get("table_rows"), None)
    from vfgnn.data.feature_maps import FeatureMap

    try:
        return Fitted(about.get("table_rows"), FeatureMap.from_json(columns))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _unusable(folder / KEPT) from None


def _read(path: Path) -> tuple[dict[str, Any], torch.Tensor]:
    about, tensors = read_tensors(path, WHAT, CheckpointRefused, names=("rows",), hint=HINT)
    rows, nodes, table_rows = tensors["rows"], about.get("nodes"), about.get("table_rows")
    counted = isinstance(nodes, int) and (table_rows is None or isinstance(table_rows, int))
    if not counted or rows.dtype != torch.int64 or rows.dim() != 1 or bool((rows < 0).any()):
        raise _unusable(path)
    return about, rows


def _unusable(path: Path) -> CheckpointRefused:
    return CheckpointRefused(f"{WHAT} cannot be used", where=str(path), hint=HINT)


def kept(folder: Path, run: str | None, data: OwnData) -> tuple[int, torch.Tensor]:
    """The nodes that the run began with, found again in this holder's tables."""
    path = folder / KEPT
    about, rows = _read(path)
    if about.get("run") != run:
        raise CheckpointRefused(
            "the nodes of another run", expected=str(run), got=str(about.get("run")), where=str(path)
        )
    tables = data.tables
    if tables is not None:
        there = not len(rows) or int(rows.max()) < len(tables.nodes.ids)
        if not there or tables.digest(rows) != about.get("order"):
            raise CheckpointRefused(
                "the tables have changed since this run began",
                expected="the same ids in the same rows, new ones after them, the same columns and the same classes",
                where=str(path),
                hint="restore the table, or begin a new run with --fresh at all parties",
            )
    return int(about["nodes"]), rows


def refuse_changed(folder: Path, data: OwnData, rows: torch.Tensor) -> None:
    """At a holder, where the shared weights are computed again: W = a W_0 - X^T Q needs the X of training."""
    if data.tables is None:
        return
    about, _ = _read(folder / KEPT)
    if about.get("features") != data.tables.feature_digest(rows):
        raise CheckpointRefused(
            "features of trained nodes have changed since this run began",
            expected="the values of training; new ids may be added",
            where=str(folder / KEPT),
            hint="the shared weights are made of them: restore the values, or train again",
        )


def over(file: FederationFile, data: OwnData, rows: torch.Tensor, *, trained: bool = False) -> OwnData:
    """A holder's data over the common nodes, for training or for a trained model; everyone else's nothing."""
    if data.tables is None:
        return data
    return data.tables.aligned(rows, local_neighbours=alignment_of(file).keep_local_neighbours, trained=trained)
