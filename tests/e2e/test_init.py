"""`vfgnn init` and `vfgnn privacy`: what they write, and what they refuse."""

import json
import math
import re
from functools import partial

import pytest
from typer.testing import CliRunner

from tests.tables import vfgnn, write_tables
from vfgnn.cli.main import app
from vfgnn.errors import ConfigError, TableError
from vfgnn.files import Limits, load_federation, load_party
from vfgnn.party.cards import read_card
from vfgnn.party.own_data import load_data, read_tables
from vfgnn.sealed.own_edges import proposed_bound


def cards(folder, holders=("bank", "shop"), middle=("server",)):
    write_tables(folder, holders)
    for port, name in enumerate([*middle, *holders], start=7001):
        home = folder / name
        vfgnn("keys", "new", name, "--folder", home)
        tables = ["--nodes", home / "nodes.csv", "--edges", home / "edges.csv"] if name in holders else []
        tables += ["--labels", home / "labels.csv"] if name == holders[0] else []
        vfgnn("init", "party", name, "--folder", home, "--address", f"localhost:{port}", *tables)
    return [folder / name / f"{name}.card.toml" for name in (*middle, *holders)]


def refused(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, ConfigError), result.output
    return str(result.exception)


def test_cards_hold_counts_and_no_values(tmp_path):
    written = cards(tmp_path)
    certificate = (tmp_path / "bank" / "bank.certificate.pem").read_text().strip()  # any two letters may be in it
    before, after = (tmp_path / "bank" / "bank.card.toml").read_text().split(certificate)
    text = before + after
    assert "features = 2" in text and "classes = 2" in text and "P0" not in text and "good" not in text
    vfgnn("init", "federation", *written, "--out", tmp_path / "federation.toml", "--protocol", "split")
    file = load_federation(tmp_path / "federation.toml")
    assert file.label_holder == "bank" and file.alignment.method == "psi" and file.nodes is None
    assert file.settings.initial_embedding == "individual" and file.settings.class_weights == "balanced"
    assert "#" in (tmp_path / "federation.toml").read_text()
    party = load_party(tmp_path / "bank" / "party.toml")
    assert party.data.nodes.is_absolute() and party.name == "bank"


def test_collaborative_needs_a_dealer_and_three_holders_tokens(tmp_path):
    written = cards(tmp_path, ("bank", "shop", "phone"), ("server", "dealer"))
    out = ["--out", tmp_path / "federation.toml", "--protocol", "split", "--mode", "collaborative"]
    without = [card for card in written if card.name != "dealer.card.toml"]
    assert "[dealer] is needed" in refused("init", "federation", *without, *out)
    assert "for two holders" in refused("init", "federation", *written, *out, "--alignment", "psi")
    vfgnn("init", "federation", *written, *out)
    assert load_federation(tmp_path / "federation.toml").alignment.method == "tokens"
    assert "already" in refused("init", "federation", *written, *out)


def test_what_cannot_be_a_federation_is_refused(tmp_path):
    written = cards(tmp_path)
    out = ["--out", tmp_path / "federation.toml", "--protocol", "split"]
    assert "no card of the server" in refused("init", "federation", *written[1:], *out)
    assert "one holder must have the labels" in refused("init", "federation", written[0], written[2], *out)
    assert "individual" in refused("init", "federation", *written, *out, "--mode", "both")
    assert "individual" in refused(
        "init", "federation", *written, *out, "--mode", "collaborative", "--keep-local-neighbours"
    )
    assert "unknown protocol" in refused("init", "federation", *written, "--protocol", "both")
    assert not (tmp_path / "federation.toml").exists()
    assert "no key of telecom" in refused(
        "init", "party", "telecom", "--folder", tmp_path, "--address", "none", "--nodes", "x.csv"
    )
    assert "nobody is there to ask" in refused("init", "party", "telecom", "--folder", tmp_path)


def party(folder, name="shop", *words):
    """`vfgnn init party` again; what it says."""
    for kind in ("party.toml", f"{name}.card.toml"):
        (folder / name / kind).unlink(missing_ok=True)
    home = folder / name
    tables = ["--nodes", home / "nodes.csv", "--edges", home / "edges.csv"]
    return ["init", "party", name, "--folder", home, "--address", "localhost:7009", *tables, *words]


