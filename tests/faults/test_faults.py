"""`vfgnn data check` names what is wrong with tables, before any key exists; nothing wrong is named in good ones."""

import json

import pytest
from typer.testing import CliRunner

from tests.faults.sets import COUNT, PREFIX, SETS, good
from vfgnn.cli.main import app
from vfgnn.errors import ExitCode, TableError
from vfgnn.files import ACCEPTABLE, load_party
from vfgnn.party.own_data import read_tables


def check(*words, code=0):
    """What the command says, and its findings."""
    result = CliRunner().invoke(app, ["data", "check", *map(str, words)], env={"COLUMNS": "300"})
    assert result.exit_code == code, result.output
    return result.output


def findings(folder, *words, code=0):
    said = check(*words, "--json", folder / "found.json", "--report", folder / "check.html", code=code)
    found = json.loads((folder / "found.json").read_text())["findings"]
    assert all({"code", "file", "column", "count"} <= one.keys() for one in found)
    return said, found, (folder / "check.html").read_text()


def test_good_tables_have_no_findings(tmp_path):
    said, found, page = findings(tmp_path, good().write(tmp_path))
    assert found == [] and "0 errors, 0 warnings" in said
    words = (f"nodes: {COUNT}", "whole numbers of 9 digits", f"{COUNT} with leading zeros", "days since 1970-01-01")
    for word in words:
        assert word in said and word in page
    assert "fraud: " in said and "train" in said and page.count("<svg") == 3
    assert PREFIX not in said


@pytest.mark.parametrize("name", SETS)
def test_the_fault_is_named_before_any_key_exists(tmp_path, name):
    make, code, file, column, count = SETS[name]
    case = make()
    party = case.write(tmp_path)
    said, found, page = findings(tmp_path, party, code=ExitCode.BAD_INPUT)
    errors = [one for one in found if one["level"] == "error"]
    assert [(one["code"], one["file"], one["column"]) for one in errors] == [(code, str(tmp_path / file), column)]
    if count is None:
        assert errors[0]["count"] > 0
    else:
        assert errors[0]["count"] == count
    assert code in said and code in page
    assert not any(one and (one in said or one in page) for one in case.ids)  # never the value of an id
    assert not list(tmp_path.glob("*.pem"))


@pytest.mark.parametrize("name", [name for name, (_, code, *_) in SETS.items() if code in ACCEPTABLE])
def test_a_disaster_is_refused_in_a_run_unless_it_is_accepted_by_name(tmp_path, name):
    make, code, *_ = SETS[name]
    case = make()
    party = case.write(tmp_path)
    (tmp_path / "bank.key.pem").write_text("of the split by hash")
    with pytest.raises(TableError) as refused:
        read_tables(load_party(party))
    assert refused.value.code == code and f'accept = ["{code}"]' in str(refused.value)
    case.party = f'accept = ["{code}"]\n'
    read_tables(load_party(case.write(tmp_path)))
    said, found, _ = findings(tmp_path, party)
    assert [one["level"] for one in found if one["code"] == code] == ["warning"], said
    other = next(one for one in ACCEPTABLE if one != code)
    case.party = f'accept = ["{other}"]\n'
    with pytest.raises(TableError):
        read_tables(load_party(case.write(tmp_path)))
