"""`vfgnn serve`: all parties stay up, and the label holder's endpoint says what `vfgnn predict` does."""

import asyncio
import json
import random
import re
import time

import pytest
import requests

from tests.e2e.test_processes import assert_nothing_left
from tests.e2e.test_tables import predict, refused, rows_of, run, shared_ids
from tests.network import open_to_others, rewrite
from tests.tables import federation_of_tables, vfgnn, write
from vfgnn.bench.serve import Served, ask_all
from vfgnn.errors import VfgnnError
from vfgnn.lab.local_training import PREDICT
from vfgnn.lab.processes import LocalProcesses, PartyFailed
from vfgnn.message_log import read_entries
from vfgnn.party.trained import NOT_SHARED, OK, UNKNOWN
from vfgnn.privacy.ledger import read_releases
from vfgnn.report.run.page import make_page

QUICK = {"start_s": 60, "message_s": 60, "away_s": 3}


def federation(folder, mode="individual", **changes):
    """Two holders with tables, trained."""
    settings = ["accept_h0_leak=true", *changes.pop("settings", [])]
    local = federation_of_tables(folder, mode=mode, dealer=mode == "collaborative", settings=settings, **changes)
    local = rewrite(local, patience=QUICK)
    run(local)
    return local


def ask(served, *ids):
    return requests.post(served.url, json={"ids": list(ids)}, timeout=60)


def metric(served, name):
    text = requests.get(served.url.replace("/predictions", "/metrics"), timeout=20).text
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")))


def as_rows(reply):
    """A reply as `vfgnn predict` would have written it."""
    assert reply.status_code == 200, reply.text
    return {one["id"]: one for one in reply.json()["predictions"]}


def assert_same(said, row):
    assert (said["status"], said["class"] or "") == (row["status"], row["class"])
    for name, value in (said["probability"] or {}).items():
        assert value == float(row[f"probability of {name}"])  # both are written so that they are read as they were


def passes(local, name):
    """Predictions that the server was asked for, by the log of either end."""
    (folder,) = (local.run_folder(name) / "serving").iterdir()
    heard = [entry.receiver for entry in read_entries(folder / "messages.jsonl") if entry.kind == "pass"]
    return heard.count("server")


def append(local, name, *nodes, edges=()):
    """What came after training: each node with the same features at every holder."""
    with (local.folder / name / "nodes.csv").open("a") as file:
        file.write("".join(f"{one},4.5,3\n" for one in nodes))
    with (local.folder / name / "edges.csv").open("a") as file:
        file.write("".join(f"{one},{other}\n" for one, other in edges))


def predict_fails(local, *words):
    """What the shop says of a prediction that all parties take part in."""
    with pytest.raises(PartyFailed) as failed:
        leader = {local.file.label_holder: (*words, "--out", str(local.folder / "never.csv"))}
        others = dict.fromkeys(set(local.names) - set(leader), words)
        with LocalProcesses(local, command=PREDICT, words=others | leader) as running:
            running.wait()
    assert not (local.folder / "never.csv").exists()
    return f"{failed.value}{running.said('shop')}"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    local = federation(folder / "federation")
    strangers = ["only-bank-0", "nobody", "only-shop-0"]
    ids = [*sorted(shared_ids(local, ("bank", "shop"))), *strangers]
    write(folder / "ask.csv", ["id"], [[one] for one in ids])
    predict(local, "--nodes", folder / "ask.csv", "--out", folder / "predictions.csv")
    return local, rows_of(folder / "predictions.csv")


