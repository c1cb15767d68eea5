"""What a profile says of tables, and what it never shows."""

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from vfgnn.data.columns import Block, Columns
from vfgnn.data.disasters import DETERMINED, determined
from vfgnn.data.ids import kind_of_ids, shape_of_ids
from vfgnn.data.profile import TableSources, make_profile
from vfgnn.data.sources import source_of
from vfgnn.data.tables import read_nodes
from vfgnn.errors import DataError
from vfgnn.files import PartyFile
from vfgnn.party.aligning import refuse_few, told_share
from vfgnn.party.own_data import OwnData, OwnTables
from vfgnn.report.data_profile import profile_page

IDS = [f"K{number:06d}" for number in range(400)]


def profile(columns=None, *, edges=None, labels=None, settings=None, ids=IDS):
    nodes = source_of(pa.table({"id": ids, **(columns or {})}), "nodes")
    others = {"edges": edges, "labels": labels}
    given = {name: source_of(pa.table(table), name) for name, table in others.items() if table is not None}
    return make_profile(TableSources(nodes, **given), Columns(**(settings or {})))


def codes(found):
    return [(one.code, one.level, one.column, one.count) for one in found.findings]


def test_every_fault_of_every_column_is_found_at_once():
    found = profile(
        {
            "size": [float(number) for number in range(400)],
            "same": [3] * 400,
            "holes": [None] * 300 + [1.5, 2.5] * 50,
            "nothing": pa.nulls(400, pa.float64()),
            "text": [f"word {number}" for number in range(400)],
            "bytes": [b"x"] * 400,
            "lists": [[1, 2]] * 400,
            "far": [float("inf"), *map(float, range(399))],
            "number": list(range(1000, 1400)),
            "mixed": [*map(str, range(90)), *["n/a"] * 310],
        }
    )
    assert codes(found) == [
        ("TOO_MANY_WORDS", "error", "text", 400),
        ("COLUMN_TYPE", "error", "bytes", 0),
        ("COLUMN_TYPE", "error", "lists", 0),
        ("INFINITE", "error", "far", 1),
        ("CONSTANT", "warning", "same", 400),
        ("GAPS", "warning", "holes", 300),
        ("EMPTY_COLUMN", "warning", "nothing", 400),
        ("LOOKS_LIKE_ID", "warning", "number", 400),
        ("NUMBERS_AS_TEXT", "warning", "mixed", 91),
    ]
    became = {one.name: (one.becomes, one.features, one.gaps) for one in found.nodes.columns}
    assert became["size"] == ("number, standardised", 1, 0)
    assert became["holes"] == ("number, standardised, and where it is missing", 2, 300)
    assert became["nothing"] == ("dropped: empty", 0, 400)
    assert became["text"] == ("cannot be read", 0, 0)
    assert found.nodes.features == 1 + 1 + 2 + 1 + 91


def test_edges_and_labels_are_counted():
    pairs = [*pairwise(IDS[:301]), (IDS[1], IDS[0]), (IDS[5], IDS[5]), (IDS[5], "stranger")]
    edges = {"source": [one for one, _ in pairs], "target": [other for _, other in pairs]}
    labels = {"id": [*IDS[:60], "nobody"], "label": [*(["a", "b"] * 29), None, None, "a"]}
    found = profile(edges=edges, labels=labels)
    assert (found.edges.rows, found.edges.known, found.edges.dropped) == (303, 302, 1)
    assert (found.edges.loops, found.edges.repeated, found.edges.kept) == (1, 1, 600)
    assert found.labels.classes == {"a": 29, "b": 29}
    assert sum(found.labels.splits.values()) == 58 and set(found.labels.splits) == {"train", "val", "test"}
    assert (found.labels.unknown, found.labels.empty) == (1, 2)
    assert {one.code: one.count for one in found.findings} == {
        "EDGES_DROPPED": 1, "LOOPS": 1, "REPEATED_EDGES": 1, "UNKNOWN_LABELS": 1, "NO_LABEL": 2,
    }  # fmt: skip
    assert found.to_json()["findings"][0].keys() >= {"code", "file", "column", "count"}


def test_a_copy_of_the_ids_is_named_and_never_shown():
    few = IDS[:40]
    found = profile({"account": few, "number": list(range(1000, 1040)), "size": [0.5, 1.5] * 20}, ids=few)
    assert {one.column for one in found.findings if one.code == "LOOKS_LIKE_ID"} == {"account", "number"}
    page = profile_page(found)
    assert page.count("<svg") == 1 and not any(one in page for one in few)
    assert any(one.startswith("K0000") for one in few)  # what is looked for could be there