def test_sealed_is_the_default_and_two_holders_need_no_server(tmp_path):
    written = cards(tmp_path, middle=("dealer",))
    vfgnn("init", "federation", *written, "--out", tmp_path / "federation.toml")
    file = load_federation(tmp_path / "federation.toml")
    assert list(file.parties) == ["dealer", "bank", "shop"]
    chosen = file.settings
    assert (chosen.protocol, chosen.class_weights, chosen.select_by) == ("sealed", "balanced", "f1")
    assert (chosen.sealed.kernel, chosen.sealed.columns, chosen.sealed.opens) == ("hops", "bins", "classes")
    told = read_card(tmp_path / "shop" / "shop.card.toml")
    (shop,) = [holder for holder in file.holders if holder.name == "shop"]
    assert (shop.features, shop.integer) == (told.sealed.features, False)
    assert told.sealed.features > told.features == 2
    entries = len((tmp_path / "shop" / "edges.csv").read_text().splitlines()[1:]) * 2
    assert shop.entry_bound == told.sealed.entry_bound == proposed_bound(shop.entry_bound)  # says it rounded
    assert shop.entry_bound <= proposed_bound(entries)  # pairs that stand there twice are one edge


def test_a_server_is_listed_where_it_aligns(tmp_path):
    written = cards(tmp_path, ("bank", "shop", "phone"), ("server", "dealer"))
    vfgnn("init", "federation", *written, "--out", tmp_path / "federation.toml")
    assert list(load_federation(tmp_path / "federation.toml").parties)[:2] == ["server", "dealer"]
    two = [card for card in written if card.name != "phone.card.toml"]
    vfgnn("init", "federation", *two, "--out", tmp_path / "two.toml")
    assert load_federation(tmp_path / "two.toml").server is None


def test_a_party_is_told_what_it_declares_and_may_declare_more(tmp_path):
    written = cards(tmp_path, middle=("dealer",))
    said = vfgnn(*party(tmp_path))
    bound = read_card(written[-1]).sealed.entry_bound
    assert f"at most {bound} directed entries" in said and "rounded up" in said
    assert "at most 5000 directed" in vfgnn(*party(tmp_path, "shop", "--entry-bound", 5000))
    assert "entry bound below" in refused(*party(tmp_path, "shop", "--entry-bound", 7))


def test_scores_are_agreed_to_at_home_and_limits_stand_in_the_public_file(tmp_path):
    written = cards(tmp_path, middle=("dealer",))
    vfgnn("init", "federation", *written, "--out", tmp_path / "federation.toml")
    assert load_federation(tmp_path / "federation.toml").limits == Limits(max_trainings=10)
    assert "max_trainings = 10" in (tmp_path / "federation.toml").read_text()
    vfgnn(*party(tmp_path))
    card = written[-1].read_text()
    assert not load_party(tmp_path / "shop" / "party.toml").allow_scores
    vfgnn(*party(tmp_path, "shop", "--allow-scores"))
    assert load_party(tmp_path / "shop" / "party.toml").allow_scores
    assert written[-1].read_text() == card  # nobody is told


def test_what_sealed_cannot_take_is_refused_by_name(tmp_path):
    written = cards(tmp_path, middle=("dealer",))
    all_of_them = ["init", "federation", *written, "--out", tmp_path / "federation.toml"]
    assert "no mode" in refused(*all_of_them, "--mode", "individual")
    assert "accuracy or f1" in refused(*all_of_them, "--set", "select_by=average_precision")
    assert "keep_local_neighbours" in refused(*all_of_them, "--keep-local-neighbours")
    assert "[dealer] is needed" in refused(*all_of_them[:2], *written[1:], *all_of_them[-2:])
    said = refused(*all_of_them, "--set", "sealed.bins=4")
    assert "other maps" in said and "vfgnn init party bank --set sealed.bins=4" in said
    edges = tmp_path / "shop" / "edges.csv"
    edges.write_text("\n".join(line + (",7" if i else ",w") for i, line in enumerate(edges.read_text().splitlines())))
    assert "not for the sealed protocol: edges with weights" in vfgnn(*party(tmp_path, "shop", "--weight", "w"))
    assert "nothing for the sealed protocol" in refused(*all_of_them)
    assert not (tmp_path / "federation.toml").exists()


