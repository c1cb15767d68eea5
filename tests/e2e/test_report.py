"""The page about a run, seen in a browser; what it says when a log was altered, and what records cannot do to it."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.network import new_certificate, small
from tests.pages import CHROMIUM, Elements, browsed, figures_beside, put_into
from vfgnn.errors import DataError, LogRefused
from vfgnn.lab.processes import LocalProcesses
from vfgnn.report.run.page import make_page
from vfgnn.report.run.records import Kept
from vfgnn.report.run.split import openings


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run of four processes."""
    noise = {"edge_epsilon": 4.0, "label_epsilon": 2.0}
    local = small(tmp_path_factory.mktemp("report") / "federation", epochs=6, combine="confidence", privacy=noise)
    with LocalProcesses(local) as running:
        running.wait()
    return local


@pytest.fixture
def local(finished, tmp_path):
    """A copy that a test may spoil."""
    shutil.copytree(finished.folder, tmp_path / "federation")
    return type(finished)(tmp_path / "federation", finished.file)


def folders(local):
    return [local.run_folder(name) for name in local.names]


def test_the_command_writes_one_page(finished, tmp_path):
    out = tmp_path / "report.html"
    command = [str(Path(sys.executable).parent / "vfgnn"), "report", *map(str, folders(finished)), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    page = out.read_text()
    for part in (
        "test accuracy",
        "What was opened, and to whom",
        "Learning",
        "Traffic",
        "An epoch",
        "leak meter",
        "Who saw what",
        "Configuration",
    ):
        assert part in page
    assert page.count("0 outside the schedule") == 4
    assert page.count("signed by") == 4
    assert "no disagreements" in page
    assert not re.findall(r"disagreement", page.replace("no disagreements", ""))
    assert "BEGIN" not in page  # neither keys nor certificates


def test_what_was_opened_in_words(finished, local):
    told = dict(openings([Kept.read(folder) for folder in folders(finished)]))
    share = {
        json.loads((folder / "run.json").read_text()).get("leak_meter", {}).get("share") for folder in folders(finished)
    }
    assert told["server"] == "rows of A and B, which tell edges; training labels can be inferred"
    assert told["holders"].startswith(f"each other's features ({min(share - {None}):.0%}")
    assert told["B and server"] == "which nodes train and validate"
    # A holder's own records say what that holder knows of.
    alone = dict(openings([Kept.read(local.run_folder("B"))]))
    assert alone["server"] == "rows of B, which tell edges"
    (local.run_folder("B") / "messages.jsonl").unlink()
    assert "server" not in dict(openings([Kept.read(local.run_folder("B"))]))


def test_nothing_in_the_page_is_fetched(finished):
    page = make_page(folders(finished))
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#)""", page)
    assert "<script" not in page
    assert "@import" not in page
    assert not re.findall(r"url\((?!#)", page)


def test_a_party_alone_shows_what_it_knows(finished):
    page = make_page([finished.run_folder("B")])
    assert "known to the label holder only" in page
    assert "test accuracy" not in page


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_draws_the_figures_and_fetches_nothing(finished, tmp_path, width):
    drawn = browsed(make_page(folders(finished)), tmp_path, width)
    assert drawn.count("<svg") == 3
    assert drawn.count("<path") > 30


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")
def test_a_browser_runs_no_script_even_if_one_stood_in_the_page(finished, tmp_path):
    page = tmp_path / "report.html"
    page.write_text(make_page([finished.run_folder("A")]).replace("<h1>", "<h1><script>document.title = 1</script>"))
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
               f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]  # fmt: skip
    drawn = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "<title>vfgnn run" in drawn.stdout
    assert "Content Security Policy" in drawn.stderr


def test_an_altered_log_is_refused(local):
    path = local.run_folder("A") / "messages.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(LogRefused, match="does not fit its log"):
        make_page([local.run_folder("A")])
    lines[3] = lines[3].replace('"step": null', '"step": 7')
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LogRefused, match="line 4"):
        make_page([local.run_folder("A")])


