"""The page about a run, seen in a browser; what it says when a log was altered, and what records cannot do to it."""

import json
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.network import new_certificate, small
from tests.pages import Elements, changed, places
from vfgnn.chain import Chain
from vfgnn.errors import DataError, LogRefused, VfgnnError
from vfgnn.lab.processes import LocalProcesses
from vfgnn.report import charts
from vfgnn.report.html import Html
from vfgnn.report.run.page import make_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


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
    for part in ("test accuracy", "Learning", "Traffic", "An epoch", "leak meter", "Who saw what", "Configuration"):
        assert part in page
    assert page.count("0 outside the schedule") == 4
    assert page.count("signed by") == 4
    assert "no disagreements" in page
    assert not re.findall(r"disagreement", page.replace("no disagreements", ""))
    assert "BEGIN" not in page  # neither keys nor certificates


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
    page, log, shot = tmp_path / "report.html", tmp_path / "net.json", tmp_path / "shot.png"
    page.write_text(make_page(folders(finished)))
    common = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
              "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}",
              f"--window-size={width},3000"]  # fmt: skip
    drawn = subprocess.run(
        [*common, f"--log-net-log={log}", "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120
    )
    assert drawn.stdout.count("<svg") == 3
    assert drawn.stdout.count("<path") > 30
    assert "CONSOLE" not in drawn.stderr  # where a browser says what the page's policy kept it from
    fetched = re.findall(r'"url":"(https?://[^"]*)"', log.read_text())
    assert not [url for url in fetched if "report" in url or "vfgnn" in url]
    text = page.read_text()
    assert not [url for url in fetched if url in text]
    subprocess.run([*common, f"--screenshot={shot}", page.as_uri()], capture_output=True, timeout=120, check=True)
    assert shot.stat().st_size > 20_000


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
NOT_JSON = (b"", b"{", b"[" * 100_000 + b"\n", b'{"party": "\xff"}\n', b"null\n", b"1\n", b'"x"\n', b"[]\n", b"{}\n")


@pytest.fixture
def folder(local):
    """A's run folder, with a prediction in it."""
    folder = local.run_folder("A")
    (folder / "predictions" / "one").mkdir(parents=True)
    shutil.copy(folder / "messages.jsonl", folder / "predictions" / "one")
    return folder


@pytest.fixture
def figures(monkeypatch):
    """Figures are drawn beside the page, once for equal values: pages are then made and read in milliseconds."""
    drawn = {}

    def beside(draw, value):
        drawn[repr(value)] = drawn.get(repr(value)) or draw(value)
        return Html()

    for name in ("curves", "links", "timeline"):
        monkeypatch.setattr(charts, name, partial(beside, getattr(charts, name)))
    return drawn


def variants(path):
    """The content of a record with one value or free key changed, each in turn; a log is chained anew."""
    text = path.read_text()
    if path.suffix == ".json":
        document = json.loads(text)
        yield from (json.dumps(changed(document, *place)) for place in places(document))
        return
    lines = [json.loads(line) for line in text.splitlines() if '"step": null' not in line][:40]
    number = next(i for i, line in enumerate(lines) if line.get("step", 3) == 3)  # of the step that is drawn
    for place in places(lines[number]):
        if place[0] == ():
            continue  # no line of a chain
        altered = [*lines[:number], changed(lines[number], *place), *lines[number + 1 :]]
        yield chained(path, altered) if path.name == "messages.jsonl" else "\n".join(map(json.dumps, altered)) + "\n"


def chained(path, lines):
    log = path.with_name("anew.jsonl")
    log.unlink(missing_ok=True)
    chain = Chain(log, "message log", LogRefused)
    for line in lines:
        chain.append({key: value for key, value in line.items() if key not in ("number", "hash")})
    chain.close()
    return log.read_text()


@pytest.fixture
def clean(folder):
    """What a page is made of where nobody means harm."""
    return Elements(make_page([folder])).kinds


@pytest.mark.parametrize("name", RECORDS)
def test_no_record_can_put_markup_into_the_page(folder, clean, figures, name):
    """Another party's file may say anything: it is refused by name, or shown as text."""
    path = folder / name
    if name == "messages.jsonl":  # its owner could seal it anew; here it is not sealed
        (folder / "messages.seal.json").unlink()
    elif name != "messages.seal.json":  # for speed
        (folder / "messages.jsonl").unlink()
        shutil.rmtree(folder / "predictions")
    shown = refused = 0
    for content in [*variants(path), *NOT_JSON]:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        try:
            page = make_page([folder])
        except VfgnnError:
            refused += 1
        else:
            assert Elements(page).kinds <= clean, content
            shown += 1
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