def test_other_maps_are_counted_where_they_are_asked_for(tmp_path):
    written = cards(tmp_path, ("bank", "shop"), ("dealer",))
    changed = [
        "--set",
        "sealed.columns=as they are",
        "--set",
        "sealed.own_degree=false",
        "--set",
        "sealed.scaled=false",
    ]
    for name in ("bank", "shop"):
        words = ["--labels", tmp_path / "bank" / "labels.csv"] if name == "bank" else []
        vfgnn(*party(tmp_path, name, *words, *changed))
    vfgnn("init", "federation", *written, "--out", tmp_path / "federation.toml", *changed)
    assert {holder.features for holder in load_federation(tmp_path / "federation.toml").holders} == {2}


def test_dialects_are_told_and_fixed_in_party_toml(tmp_path):
    cards(tmp_path, middle=("dealer",))
    before = (tmp_path / "shop" / "nodes.csv").read_text()
    german = "\n".join(line.replace(",", ";").replace(".", ",") for line in before.splitlines())
    (tmp_path / "shop" / "nodes.csv").write_text(german.replace("P0", "Ö0"), encoding="latin-1")
    edges = tmp_path / "shop" / "edges.csv"
    edges.write_text(edges.read_text().replace("P0", "Ö0"))
    said = vfgnn(*party(tmp_path))
    assert "delimiter ';', decimal sign ',', Latin-1" in said and "delimiter ',', decimal sign '.', UTF-8" in said
    made = load_party(tmp_path / "shop" / "party.toml")
    assert made.data.csv["nodes"] == {"delimiter": ";", "decimal": ",", "encoding": "latin-1", "header": True}
    assert read_tables(made).nodes.names == ("a1", "b1")
    assert 'nodes = "nodes.csv"' in (tmp_path / "shop" / "party.toml").read_text()  # the folder can be moved
    (tmp_path / "shop" / "nodes.csv").write_text(before)
    with pytest.raises(TableError, match="the delimiter looks like ','"):
        read_tables(made)


def test_other_keys_of_columns_and_dialects_can_be_given(tmp_path):
    cards(tmp_path, middle=("dealer",))
    nodes = tmp_path / "shop" / "nodes.csv"
    lines = nodes.read_text().splitlines()
    nodes.write_text(
        "\n".join([f"{lines[0]};seen", *(f"{line};0{1 + i % 9}.12.2020" for i, line in enumerate(lines[1:]))])
    )
    nodes.write_text(nodes.read_text().replace(",", ";"))
    words = ["--column", "missing=zero", "--column", "dates.seen=%d.%m.%Y", "--csv", "nodes.delimiter=;"]
    vfgnn(*party(tmp_path, "shop", *words, "--drop", "b1"))
    made = load_party(tmp_path / "shop" / "party.toml")
    assert made.data.columns == {"drop": ["b1"], "missing": "zero", "dates": {"seen": "%d.%m.%Y"}}
    assert read_tables(made).nodes.names == ("a1", "seen")
    assert "did you mean 'missing'?" in refused(*party(tmp_path, "shop", "--column", "mising=zero"))
    assert "did you mean 'delimiter'?" in refused(*party(tmp_path, "shop", "--csv", "nodes.delimeter=;"))
    assert "'csv.knots'" in refused(*party(tmp_path, "shop", "--csv", "knots.delimiter=;"))