def assert_reported(local, truth):
    """A prediction, then a service of three passes in which the shop was killed once."""
    page = make_page([local.run_folder(name) for name in local.names])
    _, after = page.split("<h2>After training</h2>")
    after, *_ = after.split("<h2>")
    rows = re.findall(r"<tr><td>(\w+)</td><td>(\w+)</td>.*?<td class=\"n\">(\d+)</td>", after)
    assert {row for row in rows if row[1] == "predict"} == {(name, "predict", "1") for name in local.names}
    served = [(who, int(passes)) for who, command, passes in rows if command == "serve"]
    assert ("bank", 3) in served and ("server", 3) in served
    assert sorted(passes for who, passes in served if who == "shop") == [1, 2]  # one of them ended by a kill
    assert after.count("not sealed") == 1
    assert after.count('<span class="good">0</span>') == len(rows)  # nothing outside the schedule
    assert after.count("no disagreements") == 3 and not re.search(r"[1-9] disagreement", after)
    assert not any(one in page for one in truth)
    assert [path for name in local.names for path in open_to_others(local.run_folder(name))] == []


def test_a_thousand_at_once_a_holder_lost_and_a_holder_back(trained):
    local, truth = trained
    draw = random.Random(0)
    questions = [draw.choices(list(truth), k=5) for _ in range(1000)]
    with Served(local) as served:
        # 1. a thousand at once are answered, all of them as `predict` does
        replies = asyncio.run(ask_all(served.url, questions, at_a_time=1000))
        assert {reply.code for reply in replies} == {200}
        for ids, reply in zip(questions, replies, strict=True):
            said = reply.body["predictions"]
            assert [one["id"] for one in said] == ids
            for one in said:
                assert_same(one, truth[one["id"]])
        # One pass at the start, and one to see whether the shop has an id of the bank's by now.
        assert metric(served, "vfgnn_passes_total") == 2

        # 2. a holder is lost: no answers, and who is missing
        served.processes.kill("shop")
        assert served.wait(503)["away"] == ["shop"]
        said = ask(served, *truth)
        assert said.status_code == 503 and "shop is away" in said.json()["error"]
        time.sleep(QUICK["away_s"] + 3)  # longer than the parties of a run would wait
        assert ask(served, *truth).status_code == 503

        # 3. it is back: the same answers, without anybody's help
        served.processes.start("shop")
        served.wait(200)
        assert metric(served, "vfgnn_passes_total") == 3  # what the shop has now counts, not what it had
        for one in as_rows(ask(served, *truth)).values():
            assert_same(one, truth[one["id"]])
        assert metric(served, "vfgnn_interruptions_total") >= 1
    assert passes(local, "bank") == passes(local, "server")
    assert {child.returncode for child in served.processes.children.values()} == {0}  # stopped, not failed
    assert_nothing_left(local)
    assert_reported(local, truth)


@pytest.mark.slow
def test_another_command_beside_it_is_refused_by_name(trained):
    local, _ = trained
    with Served(local) as served:
        served.processes.kill("shop")
        said = refused("predict", local.federation_toml, local.party_toml("shop"), code=3)
        assert "`vfgnn serve`" in said and "`vfgnn predict`" in said
        served.processes.start("shop")
        served.wait(200)


def test_what_cannot_be_served_is_refused(tmp_path):
    local = federation_of_tables(tmp_path / "federation")
    shop, bank = local.party_toml("shop"), local.party_toml("bank")
    for party, words, says in (
        (shop, ["--listen", "127.0.0.1:1"], "no endpoint"),
        (bank, ["--listen", "here"], "no address"),
        (bank, ["--log", "loud"], "unknown kind of log"),
        (shop, [], "no trained model"),
    ):
        with pytest.raises(VfgnnError, match=says):
            vfgnn("serve", local.federation_toml, party, *words)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["individual", "collaborative"])
