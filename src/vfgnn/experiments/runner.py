"""Many trainings, one at a time per core, each kept on disk when it is done: a run that is stopped goes on where it
was. What was kept is found again by everything that determines it, so a changed preset is trained anew.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import torch
from torch_geometric.data import Data

from vfgnn import randomness
from vfgnn.data import datasets
from vfgnn.data.holdings import Holding
from vfgnn.data.partition import EdgeSplit, partition
from vfgnn.errors import DataError
from vfgnn.experiments.catalogue import Where
from vfgnn.experiments.held_out import train_held_out
from vfgnn.experiments.splits import redrawn
from vfgnn.lab.federation import split_labels
from vfgnn.lab.secure_gnn import train_secure_gnn
from vfgnn.lab.simulate import IN_ONE_PROCESS, build
from vfgnn.model.central import CentralTraining
from vfgnn.model.ridge_training import train_ridge
from vfgnn.sealed.record import opened_by
from vfgnn.sealed.sizes import SealedSizes
from vfgnn.settings import Settings, make_settings
from vfgnn.version import __version__
from vfgnn.writing import write_whole

FORMAT = 2  # raised when the meaning of a kept result changes, or the default of a setting
SEARCHED_FROM = 1000
"""Partitions from this seed on are for choosing values: nothing of their test nodes is kept."""


class TaskResult(TypedDict):
    """What is kept of one training."""

    val_accuracy: float
    test_accuracy: NotRequired[float]  # not of a partition that values are chosen on
    best_epoch: int
    epochs: int
    opened: NotRequired[dict[str, Any]]  # to the label holder of a sealed training


@dataclass(frozen=True)
class Task:
    """One training, by everything that determines its result."""

    dataset: str
    where: Where
    holders: int
    holder: int | None
    proportions: tuple[float, ...] | None
    seed: int
    settings: str  # canonical JSON of what differs from the defaults: a new setting leaves kept results valid
    edge_split: EdgeSplit = "undirected"
    draw: int | None = None  # of training and validation nodes; None: those that came with the data

    @property
    def key(self) -> str:
        """The name under which the result is kept; what was kept before there was a choice has the first value."""
        determining = asdict(self)
        if self.edge_split == "undirected":
            del determining["edge_split"]
        if self.draw is None:
            del determining["draw"]
        content = json.dumps({"format": FORMAT, **determining}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]


def make_task(
    settings: Settings,
    *,
    dataset: str,
    where: Where,
    seed: int,
    holders: int = 2,
    holder: int | None = None,
    proportions: tuple[float, ...] | None = None,
    layer_rate: float | None = None,
    edge_split: EdgeSplit = "undirected",
) -> Task:
    """A task; `needed` rows and the joint layer in the clear train the same model with less work (both tested).

    Pooled data are the same however edges were split, so both readings share that training.
    """
    if where == "pooled":
        edge_split = "undirected"
    values = settings.model_dump(mode="json", exclude_defaults=True) | IN_ONE_PROCESS
    if not settings.privacy.noises_rows:  # what is noised is noised as often as it is published
        values.pop("publish", None)
    if layer_rate is not None:
        values["layer_rate"] = layer_rate
    kept = json.dumps(values, sort_keys=True)
    return Task(dataset, where, holders, holder, proportions, seed, kept, edge_split)


@lru_cache(maxsize=4)
def _data(dataset: str, data_dir: Path | None) -> Data:
    return datasets.load(dataset, data_dir)


def run_task(task: Task, data_dir: Path | None = None) -> TaskResult:
    """Train once, in this process, on one core."""
    torch.set_num_threads(1)
    data = _data(task.dataset, data_dir)
    if task.draw is not None:
        data = redrawn(data, task.draw)
    values, labels, opened = json.loads(task.settings), split_labels(data), None
    layer_rate = values.pop("layer_rate", 0.0)  # SecureGNN's
    settings, holdings = make_settings(values, where="task"), _holdings(task, data)
    if task.where == "secure_gnn":
        outcome = train_secure_gnn(holdings, labels, settings, seed=task.seed, layer_rate=layer_rate)
    elif task.where in ("transductive", "inductive"):
        inductive = task.where == "inductive"
        outcome = train_held_out(holdings, labels, settings, seed=task.seed, inductive=inductive)
    elif task.where == "federated" or settings.batch_rows is not None:  # one holder's batches: a federation of one
        federation = build(holdings, labels, settings, seed=task.seed)
        outcome = federation.train()
        if federation.agreement.sealed:
            opened = opened_by(SealedSizes(federation.agreement, len(labels.train), len(labels.val)))
    elif settings.protocol == "sealed":
        outcome = train_ridge(holdings, labels, settings)
    else:
        outcome = CentralTraining(holdings[0], labels, settings, seed=randomness.insecure_seed(task.seed)).train()
    result = TaskResult(
        val_accuracy=outcome.val_accuracy, best_epoch=outcome.best_epoch, epochs=outcome.history[-1].epoch
    )
    if task.seed < SEARCHED_FROM:
        result["test_accuracy"] = outcome.test_accuracy
    if opened is not None:
        result["opened"] = asdict(opened)
    return result


def _holdings(task: Task, data: Data) -> list[Holding]:
    """What is trained on: everybody's part, one holder's, or everything in one place."""
    if task.where == "pooled":
        return [Holding(x=data.x, edge_index=data.edge_index)]
    parts = partition(
        data.x,
        data.edge_index,
        holders=task.holders,
        seed=task.seed,
        proportions=task.proportions,
        edge_split=task.edge_split,
    )
    return parts if task.holder is None else [parts[task.holder]]


@dataclass(frozen=True)
class Effort:
    """When and with what a training was done, and what it took: two trainings at a time, each on one core."""

    finished: str
    version: str
    seconds: float
    cpu_seconds: float


def run_measured(task: Task, data_dir: Path | None = None) -> tuple[TaskResult, Effort]:
    """Train once and say what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = run_task(task, data_dir)
    seconds, cpu_seconds = round(time.perf_counter() - wall, 2), round(time.process_time() - cpu, 2)
    return result, Effort(datetime.now(UTC).isoformat(timespec="seconds"), __version__, seconds, cpu_seconds)