def test_disasters_are_refused_by_name_until_they_are_accepted(tmp_path):
    cards(tmp_path, middle=("dealer",))
    home = tmp_path / "bank"
    labels = dict(line.split(",") for line in (home / "labels.csv").read_text().splitlines()[1:])
    lines = (home / "nodes.csv").read_text().splitlines()
    joined = [f"{line},{labels.get(line.split(',')[0], '')}" for line in lines[1:]]
    (home / "nodes.csv").write_text("\n".join([f"{lines[0]},label", *joined]))
    words = ["--labels", home / "labels.csv"]
    result = CliRunner().invoke(app, [str(word) for word in party(tmp_path, "bank", *words)])
    assert isinstance(result.exception, TableError) and result.exception.code == "LABEL_AMONG_FEATURES"
    assert "LABEL_AMONG_FEATURES" in result.output and not (home / "party.toml").exists()
    assert "nothing that can be accepted" in refused(*party(tmp_path, "bank", *words, "--accept", "GAPS"))
    vfgnn(*party(tmp_path, "bank", *words, "--accept", "LABEL_AMONG_FEATURES"))
    assert load_party(home / "party.toml").accept == ("LABEL_AMONG_FEATURES",)
    vfgnn(*party(tmp_path, "bank", *words, "--drop", "label"))
    assert load_party(home / "party.toml").accept == ()


@pytest.mark.parametrize("address", ["bank.example", "localhost:", "localhost:70000", ":7001"])
def test_an_address_needs_a_port(tmp_path, address):
    said = refused("init", "party", "shop", "--folder", tmp_path, "--address", address, "--nodes", "x.csv")
    assert "an address that cannot be dialled" in said and "host:port" in said


def renumbered(form, found):
    return form.format(int(found[1] + found[2]))


def test_ids_that_lost_their_zeros_at_one_holder_are_refused_before_a_run(tmp_path):
    written = cards(tmp_path, middle=("dealer",))
    for name, form in (("bank", "{:07d}"), ("shop", "{}")):
        for table in ("nodes.csv", "edges.csv", *(["labels.csv"] if name == "bank" else [])):
            path = tmp_path / name / table
            text = re.sub(r"only-\w+-(\d)", r"P99999-\1", path.read_text())
            path.write_text(re.sub(r"P(\d+)-(\d+)", partial(renumbered, form), text))
        words = ["--labels", tmp_path / name / "labels.csv"] if name == "bank" else []
        vfgnn(*party(tmp_path, name, *words))
    assert read_card(written[1]).ids.leading_zeros and not read_card(written[2]).ids.leading_zeros
    said = vfgnn("init", "federation", *written, "--out", tmp_path / "federation.toml")
    assert "ids of bank have leading zeros, those of shop have none: shop will refuse to run" in said
    file = load_federation(tmp_path / "federation.toml")
    load_data(file, load_party(tmp_path / "bank" / "party.toml"))
    shop = load_party(tmp_path / "shop" / "party.toml")
    with pytest.raises(TableError, match="leading zeros") as caught:
        load_data(file, shop)
    assert caught.value.code == "LOST_ZEROS"
    load_data(file, shop.model_copy(update={"accept": ("LOST_ZEROS",)}))


def test_privacy_plan(tmp_path):
    out = tmp_path / "plan.json"
    said = vfgnn("privacy", "plan", "--epsilon", 8, "--delta", 1e-4, "--releases", 200, "--json", out)
    plan = json.loads(out.read_text())
    assert plan["noise_multiplier"] == pytest.approx(0.54308, rel=1e-4)
    assert plan["epsilon_total"] == pytest.approx(435.0, rel=1e-3)
    assert plan["epsilon_per_release"] == pytest.approx(8)
    assert plan["signal_to_noise_per_row"] == pytest.approx(1 / (0.54308 * 8), rel=1e-4)
    assert "noised edges" in said
    vfgnn("privacy", "plan", "--epsilon", 8, "--releases", 200, "--total", "--json", out)
    plan = json.loads(out.read_text())
    assert plan["epsilon_total"] == pytest.approx(8) and plan["noise_multiplier"] == pytest.approx(
        0.54308 * math.sqrt(200), rel=1e-4
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--epsilon", 0), "epsilon cannot be used"),
        (("--epsilon", -1), "epsilon cannot be used"),
        (("--epsilon", 1, "--delta", 0), "delta cannot be used"),
        (("--epsilon", 1, "--delta", 1), "delta cannot be used"),
        (("--epsilon", 1, "--delta", 0.001, "--nodes", 2708), "delta is too large"),
        (("--epsilon", 1, "--calibration", "guess"), "unknown calibration"),
    ],
)
def test_privacy_plan_refuses(words, said):
    assert said in refused("privacy", "plan", *words)
