"""Ids are anybody's text: a table of predictions has no cell that a spreadsheet would run."""

import csv

import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

from vfgnn.party import predict
from vfgnn.party.predict import write_table
from vfgnn.party.trained import Predictions

BAD = ["=1+1", "+1", "-5", "-", "@SUM(A1)", "\tx", "\rx", "\n=x", "'=x", "=cmd|'/C calc'!A0", '=HYPERLINK("x","y")']
GOOD = ["5", "a=b", "P-1", " =x", "", "x'", "\N{SNOWMAN}", "a,b", 'a"b']


def table(ids, classes=("good", "=bad")):
    found = pa.array(ids)
    probability = torch.tensor([[0.25, 0.75]], dtype=torch.float64).repeat(len(ids), 1)
    return Predictions(found, found, classes, probability).table(None)


def cells(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("one", BAD)
def test_a_cell_that_begins_like_a_formula_is_text(tmp_path, one):
    write_table(table([one, "x"]), tmp_path / "out.csv")
    rows = cells(tmp_path / "out.csv")
    assert [row["id"] for row in rows] == [f"'{one}", "x"]
    assert rows[0]["class"] == "'=bad"
    assert rows[0]["status"] == "ok" and float(rows[0]["probability of =bad"]) == 0.75


def test_every_cell_can_be_had_back(tmp_path):
    write_table(table([*BAD, *GOOD]), tmp_path / "out.csv")
    written = [row["id"] for row in cells(tmp_path / "out.csv")]
    assert written[len(BAD) :] == GOOD
    assert [one.removeprefix("'") for one in written] == [*BAD, *GOOD]


def test_ids_without_a_prediction_stay_without_a_class(tmp_path):
    found = pa.array(["a"])
    made = Predictions(found, found, ("x", "y"), torch.tensor([[0.5, 0.5]], dtype=torch.float64))
    write_table(made.table(pa.array(["=nobody", "a"])), tmp_path / "out.csv")
    assert [(row["id"], row["status"], row["class"]) for row in cells(tmp_path / "out.csv")] == [
        ("'=nobody", "unknown", ""),
        ("a", "ok", "x"),
    ]


def test_parquet_has_the_ids_as_they_are(tmp_path):
    write_table(table([*BAD, *GOOD]), tmp_path / "out.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet")["id"].to_pylist() == [*BAD, *GOOD]


def test_without_the_rule_a_formula_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "without_formulas", lambda table: table)
    write_table(table(["=1+1"]), tmp_path / "out.csv")
    assert cells(tmp_path / "out.csv")[0]["id"] == "=1+1"