class Store:
    """A folder with one small JSON file per finished task; `record`: a file with many that others have finished."""

    def __init__(self, folder: Path, record: Path | None = None) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._recorded = {} if record is None else _read_record(record)

    def get(self, task: Task) -> TaskResult | None:
        """The kept result, if there is one."""
        kept = self._kept(task.key)
        return None if kept is None else kept["result"]

    def effort(self, task: Task) -> Effort | None:
        """What it took, if that was kept."""
        effort = (self._kept(task.key) or {}).get("effort")
        return None if effort is None else Effort(**effort)

    def put(self, task: Task, result: TaskResult, effort: Effort) -> None:
        """Keep a result; a file is either whole or not there."""
        kept = {"task": asdict(task), "result": result, "effort": asdict(effort)}
        write_whole(self._folder / f"{task.key}.json", json.dumps(kept, indent=1), for_others=True)

    def write_record(self, path: Path) -> int:
        """Everything that is known as one file, a line for each training; how many there are."""
        files = {file.stem: json.loads(file.read_text()) for file in self._folder.glob("*.json")}
        trainings = {key: kept for key, kept in files.items() if "task" in kept}  # times are another machine's
        everything = self._recorded | trainings
        lines = [f"{json.dumps(key)}: {json.dumps(kept)}" for key, kept in sorted(everything.items())]
        write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n", for_others=True)
        return len(lines)

    def _kept(self, key: str) -> dict[str, Any] | None:
        path = self._folder / f"{key}.json"
        if not path.is_file():
            return self._recorded.get(key)
        kept: dict[str, Any] = json.loads(path.read_text())
        return kept


def _read_record(path: Path) -> dict[str, dict[str, Any]]:
    expected = "a file of `vfgnn reproduce record`"
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise DataError("no record of trainings", expected=expected, got=error.strerror, where=str(path)) from None
    except ValueError:
        content = None
    if not isinstance(content, dict) or not all(isinstance(one, dict) and "result" in one for one in content.values()):
        raise DataError("not a record of trainings", expected=expected, where=str(path))
    return content


def run_all(
    tasks: Sequence[Task],
    store: Store,
    *,
    data_dir: Path | None = None,
    workers: int | None = None,
    on_done: Callable[[Task, TaskResult], None] | None = None,
) -> dict[Task, TaskResult]:
    """All results, those already kept at once, the others trained in parallel."""
    results: dict[Task, TaskResult] = {}

    def done(task: Task, result: TaskResult) -> None:
        results[task] = result
        if on_done is not None:
            on_done(task, result)

    missing = []
    for task in dict.fromkeys(tasks):
        kept = store.get(task)
        if kept is None:
            missing.append(task)
        else:
            done(task, kept)
    if not missing:
        return results
    with ProcessPoolExecutor(workers or os.cpu_count() or 1, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[tuple[TaskResult, Effort]], Task] = {
            pool.submit(run_measured, task, data_dir): task for task in missing
        }
        try:
            for future in as_completed(waiting):
                result, effort = future.result()
                store.put(waiting[future], result, effort)
                done(waiting[future], result)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results
