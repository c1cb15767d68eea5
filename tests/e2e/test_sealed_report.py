"""What is left of a sealed run: every holder's record, message logs that fit the program, and the page about it."""

import json
import re
import shutil
import sys
from collections import defaultdict

import pytest

from tests.conftest import random_graph
from tests.network import small
from tests.pages import CHROMIUM, Elements, browsed, chained, figures_beside, put_into
from vfgnn.cli.main import main
from vfgnn.common_programs import NoSizes, leaving
from vfgnn.errors import DataError
from vfgnn.lab.processes import LocalProcesses
from vfgnn.message_log import read_entries
from vfgnn.party.programs import of_run
from vfgnn.report.run.page import make_page
from vfgnn.report.run.records import Kept, over_one_node
from vfgnn.report.run.sealed import openings
from vfgnn.sealed.program import SealedMoment, training

STEPS = 3
VAL = int(random_graph().val_mask.sum())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run of three processes; A has the labels."""
    sealed = {"hops": 2, "steps": STEPS, "ridges": [0.3, 1.0]}
    local = small(tmp_path_factory.mktemp("sealed") / "federation", protocol="sealed", sealed=sealed)
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


def about(local, name):
    return json.loads((local.run_folder(name) / "run.json").read_text())


def text_of(page):
    return " ".join(Elements(page.replace("<", " <")).text.split())


def test_every_party_notes_what_was_opened_to_whom_and_what_its_links_carried(finished):
    records = {name: about(finished, name) for name in finished.names}
    opened = records["A"]["opened"]
    assert (opened["to"], opened["what"], opened["rows"]) == ("A", "classes", 40 + 2 * VAL)
    assert (opened["validation_rows"], opened["scalars"], opened["trainings"]) == (2 * VAL, 3 + 10, 1)
    assert len(opened["allows"]) == 3
    for name, record in records.items():
        assert record["opened"] == opened
        assert record["rounds"] == records["A"]["rounds"] > 0
        traffic = json.loads((finished.run_folder(name) / "traffic.json").read_text())
        sizes = dict.fromkeys(("setup", "offline", "online"), 0)
        for link in traffic:
            dealt = "dealer" in (link["sender"], link["receiver"])
            if link["phase"] != "end":
                sizes["setup" if link["phase"] == "setup" else "offline" if dealt else "online"] += link["bytes"]
        assert record["bytes"] == sizes
        assert record["bytes"]["offline"] > 0
        assert (record["bytes"]["online"] > 0) == (name != "dealer")


def test_logs_have_what_the_program_declares_in_its_order_from_both_threads(finished):
    """Each link belongs to one of a party's two threads once training has begun, so its order is the program's."""
    agreement = finished.file.agreement
    moment = SealedMoment(int(random_graph().train_mask.sum()), VAL)
    declared = defaultdict(list)
    for program, known in ((training(agreement), moment), (leaving(agreement.parties, "A"), NoSizes())):
        for phase, at in program.walk(known):
            for one in phase.messages(at):
                line = phase.name, at.number, str(one.kind), one.shape
                declared[one.sender, one.receiver].append(line)
    for name in finished.names:
        logged = defaultdict(list)
        for entry in read_entries(finished.run_folder(name) / "messages.jsonl"):
            logged[entry.sender, entry.receiver].append((entry.phase, entry.step, entry.kind, entry.shape))
        assert logged == {link: lines for link, lines in declared.items() if name in link}
    assert any(phase == "offline" for phase, *_ in declared["A", "dealer"])


def test_the_label_holder_sees_its_metrics_and_everybody_where_records_are(finished):
    said = {name: (finished.folder / name / "output.txt").read_text() for name in finished.names}
    outcome = about(finished, "A")["outcome"]
    table = [line.split() for line in said["A"].splitlines()]
    assert ["accuracy", f"{outcome['val_accuracy']:.3f}", f"{outcome['test_accuracy']:.3f}"] in table
    assert ["f1", "-", f"{outcome['scores']['f1']:.3f}"] in table
    assert f"opened to A: classes of 40 rows, {2 * VAL} validation classes and 13 inner products" in said["A"]
    for name in ("B", "dealer"):
        assert "accuracy" not in said[name]
        assert "opened to A: classes of 40 rows" in said[name]
    assert not any("None" in text for text in said.values())


def test_the_command_checks_all_logs_and_writes_one_page(finished, tmp_path, monkeypatch):
    out = tmp_path / "report.html"
    monkeypatch.setattr(sys, "argv", ["vfgnn", "report", *map(str, folders(finished)), "--out", str(out)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    page = text_of(out.read_text())
    for part in ("test accuracy", "What was opened, and to whom", "Training", "Traffic", "A step", "Who saw what"):
        assert part in page
    assert page.count(" 0 outside the schedule") == 3
    assert page.count("signed by") == 3
    assert page.count("no disagreements") == 3
    assert "A (label holder) the predicted classes 40 rows" in page
    assert f"3 steps {about(finished, 'A')['rounds']} rounds" in page
    for word in ("Learning", "epoch", "leak meter", "Differential privacy", "h0", "joint_layer", "None", "nan"):
        assert word not in page


def test_a_party_alone_shows_what_it_knows(finished):
    for name in ("B", "dealer"):
        page = text_of(make_page([finished.run_folder(name)]))
        assert "A (label holder) the predicted classes 40 rows" in page
        assert "test accuracy" not in page


def test_what_was_opened_in_words(finished):
    told = openings([Kept.read(folder) for folder in folders(finished)])
    assert told == [
        ("A (label holder)", f"classes of 40 nodes, {2 * VAL} classes of validation nodes, 13 inner products"),
        ("B", "which nodes train and validate"),
        ("everybody else", "nothing"),
    ]


def test_records_that_contradict_each_other_are_marked(local):
    path = local.run_folder("B") / "run.json"
    record = about(local, "B")
    path.write_text(json.dumps({**record, "opened": {**record["opened"], "what": "scores"}}))
    assert "The record of B says otherwise." in text_of(make_page(folders(local)))
    assert "says otherwise" not in text_of(make_page([local.run_folder("B")]))


def test_a_message_of_another_protocol_is_outside_the_schedule(local):
    """The check knows the sealed program, and not just any kind that there is."""
    path = local.run_folder("B") / "messages.jsonl"
    (path.parent / "messages.seal.json").unlink()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    told = next(i for i, line in enumerate(lines) if line["kind"] == "predicted_classes")
    lines[told]["kind"] = "hidden"
    path.write_text(chained(path, lines))
    page = text_of(make_page(folders(local)))
    assert " 1 outside the schedule" in page
    assert re.search(r"A and B: [1-9]\d* disagreements", page)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")
@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])
def test_a_browser_draws_the_figures_and_fetches_nothing(finished, tmp_path, width):
    drawn = browsed(make_page(folders(finished)), tmp_path, width)
    assert drawn.count("<svg") == 3
    assert drawn.count("<path") > 30


RECORDS = ("run.json", "federation.json", "traffic.json", "messages.jsonl")


@pytest.mark.parametrize("name", RECORDS)
def test_no_record_can_put_markup_into_the_page(local, monkeypatch, name):
    folder = local.run_folder("A")
    clean = Elements(make_page([folder])).kinds | {("p", "class")}  # a warning is one more
    figures = figures_beside(monkeypatch, "progress", "parts_of_links", "timeline")
    (folder / ("messages.seal.json" if name == "messages.jsonl" else "messages.jsonl")).unlink()
    shown, refused = put_into(folder, name, clean)
    assert refused > 10 and shown > 10
    assert all(Elements(figure).kinds <= clean for figure in figures.values())


@pytest.mark.parametrize("key", ["to", "what", "rows", "allows"])
def test_a_value_of_another_kind_is_named_with_its_file_and_key(local, key):
    record = about(local, "A")
    record["opened"][key] = {"<script>": 1}
    (local.run_folder("A") / "run.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match=f"'opened.{key}' cannot be used") as raised:
        make_page([local.run_folder("A")])
    assert "run.json" in str(raised.value) and "script" not in str(raised.value)


@pytest.mark.parametrize("order", ["labels", "features"])
def test_the_schedule_takes_no_longer_for_a_file_that_claims_much(finished, order):
    """A hostile file may claim 2^40 columns and classes: kinds and links are those of a small one."""
    document = finished.file.document
    holders = [{**holder, "features": 2**40} for holder in document["holders"]]
    sealed = {**document["settings"]["sealed"], "order": order}
    huge = {**document, "holders": holders, "classes": 2**40, "nodes": 2**40}
    huge["settings"] = {**document["settings"], "sealed": sealed}
    small_one = {**document, "settings": huge["settings"]}
    assert declared(type(finished.file).model_validate(huge)) == declared(type(finished.file).model_validate(small_one))


def declared(file):
    messages = [message for program in of_run(over_one_node(file)) for message in program.messages()]
    return {(message.kind, message.sender, message.receiver) for message in messages}
