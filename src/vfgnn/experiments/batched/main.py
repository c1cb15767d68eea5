"""Trains the jobs of a folder: `python -m vfgnn.experiments.batched.main --data FOLDER --jobs NAME --out FILE`.

Needs Python, numpy and torch, so that it runs on a machine that has no more (PYTHONPATH=src). A run that is stopped
goes on where it was: what FILE has is not trained again.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from vfgnn.experiments.batched.jobs import Curve, Job, grouped, kept_keys, read_jobs
from vfgnn.experiments.batched.ranking import finals, read_results
from vfgnn.experiments.batched.surroundings import Partition, place_of
from vfgnn.experiments.batched.training import train

PATIENCES = (60, 100, None)
MOST = 96


@dataclass(frozen=True)
class Finals:
    """The best `count` points of each row on the `first` seeds are judged once more on `further` ones."""

    first: Sequence[int]
    further: Sequence[int]
    count: int
    patience: int | None

    def jobs(self, out: Path) -> list[Job]:
        """From what the first round found."""
        results = read_results(out, self.patience)
        return finals(results, first=self.first, further=self.further, count=self.count)


def missing(jobs: Sequence[Job], out: Path) -> list[Job]:
    """Those that `out` does not have."""
    known = kept_keys(out)
    return [job for job in jobs if job.key not in known]


def train_all(
    jobs: Sequence[Job],
    folder: Path,
    out: Path,
    device: torch.device,
    *,
    most: int = MOST,
    until: float | None = None,
    on_group: Callable[[list[Curve], float], None] | None = None,
) -> int:
    """Group by group; what `out` has is not trained again. How many are left at the time `until` (`time.monotonic`)."""
    torch.backends.cuda.matmul.allow_tf32 = False
    groups = grouped(missing(jobs, out), most)
    for i, group in enumerate(groups):
        if until is not None and time.monotonic() > until:
            return sum(map(len, groups[i:]))
        at = time.monotonic()
        found = train(_place(folder, group[0]), group, device=device)
        with out.open("a") as file:
            file.writelines(curve.to_line(PATIENCES) + "\n" for curve in found)
        if device.type == "cuda":
            torch.cuda.empty_cache()
        if on_group is not None:
            on_group(found, time.monotonic() - at)
    return 0


def _place(folder: Path, job: Job) -> Partition:
    return place_of(folder / f"{job.dataset}-{job.seed}.npz", job.reading, job.place)


def _tell(found: list[Curve], seconds: float) -> None:
    best = max(found, key=lambda curve: curve.best(None)[0])
    line = {"shape": best.job.shape, "points": len(found), "seconds": round(seconds, 2), "best": best.best(None)}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--jobs", required=True, help="a file in that folder")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--datasets", nargs="+", default=None, help="only these")
    parser.add_argument("--most", type=int, default=MOST, help="points in one computation")
    parser.add_argument("--seconds", type=float, default=None, help="no group starts later")
    parser.add_argument("--finalists", type=int, default=0, help="of each row, judged on further partitions")
    parser.add_argument("--first", type=int, nargs="+", default=(1000, 1001))
    parser.add_argument("--further", type=int, nargs="+", default=(1002, 1003, 1004))
    parser.add_argument("--patience", type=int, default=None)
    wanted = parser.parse_args()
    until = None if wanted.seconds is None else time.monotonic() + wanted.seconds
    how = {"most": wanted.most, "until": until, "on_group": _tell}
    known = read_jobs(wanted.data / wanted.jobs)
    jobs = [job for job in known if wanted.datasets is None or job.dataset in wanted.datasets]
    left = train_all(jobs, wanted.data, wanted.out, torch.device(wanted.device), **how)
    if wanted.finalists and not left:
        last = Finals(wanted.first, wanted.further, wanted.finalists, wanted.patience)
        left = train_all(last.jobs(wanted.out), wanted.data, wanted.out, torch.device(wanted.device), **how)
    sys.stdout.write(f"jobs left: {left}\n")


if __name__ == "__main__":
    main()
