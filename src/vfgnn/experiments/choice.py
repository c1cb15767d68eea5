"""What a search found: the values of a preset, and the record of everything that the choice went by.

Whoever searches runs it, on what search.py has judged. The files written here have validation figures and no others.
"""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from vfgnn.experiments.batched.ranking import Result, Search, by_point, ranked, read_results, score, settled
from vfgnn.experiments.catalogue import READINGS
from vfgnn.experiments.grids import GRIDS, Point
from vfgnn.experiments.search import FINAL_SEEDS, FINALISTS, SEARCH_SEEDS, Wanted, results_name


def _found(wanted: Wanted, folder: Path) -> dict[Search, dict[int, list[Result]]]:
    """Of the points that are wanted, what may decide; the folder may have others, and trainings without the rest."""
    known = wanted.points
    found = read_results(folder / results_name(wanted.preset), wanted.patience)
    counted = by_point(
        one
        for one in found
        if one.job.dataset in wanted.datasets
        and one.job.reading in wanted.readings
        and one.job.point < len(known[one.job.row])
    )
    least = FINALISTS // 2
    return {
        row: settled(points, first=SEARCH_SEEDS, further=FINAL_SEEDS, least=min(least, len(points)))
        for row, points in counted.items()
    }


def chosen_of(wanted: Wanted, folder: Path) -> dict[str, tuple[Point, float, int]]:
    """For each table of the preset's chosen values: the point, its validation accuracy and on how many trainings."""
    chosen, by_row = dict[str, tuple[Point, float, int]](), wanted.points
    for (dataset, reading, row), found in _found(wanted, folder).items():
        best = ranked(found)[0]
        suffix = "" if reading == READINGS[0] else f"_{reading}"
        chosen[f"{dataset}.{row}{suffix}"] = by_row[row][best], score(found[best]), len(found[best])
    return chosen


def to_toml(chosen: dict[str, tuple[Point, float, int]], command: str, kept: Sequence[str] = ()) -> str:
    """The content of `<preset>_chosen.toml`; `_directed`: for partitions that deal each direction of an edge alone."""
    lines = [f"# Written by `{command}`: the best of its points on validation nodes."]
    for table, (point, reached, trainings) in sorted(chosen.items()):
        lines += ["", f"[{table}]  # validation accuracy {reached:.4f}, mean of {trainings} trainings"]
        lines += [
            f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in point.items()
        ]
    return "\n".join(lines) + "\n" + "".join(f"\n{block}\n" for block in kept)


def tables_of_others(text: str, datasets: Sequence[str]) -> list[str]:
    """Of such a file, the tables of other data sets, each under the comment that says where it is from.

    And those of the sealed model, which sealed_choice.py chose.
    """
    heading, kept = "", list[str]()
    for block in filter(None, text.strip().split("\n\n")):
        if block.startswith("#"):
            heading = block
        elif block.removeprefix("[").split(".")[0] not in datasets or block.partition("]")[0].endswith(".sealed"):
            kept += [block] if heading in kept else [heading, block]
    return kept


def to_record(wanted: Wanted, folder: Path, command: str) -> str:
    """All that a choice went by, as JSON: validation figures only, [accuracy, epoch] by point and training."""
    found = _found(wanted, folder)
    head = {
        "command": command,
        "seeds": {"all points": SEARCH_SEEDS, "the best few": FINAL_SEEDS},
        "grid": GRIDS[wanted.preset],
        "points": {row: [list(point.values()) for point in points] for row, points in wanted.points.items()},
        "columns": {row: list(points[0]) for row, points in wanted.points.items()},
        "judged": {"/".join(row): _judged(found[row]) for row in sorted(found)},
    }
    rows = {
        "/".join(key): {number: list(map(_brief, trainings)) for number, trainings in found[key].items()}
        for key in found
    }
    lines = [f"{json.dumps(key)}: {json.dumps(rows[key])}" for key in sorted(rows)]
    return json.dumps(head, indent=None)[:-1] + ', "validation": {\n' + ",\n".join(lines) + "\n}}\n"


def _judged(points: dict[int, list[Result]]) -> dict[str, object]:
    """How far a row's search came: how many points, how many of them once more, and which one was chosen.

    `first` and `further`: the mean of those judged once more, before and then; what it fell by was chance.
    """
    again = [one for one in points.values() if any(result.job.seed in FINAL_SEEDS for result in one)]
    told = {"points": len(points), "once more": len(again), "chosen": ranked(points)[0]}
    means = {"first": SEARCH_SEEDS, "further": FINAL_SEEDS}
    return told | {name: _mean(again, seeds) for name, seeds in means.items() if again}


def _mean(points: Sequence[Sequence[Result]], seeds: Sequence[int]) -> float:
    return round(statistics.mean(one.accuracy for point in points for one in point if one.job.seed in seeds), 4)


def _brief(one: Result) -> list[float]:
    return [round(one.accuracy, 4), one.epoch]
