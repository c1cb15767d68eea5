"""The dry run of a sealed training: what its program declares, at every role, and seconds that follow from both."""

import json

import pytest

from tests.conftest import random_graph
from tests.network import small
from tests.sealed_twin import small as small_training
from tests.sealed_twin import train
from tests.tables import sealed_federation_of_tables, vfgnn
from vfgnn.agreement import HolderShape, make_agreement
from vfgnn.files import load_party
from vfgnn.party.own_data import load_data
from vfgnn.plan import sealed_work
from vfgnn.plan.expected import Expected, expect
from vfgnn.plan.sealed import lay_out, make_sealed_plan, memory
from vfgnn.plan.sealed_work import Rates, measure
from vfgnn.plan.timetable import Lines
from vfgnn.sealed import program
from vfgnn.sealed.program import SealedMoment, prediction, script_of, training
from vfgnn.sealed.record import sent_by_part
from vfgnn.sealed.rehearsal import Hop
from vfgnn.settings import Preset

SEALED = {"protocol": "sealed", "sealed": {"hops": 3, "steps": 2}}
NO_WORK = Rates(0.0, {})
LINE = {"bandwidth_mbit_s": 100, "latency_ms": 50}
CASES = {
    "labels travel": {"order": "labels", "hops": 2},
    "features travel": {"order": "features", "columns_at_once": 6, "hops": 2},
    "hops": {"kernel": "hops", "hops": 2, "steps": 2, "opens": "scores"},
}


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return small(tmp_path_factory.mktemp("plan") / "federation", holders=3, graph=random_graph(), **SEALED)


def known_to(local, name, **given):
    return expect(local.file, load_data(local.file, load_party(local.party_toml(name))), **given)


def laid_out(agreement, moment, *, mbit=100.0, ms=50.0, rates=NO_WORK):
    return lay_out(training(agreement), agreement, moment, Lines(mbit * 1e6, ms / 1e3), rates)


@pytest.mark.parametrize("name", list(CASES))
def test_bytes_are_those_that_a_training_sends(name):
    held, labels = small_training(3, seed=71)
    trained = train(held, labels, record=False, **CASES[name])
    moment = SealedMoment(len(labels.train), len(labels.val))
    assert laid_out(trained.agreement, moment).bytes == sent_by_part(trained.federation.traffic)


def test_new_nodes_are_planned_by_their_own_program(local):
    agreement, moment = local.file.agreement, SealedMoment(20, 0, asked=40)
    whole = prediction(agreement, new_nodes=True)
    found = lay_out(whole, agreement, moment, Lines(1e8, 0.05), NO_WORK)
    sizes = [message.bytes for phase, at in whole.walk(moment) for message in phase.messages(at)]
    assert sum(found.bytes.values()) == sum(sizes)
    rounds = script_of(agreement, moment).rounds
    assert found.seconds > rounds * 0.05


def test_whoever_has_no_labels_plans_for_the_most_and_says_so(local):
    known = known_to(local, "A")
    assert known.assumed == () and (known.train_rows, known.val_rows) == (20, 10)
    agreement = known.agreement
    for name in ("B", "dealer"):
        guessed = known_to(local, name)
        assert any("only the label holder knows" in one for one in guessed.assumed)
        most = laid_out(agreement, SealedMoment(guessed.train_rows, guessed.val_rows)).bytes
        for train_rows in (2, 38):
            found = laid_out(agreement, SealedMoment(train_rows, local.file.nodes - train_rows)).bytes
            assert all(most[part] >= found[part] for part in found)


def test_latency_counts_once_for_each_round(local):
    """Where lines are fast and nobody works: rounds, setup before them and two goodbyes after them, all in a chain."""
    agreement, moment = local.file.agreement, SealedMoment(20, 10)
    near, far = (laid_out(agreement, moment, mbit=1e6, ms=ms).seconds for ms in (50.0, 100.0))
    rounds = script_of(agreement, moment).rounds
    assert 0.05 * rounds < far - near < 0.05 * (rounds + 15)


def test_a_slow_line_is_never_idle(local):
    """The dealer's carries most. What leaves it takes its bytes; setup and the end of each part are not much beside."""
    agreement, moment = local.file.agreement, SealedMoment(20, 10)
    sent = sum(
        message.bytes
        for phase, at in training(agreement).walk(moment)
        for message in phase.messages(at)
        if message.sender == "dealer"
    )
    busy = 1.05 * 8 * sent / 1e4
    assert busy < laid_out(agreement, moment, mbit=0.01, ms=1.0).seconds < 1.4 * busy


