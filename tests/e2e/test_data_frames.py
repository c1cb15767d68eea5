"""`vfgnn.Tables`: data frames and Arrow tables in, a federation out."""

import csv
import random

import pyarrow as pa
import pytest
import torch

import vfgnn
from tests.tables import write_tables
from vfgnn.errors import ConfigError, DataError, TableError
from vfgnn.lab.tables import Tables

SECRET = "SECRET-4711"


def of_arrow(table):
    return pa.table(table)


def of_batch(table):
    return pa.RecordBatch.from_pydict(table)


def of_pandas(table):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(table, index=range(100, 100 + len(next(iter(table.values())))))


def of_polars(table):
    return pytest.importorskip("polars").DataFrame(table)


MAKERS = (of_arrow, of_batch, of_pandas, of_polars)


def columns_of(path):
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def of_files(folder):
    """Both holders' tables, as they are on disk."""
    bank, shop = folder / "bank", folder / "shop"
    return {
        "shop": Tables(str(shop / "nodes.csv"), edges=shop / "edges.csv"),
        "bank": Tables(bank / "nodes.csv", edges=bank / "edges.csv", labels=bank / "labels.csv"),
    }


def in_memory(folder, make):
    """The same in memory, with the types that the columns have."""

    def of(path):
        table = columns_of(path)
        return make(
            {name: [float(cell) for cell in cells] if name[0] in "ab" else cells for name, cells in table.items()}
        )

    bank, shop = folder / "bank", folder / "shop"
    return {
        "shop": Tables(of(shop / "nodes.csv"), edges=of(shop / "edges.csv")),
        "bank": Tables(of(bank / "nodes.csv"), edges=of(bank / "edges.csv"), labels=of(bank / "labels.csv")),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("tables")
    write_tables(home)
    return home


@pytest.mark.parametrize("make", MAKERS)
def test_tables_in_memory_are_the_same_as_files(folder, make):
    files, memory = vfgnn.Federation.of(of_files(folder)), vfgnn.Federation.of(in_memory(folder, make))
    assert files.names == memory.names == ("bank", "shop") and files.ids == memory.ids
    assert files.classes == memory.classes == ("bad", "good")
    for one, other in zip(files.holdings, memory.holdings, strict=True):
        assert torch.equal(one.x, other.x) and torch.equal(one.edge_index, other.edge_index)
    assert torch.equal(files.labels.y, memory.labels.y) and torch.equal(files.labels.train, memory.labels.train)


def test_a_federation_of_tables_trains_and_answers_in_the_order_of_ids(folder):
    federation = vfgnn.Federation.of(of_files(folder))
    result = vfgnn.simulate(federation, preset="tables", compare=True)
    answer = vfgnn.predict(result)
    known = {name: set(columns_of(folder / name / "nodes.csv")["id"]) for name in ("bank", "shop")}
    assert list(federation.ids) == sorted(known["bank"] & known["shop"]) and len(answer.y_pred) == len(federation.ids)
    told = dict(zip(*columns_of(folder / "bank" / "labels.csv").values(), strict=True))
    classes = [federation.classes[number] for number in answer.y_pred]
    right = [told[one] == found for one, found in zip(federation.ids, classes, strict=True)]
    test = federation.labels.test
    assert sum(right[int(row)] for row in test) / len(test) == pytest.approx(result.test_accuracy)


def test_another_seed_splits_anew(folder):
    one, other = (vfgnn.Federation.of(of_files(folder), seed=seed) for seed in (0, 1))
    assert one.ids == other.ids and not torch.equal(one.labels.train, other.labels.train)


def test_what_a_run_refuses_is_refused_here():
    draw = random.Random(0)
    ids = [f"n{number}" for number in range(60)]
    label = [draw.choice("xy") for _ in ids]
    nodes = {"id": ids, "label": label, "a": [draw.random() for _ in ids]}
    tables = Tables(of_arrow(nodes), labels=of_arrow({"id": ids, "label": label}))
    with pytest.raises(TableError, match="name of the label") as caught:
        tables.read()
    assert caught.value.code == "LABEL_AMONG_FEATURES"
    assert [one.code for one in tables.profile().errors] == ["LABEL_AMONG_FEATURES"]
    Tables(tables.nodes, labels=tables.labels, columns={"drop": ["label"]}).read()
    Tables(tables.nodes, labels=tables.labels, accept=("LABEL_AMONG_FEATURES",)).read()
    with pytest.raises(ConfigError, match="did you mean 'drop'"):
        Tables(tables.nodes, columns={"dropp": ["label"]}).read()
    assert repr(tables) == "Tables(nodes, labels)"


def test_what_cannot_be_put_together_is_named(folder):
    files = of_files(folder)
    with pytest.raises(DataError, match="one holder must have the labels"):
        vfgnn.Federation.of({"shop": files["shop"], "other": files["shop"]})
    strangers = Tables(of_arrow({"id": [1, 2], "a": [1.0, 2.0]}))
    with pytest.raises(DataError, match="no node in common"):
        vfgnn.Federation.of({"bank": files["bank"], "other": strangers})
    with pytest.raises(DataError, match="Tables of all, or Data of all"):
        vfgnn.Federation.of({"bank": files["bank"], "other": {"id": [1]}})
    with pytest.raises(DataError, match="nodes is no table") as caught:
        Tables({"id": [1]}).read()
    assert "dict" in str(caught.value)


def test_a_pandas_column_of_mixed_types_is_named_without_its_values():
    table = of_pandas({"id": [1, 2], "a": [SECRET, 4711]})
    with pytest.raises(TableError, match="mixed types") as caught:
        Tables(table).read()
    assert SECRET not in str(caught.value) and "4711" not in str(caught.value) and "column a" in str(caught.value)


def test_pandas_types_of_its_own():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "id": pandas.array([1, 2, 3], dtype="Int64"),
            "kind": pandas.Categorical(["x", "y", "x"]),
            "day": pandas.to_datetime(["2020-01-01", None, "2020-01-03"]),
            "gap": [1.0, float("nan"), 3.0],
        }
    )
    nodes = Tables(frame).read().nodes
    assert nodes.ids.to_pylist() == ["1", "2", "3"]
    assert nodes.names == ("kind=x", "kind=y", "day", "day missing", "gap", "gap missing")


def test_polars_types_of_its_own():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {"id": ["a", "b"], "kind": polars.Series(["x", "y"], dtype=polars.Categorical), "n": [1, None]}
    )
    assert Tables(frame).read().nodes.names == ("kind=x", "kind=y", "n", "n missing")
