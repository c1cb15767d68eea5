"""Which points a search prefers: by mean validation accuracy over partitions, and over holders of isolated rows.

Runs wherever the search runs. The best few of each row are judged once more on further partitions (`finals`): the best
of many points on two partitions owes some of that to chance.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vfgnn.experiments.batched.jobs import Job

H0_BOUND = 2.0**11  # beyond it the joint layer ends the run (h0_bound.py)
Search = tuple[str, str, str]  # data set, reading, row


@dataclass(frozen=True)
class Result:
    """One line of a file of results."""

    job: Job
    accuracy: float
    epoch: int
    largest_h0: float

    @property
    def search(self) -> Search:
        """Among which it is compared."""
        return self.job.dataset, self.job.reading, self.job.row


def read_results(path: Path, patience: int | None) -> list[Result]:
    """With the epoch that training with this patience would have chosen."""
    name, found = "none" if patience is None else str(patience), list[Result]()
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            kept = json.loads(line)
            accuracy, epoch = kept["val"][name]
            found.append(Result(Job(**kept["job"]), accuracy, epoch, kept["largest_h0"]))
        except ValueError:  # a line that was cut off
            continue
    return found


def by_point(results: Iterable[Result]) -> dict[Search, dict[int, list[Result]]]:
    """The trainings of each point, in the order of their seeds."""
    found: dict[Search, dict[int, list[Result]]] = {}
    for one in sorted(results, key=lambda result: (result.job.seed, result.job.holder or 0)):
        found.setdefault(one.search, {}).setdefault(one.job.point, []).append(one)
    return found


def score(trainings: Sequence[Result]) -> float:
    """Of one point; 0 if it would not run to the end."""
    if not all(one.largest_h0 < H0_BOUND for one in trainings):
        return 0.0
    return sum(one.accuracy for one in trainings) / len(trainings)


def ranked(points: dict[int, list[Result]]) -> list[int]:
    """The best first: those judged on most partitions, and among them by score."""
    return sorted(points, key=lambda number: (-len(points[number]), -score(points[number]), number))


def settled(
    points: dict[int, list[Result]], *, first: Sequence[int], further: Sequence[int], least: int
) -> dict[int, list[Result]]:
    """What a choice may go by, of a search that ended early as of a whole one.

    Only points with all trainings on the `first` seeds; their further ones only where they have all of them too, and
    where at least `least` points of the row do: a few that happened to be judged once more must not win by that alone.
    """
    found = {number: _of_seeds(trainings, first) for number, trainings in points.items()}
    whole = max((len(trainings) for trainings in found.values()), default=0)
    found = {number: trainings for number, trainings in found.items() if len(trainings) == whole}
    more = {number: _of_seeds(points[number], further) for number in found}
    again = [number for number in more if len(more[number]) * len(first) == whole * len(further)]
    if len(again) < least:
        return found
    return found | {number: found[number] + more[number] for number in again}


def _of_seeds(trainings: Sequence[Result], seeds: Sequence[int]) -> list[Result]:
    return [one for one in trainings if one.job.seed in seeds]


def finals(results: Iterable[Result], *, first: Sequence[int], further: Sequence[int], count: int) -> list[Job]:
    """Jobs for the best points of each row, judged on the `first` seeds, on `further` ones."""
    jobs = list[Job]()
    for points in by_point(result for result in results if result.job.seed in first).values():
        for number in ranked(points)[:count]:
            once = {one.job.holder: one.job for one in points[number]}
            jobs += [replace(job, seed=seed) for seed in further for job in once.values()]
    return jobs