def test_hops_that_begin_ahead_save_their_bounces(local, monkeypatch):
    """What the plan says follows from the program: without it the dealer's line is idle for a round trip in each hop.

    With it this remains for the first hops of each step."""
    agreement, moment = local.file.agreement, SealedMoment(20, 10)
    ahead = laid_out(agreement, moment, mbit=0.5)
    monkeypatch.setattr(program, "MOST_AHEAD", 0)
    behind = laid_out(agreement, moment, mbit=0.5)
    hops = sum(isinstance(item, Hop) for part in script_of(agreement, moment).parts for item in part)
    assert behind.seconds - ahead.seconds > 0.1 * (hops - len(script_of(agreement, moment).steps))


def test_work_is_measured_at_every_thread(local):
    rates = measure(local.file.agreement, train_rows=20, val_rows=10, bytes_in_all=1)
    parts = {(name, part) for name in ("A", "B", "C") for part in ("setup", "offline", "online")}
    assert parts | {("dealer", "setup"), ("dealer", "offline")} <= set(rates.per_byte)
    assert all(seconds > 0 for seconds in rates.per_byte.values()) and rates.start_s > 0
    agreement, moment = local.file.agreement, SealedMoment(20, 10)
    assert laid_out(agreement, moment, rates=rates).seconds > laid_out(agreement, moment).seconds


def test_large_federations_are_rehearsed_over_fewer_nodes(local, monkeypatch):
    seen = []
    made_up = sealed_work._made_up

    def spy(agreement, name):
        seen.append(agreement.nodes)
        return made_up(agreement, name)

    monkeypatch.setattr(sealed_work, "_made_up", spy)
    huge = local.file.agreement.model_copy(update={"nodes": 10**7})
    measure(huge, train_rows=10**6, val_rows=10**6, bytes_in_all=10**15)
    assert set(seen) == {sealed_work.LEAST_NODES}


def test_memory_grows_with_what_a_party_has(local):
    agreement, moment = local.file.agreement, SealedMoment(20, 10)
    small_one, large_one = memory(agreement, moment), memory(agreement.model_copy(update={"nodes": 80}), moment)
    assert set(small_one) == {"dealer", "A", "B", "C"}
    assert all(large_one[name] > small_one[name] > 0 for name in small_one)
    assert small_one["C"] > small_one["B"]  # the last holder gets the corrections


@pytest.mark.parametrize("name", ["A", "dealer"])
def test_the_command_prints_a_table_and_writes_json(local, tmp_path, name):
    out = tmp_path / "plan.json"
    said = vfgnn("plan", local.federation_toml, local.party_toml(name), "--latency", 50, "--json", out)
    found = json.loads(out.read_text())
    assert "216" not in said and f"{found['rounds']}" in said and "online: among the holders" in said
    assert ("only the label holder knows" in " ".join(said.split())) == (name == "dealer")
    assert set(found["memory"]) == {"dealer", "A", "B", "C"} and found["steps"] == 2
    assert found["seconds"] > found["rounds"] * 0.05 > 0 and found["seconds_predict"] > 0
    assert found["bytes_predict"] > 0 and found["rounds_predict"] < found["rounds"]


@pytest.mark.parametrize("name", ["bank", "dealer", "server"])
def test_tables_are_planned_for_at_every_role(tmp_path, name):
    local = sealed_federation_of_tables(tmp_path / "federation", ("bank", "shop", "phone"))
    expected = known_to(local, name, nodes=50)
    assert expected.agreement.nodes == 50
    planned = make_sealed_plan(expected, **LINE)
    assert planned.nodes == 50 and planned.bytes_offline > 0 and "server" not in planned.memory
    assert bool(planned.assumed) == (name != "bank")


def test_the_plan_of_shared_cores_takes_longer(local):
    expected = Expected(local.file.agreement, 20, 10)
    lines = {"bandwidth_mbit_s": 1e5, "latency_ms": 0.05}
    assert make_sealed_plan(expected, **lines, shared_cores=1).seconds > make_sealed_plan(expected, **lines).seconds


def test_made_up_columns_are_as_long_as_scaled_ones():
    """Words have bits for columns of deviation 1. With rare ones instead, these very sizes left too few of them."""
    settings = Preset("tables").settings(overrides={"class_weights": "balanced", "select_by": "f1"})
    nodes, own = 2000, {"features": 100, "edges": True, "integer": False, "entry_bound": 4000}
    holders = [HolderShape(name=name, **own) for name in ("bank", "shop")]
    agreed = make_agreement(nodes=nodes, classes=2, holders=holders, label_holder="bank", settings=settings)
    assert measure(agreed, train_rows=nodes, val_rows=nodes, bytes_in_all=1).start_s > 0