def test_a_log_that_was_written_and_sealed_anew_disagrees_with_the_peers(local):
    """Whoever alters its log and signs it again with its own key is found by the other end of the link."""
    from vfgnn.chain import FIRST, _hash
    from vfgnn.message_log import read_entries, seal_path
    from vfgnn.transport import certificates

    path = local.run_folder("A") / "messages.jsonl"
    before, lines = FIRST, []
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        fields.pop("hash")
        if fields["kind"] == "hidden_gradient":
            fields["digest"] = "blake3:" + "0" * 64
        before = _hash(before, fields)
        lines.append(json.dumps({**fields, "hash": before}))
    path.write_text("\n".join(lines) + "\n")
    content = json.dumps({"entries": len(lines), "head": before}, sort_keys=True).encode()
    home = local.folder / "A"
    signature, certificate = certificates.sign(content, home / "A.key.pem", None, home / "A.certificate.pem")
    seal = {"entries": len(lines), "head": before, "signature": signature.hex(), "certificate": certificate}
    seal_path(path).write_text(json.dumps(seal))
    assert len(list(read_entries(path))) == len(lines)
    page = make_page(folders(local))
    assert re.search(r"server and A: [1-9]\d* disagreements", page)


def test_a_seal_of_somebody_else_is_refused(local):
    from vfgnn.message_log import seal_path

    new_certificate(local, "A")
    path = seal_path(local.run_folder("A") / "messages.jsonl")
    seal = json.loads(path.read_text())
    seal["certificate"] = (local.folder / "A" / "A.certificate.pem").read_text()
    path.write_text(json.dumps(seal))
    with pytest.raises(LogRefused, match="somebody else"):
        make_page([local.run_folder("A")])


def test_folders_that_do_not_belong_together_are_refused(local, tmp_path):
    with pytest.raises(DataError, match="not a run folder"):
        make_page([tmp_path])
    about = local.run_folder("B") / "run.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "run": "another"}))
    with pytest.raises(DataError, match="different runs"):
        make_page(folders(local))


RECORDS = ("run.json", "federation.json", "traffic.json", "metrics.jsonl", "messages.seal.json", "messages.jsonl")


@pytest.fixture
def folder(local):
    """A's run folder, with a prediction in it."""
    folder = local.run_folder("A")
    (folder / "predictions" / "one").mkdir(parents=True)
    shutil.copy(folder / "messages.jsonl", folder / "predictions" / "one")
    about = json.loads((folder / "run.json").read_text())
    alone = {"scores": about["outcome"]["scores"], "reason": "none"}  # as a run between hosts leaves it
    (folder / "run.json").write_text(json.dumps({**about, "alone": alone}))
    return folder


@pytest.fixture
def figures(monkeypatch):
    return figures_beside(monkeypatch, "curves", "links", "timeline")


@pytest.fixture
def clean(folder):
    """What a page is made of where nobody means harm."""
    return Elements(make_page([folder])).kinds


@pytest.mark.parametrize("name", RECORDS)
def test_no_record_can_put_markup_into_the_page(folder, clean, figures, name):
    """Another party's file may say anything: it is refused by name, or shown as text."""
    if name == "messages.jsonl":  # its owner could seal it anew; here it is not sealed
        (folder / "messages.seal.json").unlink()
    elif name != "messages.seal.json":  # for speed
        (folder / "messages.jsonl").unlink()
        shutil.rmtree(folder / "predictions")
    shown, refused = put_into(folder, name, clean)
    assert refused > 10 and (shown > 10 or name == "messages.seal.json")
    assert all(Elements(figure).kinds <= clean for figure in figures.values())


def test_a_value_that_is_no_number_is_named_with_its_file_and_key(folder):
    """`leak_meter.revealed` went into the page as it was."""
    about = json.loads((folder / "run.json").read_text())
    about["leak_meter"]["revealed"] = "<script>alert(1)</script>"
    (folder / "run.json").write_text(json.dumps(about))
    with pytest.raises(DataError, match=r"'leak_meter.revealed' cannot be used") as raised:
        make_page([folder])
    assert "run.json" in str(raised.value) and "script" not in str(raised.value)


def test_without_escaping_the_script_would_be_there(folder, figures, monkeypatch):
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "program": "<script>alert(1)</script>"}))
    assert "script" not in {tag for tag, _ in Elements(make_page([folder])).kinds}
    monkeypatch.setattr("vfgnn.report.html.html.escape", str)
    assert "script" in {tag for tag, _ in Elements(make_page([folder])).kinds}


def test_two_folders_of_one_party_are_refused(folder):
    with pytest.raises(DataError, match="several folders of one party"):
        make_page([folder, folder])
