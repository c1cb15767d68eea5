"""A holder's CSV and Parquet files."""

import datetime
import gzip
import hashlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch
from pydantic import ValidationError

from vfgnn.data.column import read
from vfgnn.data.label_table import read_labels
from vfgnn.data.sources import source_of
from vfgnn.data.tables import Columns, holding_of, read_edges, read_ids, read_nodes
from vfgnn.errors import DataError

SECRET = "SECRET-4711"
FORMATS = ("csv", "csv.gz", "parquet")


@pytest.fixture
def write(tmp_path):
    def write(data, name="table.parquet"):
        path = tmp_path / name
        table = data if isinstance(data, pa.Table) else pa.table(data)
        if name.endswith(".parquet"):
            pa.parquet.write_table(table, path)
            return path
        pa.csv.write_csv(table, path.with_suffix("") if name.endswith(".gz") else path)
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
        return path

    return write


@pytest.fixture
def raw(tmp_path):
    def raw(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return raw


@pytest.fixture
def abcd(write):
    return read_nodes(write({"id": ["a", "b", "c", "d"]}, "nodes.parquet"), Columns())


def refused(call, *words):
    with pytest.raises(DataError) as caught:
        call()
    text = str(caught.value)
    assert SECRET not in text and "4711" not in text
    for word in words:
        assert word in text
    return text


def edges_of(table):
    return list(zip(table.source.tolist(), table.target.tolist(), strict=True))


@pytest.mark.parametrize("kind", FORMATS)
def test_nodes_of_all_formats_are_the_same(write, kind):
    path = write(
        {
            "size": [1.0, 2.0, 4.0, 5.0],
            "id": [12, 7, 3, 40],
            "age": [1, 2, None, 3],
            "member": [True, True, False, False],
            "city": ["x", None, "y", "x"],
            "same": [0.1, 0.1, 0.1, 0.1],
            "notes": [SECRET, "2", "3", "4"],
        },
        f"nodes.{kind}",
    )
    nodes = read_nodes(path, Columns(drop=("notes",)))
    assert nodes.ids.to_pylist() == ["12", "7", "3", "40"]
    assert nodes.names == ("size", "age", "age missing", "member", "city=x", "city=y", "same")
    assert nodes.x.dtype == torch.float32
    expected = [
        [-2 / 2.5**0.5, -(1.5**0.5), 0, 1, 1, 0, 0],
        [-1 / 2.5**0.5, 0, 0, 1, 0, 0, 0],
        [1 / 2.5**0.5, 0, 1, -1, 0, 1, 0],
        [2 / 2.5**0.5, 1.5**0.5, 0, -1, 1, 0, 0],
    ]
    # a few roundings to float32 of numbers below 2
    torch.testing.assert_close(nodes.x, torch.tensor(expected, dtype=torch.float32), rtol=0, atol=3e-7)


def test_a_gap_may_count_as_zero_before_standardising(write):
    path = write({"id": [1, 2, 3], "a": [1.0, float("nan"), 3.0]})
    x = read_nodes(path, Columns(missing="zero")).x
    assert x.tolist() == [[-1, 0], [-2, 1], [1, 0]]


def test_gaps_may_be_refused(write):
    path = write({"id": [1, 2, 3], "a": [1.0, None, float("nan")]})
    refused(lambda: read_nodes(path, Columns(missing="refuse")), "2 such row(s)", "column a, first at row 2")


@pytest.mark.parametrize("missing", ["mean", "zero"])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_column_without_any_number(write, missing, kind):
    nodes = read_nodes(write({"id": [1, 2], "a": pa.nulls(2), "b": [1, 2]}, f"nodes.{kind}"), Columns(missing=missing))
    assert nodes.names == ("b",)
    assert nodes.blocks["a"].kind == "empty"


def test_a_column_that_was_empty_in_training_stays_away(write):
    path = write({"id": [1, 2, 3], "a": [None, None, 5.0], "b": [None, None, "x"], "c": [1, 2, 3]})
    assert read_nodes(path, Columns(), fitted=2).names == ("c",)
    assert read_nodes(path, Columns()).names == ("a", "a missing", "b=x", "c")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal("1.5"), Decimal("2.5")]),
        pa.array([1.5, 2.5], pa.float16()),
        pa.array([2**53 + 1, 2**62]),
        pa.array([1e300, 1.7e308]),
        pa.array([1e-320, 5e-320]),
        pa.array([1, 2]).dictionary_encode(),
        pa.array([False, True]),
    ],
)
def test_all_kinds_of_numbers(write, values):
    assert read_nodes(write({"id": [1, 2], "a": values}), Columns()).x.tolist() == [[-1], [1]]


