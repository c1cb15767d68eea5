"""federation.toml and party.toml."""

import tomllib

import pytest

from tests.network import rewrite, small
from vfgnn.data import prepared
from vfgnn.data.holdings import Holding
from vfgnn.differences import differences
from vfgnn.errors import ConfigError, DataError
from vfgnn.files import load_federation, load_party, to_toml


@pytest.fixture
def local(tmp_path):
    return small(tmp_path / "federation")


def test_what_is_written_is_what_is_read(local):
    read = load_federation(local.federation_toml)
    assert read == local.file
    assert read.digest == local.file.digest


def test_toml_comes_back():
    document = {
        "a": 1, "b": "x\"y", "c": [1, 2], "d": True, "e": 0.5, "f": "two\nlines\n",
        "table": {"g": "ü", "inner": {"h": 1}}, "list": [{"i": 1}, {"i": 2}],
    }  # fmt: skip
    assert tomllib.loads(to_toml(document)) == document
    assert tomllib.loads(to_toml({"none": None, "x": 1})) == {"x": 1}


def test_another_setting_is_another_digest(local):
    digest = local.file.digest
    assert rewrite(local, settings={"dim": 9}).file.digest != digest


def test_differences_name_the_field_and_both_values():
    ours = {"nodes": 3, "settings": {"dim": 8}, "holders": [{"name": "A", "features": 1}], "x": "-----BEGIN CERT 1"}
    theirs = {"nodes": 3, "settings": {"dim": 9}, "holders": [{"name": "A", "features": 2}], "x": "-----BEGIN CERT 2"}
    found = {field: (one, other) for field, one, other in differences(ours, theirs)}
    assert found.keys() == {"settings.dim", "holders[A].features", "x"}
    assert found["settings.dim"] == ("8", "9")
    assert "CERT" not in str(found["x"])
    assert list(differences(ours, ours)) == []


BAD = {
    "unknown key": ("nodes = 40", "nodes = 40\nnoodles = 1", "noodles"),
    "unknown key of a holder": ('name = "A"', 'name = "A"\ncolour = 1', "colour"),
    "unknown setting": ("[settings]", "[settings]\nlaeyrs = 1", "laeyrs"),
    "no address": ('address = "localhost', 'address = "http://localhost', "address"),
    "not TOML": ("nodes = 40", "nodes = = 40", "not TOML"),
    "no such label holder": ('label_holder = "A"', 'label_holder = "Z"', "Z"),
    "a word for a number": ("nodes = 40", 'nodes = "many"', "nodes"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_federation_file_is_refused_by_name(local, case):
    old, new, says = BAD[case]
    text = local.federation_toml.read_text()
    assert old in text
    local.federation_toml.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_federation(local.federation_toml)
    assert says in str(caught.value)
    assert "federation.toml" in str(caught.value) or case == "no such label holder"


def test_a_dealer_is_demanded(local):
    document = {key: value for key, value in local.file.document.items() if key != "dealer"}
    local.federation_toml.write_text(to_toml(document))
    with pytest.raises(ConfigError, match="dealer"):
        load_federation(local.federation_toml)


def test_paths_are_relative_to_the_party_file(local):
    party = load_party(local.party_toml("A"))
    assert party.key == local.folder / "A" / "A.key.pem"
    assert party.data.holding == local.folder / "A" / "data" / "holding.safetensors"


def test_no_files(tmp_path):
    with pytest.raises(ConfigError, match="no federation file"):
        load_federation(tmp_path / "federation.toml")
    with pytest.raises(ConfigError, match="no party file"):
        load_party(tmp_path / "party.toml")


# prepared data


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_a_holding_comes_back(tmp_path, density):
    import torch

    draw = torch.Generator().manual_seed(0)
    x = torch.rand(30, 7, generator=draw) * (torch.rand(30, 7, generator=draw) < density)
    holding = Holding(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]))
    prepared.save_holding(tmp_path / "h", holding)
    read = prepared.load_holding(tmp_path / "h")
    assert torch.equal(read.x, x)
    assert torch.equal(read.edge_index, holding.edge_index)
    assert [path.name for path in tmp_path.iterdir()] == ["h"]


@pytest.mark.parametrize("columns", [0, 3])
def test_a_holding_without_features_or_edges_comes_back(tmp_path, columns):
    import torch

    prepared.save_holding(tmp_path / "h", Holding(x=torch.ones(5, columns), edge_index=torch.empty(2, 0).long()))
    assert prepared.load_holding(tmp_path / "h").x.shape == (5, columns)


def test_bad_data_files_are_refused_by_name(local, tmp_path):
    path = local.folder / "A" / "data" / "holding.safetensors"
    whole = path.read_bytes()
    with pytest.raises(DataError, match="no holding file"):
        prepared.load_holding(tmp_path / "nowhere")
    for broken in (b"", b"pickle?", whole[:100], whole[:-1]):
        path.write_bytes(broken)
        with pytest.raises(DataError, match="cannot be read") as caught:
            prepared.load_holding(path)
        assert "holding.safetensors" in str(caught.value)
    with pytest.raises(DataError, match="not a holding file"):
        prepared.load_holding(local.folder / "A" / "data" / "labels.safetensors")


def test_data_that_is_not_what_was_declared(local):
    federation = local.file.agreement
    holding = prepared.load_holding(local.folder / "A" / "data" / "holding.safetensors")
    prepared.check_declared(federation, "A", holding)
    cases = {
        "nodes": Holding(x=holding.x[:-1], edge_index=holding.edge_index[:, :0]),
        "features": Holding(x=holding.x[:, :-1], edge_index=holding.edge_index),
        "edges": Holding(x=holding.x, edge_index=holding.edge_index[:, :0]),
    }
    for key, other in cases.items():
        with pytest.raises(DataError, match=f"{key} = "):
            prepared.check_declared(federation, "A", other)
