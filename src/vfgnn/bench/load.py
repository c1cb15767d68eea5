"""Loading tables and finding the common nodes: seconds and memory at the size of a large company.

Tables are made up and written first (not counted); then each holder reads its own, and all align them in this process:
by tokens with the server, or two holders by PSI.
"""

import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch

from vfgnn.agreement import SERVER
from vfgnn.alignment.align import align
from vfgnn.alignment.order import Aligned
from vfgnn.alignment.program import AlignmentPlan
from vfgnn.data.holdings import Holding
from vfgnn.data.partition import holder_names
from vfgnn.data.tables import Columns, EdgeTable, NodeTable, holding_of, read_edges, read_nodes
from vfgnn.transport.memory import InMemoryNetwork

SHARED = 0.9  # of each holder's ids, known to all


@dataclass(frozen=True)
class LoadBenchmark:
    """What `vfgnn bench load` prints and writes."""

    nodes: int
    columns: int
    edges: int
    holders: int
    method: str
    common: int
    read_s: float
    align_s: float
    order_s: float
    total_s: float
    peak_bytes: int  # of this process, which is all holders and the server


def bench_load(
    *,
    nodes: int,
    columns: int,
    edges: int,
    holders: int,
    method: str = "tokens",
    on_stage: Callable[[str], None] = lambda stage: None,
) -> LoadBenchmark:
    """Read, align and bring into the common order."""
    with tempfile.TemporaryDirectory() as folder:
        names = holder_names(holders)
        for number, name in enumerate(names):
            on_stage(f"making up the tables of {name}")
            _write(Path(folder) / name, nodes, columns, edges, number)
        ticks, began = [], time.perf_counter()
        read: dict[str, tuple[NodeTable, EdgeTable | None]] = {}
        for name in names:
            on_stage(f"{name} reads its tables")
            read[name] = _read(Path(folder) / name, with_edges=edges > 0)
        ticks.append(time.perf_counter())
        on_stage(f"aligning by {method}")
        rows = _align(method, {name: tables[0].ids for name, tables in read.items()}, nodes)
        ticks.append(time.perf_counter())
        on_stage("into the common order")
        holdings: list[Holding] = [holding_of(*read.pop(name), rows[name]) for name in names]
        ticks.append(time.perf_counter())
    return LoadBenchmark(
        nodes=nodes,
        columns=columns,
        edges=edges,
        holders=holders,
        method=method,
        common=holdings[0].nodes,
        read_s=ticks[0] - began,
        align_s=ticks[1] - ticks[0],
        order_s=ticks[2] - ticks[1],
        total_s=ticks[2] - began,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def _write(folder: Path, nodes: int, columns: int, edges: int, number: int) -> None:
    """A holder's tables: the first `SHARED` ids are everybody's, the others its own; rows in an order of its own."""
    draw = np.random.default_rng(number)
    shared = int(SHARED * nodes)
    numbers = np.concatenate([np.arange(shared), nodes * (number + 1) + np.arange(shared, nodes)])
    ids = pa.array(10**9 + draw.permutation(numbers))
    folder.mkdir()
    features = {f"x{i}": draw.normal(size=nodes) for i in range(columns)}
    pyarrow.parquet.write_table(pa.table({"id": ids, **features}), folder / "nodes.parquet")
    if edges:
        ends = {end: ids.take(pa.array(draw.integers(nodes, size=edges))) for end in ("source", "target")}
        pyarrow.parquet.write_table(pa.table(ends), folder / "edges.parquet")


def _read(folder: Path, *, with_edges: bool) -> tuple[NodeTable, EdgeTable | None]:
    columns = Columns()
    nodes = read_nodes(folder / "nodes.parquet", columns)
    return nodes, read_edges(folder / "edges.parquet", columns, nodes) if with_edges else None


def _align(method: str, ids: dict[str, pa.Array], most: int) -> dict[str, torch.Tensor]:
    network, found, names = InMemoryNetwork(), dict[str, Aligned](), tuple(ids)
    plan = AlignmentPlan(method, names, names[0], (SERVER, *names[1:]), most)

    def follow(name: str) -> None:
        found[name] = align(network.channel(name), plan, ids.get(name))

    network.run({name: partial(follow, name) for name in (*names, SERVER)})
    return {name: found[name].rows for name in names}
