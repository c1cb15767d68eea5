"""What is said of files and settings that cannot be used: our own words, and never the checking library's."""

import pytest

from vfgnn.errors import ConfigError
from vfgnn.explained import explain
from vfgnn.files import PartyFile, load_federation, load_party
from vfgnn.settings import make_settings

PARTY = 'name = "bank"\nkey = "k.pem"\ncertificate = "c.pem"\n'
FEDERATION = (
    'nodes = 3\nclasses = 2\nlabel_holder = "A"\n[settings]\n[[holders]]\nname = "A"\nfeatures = 2\nedges = true\n'
)
LIBRARY = ("Input should", "Value error", "pydantic", "valid ", "Field required", "instance of", "parse")


def said(values):
    with pytest.raises(ConfigError) as caught:
        make_settings(values, "here")
    text = str(caught.value)
    assert not any(word in text for word in LIBRARY), text
    return text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"epocs": 3}, ("unknown key 'epocs'", "did you mean 'epochs'?")),
        ({"zzzz": 3}, ("unknown key 'zzzz'", "one of accept_h0_leak", "check the spelling")),
        ({"privacy": {"row_epsilo": 3}}, ("'privacy.row_epsilo'", "did you mean 'row_epsilon'?")),
        ({"epochs": "many"}, ("'epochs'", "expected: a whole number", 'got:      "many"')),
        ({"epochs": 2.5}, ("expected: a whole number",)),
        ({"epochs": 0}, ("expected: at least 1",)),
        ({"dropout": 1.5}, ("expected: less than 1",)),
        ({"dropout": float("nan")}, ("expected: a finite number",)),
        ({"learning_rate": [1]}, ("expected: a number", "got:      [1]")),
        ({"gnn": "sagemean"}, ("sage_mean or sage_lstm", "did you mean 'sage_mean'?")),
        ({"accept_h0_leak": "perhaps"}, ("expected: true or false",)),
        ({"fanout": 3}, ("expected: a list",)),
        ({"fanout": [True, "x"]}, ("'fanout.1'",)),
        ({"privacy": 3}, ("expected: a table",)),
        ({"sealed": {"ridges": []}}, ("entries: at least 1",)),
        ({"layers": 2, "fanout": [1]}, ("fanout needs one number per layer",)),
    ],
)
def test_settings(values, words):
    text = said(values)
    for word in words:
        assert word in text


def test_no_finding_of_the_library_is_left_to_its_own_words():
    """Whatever kind of finding comes: its own message is shown only where a validator of ours wrote it."""

    class Strange(Exception):
        def errors(self, include_url):
            return [{"type": "something_new", "loc": ("key",), "msg": "Input should be nice", "input": object()}]

    text = str(explain(Strange(), "here", PartyFile))
    assert "Input" not in text and "another kind of value" in text


def refused(load, path, text):
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    return str(caught.value)


def test_swapped_files_are_recognised(tmp_path):
    path = tmp_path / "file.toml"
    as_federation, as_party = refused(load_federation, path, PARTY), refused(load_party, path, FEDERATION)
    assert "a party file in the place of the federation file" in as_federation
    assert "a federation file in the place of the party file" in as_party
    assert "vfgnn run federation.toml party.toml" in as_federation and as_party.count("unknown key") == 0
    card = 'name = "bank"\ncertificate = "pem"\nfeatures = 3\nclasses = 2\n'
    assert "a card in the place of" in refused(load_federation, path, card)
    assert "'holders' is missing" in refused(load_federation, path, 'classes = 2\nlabel_holder = "A"\n[settings]\n')


@pytest.mark.parametrize("address", ["bank.example", "bank.example:", "bank.example:0", "bank:70000", ":7001", "[::1]"])
def test_addresses_need_a_port(tmp_path, address):
    said = refused(load_party, tmp_path / "party.toml", f'{PARTY}listen = "{address}"\n')
    assert "'listen' cannot be used" in said and "host:port, such as bank.example:7001" in said


def test_paths_of_a_party_file_are_seen_from_where_it_lies(tmp_path, monkeypatch):
    home = tmp_path / "bank"
    home.mkdir()
    text = (
        f'{PARTY}passphrase_file = "p"\nrevocation_list = "r"\n[data]\nnodes = "n.csv"\nedges = "../e.csv"\n'
        'labels = "/abs/l.csv"\n[data.csv.nodes]\ndelimiter = ";"\n'
    )
    (home / "party.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    found = load_party(home / "party.toml")
    paths = (
        "key",
        "certificate",
        "run_folder",
        "privacy_ledger",
        "opened_ledger",
        "passphrase_file",
        "revocation_list",
    )
    assert {getattr(found, name).parent for name in paths} == {home}
    assert found.data.nodes == home / "n.csv" and found.data.edges == home / ".." / "e.csv"
    assert str(found.data.labels) == "/abs/l.csv" and found.data.csv == {"nodes": {"delimiter": ";"}}


def test_only_what_can_be_accepted_is_accepted(tmp_path):
    said = refused(load_party, tmp_path / "party.toml", f'{PARTY}accept = ["DETERMINES_LABELS"]\n')
    assert "'accept.0' cannot be used" in said and "did you mean 'DETERMINES_LABEL'?" in said
    assert "did you mean 'min_common'?" in refused(load_party, tmp_path / "party.toml", f"{PARTY}mincommon = 0.2\n")
    assert "at most 1" in refused(load_party, tmp_path / "party.toml", f"{PARTY}min_common = 20\n")
