"""`vfgnn.train` and `vfgnn.predict`: a federation of real processes on this machine, from Python and for the demo.

Each party is a process with its own key, folder and secrets, started with the `vfgnn run` and `vfgnn predict` that
organisations call on their own hosts; TLS 1.3 between them. This process has made all keys and has all data, so it is
not one of the parties: it shows that the real thing works, and what it costs.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import torch
from torch_geometric.data import Data

from vfgnn.lab import federation as notebook
from vfgnn.lab.local_files import LocalFederation, fresh_folder, write_federation
from vfgnn.lab.processes import LocalProcesses, Progress
from vfgnn.lab.scenario import Scenario, SimulationResult
from vfgnn.privacy.ledger import Release, read_releases
from vfgnn.records import EpochMetrics

PREDICT = (sys.executable, "-m", "vfgnn", "predict")
OnProgress = Callable[[dict[str, Progress]], None]


@dataclass(frozen=True, kw_only=True)
class TrainingResult(SimulationResult):
    """What the label holder of a trained federation wrote down, and where every party's own files are."""

    local: LocalFederation

    @property
    def folder(self) -> Path:
        """The public federation.toml, and a folder for each party."""
        return self.local.folder

    @property
    def folders(self) -> dict[str, Path]:
        """Each party's own: its key, its party.toml, its data, and `run` with its records and checkpoints."""
        return {name: self.local.folder / name for name in self.local.names}


@dataclass(frozen=True)
class LocalTraining:
    """A federation whose files are written and whose processes can be started."""

    scenario: Scenario
    local: LocalFederation

    @staticmethod
    def prepare(folder: Path, scenario: Scenario, *, insecure_seed: int | None = None) -> "LocalTraining":
        """Write every party's folder."""
        local = write_federation(
            fresh_folder(folder),
            scenario.holdings,
            scenario.labels,
            scenario.settings,
            insecure_seed=insecure_seed,
            holders=scenario.names,
            code=scenario.code,
        )
        return LocalTraining(scenario, local)

    def train(self, on_progress: OnProgress | None = None) -> None:
        """Start all parties and wait for their end."""
        with LocalProcesses(self.local) as running:
            running.wait(on_progress)

    def result(
        self, *, compare: bool = True, on_epoch: Callable[[str, EpochMetrics], None] | None = None
    ) -> TrainingResult:
        """What the label holder wrote down; with `compare` beside each holder alone and everything pooled."""
        isolated, joint = self.scenario.compare(Scenario.hearing(on_epoch)) if compare else ({}, None)
        ticks = self.local.ticks
        found = self.scenario.result(
            self.local.outcome,
            self.local.file.agreement,
            self.local.traffic,
            isolated=isolated,
            joint=joint,
            seconds=ticks[-1] - ticks[0],
            logits=torch.empty(0),  # at the label holder: `predict` asks for them
            spent=self._spent(),
        )
        return TrainingResult(**vars(found), local=self.local)

    def _spent(self) -> list[Release]:
        """By the label holder's own ledger."""
        ledger = self.local.folder / self.local.file.label_holder / "privacy_ledger.jsonl"
        return read_releases(ledger) if ledger.is_file() else []


def train(
    data: Data | str | notebook.Federation,
    *,
    folder: Path | str,
    compare: bool = False,
    insecure_seed: int | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,  # noqa: ANN401 (`Scenario.of` names and checks them)
) -> TrainingResult:
    """Write a federation's files to `folder`, train it with a process for each party, and wait for the end.

    `options` are those of `simulate`: holders, preset, seed, gnn, combine, mechanism, proportions, edge_proportions,
    edge_split, data_dir, and any setting by name. Code of your own must be in a module that other processes can
    import. Parties draw their own secrets, so figures differ a little from run to run; `seed` is that of the partition.
    With `insecure_seed` they can be had again, and nothing is secret.
    """
    training = LocalTraining.prepare(Path(folder), Scenario.of(data, **options), insecure_seed=insecure_seed)
    training.train(on_progress)
    return training.result(compare=compare)


def predict(trained: SimulationResult | Path | str) -> Data:
    """The label holder's answer for every node: `logits` (normalised), `probability` [nodes, classes] and `y_pred`.

    Where a sealed training opened classes alone, there is `y_pred` and nothing else.
    Of a simulation as it ended. Of what `train` left (its result, or its folder) all parties take part once more, as
    processes, with the weights of the finished run; rows that were noised are sent again as they were.
    """
    if isinstance(trained, SimulationResult) and not isinstance(trained, TrainingResult):
        if trained.sealed is not None and trained.sealed.opened.what == "classes":
            return Data(y_pred=trained.logits.argmax(dim=1), num_nodes=len(trained.logits))
        return _answer(trained.logits.double().softmax(dim=1))
    local = trained.local if isinstance(trained, TrainingResult) else LocalFederation.load(Path(str(trained)))
    leader = local.file.label_holder
    out = local.folder / leader / "predictions.parquet"
    with LocalProcesses(local, command=PREDICT, words={leader: ("--out", str(out))}) as running:
        running.wait()
    table = pyarrow.parquet.read_table(out)
    columns = [table[name].to_numpy() for name in table.column_names if name.startswith("probability of ")]
    if not columns:
        return Data(y_pred=torch.tensor([int(name) for name in table["class"].to_pylist()]), num_nodes=len(table))
    return _answer(torch.from_numpy(np.stack(columns, axis=1)))


def _answer(probability: torch.Tensor) -> Data:
    return Data(
        logits=probability.log(), probability=probability, y_pred=probability.argmax(dim=1), num_nodes=len(probability)
    )
