"""A whole training of the sealed protocol, with predictions of all nodes, beside the split protocol's.

The same federation is trained twice, each time with the preset `best`: sealed, and split until its patience ends. Both
in this process, or each party in a process of its own over TLS on this machine (`processes`). Seconds are the label
holder's, from the moment when all parties have met to its last record. The floor is the sealed model in the clear.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vfgnn.agreement import DEALER, Agreement
from vfgnn.errors import ConfigError
from vfgnn.lab.local_training import LocalTraining
from vfgnn.lab.processes import Progress
from vfgnn.lab.scenario import Scenario
from vfgnn.lab.simulate import build
from vfgnn.model.ridge_training import train_ridge
from vfgnn.party.folder import read_peak_bytes, read_run_seconds, read_traffic
from vfgnn.records import EpochMetrics, Outcome, Traffic
from vfgnn.sealed.record import record_of
from vfgnn.sealed.sizes import SealedSizes

ProtocolName = Literal["sealed", "split"]
OnStage = Callable[[str], None]


@dataclass(frozen=True)
class SealedBenchmark:
    """What `vfgnn bench sealed` prints and writes. Bytes are those of all links together."""

    dataset: str
    holders: int
    processes: bool
    device: str
    seconds: float
    offline_s: float  # of these, how long the holder that waited longest stood still for the dealer
    online_s: float  # the rest: setup, its own work, and waiting for the other holders
    bytes_setup: int
    bytes_offline: int
    bytes_online: int
    rounds: int
    steps: int
    split_seconds: float
    split_bytes: int
    split_epochs: int  # until its patience ended
    split_test_accuracy: float
    pooled_seconds: float
    test_accuracy: float
    peak_bytes: dict[str, int]  # of every party of the sealed training, where each is a process

    @property
    def bytes(self) -> int:
        """Of the whole sealed training."""
        return self.bytes_setup + self.bytes_offline + self.bytes_online


@dataclass(frozen=True)
class Trained:
    """One finished training."""

    agreement: Agreement
    outcome: Outcome
    traffic: Traffic
    seconds: float
    seen: dict[str, Traffic]  # by every holder
    peak_bytes: dict[str, int]

    @property
    def waited_for_dealer(self) -> float:
        """By the holder that waited longest."""
        return max(traffic.waited_for(DEALER) for traffic in self.seen.values())

    @property
    def bytes(self) -> int:
        """On all links."""
        return sum(link.bytes for link in self.traffic.links.values())


def bench_sealed(
    dataset: str,
    *,
    holders: int,
    processes: bool = False,
    device: str = "cpu",
    data_dir: Path | None = None,
    on_stage: OnStage = lambda stage: None,
) -> SealedBenchmark:
    """Train both, one after the other; only their ratios mean anything on a noisy machine."""
    if processes and device != "cpu":
        raise ConfigError("processes compute on the CPU", expected="--device cpu with --processes", got=device)

    def trained(protocol: ProtocolName) -> tuple[Scenario, Trained]:
        scenario = Scenario.of(dataset, holders=holders, device=device, data_dir=data_dir, protocol=protocol)
        on_stage(f"{protocol}: the parties meet")
        return scenario, (_in_processes if processes else _in_one_process)(scenario, on_stage)

    scenario, sealed = trained("sealed")
    on_stage("the sealed model in the clear")
    began = time.perf_counter()
    train_ridge(scenario.holdings, scenario.labels, scenario.settings)
    pooled = time.perf_counter() - began
    _, split = trained("split")
    sizes = SealedSizes(sealed.agreement, len(scenario.labels.train), len(scenario.labels.val))
    record = record_of(sizes, sealed.traffic)
    return SealedBenchmark(
        dataset=dataset,
        holders=holders,
        processes=processes,
        device=device,
        seconds=sealed.seconds,
        offline_s=sealed.waited_for_dealer,
        online_s=sealed.seconds - sealed.waited_for_dealer,
        bytes_setup=record.bytes["setup"],
        bytes_offline=record.bytes["offline"],
        bytes_online=record.bytes["online"],
        rounds=record.rounds,
        steps=sizes.steps,
        split_seconds=split.seconds,
        split_bytes=split.bytes,
        split_epochs=split.outcome.history[-1].epoch,
        split_test_accuracy=split.outcome.test_accuracy,
        pooled_seconds=pooled,
        test_accuracy=sealed.outcome.test_accuracy,
        peak_bytes=sealed.peak_bytes,
    )


def _in_processes(scenario: Scenario, on_stage: OnStage) -> Trained:
    leader = scenario.names[0]

    def tell(parties: dict[str, Progress]) -> None:
        at = parties[leader]
        on_stage(f"{scenario.settings.protocol}: {at.state}, {at.epoch} of at most {at.of} steps")

    with tempfile.TemporaryDirectory(prefix="vfgnn-bench-") as folder:
        training = LocalTraining.prepare(Path(folder) / "federation", scenario)
        training.train(tell)
        local = training.local
        return Trained(
            agreement=local.file.agreement,
            outcome=local.outcome,
            traffic=local.traffic,
            seconds=read_run_seconds(local.run_folder(leader)),
            seen={name: read_traffic(local.run_folder(name)) for name in scenario.names},
            peak_bytes={name: read_peak_bytes(local.run_folder(name)) for name in local.names},
        )


def _in_one_process(scenario: Scenario, on_stage: OnStage) -> Trained:
    def tell(metrics: EpochMetrics) -> None:
        on_stage(f"{scenario.settings.protocol}: {metrics.epoch} steps")

    parties = build(
        scenario.holdings,
        scenario.labels,
        scenario.settings,
        seed=scenario.seed,
        device=scenario.device,
        on_epoch=tell,
        names=scenario.names,
    )
    began = time.perf_counter()
    outcome = parties.train()
    seconds = time.perf_counter() - began
    seen = {role.channel.party: role.channel.traffic for role in parties.holders}
    return Trained(parties.agreement, outcome, parties.traffic, seconds, seen, peak_bytes={})