def test_the_page_has_words_of_columns_as_text_and_a_histogram_for_each():
    words = ["<b>bold</b>", "$x$", "汉字"] * 133 + ["<b>bold</b>"]
    found = profile({"word": words, "day": pa.array(range(400), pa.date32()), "a": np.linspace(0, 1, 400)})
    page = profile_page(found)
    assert page.count("<svg") == 3 and "<b>bold" not in page and "&lt;b&gt;bold" in page
    assert "days since 1970-01-01, standardised" in page and "<script" not in page


@pytest.mark.parametrize(
    ("ids", "kind", "shape"),
    [
        (["007", "123"], "whole numbers of 3 digits", (True, True, 3)),
        (["7", "123"], "whole numbers of 1 to 3 digits", (True, False, 3)),
        (["A7", "A8"], "text of 2 characters", (False, False, 2)),
        ([], "none", (True, False, 0)),
    ],
)
def test_ids_are_described_by_their_form(ids, kind, shape):
    found = shape_of_ids(pa.array(ids, pa.string()))
    assert kind_of_ids(pa.array(ids, pa.string())) == kind
    assert (found.digits, found.leading_zeros, found.longest) == shape


def test_ids_that_lost_their_zeros_are_told_by_their_form():
    padded, lost, longer, text = (
        shape_of_ids(pa.array(ids)) for ids in (["007", "123"], ["7", "123"], ["7", "12345"], ["A7", "A123"])
    )
    assert lost.has_lost_zeros_of(padded)
    assert not any(one.has_lost_zeros_of(padded) for one in (padded, longer, text))
    assert not any(lost.has_lost_zeros_of(other) for other in (lost, longer, text))


def of_numbers(numbers):
    return Block("number", ("a",), np.asarray(numbers, dtype=np.float32)[:, None])


def told(values, y, kind="number"):
    if kind == "words":
        values = np.eye(int(max(values)) + 1, dtype=np.float32)[values]
        block = Block("words", tuple(map(str, range(values.shape[1]))), values)
    else:
        block = of_numbers(values)
    return determined(block, np.arange(len(y)), np.asarray(y))


def test_columns_that_say_every_label_and_columns_that_say_little():
    draw = np.random.default_rng(0)
    y = (draw.random(2000) < 0.1).astype(np.int64)
    assert told(y * 3.0, y) == told(y, y, "words") == 1.0
    assert told(np.where(y, draw.uniform(5, 9, 2000), draw.uniform(0, 4, 2000)), y) >= DETERMINED  # a threshold
    few_wrong = np.where(draw.random(2000) < 0.003, 1 - y, y)
    assert told(few_wrong * 1.0, y) >= DETERMINED  # 0.003 of all rows are at most 0.03 of the rare tenth, twice
    assert told(draw.normal(size=2000) + 2 * y, y) < 0.5  # a good feature, two deviations apart
    assert told(draw.normal(size=2000), y) < 0.1
    assert told(np.arange(2000.0), y) < 0.1  # a number of its own in each row


def test_a_word_of_its_own_in_each_row_determines_nothing():
    y = np.array([0, 1] * 30)
    assert told(np.arange(60), y, "words") <= 0
    assert told([1, 2], [0, 1]) == 0.0  # too few rows to say


def test_a_gap_that_tells_the_label_is_found():
    y = np.array([0, 0, 0, 1] * 100)
    values = np.column_stack([np.random.default_rng(1).normal(size=400) * (1 - y), y]).astype(np.float32)
    assert determined(Block("number", ("a", "a missing"), values), np.arange(400), y) >= DETERMINED


def test_three_classes():
    draw = random.Random(0)
    y = np.array([draw.randrange(3) for _ in range(600)])
    assert told(y, y, "words") == 1.0 and told(y * 1.0, y) == 1.0
    assert told(np.minimum(y, 1), y, "words") < 0.8


def test_few_common_ids_are_refused_and_enough_are_not():
    nodes = read_nodes(source_of(pa.table({"id": IDS}), "nodes.csv"), Columns())
    data = OwnData(tables=OwnTables(nodes, None, None))
    party = PartyFile(name="shop", key="k", certificate="c")
    assert told_share(data, 284) == "284 of your 400 ids (71 %)"
    refuse_few(party, data, 40)
    refuse_few(party, OwnData(), 0)  # who has no tables has nothing to say
    with pytest.raises(DataError) as caught:
        refuse_few(party, data, 39)
    text = str(caught.value)
    for words in ("39 of your 400 ids (10 %)", "at least 10 %", "min_common", "text of 7 characters", "nodes.csv"):
        assert words in text
    assert "39" not in caught.value.what  # what peers hear
    refuse_few(party.model_copy(update={"min_common": 0.05}), data, 39)
