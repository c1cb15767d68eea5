"""How CSV files are written: told from the beginning of a file, and named where it is not as stated."""

import gzip

import pytest

from vfgnn.data.dialect import Dialect, differing, sniff
from vfgnn.data.sources import sniffed, source_of
from vfgnn.data.tables import Columns, read_nodes
from vfgnn.errors import TableError

PLAIN = "id,size,city\na1,2.5,Köln\na2,3,Bonn\na3,4.25,Bonn\n"
GERMAN = "id;size;city\na1;2,5;Köln\na2;3;Bonn\na3;4,25;Bonn\n"
LOOKS = {
    "plain": (PLAIN.encode(), {}),
    "byte order mark": (b"\xef\xbb\xbf" + PLAIN.encode(), {}),
    "German": (GERMAN.encode(), {"delimiter": ";", "decimal": ","}),
    "Latin-1": (GERMAN.encode("latin-1"), {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}),
    "Windows": (GERMAN.replace("ö", "€").encode("cp1252"), {"delimiter": ";", "decimal": ",", "encoding": "cp1252"}),
    "UTF-16": (GERMAN.encode("utf-16"), {"delimiter": ";", "decimal": ",", "encoding": "utf-16"}),
    "tabs": (PLAIN.replace(",", "\t").encode(), {"delimiter": "\t"}),
    "pipes": (PLAIN.replace(",", "|").encode(), {"delimiter": "|"}),
    "quoted commas": (b'id,size,note\na1,1,"x, y, z"\na2,2,"u, v"\n', {}),
    "semicolons within": (b"id,tags\na1,x;y\na2,z;w;v\n", {}),
    "one column": (b"id\na1\na2\n", {}),
    "German thousands": (b"id;size\na1;1.234,50\na2;12,00\n", {"delimiter": ";", "decimal": ","}),
    "no header, numbers": (b"17,1\n18,2\n", {"header": False}),
    "no header, ids": (b"ACC0001,ACC0002\nACC0003,ACC0001\n", {"header": False}),
    "no header, hex": (b"3f2a9c77-0b1d-4f,x\n9bb1d5aa-33cc-41,y\n", {"header": False}),
    "years as names": (b"id,2019,2020\na1,1,2\na2,3,4\n", {}),
}


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_the_beginning_of_a_file_tells_its_dialect(tmp_path, name, suffix):
    content, expected = LOOKS[name]
    path = tmp_path / f"table.{suffix}"
    path.write_bytes(gzip.compress(content) if suffix == "csv.gz" else content)
    assert sniff(path, ["id"]) == Dialect(**expected)
    assert differing(path, Dialect(**expected), ["id"]) is None


@pytest.mark.parametrize("name", ["plain", "German", "Latin-1", "UTF-16"])
def test_the_same_table_in_another_dialect_is_the_same(tmp_path, name):
    path, plain = tmp_path / "table.csv", tmp_path / "plain.csv"
    path.write_bytes(LOOKS[name][0])
    plain.write_text(PLAIN)
    found, expected = read_nodes(sniffed(path, ["id"]), Columns()), read_nodes(plain, Columns())
    assert found.names == expected.names == ("size", "city=Bonn", "city=Köln")
    assert found.x.tolist() == expected.x.tolist()


WRONG = {
    "German": "the delimiter looks like ';'",
    "Latin-1": "not UTF-8: Latin-1?",
    "UTF-16": "not UTF-8: UTF-16?",
    "tabs": "the delimiter looks like a tab",
    "no header, numbers": "the first line looks like data",
    "no header, ids": "the first line looks like data",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_as_stated_is_named(tmp_path, name):
    path = tmp_path / "table.csv"
    path.write_bytes(LOOKS[name][0])
    with pytest.raises(TableError) as caught:
        read_nodes(path, Columns())
    text = str(caught.value)
    assert WRONG[name] in text and "to do" in text
    assert "ACC" not in text and "K" not in text.replace("Köln", "K")  # nothing of the file is shown


def test_a_file_without_a_header_can_be_read_when_it_is_said(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(LOOKS["no header, ids"][0])
    nodes = read_nodes(source_of(path, dialect=Dialect(header=False)), Columns(id="f0"))
    assert nodes.ids.to_pylist() == ["ACC0001", "ACC0003"] and len(nodes.names) == 2


def test_a_late_byte_of_another_encoding_is_named(tmp_path):
    path = tmp_path / "table.csv"
    rows = b"".join(b"%d,Bonn\n" % number for number in range(100_000))
    path.write_bytes(b"id,city\n" + rows + "100000,Köln\n".encode("latin-1"))
    with pytest.raises(TableError, match=r"not UTF-8: Latin-1\?"):
        read_nodes(path, Columns())


@pytest.mark.parametrize("stated", [{"delimiter": ""}, {"delimiter": ";;"}, {"encoding": "utf-99"}, {"decimal": "'"}])
def test_dialects_that_there_are_not(stated):
    with pytest.raises(ValueError):
        Dialect(**stated)


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (["2,5", "3"], "DECIMAL_SIGN"),
        (["1,234", "12"], "NUMBERS_AS_TEXT"),
        (["1,234.50", "12"], "NUMBERS_AS_TEXT"),
        (["1.234,50", "12"], "NUMBERS_AS_TEXT"),
        (["1 234", "12"], "NUMBERS_AS_TEXT"),
    ],
)
def test_numbers_written_for_people_are_no_words(tmp_path, cells, code):
    path = tmp_path / "table.csv"
    path.write_text("id,a\n" + "".join(f'{i},"{cell}"\n' for i, cell in enumerate(cells)))
    with pytest.raises(TableError) as caught:
        read_nodes(path, Columns())
    assert caught.value.code == code and not any(cell in str(caught.value) for cell in cells)


@pytest.mark.parametrize("cells", [["A,1", "B"], ["1-2", "3-4"], ["1,2,3", "4"], ["12", "x"]])
def test_words_with_digits_stay_words(tmp_path, cells):
    path = tmp_path / "table.csv"
    path.write_text("id,a\n" + "".join(f'{i},"{cell}"\n' for i, cell in enumerate(cells)))
    assert len(read_nodes(path, Columns()).names) == 2
