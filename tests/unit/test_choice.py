"""What a search chooses, and what it writes of it."""

import json
import tomllib

import pytest
from typer.testing import CliRunner

from vfgnn.cli.main import app
from vfgnn.experiments.batched.jobs import Curve
from vfgnn.experiments.batched.main import PATIENCES
from vfgnn.experiments.batched.ranking import finals, read_results, settled
from vfgnn.experiments.choice import chosen_of, tables_of_others, to_record
from vfgnn.experiments.search import FINAL_SEEDS, SEARCH_SEEDS, Wanted, results_name

WANTED = Wanted("paper", ("cora",), ("undirected",), 12)
BEFORE = """# Written by `one`.

[cora.mean]  # validation accuracy 0.1
layers = 2

[pubmed.mean]
layers = 3

# Written by `two`.

[pubmed.pooled]
layers = 4

[cora.pooled]
layers = 5
"""


def reached(job):
    """The later points are better on the first partitions, and worse on further ones."""
    return (0.3 + job.point / 100) if job.seed in SEARCH_SEEDS else (0.5 - job.point / 100)


@pytest.fixture
def judged(tmp_path):
    """A folder with every point judged once, and a way to judge the first few of the best once more."""
    path = tmp_path / results_name("paper")

    def write(jobs):
        with path.open("a") as file:
            file.writelines(Curve(job, (0.0, reached(job)), 1.0).to_line(PATIENCES) + "\n" for job in jobs)

    def once_more(count):
        results = read_results(path, 100)
        write(finals(results, first=SEARCH_SEEDS, further=FINAL_SEEDS, count=count))

    write(job for job in WANTED.jobs if job.row == "isolated")
    return tmp_path, once_more


def chosen(folder):
    point, accuracy, trainings = chosen_of(WANTED, folder)["cora.isolated"]
    return WANTED.points["isolated"].index(point), round(accuracy, 4), trainings


def test_the_best_few_are_judged_by_all_partitions(judged):
    folder, once_more = judged
    assert chosen(folder) == (11, 0.41, 4)
    once_more(10)
    # Of points 2 to 11, point i has (2 (0.3 + i/100) + 3 (0.5 - i/100)) / 5: the smallest is the best one.
    assert chosen(folder) == (2, 0.416, 10)


@pytest.mark.parametrize(("count", "expected"), [(4, (11, 0.41, 4)), (5, (7, 0.406, 10))])
def test_a_few_that_were_judged_once_more_do_not_win_by_that(judged, count, expected):
    folder, once_more = judged
    once_more(count)
    assert chosen(folder) == expected


def test_trainings_of_a_point_count_when_all_are_there(judged):
    folder, once_more = judged
    once_more(6)
    path = folder / results_name("paper")
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    points = {}
    for one in read_results(path, 100):
        points.setdefault(one.job.point, []).append(one)
    found = settled(points, first=SEARCH_SEEDS, further=FINAL_SEEDS, least=5)
    assert sorted(map(len, found.values())) == [4] * 7 + [10] * 5
    del points[0][0]
    assert 0 not in settled(points, first=SEARCH_SEEDS, further=FINAL_SEEDS, least=5)


def test_the_record_has_validation_figures_and_no_test_figure(judged):
    folder, once_more = judged
    once_more(10)
    record = json.loads(to_record(WANTED, folder, "the command"))
    assert set(record) == {"command", "seeds", "grid", "points", "columns", "judged", "validation"}
    assert "test" not in json.dumps(record)
    found = record["validation"]["cora/undirected/isolated"]
    assert found["0"] == [[0.3, 1]] * 4
    assert found["11"] == [[0.41, 1]] * 4 + [[0.39, 1]] * 6
    judged_row = {"points": 12, "once more": 10, "chosen": 2, "first": 0.365, "further": 0.435}
    assert record["judged"] == {"cora/undirected/isolated": judged_row}
    values = dict(zip(record["columns"]["isolated"], record["points"]["isolated"][2], strict=True))
    assert values == WANTED.points["isolated"][2]


def test_tables_of_other_data_sets_are_kept_with_where_they_are_from():
    kept = tables_of_others(BEFORE, ("cora",))
    heads = ["# Written by `one`.", "[pubmed.mean]\nlayers = 3", "# Written by `two`.", "[pubmed.pooled]\nlayers = 4"]
    assert kept == heads
    assert tables_of_others("", ("cora",)) == []
    assert tables_of_others("[cora.sealed]  # 0.8\nsealed = {}\n\n[cora.mean]", ("cora",))[-1].startswith(
        "[cora.sealed]"
    )


def test_what_is_judged_can_be_chosen_from_without_training(judged, tmp_path):
    folder, _ = judged
    out = tmp_path / "chosen.toml"
    out.write_text(BEFORE)
    words = ["reproduce", "search", "--datasets", "cora", "--points", "12", "--readings", "undirected"]
    done = CliRunner().invoke(app, [*words, "--judged-only", "--run-dir", str(folder), "--out", str(out)])
    assert done.exit_code == 0, done.output
    written = tomllib.loads(out.read_text())
    assert written["cora"] == {"isolated": WANTED.points["isolated"][11]}
    assert written["pubmed"] == {"mean": {"layers": 3}, "pooled": {"layers": 4}}
    assert {path.name for path in folder.iterdir()} == {results_name("paper"), "chosen.toml"}
