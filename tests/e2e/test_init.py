"""`vfgnn init` and `vfgnn privacy`: what they write, and what they refuse."""

import json
import math

import pytest
from typer.testing import CliRunner

from tests.tables import vfgnn, write_tables
from vfgnn.cli.main import app
from vfgnn.errors import ConfigError
from vfgnn.files import load_federation, load_party


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
    vfgnn("init", "federation", *written, "--out", tmp_path / "federation.toml")
    file = load_federation(tmp_path / "federation.toml")
    assert file.label_holder == "bank" and file.alignment.method == "psi" and file.nodes is None
    assert file.settings.initial_embedding == "individual" and file.settings.class_weights == "balanced"
    assert "#" in (tmp_path / "federation.toml").read_text()
    party = load_party(tmp_path / "bank" / "party.toml")
    assert party.data.nodes.is_absolute() and party.name == "bank"


def test_collaborative_needs_a_dealer_and_three_holders_tokens(tmp_path):
    written = cards(tmp_path, ("bank", "shop", "phone"), ("server", "dealer"))
    out = ["--out", tmp_path / "federation.toml", "--mode", "collaborative"]
    without = [card for card in written if card.name != "dealer.card.toml"]
    assert "[dealer] is needed" in refused("init", "federation", *without, *out)
    assert "for two holders" in refused("init", "federation", *written, *out, "--alignment", "psi")
    vfgnn("init", "federation", *written, *out)
    assert load_federation(tmp_path / "federation.toml").alignment.method == "tokens"
    assert "already" in refused("init", "federation", *written, *out)


def test_what_cannot_be_a_federation_is_refused(tmp_path):
    written = cards(tmp_path)
    out = ["--out", tmp_path / "federation.toml"]
    assert "no card of the server" in refused("init", "federation", *written[1:], *out)
    assert "one holder must have the labels" in refused("init", "federation", written[0], written[2], *out)
    assert "unknown mode" in refused("init", "federation", *written, *out, "--mode", "both")
    assert "individual" in refused(
        "init", "federation", *written, *out, "--mode", "collaborative", "--keep-local-neighbours"
    )
    assert not (tmp_path / "federation.toml").exists()
    assert "no key of telecom" in refused(
        "init", "party", "telecom", "--folder", tmp_path, "--address", "none", "--nodes", "x.csv"
    )
    assert "nobody is there to ask" in refused("init", "party", "telecom", "--folder", tmp_path)


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
