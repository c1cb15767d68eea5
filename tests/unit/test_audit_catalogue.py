"""Every attack is in the catalogue and says what it is; documents and pages quote what the command wrote."""

from importlib import import_module, resources
from pathlib import Path

import pytest

from vfgnn.audit.attack import Attack, Target
from vfgnn.audit.case import PartyRole
from vfgnn.audit.catalogue import CATALOGUE, entries_for
from vfgnn.report import benchmark
from vfgnn.report.audit.markdown import put_into
from vfgnn.report.opened import opened_grid

DOCS = Path(__file__).parents[2] / "docs"


def attacks():
    """All descriptions in the folder, by name."""
    names = [path.name.removesuffix(".py") for path in resources.files("vfgnn.audit").iterdir() if path.suffix == ".py"]
    modules = [import_module(f"vfgnn.audit.{name}") for name in names]
    return {one.name: one for module in modules for one in vars(module).values() if isinstance(one, Attack)}


def test_every_attack_is_carried_out_by_somebody():
    assert {one.name for entry in CATALOGUE for one in entry.attacks} == set(attacks())


@pytest.mark.parametrize("attack", attacks().values(), ids=lambda one: one.name)
def test_an_attack_says_what_it_assumes_and_what_would_help(attack):
    assert all(isinstance(value, str) and value for value in vars(attack).values())
    assert attack.target in Target


def test_entries_have_names_of_their_own():
    for protocol in ("split", "sealed"):
        for role in PartyRole:
            names = [entry.name for entry in entries_for(protocol, role)]
            assert len(set(names)) == len(names)


@pytest.mark.parametrize("measured", [benchmark.leaks, benchmark.mitigations])
def test_the_threat_model_has_the_tables_of_the_command(measured):
    """`vfgnn audit ... --markdown docs/threat_model.md` with the same figures changes nothing."""
    text = (DOCS / "threat_model.md").read_text()
    content = measured().content
    assert put_into(text, content) == text
    assert content["command"] in text.replace(" \\\n        ", " ")


def test_what_predictions_tell_stands_in_the_threat_model():
    assert opened_grid(benchmark.leaks()).to_markdown() in (DOCS / "threat_model.md").read_text()