def test_new_nodes_are_answered_as_predict_answers_them(tmp_path, mode):
    local = federation(tmp_path / "federation", mode)
    common = sorted(shared_ids(local, ("bank", "shop")))
    ids = [*common, "new-1", "new-2", "new-only-bank", "nobody"]
    with Served(local, "--recheck", "0") as served:
        assert as_rows(ask(served, "new-1"))["new-1"]["status"] == UNKNOWN
        append(local, "shop", "new-1", "new-2", edges=[("new-1", common[0])])
        append(local, "bank", "new-1", "new-2", "new-only-bank", edges=[("new-2", common[1])])
        said = as_rows(ask(served, *ids))
        assert [said[one]["status"] for one in ids[-4:]] == [OK, OK, NOT_SHARED, UNKNOWN]
        before = metric(served, "vfgnn_passes_total")
        assert as_rows(ask(served, *ids[:-2])) == {one: said[one] for one in ids[:-2]}
        assert metric(served, "vfgnn_passes_total") == before  # known by now

        # A table that cannot be read fails those who need it, and nobody else; when it is mended, nobody.
        for name in ("bank", "shop"):
            append(local, name, "new-3")
        half, table = ",half", local.folder / "shop" / "nodes.csv"
        whole = table.read_text()
        table.write_text(whole + half)
        failed = ask(served, "new-3")
        assert failed.status_code == 503 and "shop gave up" in failed.json()["error"]
        table.write_text(whole)
        served.wait(200)
        assert as_rows(ask(served, "new-1", "new-3"))["new-3"]["status"] == OK
    header, first, *rest = whole.splitlines()
    name, _, other = first.split(",")
    table.write_text("\n".join([header, f"{name},0.125,{other}", *rest]) + "\n")
    said_of_it = predict_fails(local, "--new-nodes") if mode == "collaborative" else None
    table.write_text(whole)
    assert said_of_it is None or "features of trained nodes have changed" in said_of_it
    write(tmp_path / "ask.csv", ["id"], [[one] for one in ids])
    predict(local, "--nodes", tmp_path / "ask.csv", "--out", tmp_path / "out.csv", all_say=["--new-nodes"])
    truth = rows_of(tmp_path / "out.csv")
    for one in ids:
        assert said[one]["status"] == truth[one]["status"]
        for name, value in (said[one]["probability"] or {}).items():
            # The order of the new nodes is drawn anew, and float32 sums depend on it.
            assert value == pytest.approx(float(truth[one][f"probability of {name}"]), abs=1e-5)


@pytest.mark.slow
def test_a_release_is_charged_once_however_often_it_is_asked_for(tmp_path):
    noise = ["privacy.row_epsilon=8", "privacy.delta=1e-7", "combine=mean", "epochs=5"]
    local = federation(tmp_path / "federation", settings=noise)
    ledgers = [local.folder / name / "privacy_ledger.jsonl" for name in ("bank", "shop")]

    def spent():
        return [len(read_releases(path)) for path in ledgers]

    common = sorted(shared_ids(local, ("bank", "shop")))
    trained_for = spent()
    with Served(local, "--recheck", "0", "--max-age", "1") as served:
        first = as_rows(ask(served, *common))
        known = spent()
        assert known == trained_for  # rows that training released are sent again as they were
        time.sleep(1.1)
        again = as_rows(ask(served, *common))  # too old: another pass
        assert metric(served, "vfgnn_passes_total") >= 2
        assert again == first and spent() == known
        for name in ("bank", "shop"):
            append(local, name, "new-1", edges=[("new-1", common[0])])
        said = as_rows(ask(served, "new-1"))
        assert said["new-1"]["status"] == OK
        charged = spent()
        assert [now - before for now, before in zip(charged, known, strict=True)] == [1, 1]
        time.sleep(1.1)
        assert as_rows(ask(served, "new-1")) == said
        assert spent() == charged
        served.processes.kill("shop")
        served.wait(503)
        served.processes.start("shop")
        served.wait(200)
        assert as_rows(ask(served, "new-1")) == said  # a restart has forgotten nothing
        assert spent() == charged
    predict(local, "--out", tmp_path / "out.csv", all_say=["--new-nodes"])
    assert_same(said["new-1"], rows_of(tmp_path / "out.csv")["new-1"])
    assert spent() == charged


def test_the_log_names_events_and_nobody(trained):
    local, truth = trained
    for name in local.names:
        logs = list((local.run_folder(name) / "serving").rglob("log.jsonl"))
        assert logs  # of the service before
        for log in logs:
            events = [json.loads(line) for line in log.read_text().splitlines()]
            assert {"all have met", "pass"} <= {one["event"] for one in events}
            assert not any(one in log.read_text() for one in truth)