def test_an_almost_constant_column_is_not_constant_and_a_constant_one_is_zero(write):
    path = write({"id": range(6), "a": [1e9, 1e9, 1e9, 1e9 + 1, 1e9 + 1, 1e9 + 1], "b": [0.3] * 6})
    x = read_nodes(path, Columns()).x
    torch.testing.assert_close(x[:, 0], torch.tensor([-1.0, -1, -1, 1, 1, 1]), rtol=0, atol=1e-5)
    assert not x[:, 1].any()


def test_a_stated_vocabulary_keeps_its_order_and_leaves_others_at_zero(write):
    columns = Columns(categories={"city": ("z", "x"), "code": ("2", "1")})
    for kind in FORMATS:
        path = write({"id": [1, 2, 3], "city": ["x", "elsewhere", None], "code": [1, 2, 3]}, f"nodes.{kind}")
        nodes = read_nodes(path, columns)
        assert nodes.names == ("city=z", "city=x", "code=2", "code=1")
        assert nodes.x.tolist() == [[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("kind", FORMATS)
def test_empty_text_is_missing_and_na_is_a_word(write, kind):
    path = write({"id": [1, 2, 3], "country": ["", "NA", "FR"]}, f"nodes.{kind}")
    nodes = read_nodes(path, Columns())
    assert nodes.names == ("country=FR", "country=NA")
    assert nodes.x.tolist() == [[0, 0], [0, 1], [1, 0]]


def test_too_many_words_are_counted(write):
    path = write({"id": range(3), "city": [SECRET, "b", "c"]})
    refused(lambda: read_nodes(path, Columns(most_categories=2)), "at most 2", "got:      3", "column city")
    assert read_nodes(path, Columns(most_categories=3)).x.shape == (3, 3)


def test_no_features_at_all(abcd):
    assert abcd.x.shape == (4, 0)
    assert abcd.names == ()


def test_pages_of_dictionary_text_and_large_text(write):
    words = pa.array(["x", "y"])
    path = write({"id": words.dictionary_encode(), "a": words.cast(pa.large_string()), "b": words.dictionary_encode()})
    nodes = read_nodes(path, Columns())
    assert nodes.ids.to_pylist() == ["x", "y"]
    assert nodes.names == ("a=x", "a=y", "b=x", "b=y")


def test_text_ids_are_taken_as_they_are(raw):
    path = raw("id\n007\n7\n 7\n12345678901234567890123\nNA\n")
    assert read_ids(path, Columns()).to_pylist() == ["007", "7", " 7", "12345678901234567890123", "NA"]


def test_integers_and_text_are_the_same_ids(write):
    whole, text = write({"id": [12, -3]}, "a.parquet"), write({"id": ["12", "-3"]}, "b.parquet")
    assert read_ids(whole, Columns()) == read_ids(text, Columns())
    assert read_ids(whole, Columns()).type == pa.string()


@pytest.mark.parametrize("kind", FORMATS)
def test_read_ids_keeps_order_and_repeats(write, kind):
    path = write({"key": [3, 1, 3], "id": [0, 0, 0]}, f"ids.{kind}")
    assert read_ids(path, Columns(id="key")).to_pylist() == ["3", "1", "3"]


BAD_IDS = {
    "float": ([1.0, 2.0], "from row 1"),
    "truth": ([True, False], "from row 1"),
    "date": ([datetime.date(2020, 1, 1)] * 2, "from row 1"),
    "bytes": ([b"4711", b"a"], "from row 1"),
    "null": (["a", None, None], "first at row 2"),
    "integer null": ([1, 2, None], "first at row 3"),
    "nothing": (pa.nulls(2), "first at row 1"),
    "empty": (["a", "b", ""], "first at row 3"),
    "floats as text": (["4711.0", "12.0"], "from row 1"),
}


@pytest.mark.parametrize("case", BAD_IDS)
def test_what_is_no_id(write, case):
    values, where = BAD_IDS[case]
    path = write({"id": values})
    refused(lambda: read_nodes(path, Columns()), "table.parquet, column id", where)


def test_floats_and_gaps_are_no_ids_in_a_csv(raw):
    refused(lambda: read_nodes(raw("id,a\n4711.0,1\n2.0,2\n"), Columns()), "decimals", "column id")
    refused(lambda: read_nodes(raw("id,a\n1,1\n,2\n"), Columns()), "without an id", "first at row 2")


def test_an_id_twice(write):
    path = write({"id": [SECRET, "b", "c", "b", SECRET]})
    refused(lambda: read_nodes(path, Columns()), "2 such row(s)", "column id, first at row 4")


@pytest.mark.parametrize("value", [float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", FORMATS)
def test_infinities_are_placed(write, value, kind):
    path = write({"id": [1, 2, 3], "a": [1.0, 2.0, value]}, f"nodes.{kind}")
    refused(lambda: read_nodes(path, Columns()), f"nodes.{kind}, column a, first at row 3")


@pytest.mark.parametrize("values", [[b"4711"], [[1, 2]], [{"a": 1}]])
def test_what_is_no_feature(write, values):
    path = write({"id": [1], "a": values})
    refused(lambda: read_nodes(path, Columns()), "column a", "drop")
    assert read_nodes(path, Columns(drop=("a",))).x.shape == (1, 0)


MOMENTS = {
    "date": ([datetime.date(1970, 1, 2), datetime.date(1970, 1, 4)], [1, 3]),
    "date64": (pa.array([datetime.date(1970, 1, 2), datetime.date(1970, 1, 4)], pa.date64()), [1, 3]),
    "time stamp": ([datetime.datetime(1970, 1, 1, 12), datetime.datetime(1969, 12, 31)], [0.5, -1]),
    "with a zone": (pa.array([3_600_000, 7_200_000], pa.timestamp("ms", "Europe/Berlin")), [1 / 24, 2 / 24]),
    "time of day": ([datetime.time(12, 30), datetime.time(0, 15)], [12.5, 0.25]),
    "duration": ([datetime.timedelta(hours=6), datetime.timedelta(days=2)], [0.25, 2]),
}


@pytest.mark.parametrize("case", MOMENTS)
def test_dates_and_times_are_stated_numbers(write, case):
    values, numbers = MOMENTS[case]
    path = write({"id": [1, 2], "a": values})
    assert read(source_of(path), ["a"])["a"].moments().tolist() == numbers
    table = read_nodes(path, Columns())
    assert table.blocks["a"].kind == "moment" and sorted(table.x[:, 0].tolist()) == [-1, 1]
    assert read_nodes(path, Columns(drop=("a",))).x.shape == (2, 0)


def test_dates_in_a_csv_with_gaps_are_numbers(raw):
    nodes = read_nodes(raw("id,day\n1,2020-01-01\n2,\n3,2020-01-03\n"), Columns())
    assert nodes.names == ("day", "day missing")
    assert nodes.x.tolist() == [[-1, 0], [0, 1], [1, 0]]


def test_dates_in_a_stated_format_are_numbers(raw):
    path = raw("id,day\n1,31.12.2019\n2,02.01.2020\n3,\n")
    nodes = read_nodes(path, Columns(dates={"day": "%d.%m.%Y"}))
    assert nodes.x.tolist() == [[-1, 0], [1, 0], [0, 1]]
    refused(lambda: read_nodes(path, Columns(dates={"day": "%m.%d.%Y"})), "1 such row(s)", "column day, first at row 1")


def test_many_dates_of_an_unknown_format_are_named(raw):
    rows = "".join(f"{day},{day % 28 + 1:02d}/{day % 12 + 1:02d}/{1900 + day}\n" for day in range(120))
    refused(lambda: read_nodes(raw(f"id,day\n{rows}"), Columns()), "dates in a format that is not stated", "dates")


@pytest.mark.parametrize("name", ["", "__index_level_0__"])
def test_an_index_is_no_feature(write, name):
    path = write(pa.table([[1, 2], [5, 6]], names=["id", name]))
    refused(lambda: read_nodes(path, Columns()), "without a name")
    assert read_nodes(path, Columns(drop=(name,))).x.shape == (2, 0)


def test_a_csv_column_has_the_type_that_all_its_values_fit(raw):
    rows = "".join(f"{row},{row},\n" for row in range(200_000))  # more than one block
    nodes = read_nodes(raw(f"id,a,b\n{rows}last,0.5,7\n"), Columns())
    assert nodes.names == ("a", "b", "b missing")


def test_byte_order_mark_and_line_breaks_in_quotes(raw):
    nodes = read_nodes(raw(b'\xef\xbb\xbfid,a,b\r\n1,"x\ny",2\r\n2,z,2\r\n'), Columns())
    assert nodes.names == ("a=x\ny", "a=z", "b")


def test_folders_named_like_partitions_add_no_column(tmp_path):
    path = tmp_path / "year=2020" / "nodes.parquet"
    path.parent.mkdir()
    pa.parquet.write_table(pa.table({"id": [1, 2]}), path)
    assert read_nodes(path, Columns()).names == ()


def test_missing_columns_list_those_there_are(write):
    path = write({"key": [1], "a.b": [SECRET]})
    refused(lambda: read_nodes(path, Columns()), "expected: id", "key, a.b")
    refused(lambda: read_nodes(path, Columns(id="key", drop=("wages",))), "expected: wages")
    refused(lambda: read_nodes(path, Columns(id="key", categories={"city": ("x",)})), "expected: city")


def test_a_first_line_of_data_is_not_shown(raw):
    refused(lambda: read_nodes(raw(f"{SECRET},12.5\nb,3\n"), Columns()), "first line looks like data", "header")


def test_many_columns_are_not_all_listed(write):
    path = write({f"c{number}": [number] for number in range(40)})
    assert "and 10 more" in refused(lambda: read_nodes(path, Columns()))


UNREADABLE = {
    "too many values": ("a.csv", f"id,a\n1,2\n2,{SECRET},5\n".encode(), "row 2"),
    "too few values": ("a.csv", b"id,a\n4711\n", "row 1"),
    "nothing": ("a.csv", b"", "cannot be read"),
    "not UTF-8": ("a.csv", b"id,a\n1,2\n\xff4711,3\n", "row 2"),
    "not UTF-8 in the header": ("a.csv", b"id,\xff\n1,2\n", "not UTF-8: Latin-1?"),
    "cut gzip": ("a.csv.gz", gzip.compress(b"id,a\n4711,2\n" * 1000)[:-9], "cannot be read"),
    "not gzip": ("a.csv.gz", b"id,a\n4711,2\n", "cannot be read"),
    "not Parquet": ("a.parquet", b"id,a\n4711,2\n", "cannot be read"),
    "two of one name": ("a.csv", b"id,id\n4711,2\n", "two columns of one name"),
    "no rows": ("a.csv", b"id,a\n", "an empty table"),
    "other": ("a.xlsx", b"id,a\n4711,2\n", ".parquet"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_files_that_cannot_be_read(raw, case):
    name, content, word = UNREADABLE[case]
    refused(lambda: read_nodes(raw(content, name), Columns()), name, word)


def test_a_file_that_is_not_there(tmp_path, write):
    refused(lambda: read_nodes(tmp_path / "nodes.csv", Columns()), "no such table", "nodes.csv")
    refused(lambda: read_nodes(tmp_path, Columns()), "no such table")
    refused(lambda: read_ids(write({"id": pa.array([], pa.int64())}), Columns()), "an empty table")


@pytest.mark.parametrize(
    "settings",
    [
        {"colour": 1},
        {"split": "a", "time": "b"},
        {"drop": ("a",), "categories": {"a": ("x",)}},
        {"categories": {"a": ("x", "x")}},
        {"categories": {"a": ("",)}},
        {"most_categories": 0},
        {"missing": "median"},
    ],
)
def test_settings_that_contradict_themselves(settings):
    with pytest.raises(ValidationError):
        Columns(**settings)


EDGES = {
    "source": ["b", "a", "d", "c", "a", "z", "b", "c"],
    "target": ["a", "b", "c", "c", "d", "a", SECRET, "b"],
    "money": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 0.0],
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_undirected_edges(write, abcd, kind):
    edges = read_edges(write(EDGES, f"edges.{kind}"), Columns(weight="money"), abcd)
    assert edges_of(edges) == [(0, 1), (0, 3), (1, 0), (1, 2), (2, 1), (2, 3), (3, 0), (3, 2)]
    assert edges.weight.tolist() == [3, 16, 3, 0, 0, 4, 16, 4]
    assert (edges.unknown, edges.loops) == (2, 1)
    assert edges.source.dtype == edges.target.dtype == torch.int64 and edges.weight.dtype == torch.float32


def test_directed_edges(write, abcd):
    edges = read_edges(write(EDGES), Columns(weight="money", directed=True), abcd)
    assert edges_of(edges) == [(0, 1), (0, 3), (1, 0), (2, 1), (3, 2)]
    assert edges.weight.tolist() == [2, 16, 1, 0, 4]


def test_edges_without_weights(write, abcd):
    edges = read_edges(write(EDGES), Columns(), abcd)
    assert len(edges.source) == 8 and edges.weight is None


def test_the_first_of_several_edges(write, abcd):
    edges = read_edges(write(EDGES), Columns(weight="money", duplicates="first"), abcd)
    assert edges.weight.tolist() == [1, 16, 1, 0, 0, 4, 16, 4]


def test_several_edges_may_be_refused(write, abcd):
    columns = Columns(duplicates="refuse")
    refused(lambda: read_edges(write(EDGES), columns, abcd), "1 such row(s)", "first at row 2")
    assert len(read_edges(write(EDGES), columns.model_copy(update={"directed": True}), abcd).source) == 5


def test_the_order_of_the_rows_does_not_matter_for_edges(write):
    random = np.random.default_rng(1)
    nodes = read_nodes(write({"id": range(20)}, "nodes.parquet"), Columns())
    table = pa.table(
        {"source": random.integers(0, 22, 500), "target": random.integers(0, 22, 500), "w": random.random(500)}
    )
    one = read_edges(write(table, "one.parquet"), Columns(weight="w"), nodes)
    other = read_edges(write(table.take(random.permutation(500)), "other.parquet"), Columns(weight="w"), nodes)
    assert edges_of(one) == edges_of(other) == sorted(edges_of(one))
    assert one.weight.tolist() == other.weight.tolist()
    assert (one.unknown, one.loops) == (other.unknown, other.loops)


def test_no_edge_is_left(write, abcd):
    edges = read_edges(write({"source": ["a", "y"], "target": ["a", "z"], "w": [1, 1]}), Columns(weight="w"), abcd)
    assert (len(edges.source), len(edges.weight), edges.unknown, edges.loops) == (0, 0, 1, 1)


@pytest.mark.parametrize("weight", [-1.0, float("inf"), float("nan"), None, 1e31])
def test_weights_that_cannot_be_used(write, abcd, weight):
    path = write({"source": ["a", "b"], "target": ["b", "c"], "w": [1.0, weight]})
    refused(lambda: read_edges(path, Columns(weight="w"), abcd), "column w, first at row 2")


def test_weights_and_ends_of_the_wrong_type(write, abcd):
    path = write({"source": ["a", "b"], "target": ["b", None], "w": [SECRET, "2"], "x": [1.5, 2.5]})
    refused(lambda: read_edges(path, Columns(target="source", weight="w"), abcd), "column w", "numbers")
    refused(lambda: read_edges(path, Columns(), abcd), "column target, first at row 2")
    refused(lambda: read_edges(path, Columns(source="x"), abcd), "column x")
    refused(lambda: read_edges(path, Columns(weight="cost"), abcd), "expected: cost")


@pytest.fixture
def ten(write):
    return read_nodes(write({"id": [f"n{number}" for number in range(10)]}, "nodes.parquet"), Columns())


@pytest.mark.parametrize("kind", FORMATS)
def test_labels_with_a_split(write, abcd, kind):
    path = write(
        {
            "id": ["d", "z", "b", "a", "c"],
            "label": [10, 3, 9, 10, None],
            "part": ["test", "?", "valid", "train", SECRET],
        },
        f"labels.{kind}",
    )
    labels = read_labels(path, Columns(split="part"), abcd)
    assert labels.rows.tolist() == [0, 1, 3]
    assert labels.y.tolist() == [1, 0, 1]
    assert labels.classes == ("9", "10")
    assert labels.split.tolist() == [0, 1, 2] and labels.split.dtype == torch.uint8
    assert labels.unknown == 1


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (["no", "Yes", "10", "9"], ("10", "9", "Yes", "no")),
        ([10, 9, -1, 9], ("-1", "9", "10")),
        ([True, False, None, True], ("false", "true")),
    ],
)
def test_classes_are_sorted(write, abcd, kind, values, classes):
    path = write({"id": ["a", "b", "c", "d"], "label": values, "t": [1, 2, 3, 4]}, f"labels.{kind}")
    assert read_labels(path, Columns(time="t"), abcd).classes == classes


def test_truth_values_as_other_programs_spell_them(raw, abcd):
    path = raw("id,label,t\na,True,1\nb,FALSE,2\nc,False,3\nd,,4\n")
    labels = read_labels(path, Columns(time="t"), abcd)
    assert labels.classes == ("false", "true")
    assert labels.y.tolist() == [1, 0, 0]


def test_given_classes_keep_their_order(write, abcd):
    path = write({"id": ["a", "b", "c", "d"], "label": [1, 2, 1, 4711], "t": [1, 2, 3, 4]})
    labels = read_labels(path, Columns(time="t"), abcd, ["2", "1", "4711", "5"])
    assert labels.y.tolist() == [1, 0, 1, 2]
    assert labels.classes == ("2", "1", "4711", "5")
    refused(lambda: read_labels(path, Columns(time="t"), abcd, ["2", "1"]), "column label, first at row 4")


@pytest.mark.parametrize(
    "times",
    [
        [5, 3, 9, 1, 7, 8, 2, 4, 6, 10],
        [float(time) for time in (5, 3, 9, 1, 7, 8, 2, 4, 6, 10)],
        [datetime.date(2020, 1, day) for day in (5, 3, 9, 1, 7, 8, 2, 4, 6, 10)],
        [datetime.datetime(2020, 1, day) for day in (5, 3, 9, 1, 7, 8, 2, 4, 6, 10)],
    ],
)
@pytest.mark.parametrize("kind", FORMATS)
def test_the_oldest_train_and_the_newest_test(write, ten, times, kind):
    path = write({"id": ten.ids, "label": [0, 1] * 5, "t": times}, f"labels.{kind}")
    assert read_labels(path, Columns(time="t"), ten).split.tolist() == [0, 0, 2, 0, 1, 1, 0, 0, 0, 2]


def test_ties_in_time_stay_in_row_order(write, ten):
    path = write({"id": ten.ids, "label": [0, 1] * 5, "t": [1] * 10})
    assert read_labels(path, Columns(time="t"), ten).split.tolist() == [0] * 6 + [1] * 2 + [2] * 2


def test_stratified_by_a_hash_of_the_id(write, ten):
    path = write({"id": ten.ids, "label": ["x"] * 5 + ["y"] * 5})
    labels = read_labels(path, Columns(), ten, key=b"key")
    expected = [None] * 10
    for members in (range(5), range(5, 10)):
        ordered = sorted(members, key=lambda row: hashlib.sha256(f"keyn{row}".encode()).digest())
        for row, part in zip(ordered, [0, 0, 0, 1, 2], strict=True):
            expected[row] = part
    assert labels.split.tolist() == expected


def test_the_order_of_the_rows_does_not_matter_for_the_split(write):
    random = np.random.default_rng(1)
    nodes = read_nodes(write({"id": range(300)}, "nodes.parquet"), Columns())
    table = pa.table({"id": np.arange(300), "label": random.integers(0, 7, 300)})
    one = read_labels(write(table, "one.parquet"), Columns(), nodes)
    other = read_labels(write(table.take(random.permutation(300)), "other.csv"), Columns(), nodes)
    assert all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("rows", "y", "split"))
    keyed = read_labels(write(table, "one.parquet"), Columns(), nodes, key=b"another")
    assert not torch.equal(one.split, keyed.split)


@pytest.mark.parametrize("size", [3, 4, 5, 17])
def test_every_class_of_three_rows_is_in_each_part(write, size):
    nodes = read_nodes(write({"id": range(4 * size)}, "nodes.parquet"), Columns())
    labels = read_labels(write({"id": range(4 * size), "label": [0, 1, 2, 3] * size}), Columns(), nodes)
    for number in range(4):
        counts = torch.bincount(labels.split[labels.y == number], minlength=3)
        assert counts.tolist() == [size * 6 // 10, size * 8 // 10 - size * 6 // 10, size - size * 8 // 10]
        assert counts.min() > 0


TWO = {"id": ["a", "b"], "label": [0, 1]}
BAD_LABELS = {
    "twice": ({"id": ["a", SECRET, SECRET], "label": [0, 1, 1]}, {}, "column id, first at row 3"),
    "one class": ({"id": ["a", "b", "z"], "label": [SECRET, SECRET, "x"]}, {}, "1 in 2 labelled rows"),
    "no label": ({"id": ["a", "b"], "label": pa.nulls(2, pa.int64())}, {}, "0 in 0 labelled rows"),
    "float": ({"id": ["a", "b"], "label": [0.0, 4711.0]}, {}, "column label"),
    "float as text": ({"id": ["a", "b"], "label": ["0.0", "4711.0"]}, {}, "column label"),
    "date": ({"id": ["a", "b"], "label": [datetime.date(2020, 1, 1)] * 2}, {}, "column label"),
    "no such column": ({"id": ["a", "b"], "y": [0, 1]}, {}, "expected: label"),
    "other part": ({**TWO, "s": ["train", SECRET]}, {"split": "s"}, "column s, first at row 2"),
    "no part": ({**TWO, "s": [None, "test"]}, {"split": "s"}, "column s, first at row 1"),
    "empty part": ({**TWO, "s": ["train", "test"]}, {"split": "s"}, "train 1, val 0, test 1"),
    "few rows": (TWO, {}, "train 0, val 0, test 2"),
    "no time": ({**TWO, "t": [1.0, float("nan")]}, {"time": "t"}, "column t, first at row 2"),
    "text for time": ({**TWO, "t": [SECRET, "b"]}, {"time": "t"}, "column t, from row 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_LABELS)
def test_what_are_no_labels(write, abcd, case):
    data, settings, word = BAD_LABELS[case]
    path = write(data, "labels.parquet")
    refused(lambda: read_labels(path, Columns(**settings), abcd), "labels.parquet", word)


def test_given_classes_are_two_and_different(write, abcd):
    path = write(TWO)
    for classes in (["0"], ["0", "0", "1"], []):
        refused(lambda classes=classes: read_labels(path, Columns(), abcd, classes), "at least two")


@pytest.fixture
def small(write):
    nodes = read_nodes(write({"id": ["a", "b", "c", "d"], "x": [1, 2, 4, 5]}, "n.parquet"), Columns())
    edges = read_edges(
        write({"source": ["a", "b", "d"], "target": ["b", "c", "a"]}, "e.parquet"), Columns(directed=True), nodes
    )
    return nodes, edges


def test_the_holding_has_the_common_nodes_in_the_common_order(small):
    nodes, edges = small
    holding = holding_of(nodes, edges, torch.tensor([3, 0, 1]))
    assert torch.equal(holding.x, nodes.x[[3, 0, 1]])
    assert holding.edge_index.tolist() == [[0, 1], [1, 2]]


def test_local_neighbours_come_after_the_common_nodes(small):
    nodes, edges = small
    holding = holding_of(nodes, edges, torch.tensor([3, 1]), local_neighbours=True)
    assert torch.equal(holding.x, nodes.x[[3, 1, 0, 2]])
    assert holding.edge_index.tolist() == [[0, 1, 2], [2, 3, 1]]


def test_a_holding_without_edges(small):
    nodes, _ = small
    holding = holding_of(nodes, None, torch.tensor([2]))
    assert holding.edge_index.shape == (2, 0) and holding.edge_index.dtype == torch.int64


@pytest.mark.parametrize("rows", [[0, 4], [-1, 0], [1, 1]])
def test_common_rows_are_rows_of_the_table(small, rows):
    with pytest.raises(DataError, match="common node"):
        holding_of(*small, torch.tensor(rows))


def test_reprs_show_sizes_only(write, small):
    data = {"id": [SECRET, "b", "c"], "label": [SECRET, "x", "x"], "t": [1, 2, 3]}
    nodes = read_nodes(write(data), Columns())
    labels = read_labels(write(data), Columns(time="t"), nodes)
    assert repr(nodes) == "NodeTable(rows=3, features=3)"
    assert repr(labels) == "LabelTable(classes=2, train=1, val=1, test=1, unknown=0)"
    assert repr(small[1]) == "EdgeTable(3, weighted=False, unknown=0, loops=0)"
