"""Every error of ours has an exit code, and the codes that people read about are those that they get."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import vfgnn
from vfgnn import errors
from vfgnn.cli.main import EXIT_CODES
from vfgnn.errors import ExitCode, VfgnnError

DEPLOYMENT = Path(__file__).parents[2] / "docs" / "deployment.md"
ELSEWHERE = {"vfgnn.party.serve.desk.OutOfService"}  # an answer to an HTTP request; it ends no command


def below(kind):
    return {kind}.union(*(below(one) for one in kind.__subclasses__()))


@pytest.fixture(scope="module")
def ours():
    """All errors that any module of the package defines."""
    for module in pkgutil.walk_packages(vfgnn.__path__, "vfgnn."):
        if module.name != "vfgnn.__main__":  # runs the command line
            importlib.import_module(module.name)
    return {kind for kind in below(VfgnnError) if kind.__module__.startswith("vfgnn.")}


def test_every_error_has_a_documented_code(ours):
    assert len(ours) > 15
    for kind in ours:
        assert isinstance(kind.exit_code, ExitCode), kind
        assert str(kind.exit_code.value) in EXIT_CODES, kind


def test_the_tree_in_the_docstring_shows_every_error_below_its_base_with_its_code(ours):
    drawn, path = {}, []
    for indent, name, code in re.findall(r"^    ([ │├└─]*)(\w+) +(\d)  ", errors.__doc__, re.MULTILINE):
        path[len(indent) // 4 :] = [name]
        drawn[name] = (path[-2] if len(path) > 1 else "Exception", int(code))
    here = {kind for kind in ours if kind.__module__ == errors.__name__}
    assert {f"{kind.__module__}.{kind.__name__}" for kind in ours - here} == ELSEWHERE
    assert drawn == {kind.__name__: (kind.__base__.__name__, kind.exit_code) for kind in here}


def test_the_deployment_guide_lists_the_codes():
    section = DEPLOYMENT.read_text().split("Exit codes\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+) \| (.+) \|$", section, re.MULTILINE)
    assert dict(rows[1:]) == EXIT_CODES
