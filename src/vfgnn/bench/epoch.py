"""Seconds of one training step: the federation beside the pooled model in plain PyG.

A step is forward, backward and update, without evaluation; the median of 20, all cores. `frozen`: the joint layer is no
longer trained. `central`: full batch, with the faster of dense and sparse features. The federation is in one process,
or each party in a process of its own over TLS on this machine (`processes`), with the preset's own joint layer.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from vfgnn import randomness
from vfgnn.data import datasets
from vfgnn.data.holdings import Holding, Labels
from vfgnn.data.partition import partition
from vfgnn.lab.federation import split_labels
from vfgnn.lab.local_files import write_federation
from vfgnn.lab.processes import LocalProcesses
from vfgnn.lab.simulate import IN_ONE_PROCESS, build
from vfgnn.model.central import CentralTraining
from vfgnn.settings import Preset, Settings
from vfgnn.split.program import training

STEPS, WARM_UP = 20, 5


@dataclass(frozen=True)
class EpochBenchmark:
    """What `vfgnn bench epoch` prints and writes."""

    dataset: str
    holders: int
    preset: str
    processes: bool
    joint_layer: str
    central_s: float
    federated_s: float
    ratio: float
    frozen_s: float
    frozen_ratio: float
    bytes_per_epoch: int
    frozen_bytes_per_epoch: int


def bench_epoch(
    dataset: str,
    *,
    preset: str,
    holders: int,
    overrides: dict[str, object],
    data_dir: Path | None,
    processes: bool = False,
) -> EpochBenchmark:
    """Measure all three in one run; only their ratios mean anything on a noisy machine."""
    given = overrides if processes else {**IN_ONE_PROCESS, **overrides}
    settings = Preset(preset).settings(dataset=dataset, overrides=given)
    settings = settings.model_copy(
        update={"epochs": STEPS + WARM_UP, "evaluate_every": STEPS + WARM_UP + 1, "joint_layer_epochs": None}
    )
    frozen_settings = settings.model_copy(update={"joint_layer_epochs": 0})
    data = datasets.load(dataset, data_dir)
    labels, whole = split_labels(data), Holding(x=data.x, edge_index=data.edge_index)
    holdings = partition(whole.x, whole.edge_index, holders=holders, seed=0)
    central = min(_central(whole, labels, settings, sparse=sparse) for sparse in (False, True))
    measure = _in_processes if processes else _in_one_process
    federated, size = measure(holdings, labels, settings)
    frozen, frozen_size = measure(holdings, labels, frozen_settings)
    return EpochBenchmark(
        dataset=dataset,
        holders=holders,
        preset=preset,
        processes=processes,
        joint_layer=settings.joint_layer,
        central_s=central,
        federated_s=federated,
        ratio=federated / central,
        frozen_s=frozen,
        frozen_ratio=frozen / central,
        bytes_per_epoch=size,
        frozen_bytes_per_epoch=frozen_size,
    )


def _central(whole: Holding, labels: Labels, settings: Settings, *, sparse: bool) -> float:
    plain = settings.model_copy(update={"publish": "all"})
    pooled = CentralTraining(whole, labels, plain, seed=randomness.insecure_seed(0), sparse=sparse)
    ticks = [time.perf_counter()]
    for _ in range(STEPS + WARM_UP):
        pooled.learn(pooled.model.h0())
        ticks.append(time.perf_counter())
    return _median_step(ticks)


def _in_processes(holdings: list[Holding], labels: Labels, settings: Settings) -> tuple[float, int]:
    """The same over real connections; the bytes are those that the senders counted."""
    with tempfile.TemporaryDirectory(prefix="vfgnn-bench-") as folder:
        local = write_federation(Path(folder), holdings, labels, settings, insecure_seed=0)
        with LocalProcesses(local) as running:
            running.wait()
        # The last step only evaluates: its few bytes are counted with those of the training steps.
        phases = training(local.file.agreement).repeated
        size = local.traffic.bytes_in(*phases) // settings.epochs
        return _median_step(local.ticks[:-1]), size


def _in_one_process(holdings: list[Holding], labels: Labels, settings: Settings) -> tuple[float, int]:
    """Seconds between two training steps at the label holder, and the bytes of one step on all links."""
    ticks: list[float] = []
    parties = build(holdings, labels, settings, seed=0, on_epoch=lambda _: ticks.append(time.perf_counter()))
    parties.train()
    size = parties.traffic.bytes_in(*parties.program.repeated) // settings.epochs
    return _median_step(ticks[:-1]), size  # the last tick is the evaluation at the end


def _median_step(ticks: list[float]) -> float:
    return median(after - before for before, after in zip(ticks[WARM_UP - 1 :], ticks[WARM_UP:], strict=False))
