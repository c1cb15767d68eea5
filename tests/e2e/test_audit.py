"""Real parties that record their views: a holder audits itself with its own folder alone; several folders together."""

import json
import shutil
import sys

import pytest
import torch

from tests.network import open_to_others, small
from vfgnn.audit.recorded_views import RecordedParty, recorded_case
from vfgnn.audit.views import NotInView
from vfgnn.cli.main import main
from vfgnn.errors import DataError, ViewRefused
from vfgnn.files import Patience
from vfgnn.lab.processes import LocalProcesses
from vfgnn.sealed.program import OPENED
from vfgnn.split.program import HIDDEN_EVALUATED, HIDDEN_GRADIENT, LOCAL_EMBEDDINGS
from vfgnn.view_file import FIRST, first_of, view_folder

SEALED = {"protocol": "sealed", "sealed": {"hops": 2, "steps": 3, "ridges": [0.3, 1.0]}}
EPOCHS = 6


def finished(folder, *parties, **settings):
    """`parties` record their views."""
    local = small(folder, patience=Patience(start_s=120, message_s=120, away_s=20), **settings)
    for name in parties:
        path = local.party_toml(name)
        path.write_text(f"record_view = true\n{path.read_text()}")
    with LocalProcesses(local) as running:
        running.wait()
    return local


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """A small run of four processes; A has the labels."""
    folder, parties = tmp_path_factory.mktemp("audit") / "federation", ("server", "dealer", "A", "B")
    return finished(folder, *parties, epochs=EPOCHS, publish="all")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """A small run of three processes; A has the labels, and the dealer records nothing."""
    return finished(tmp_path_factory.mktemp("audit") / "federation", "A", "B", **SEALED)


@pytest.fixture
def alone(split, tmp_path):
    """B's folder, and nothing else of the federation: what B has at home."""
    shutil.copytree(split.folder / "B", tmp_path / "home")
    return tmp_path / "home"


