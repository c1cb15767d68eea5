"""The demo: a benchmark graph split over holders, a federation of processes, and the models to compare it with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from vfgnn.privacy.ledger import Release, read_releases
from vfgnn.records import EpochMetrics
from vfgnn.run.loopback import LocalFederation, fresh_folder, write_federation
from vfgnn.run.processes import LocalProcesses, Progress
from vfgnn.run.scenario import Scenario, SimulationResult

SEED = 0  # of the partition, and of the models to compare with; the parties draw their own secrets


@dataclass(frozen=True)
class Demo:
    """A federation whose files are written and whose processes can be started."""

    scenario: Scenario
    local: LocalFederation

    @staticmethod
    def prepare(
        folder: Path,
        dataset: str,
        *,
        holders: int,
        preset: str,
        overrides: Mapping[str, object],
        data_dir: Path | None,
    ) -> "Demo":
        """Split the graph and write every party's folder."""
        scenario = Scenario.of(
            dataset, holders=holders, preset=preset, seed=SEED, overrides=overrides, data_dir=data_dir
        )
        fresh_folder(folder)
        return Demo(scenario, write_federation(folder, scenario.holdings, scenario.labels, scenario.settings))

    def train(self, on_progress: Callable[[dict[str, Progress]], None]) -> None:
        """Start all parties and wait for their end."""
        with LocalProcesses(self.local) as running:
            running.wait(on_progress)

    def compare(self, on_epoch: Callable[[str, EpochMetrics], None]) -> SimulationResult:
        """What the label holder wrote down, beside each holder alone and everything pooled."""
        isolated, joint = self.scenario.compare(Scenario.hearing(on_epoch))
        ticks = self.local.ticks
        return self.scenario.result(
            self.local.outcome,
            self.local.file.federation("demo"),
            self.local.traffic,
            isolated=isolated,
            joint=joint,
            seconds=ticks[-1] - ticks[0],
            logits=torch.empty(0),
            spent=self._spent(),
        )

    def _spent(self) -> list[Release]:
        """By the label holder's own ledger."""
        ledger = self.local.folder / self.local.file.label_holder / "privacy_ledger.jsonl"
        return read_releases(ledger) if ledger.is_file() else []
