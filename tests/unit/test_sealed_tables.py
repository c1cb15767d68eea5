"""A holder's own tables in the sealed protocol: maps that stay, and everything refused before a peer hears of it."""

import csv

import pytest
import torch

from tests.network import rewrite
from tests.tables import sealed_federation_of_tables, write
from vfgnn.data.feature_maps import FeatureMap
from vfgnn.errors import CheckpointRefused, ConfigError, DataError
from vfgnn.files import load_party
from vfgnn.party import aligning
from vfgnn.party.own_data import load_data, read_tables
from vfgnn.party.sealed_tables import counted_entries, mapped
from vfgnn.tensor_file import read_tensors, write_tensors


@pytest.fixture
def local(tmp_path):
    return sealed_federation_of_tables(tmp_path / "federation")


def own(local, name="shop", **more):
    return load_data(local.file, load_party(local.party_toml(name)), **more)


def table_of(local, kind, name="shop"):
    path = local.folder / name / f"{kind}.csv"
    with path.open() as file:
        header, *rows = csv.reader(file)
    return path, header, rows


def anew(local, name="shop"):
    """Its tables with maps of today."""
    return mapped(read_tables(load_party(local.party_toml(name))), local.file.settings.sealed)


def keep(folder, data, rows):
    """As a run does when it begins, and what a prediction then reads."""
    aligning.keep(folder, "run", len(rows), rows, data)
    return aligning.fitted(folder)


def add(local, kind, rows):
    path, header, before = table_of(local, kind)
    write(path, header, [*before, *rows])


def test_the_number_of_columns_does_not_depend_on_which_nodes_are_common(local):
    tables = own(local).tables
    (shape,) = [holder for holder in local.file.holders if holder.name == "shop"]
    some = aligning.over(local.file, own(local), torch.arange(7)).holding
    assert tables.nodes.x.shape[1] == some.x.shape[1] == shape.features == len(tables.nodes.names)
    assert torch.equal(some.x, tables.nodes.x[:7])
    assert {name.partition(",")[0] for name in tables.nodes.names} == {"a1", "b1", "own degree"}


def test_a_prediction_makes_the_columns_that_training_made(local, tmp_path):
    data = own(local)
    size = len(data.tables.nodes.ids)
    rows = torch.arange(0, size, 2)
    fitted = keep(tmp_path, data, rows)
    # New rows, so different quantiles; a new edge, so another degree of old nodes; the first `size` rows as they were.
    add(local, "nodes", [[f"new-{i}", 50 + i, 100 + i] for i in range(40)])
    first = table_of(local, "nodes")[2][0][0]
    add(local, "edges", [[first, f"new-{i}"] for i in range(40)])
    again = own(local, fitted=fitted).tables
    assert again.nodes.names == data.tables.nodes.names
    values = [number for number, name in enumerate(again.nodes.names) if not name.startswith("own degree")]
    assert torch.equal(again.nodes.x[:size, values], data.tables.nodes.x[:, values])
    degrees = [number for number, name in enumerate(again.nodes.names) if name.startswith("own degree")]
    changed = (again.nodes.x[:size, degrees] != data.tables.nodes.x[:, degrees]).any(dim=1)
    assert changed.nonzero().flatten().tolist() == [0]  # it has 40 more neighbours, and is in the same bins as ever
    assert aligning.kept(tmp_path, "run", own(local, fitted=fitted))[0] == len(rows)
    assert not torch.equal(anew(local).nodes.x[:size, values], data.tables.nodes.x[:, values])  # so there was a way


def test_maps_that_were_changed_on_disk_are_refused(local, tmp_path):
    data = own(local)
    keep(tmp_path, data, torch.arange(5))
    path = tmp_path / aligning.KEPT
    about, tensors = read_tensors(path, "it", CheckpointRefused, names=("rows",), hint="")
    for wrong in (3, {}, {**about["columns"], "inputs": 0}, {**about["columns"], "columns": [{"number": "x"}]}):
        write_tensors(path, tensors, {**about, "columns": wrong})
        with pytest.raises(CheckpointRefused, match="cannot be used"):
            aligning.fitted(tmp_path)


def test_another_column_since_training_is_refused(local, tmp_path):
    fitted = keep(tmp_path, own(local), torch.arange(5))
    path, header, rows = table_of(local, "nodes")
    write(path, [*header, "more"], [[*row, 1] for row in rows])
    with pytest.raises(DataError, match="not fitted to"):
        own(local, fitted=fitted)


def test_maps_survive_the_disk(local, tmp_path):
    data = own(local)
    fitted = keep(tmp_path, data, torch.arange(5))
    assert isinstance(fitted.columns, FeatureMap) and fitted.columns == data.tables.columns
    assert fitted.rows == len(data.tables.nodes.ids)


def test_a_bound_below_the_number_of_entries_is_refused_at_home(local):
    found = counted_entries(own(local).tables)
    assert own(rewrite(local, shop={"entry_bound": found}))
    with pytest.raises(DataError) as error:
        own(rewrite(local, shop={"entry_bound": found - 1}))
    assert "more directed entries than the holder has declared" in str(error.value)
    assert "--entry-bound" in error.value.hint


def test_edges_beyond_the_quota_do_not_count(local):
    """Degrees in 5 bits: 15 edges of a node at each of two holders. A star of 40 is cut to 15, in both directions."""
    columns = sum(not name.startswith("own degree") for name in own(local).tables.nodes.names)
    first, *others = [row[0] for row in table_of(local, "nodes")[2]]
    write(table_of(local, "edges")[0], ["source", "target"], [[first, other] for other in others[:40]])
    sealed = {**local.file.document["settings"]["sealed"], "degree_bits": 5, "own_degree": False}
    few = rewrite(local, shop={"entry_bound": 30, "features": columns}, settings={"sealed": sealed})
    assert counted_entries(own(few).tables) == 80


def test_columns_declared_whole_and_values_beyond_the_bound(local):
    with pytest.raises(DataError, match="not what the federation file declares") as error:
        own(rewrite(local, shop={"integer": True}))
    assert "integer = true" in str(error.value)
    with pytest.raises(DataError, match="features of shop"):
        own(rewrite(local, settings={"feature_bound": 0.01}))


@pytest.mark.parametrize(("columns", "said"), [({"weight": "w"}, "weights"), ({"directed": True}, "directed edges")])
def test_edges_that_are_more_than_there(local, columns, said):
    path, header, rows = table_of(local, "edges")
    write(path, [*header, "w"], [[*row, 2] for row in rows])
    party = load_party(local.party_toml("shop"))
    data = party.data.model_copy(update={"columns": columns})
    with pytest.raises(ConfigError, match=said):
        load_data(local.file, party.model_copy(update={"data": data}))


def test_gaps_and_constant_columns_are_columns_like_others(local):
    """A column with gaps has one more, of 0 and 1; a constant one has none."""
    path, header, rows = table_of(local, "nodes")
    write(path, header, [[row[0], "" if i % 3 == 0 else row[1], 7] for i, row in enumerate(rows)])
    with pytest.raises(DataError, match="features = "):
        own(local)  # other columns than declared
    names = anew(local).nodes.names
    assert "a1 missing" in names and not [name for name in names if name.startswith("b1")]