def command(monkeypatch, *arguments):
    """The exit code of `vfgnn audit`."""
    monkeypatch.setattr(sys, "argv", ["vfgnn", "audit", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_both_ends_recorded_the_same(split):
    views = {name: RecordedParty.read(split.run_folder(name)).messages for name in split.names}
    links = {link for messages in views.values() for link in messages}
    assert len(links) > 10
    for link in links:
        sent, received = (views[end][link] for end in link[1:])
        assert len(sent) == len(received) <= first_of(link[0]) + 1
        assert all(torch.equal(one, other) for one, other in zip(sent, received, strict=True))
    rows = views["B"][str(LOCAL_EMBEDDINGS), "B", "server"]
    assert len(rows) == FIRST + 1
    assert not torch.equal(rows[-2], rows[-1])


def test_a_view_is_its_owners_alone_and_told_beforehand(split):
    for name in split.names:
        folder = split.run_folder(name)
        assert list(view_folder(folder).glob("*.view"))
        assert not open_to_others(folder)
        events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        (told,) = (one for one in events if one["event"] == "this party's view is recorded")
        assert 0 < sum(path.stat().st_size for path in view_folder(folder).glob("*.view")) <= told["at_most_bytes"]


def test_a_holder_audits_itself_with_its_own_folder_alone(alone):
    """Nobody else's folder is there: what is attacked is what B sent, and the truth is what B has."""
    case = recorded_case([alone / "run"])
    attacked = case.make()
    assert case.by_itself == "B"
    assert set(attacked.truth.holdings) == {"B"}
    assert attacked.truth.labels is None
    assert attacked.truth.pooled is None
    assert set(case.parties) == set(attacked.views) == {"server", "A"}
    for name, view in attacked.views.items():
        assert {link[1:] for link in view.messages} == {("B", name)}
        assert view.holding is None and view.labels is None and view.opened is None
    with pytest.raises(NotInView):
        attacked.views["server"].received(HIDDEN_GRADIENT, "A")
    with pytest.raises(NotInView):
        attacked.truth.holding("A")


def test_the_command_needs_nothing_else_and_writes_nothing_else(alone, tmp_path, monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in alone.rglob("*") if path.is_file()}
    out = tmp_path / "out"
    arguments = [alone / "run", "--run-dir", out / "kept", "--json", out / "audit.json", "--report", out / "page.html"]
    assert command(monkeypatch, *arguments) == 0
    assert before == {path: path.stat().st_mtime_ns for path in alone.rglob("*") if path.is_file()}
    rows = json.loads((out / "audit.json").read_text())["rows"]
    measured = [row for row in rows if "auc" in row]
    assert measured and {row["about"] for row in measured} == {"B"}
    assert {row["party"] for row in rows} <= {"server", "A"}
    assert "B audits itself" in (out / "page.html").read_text()


def test_a_limit_that_is_exceeded_has_an_exit_code_of_its_own(alone, tmp_path, monkeypatch, capsys):
    kept = ["--run-dir", tmp_path / "kept"]
    assert command(monkeypatch, alone / "run", *kept, "--as", "server", "--limit", "edges=-0.9") == 4
    assert "edges leak more than the limit allows" in capsys.readouterr().err
    assert command(monkeypatch, alone / "run", *kept, "--as", "server", "--limit", "edges=0.99") == 0


def test_what_cannot_be_audited_is_refused_by_name(split, alone, tmp_path, monkeypatch, capsys):
    kept = ["--run-dir", tmp_path / "kept"]
    assert command(monkeypatch, alone / "run", *kept, "--as", "B") == 2
    assert "there is no view of B" in capsys.readouterr().err
    assert command(monkeypatch, split.run_folder("server"), *kept) == 2
    assert "nothing to hold guesses against" in capsys.readouterr().err
    assert command(monkeypatch, *kept) == 2
    assert command(monkeypatch, alone / "run", *kept, "--limit", "edges") == 2
    assert command(monkeypatch, alone / "run", *kept, "--limit", "everything=1") == 2
    path = next(view_folder(alone / "run").glob("*.view"))
    content = path.read_bytes()
    path.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    assert command(monkeypatch, alone / "run", *kept) == 2
    assert "a view that was altered" in capsys.readouterr().err
    path.write_bytes(content[:1000])
    with pytest.raises(ViewRefused, match="cut"):
        recorded_case([alone / "run"])


def test_folders_that_do_not_belong_together_are_refused(split, sealed, tmp_path):
    with pytest.raises(DataError, match="different runs"):
        recorded_case([split.run_folder("A"), sealed.run_folder("B")])
    with pytest.raises(DataError, match="several folders"):
        recorded_case([split.run_folder("A"), split.run_folder("A")])
    with pytest.raises(DataError, match="not a run folder"):
        recorded_case([tmp_path])


def test_the_servers_own_view_with_a_holders_truth(split):
    case = recorded_case([split.run_folder("server")], [split.party_toml("B")])
    attacked = case.make()
    assert case.by_itself is None and set(attacked.views) == {"server"}
    assert set(attacked.truth.holdings) == {"B"}
    assert len(attacked.views["server"].received(HIDDEN_GRADIENT, "A")) == FIRST + 1


def test_in_a_test_federation_everybodys_view_is_whole(split):
    attacked = recorded_case([split.run_folder(name) for name in split.names]).make()
    assert set(attacked.views) == set(split.names)
    assert set(attacked.truth.holdings) == {"A", "B"}
    view = attacked.views["A"]
    assert view.own_labels is attacked.truth.known_labels
    assert len(view.received(HIDDEN_EVALUATED, "server")[-1]) == view.agreement.nodes


def test_a_sealed_label_holder_has_what_was_opened_to_it(sealed):
    party = RecordedParty.read(sealed.run_folder("A"))
    opened, labels = party.view.told.predictions, party.data.labels
    right = opened.argmax(dim=1)[labels.test] == labels.y[labels.test]
    reached = json.loads((sealed.run_folder("A") / "run.json").read_text())["outcome"]["test_accuracy"]
    assert float(right.double().mean()) == pytest.approx(reached)
    assert RecordedParty.read(sealed.run_folder("B")).view.opened is None


def test_a_sealed_holder_audits_itself(sealed, tmp_path):
    shutil.copytree(sealed.folder / "B", tmp_path / "home")
    attacked = recorded_case([tmp_path / "home" / "run"]).make()
    assert set(attacked.views) == {"A", "dealer"}
    assert attacked.views["A"].received(OPENED, "B")
    assert attacked.views["A"].opened is None


def test_nothing_is_recorded_unless_the_party_says_so(sealed):
    folder = sealed.run_folder("dealer")
    assert (folder / "messages.jsonl").is_file()
    assert not view_folder(folder).exists()
    assert not (folder / "view.key").exists()
    with pytest.raises(ViewRefused, match="no recorded view"):
        recorded_case([folder])
