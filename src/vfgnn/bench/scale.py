"""One training epoch against the number of nodes: seconds, memory of every party, bytes; all parties over TLS.

A made-up graph of 10 edges per node, each edge at one of the holders, 32 real-valued columns at each. A tenth of the
nodes train, in batches with sampled neighbours; the joint layer is secure and refreshed in every epoch. An epoch is
what the label holder sees between two of its ends: the refresh over all nodes, then every batch forward and back. The
first one is not counted: it has no refresh, and the parties are still warming up. Processor time is told beside
seconds: it says the same on a machine that does other work too.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import torch

from vfgnn.data.holdings import Holding, Labels
from vfgnn.errors import ConfigError
from vfgnn.files import Patience
from vfgnn.lab.local_files import LocalFederation, write_federation
from vfgnn.lab.processes import LocalProcesses
from vfgnn.party.folder import read_cpu_seconds, read_peak_bytes
from vfgnn.plan.sizes import memory
from vfgnn.settings import Settings
from vfgnn.split.program import training

HOLDERS, COLUMNS, EDGES_PER_NODE, CLASSES = 3, 32, 10, 4
TRAIN, VAL = 0.1, 0.01  # of the nodes
SETTINGS = Settings(
    dim=32,
    gnn="sage_mean",
    layers=2,
    fanout=(10, 10),
    batch_rows=1000,
    epochs=3,
    evaluate_every=4,  # at the end only
    joint_layer="secure",
    accept_h0_leak=True,
)
PATIENCE = Patience(start_s=1800, message_s=3600, away_s=600)  # a machine of two cores has five parties to serve
LARGE_PARTY = 24 * 2**30  # bytes


@dataclass(frozen=True)
class ScalePoint:
    """One size."""

    nodes: int
    edges: int
    train_rows: int
    batches: int
    epoch_s: float
    cpu_s: float  # of all parties together, for one epoch
    begin_s: float  # setup and the first epoch
    bytes_per_epoch: int  # on all links together
    bytes_setup: int
    peak_bytes: dict[str, int]  # of every party
    predicted_bytes: dict[str, int]  # of every party's matrices, as `vfgnn plan` tells

    @property
    def largest_party(self) -> str:
        """The one that needs most memory."""
        return max(self.peak_bytes, key=lambda name: self.peak_bytes[name])


@dataclass(frozen=True)
class Growth:
    """The slope of log y against log (nodes + edges): over all sizes, and between the two largest."""

    over_all: float
    at_the_end: float


@dataclass(frozen=True)
class ScaleBenchmark:
    """What `vfgnn bench scale` prints and writes."""

    settings: Settings
    points: tuple[ScalePoint, ...]
    time_growth: Growth
    cpu_growth: Growth
    memory_growth: Growth  # of the party that needs most
    bytes_per_node: float  # of that party, between the smallest and the largest size
    largest_nodes: int  # that it could take with 24 GiB


def bench_scale(
    nodes: Sequence[int],
    *,
    overrides: dict[str, object] | None = None,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> ScaleBenchmark:
    """Train a few epochs at every size, smallest first."""
    sizes = sorted(set(nodes))
    if len(sizes) < 2 or sizes[0] < 100:
        raise ConfigError("no growth can be told", expected="two sizes or more, of 100 nodes or more", got=str(sizes))
    settings = Settings.model_validate({**SETTINGS.model_dump(), **(overrides or {})})
    points = []
    for size in sizes:
        on_stage(f"{size:,} nodes: making up a graph")
        with tempfile.TemporaryDirectory(prefix="vfgnn-bench-") as folder:
            local = _written(Path(folder), size, settings)
            on_stage(f"{size:,} nodes: training")
            points.append(_measured(local, size, settings))
    return _judged(settings, tuple(points))


def made_up(nodes: int) -> tuple[list[Holding], Labels]:
    """Columns that say something of the class, and edges that say nothing: for costs, not for accuracy."""
    draw = torch.Generator().manual_seed(nodes)
    y, pairs = torch.randint(CLASSES, (nodes,), generator=draw), EDGES_PER_NODE * nodes
    holdings = []
    for holder in range(HOLDERS):
        x = torch.rand(nodes, COLUMNS, generator=draw)
        x[:, holder] += y
        here = pairs // HOLDERS + (holder < pairs % HOLDERS)
        ends = torch.randint(nodes, (2, here), generator=draw)
        holdings.append(Holding(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1)))
    order, train, val = torch.randperm(nodes, generator=draw), int(TRAIN * nodes), math.ceil(VAL * nodes)
    rows = order[:train], order[train : train + val], order[train + val :]
    return holdings, Labels(y=y, train=rows[0], val=rows[1], test=rows[2], classes=CLASSES)


def _written(folder: Path, nodes: int, settings: Settings) -> LocalFederation:
    """The data is on disk when this returns, and no longer in the memory of this process."""
    holdings, labels = made_up(nodes)
    return write_federation(folder, holdings, labels, settings, insecure_seed=0, patience=PATIENCE)


def _measured(local: LocalFederation, nodes: int, settings: Settings) -> ScalePoint:
    with LocalProcesses(local) as running:
        running.wait()
    ticks, train = local.ticks[: settings.epochs], int(TRAIN * nodes)
    return ScalePoint(
        nodes=nodes,
        edges=EDGES_PER_NODE * nodes,
        train_rows=train,
        batches=math.ceil(train / (settings.batch_rows or train)),
        epoch_s=median(after - before for before, after in pairwise(ticks)),
        cpu_s=sum(_cpu_of_an_epoch(local, name) for name in local.names),
        begin_s=ticks[0],
        # One refresh for each epoch, the last of them in the step that only evaluates.
        bytes_per_epoch=local.traffic.bytes_in(*training(local.file.agreement).repeated) // settings.epochs,
        bytes_setup=local.traffic.bytes_in("setup"),
        peak_bytes={name: read_peak_bytes(local.run_folder(name)) for name in local.names},
        predicted_bytes=memory(local.file.agreement),
    )


def _cpu_of_an_epoch(local: LocalFederation, name: str) -> float:
    """The mean of those that are counted; the dealer's are of what it computes ahead meanwhile."""
    used = read_cpu_seconds(local.run_folder(name))[:-1]  # the last step only evaluates
    return (used[-1] - used[0]) / (len(used) - 1)


def _judged(settings: Settings, points: tuple[ScalePoint, ...]) -> ScaleBenchmark:
    last = points[-1]
    name = last.largest_party
    needs = [point.peak_bytes[name] for point in points]
    # Not between neighbouring sizes: the C library keeps freed blocks below 32 MiB for later, larger ones it returns.
    per_node = (needs[-1] - needs[0]) / (points[-1].nodes - points[0].nodes)
    more = (LARGE_PARTY - needs[-1]) / per_node if per_node > 0 else 0.0
    return ScaleBenchmark(
        settings=settings,
        points=points,
        time_growth=_growth(points, [point.epoch_s for point in points]),
        cpu_growth=_growth(points, [point.cpu_s for point in points]),
        memory_growth=_growth(points, needs),
        bytes_per_node=per_node,
        largest_nodes=int(last.nodes + more),
    )


def _growth(points: Sequence[ScalePoint], needs: Sequence[float]) -> Growth:
    size = torch.tensor([point.nodes + point.edges for point in points], dtype=torch.float64).log()
    need = torch.tensor(needs, dtype=torch.float64).log()
    centred = size - size.mean()
    end = (need[-1] - need[-2]) / (size[-1] - size[-2])
    return Growth(float((centred * need).sum() / centred.square().sum()), float(end))
