"""The paper's smaller tables as data: every figure has its trainings, and stands beside the right one of the paper."""

import json

import pytest
from rich.console import Console

from vfgnn.experiments.privacy import privacy_rows, privacy_tasks
from vfgnn.experiments.studies import STUDIES, study_rows, study_tasks
from vfgnn.report.tables import markdown_tables, show_tables


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


def test_privacy_rows_have_exact_totals():
    tasks = privacy_tasks(1)
    rows = privacy_rows(tasks, made_up(tasks))
    gaussian = {row.epsilon: row for row in rows if (row.table, row.model) == ("privacy", "Gaussian")}
    assert gaussian[16.0].paper == 0.772 and gaussian[16.0].theorem == pytest.approx(160.0)
    assert gaussian[4.0].epsilon_total > gaussian[4.0].theorem
    assert {row.epsilon_total for row in rows if row.table == "privacy of inputs"} == {4.0, 6.0, 8.0, 10.0}
    assert "no noise" in markdown_tables(rows)
