"""What a batched search has to train: plain values in, plain values out.

Runs wherever the search runs; nothing here needs more than Python. A job is one training of one point on one
partition; jobs of equal shape are trained as one computation (`grouped`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Row = Literal["concat", "mean", "regression", "confidence", "isolated", "pooled"]
Value = float | int | str | None
FEDERATED = ("concat", "mean", "regression", "confidence")


@dataclass(frozen=True)
class Job:
    """One training. `values`: the settings by name, all that a point needs (search.py makes them)."""

    dataset: str
    reading: str  # how edges are split: undirected or directed
    row: Row
    holder: int | None  # isolated rows: whose data
    seed: int  # of the partition, and of the initialisation
    point: int  # its number in the search's list
    values: Mapping[str, Value]

    @property
    def key(self) -> str:
        """The name under which the result is kept; values that change are another job."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def place(self) -> str:
        """Whose data it trains on: jobs of one place have the same matrices."""
        if self.row in FEDERATED:
            return "federated"
        return "pooled" if self.row == "pooled" else f"holder {self.holder}"

    @property
    def shape(self) -> tuple[Value, ...]:
        """What jobs must have in common to be one computation."""
        values = self.values
        model = values["gnn"], values["layers"], values["dim"], values["hidden_layers"], values["epochs"]
        return self.dataset, self.reading, self.place, self.seed, *model


@dataclass(frozen=True)
class Curve:
    """What is known of a training: the validation accuracies of its epochs, and how large h0 became."""

    job: Job
    accuracies: tuple[float, ...]  # after 0, 1, ... steps
    largest_h0: float

    def best(self, patience: int | None) -> tuple[float, int]:
        """The highest accuracy and its epoch, as `model.epoch_choice` finds them; an untrained model does not count."""
        best, at = -1.0, 0
        for epoch, reached in enumerate(self.accuracies):
            if epoch == 0:
                continue
            if reached > best:
                best, at = reached, epoch
            if patience is not None and epoch - at >= patience:
                break
        return best, at

    def to_line(self, patiences: Sequence[int | None]) -> str:
        """One line of JSON: validation figures and nothing else."""
        found = dict[str, list[float]]()
        for patience in patiences:
            reached, epoch = self.best(patience)
            found["none" if patience is None else str(patience)] = [round(reached, 6), epoch]
        return json.dumps({"job": asdict(self.job), "val": found, "largest_h0": round(self.largest_h0, 3)})


def grouped(jobs: Iterable[Job], most: int) -> list[list[Job]]:
    """Jobs of equal shape together, at most `most` of them, in the order of the first of each."""
    shapes: dict[tuple[Value, ...], list[Job]] = {}
    for job in jobs:
        shapes.setdefault(job.shape, []).append(job)
    return [members[at : at + most] for members in shapes.values() for at in range(0, len(members), most)]


def read_jobs(path: Path) -> list[Job]:
    """From a file with one job per line."""
    return [Job(**json.loads(line)) for line in path.read_text().splitlines()]


def write_jobs(path: Path, jobs: Iterable[Job]) -> None:
    """One line for each."""
    path.write_text("".join(json.dumps(asdict(job)) + "\n" for job in jobs))


def kept_keys(path: Path) -> set[str]:
    """The jobs that a file of results has; a line that was cut off is trained again."""
    keys = set[str]()
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            keys.add(Job(**json.loads(line)["job"]).key)
        except ValueError:
            continue
    return keys
