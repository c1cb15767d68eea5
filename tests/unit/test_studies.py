"""The paper's smaller tables as data: every figure has its trainings, and stands beside the right one of the paper."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from vfgnn.experiments.privacy import INPUTS, Noise, privacy_rows, privacy_tasks
from vfgnn.experiments.studies import GNNS, OF_THE_PAPER, REFRESHES, STUDIES, study_rows, study_tasks, trials_of
from vfgnn.experiments.tables import TableRow
from vfgnn.report.figures import draw_aggregators, draw_refreshes
from vfgnn.report.reproduction.tables import grids_of, markdown_tables, show_tables
from vfgnn.settings import Settings


def made_up(tasks):
    return {
        task: {"val_accuracy": 0.5, "test_accuracy": 0.6 + task.seed / 100, "best_epoch": 3, "epochs": 99}
        for task in tasks
    }


@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_has_its_seeds(name):
    tasks = study_tasks(name, 2)
    rows = study_rows(tasks, made_up(tasks))
    assert len(rows) == len(list(STUDIES[name]())) and {row.n for row in rows} == {2}
    assert rows[0].mean == pytest.approx(0.605)
    show_tables(Console(quiet=True), rows, 2)
    assert markdown_tables(rows).count("0.605 ± ") == len(rows)


def test_the_papers_figures_stand_where_they_belong():
    tasks = study_tasks("holders", 1)
    rows = {(row.model, row.holders): row.paper for row in study_rows(tasks, made_up(tasks))}
    assert rows["VFGNN_M", 3] == 0.774 and rows["VFGNN_C", 4] == 0.712 and rows["VFGNN_R", 8] is None
    tasks = study_tasks("proportions", 1)
    uneven = {json.dumps(task.proportions) for task in tasks}
    assert uneven == {"[0.9, 0.1]", "[0.8, 0.2]", "[0.7, 0.3]"}


@pytest.mark.parametrize("name", STUDIES)
def test_a_row_has_the_settings_that_were_trained(name):
    tasks = study_tasks(name, 1)
    for task, trials in tasks.items():
        trained = Settings.model_validate(json.loads(task.settings))
        for trial in trials:
            assert all(getattr(trained, key) == value for key, value in trial.variation.settings.items())
    rows = study_rows(tasks, made_up(tasks))
    named = {(trial.dataset, trial.model): trial.variation for trial in STUDIES[name]()}
    assert {(row.dataset, row.model): row.variation for row in rows} == named
    assert [TableRow.from_json(json.loads(json.dumps(row.to_json()))) for row in rows] == rows


def renamed(name):
    """The rows of a study, with names that say nothing."""
    tasks = study_tasks(name, 1)
    return [replace(row, model=f"row {i}") for i, row in enumerate(study_rows(tasks, made_up(tasks)))]


def test_tables_and_figures_do_not_read_names():
    rows = renamed("modes")
    assert [line[0] for line in grids_of(rows)[1].rows] == [str(epochs) for epochs in REFRESHES]
    [axis] = draw_refreshes(rows).axes
    assert [len(drawn.lines[0].get_xdata()) for drawn in axis.containers] == [len(REFRESHES) + 1] * 3
    assert [label.get_text() for label in draw_aggregators(renamed("aggregators")).axes[0].get_yticklabels()] == [*GNNS]
    rows = renamed("sensitivity")
    [grid] = grids_of(rows)
    varied = {row.model: row.variation.settings for row in rows}
    widths, depths = [{"dim": dim} for dim in (16, 32, 64, 128)], [{"layers": layers} for layers in range(1, 6)]
    assert [varied[line[0]] for line in grid.rows] == [*widths, *depths]


@pytest.mark.parametrize("noise", INPUTS)
def test_what_is_noised_is_what_the_row_is_called(noise):
    settings = [json.loads(task.settings) for task, cell in privacy_tasks(1).items() if cell.noise == noise]
    noised = {key for one in settings for key in one["privacy"] if key in ("edge_epsilon", "label_epsilon")}
    names = {Noise.EDGES: {"edge_epsilon"}, Noise.LABELS: {"label_epsilon"}}
    assert noised == names.get(noise, {"edge_epsilon", "label_epsilon"})


def test_privacy_rows_have_exact_totals():
    tasks = privacy_tasks(1)
    rows = privacy_rows(tasks, made_up(tasks))
    gaussian = {row.epsilon: row for row in rows if row.model == Noise.GAUSSIAN}
    assert gaussian[16.0].paper == 0.772 and gaussian[16.0].theorem == pytest.approx(160.0)
    assert gaussian[4.0].epsilon_total > gaussian[4.0].theorem
    assert {row.epsilon_total for row in rows if row.table == "privacy of inputs"} == {4.0, 6.0, 8.0, 10.0}
    assert "no noise" in markdown_tables(rows)


@pytest.mark.parametrize("name", STUDIES)
def test_what_the_paper_prints_is_had_under_both_readings(name):
    readings = {trial.edge_split for trial in trials_of(name, ("undirected", "directed"))}
    assert readings == ({"undirected", "directed"} if name in OF_THE_PAPER else {"undirected"})
    tasks = study_tasks(name, 1, ("undirected", "directed"))
    assert all(task.edge_split == trial.edge_split for task, trials in tasks.items() for trial in trials)
    rows = study_rows(tasks, made_up(tasks))
    assert {row.edge_split for row in rows} == readings
    if name in OF_THE_PAPER:
        [grid] = grids_of(rows)
        assert grid.headings[-3:] == ("edges undirected", "edges directed", "paper")
        assert len(grid.rows) == len(list(STUDIES[name]())) and "-" not in {row[-3] for row in grid.rows}


def test_more_holders_are_in_the_table_for_both_readings():
    """5 and 8 are beyond the paper: its own rows have them under one reading, preset best under both."""
    trials = trials_of("holders", ("undirected", "directed"))
    found = {(trial.edge_split, trial.model, trial.holders) for trial in trials}
    models, counts = ("VFGNN_C", "VFGNN_M", "VFGNN_R", "VFGNN_best"), (2, 3, 4, 5, 8)
    assert found == {("undirected", model, count) for model in models for count in counts} | {
        ("directed", model, count) for model in models for count in counts if count < 5 or model == "VFGNN_best"
    }


def test_the_other_reading_has_table_5_as_printed():
    tasks = privacy_tasks(1, ("undirected", "directed"))
    directed = [cell for cell in tasks.values() if cell.edge_split == "directed"]
    assert {(cell.table, cell.noise) for cell in directed} == {("privacy", "Gaussian"), ("privacy", "James-Stein")}
    assert {cell.epsilon for cell in directed} == {4.0, 8.0, 16.0, 32.0, 64.0}
    grids = grids_of(privacy_rows(tasks, made_up(tasks)))
    assert [grid.title.count("directed") for grid in grids] == [0, 1, 0, 0]
