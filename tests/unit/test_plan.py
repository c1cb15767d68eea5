"""The dry run: never too low where a party does not know a size, and never without an answer."""

import os
from itertools import pairwise
from statistics import median

import pytest

from tests.conftest import random_graph
from tests.network import small
from tests.tables import federation_of_tables, vfgnn
from vfgnn.errors import ConfigError
from vfgnn.files import load_party
from vfgnn.lab.local_files import write_federation
from vfgnn.lab.processes import LocalProcesses
from vfgnn.lab.scenario import Scenario
from vfgnn.party.own_data import OwnData, load_data
from vfgnn.plan import plan
from vfgnn.plan.expected import Expected, expect
from vfgnn.plan.plan import make_plan, rehearsed_nodes
from vfgnn.plan.rehearsal import PaperNetwork, Tick, rehearse
from vfgnn.plan.sizes import sizes
from vfgnn.split.program import training

SECURE = {"mode": "collaborative", "dealer": True, "settings": ("accept_h0_leak=true",)}
FAST = {"bandwidth_mbit_s": 1e5, "latency_ms": 0.05}


def known_to(local, name, **given):
    return expect(local.file, load_data(local.file, load_party(local.party_toml(name))), **given)


def total(expected):
    found = sizes(training(expected.agreement), expected.agreement, expected.train_rows, expected.val_rows)
    return found.setup + found.epoch + found.predict


@pytest.mark.parametrize("name", ["B", "server", "dealer"])
def test_whoever_has_no_labels_plans_for_the_most_and_says_so(tmp_path, name):
    """They took a tenth of the nodes for training rows; here half of them are."""
    local = small(tmp_path / "federation", publish="needed")
    known, guessed = known_to(local, "A"), known_to(local, name)
    assert known.assumed == () and (known.train_rows, known.val_rows) == (20, 10)
    assert any("only the label holder knows" in one for one in guessed.assumed)
    for train in range(1, local.file.nodes):  # whatever the label holder has, it is not more
        assert total(guessed) >= total(Expected(known.agreement, train, local.file.nodes - train))


def test_where_all_rows_are_published_nothing_is_assumed(tmp_path):
    local = small(tmp_path / "federation", publish="all")
    assert known_to(local, "B").assumed == () and total(known_to(local, "A")) == total(known_to(local, "B"))


@pytest.mark.parametrize("name", ["server", "dealer"])
def test_server_and_dealer_plan_for_tables_that_they_do_not_have(tmp_path, monkeypatch, name):
    """They rehearsed with a million nodes, and never came to an end."""
    local = federation_of_tables(tmp_path / "federation", **SECURE)
    most, rehearsed = known_to(local, name), []

    def few(agreement, network, nodes, **rows):
        rehearsed.append(nodes)
        return rehearse(agreement.model_copy(update={"nodes": 20}), network, 20, **rows)

    monkeypatch.setattr(plan, "rehearse", few)
    made = make_plan(most, **FAST)
    assert made.nodes == local.file.alignment.max_ids == 10**6
    assert rehearsed == [rehearsed_nodes(most.agreement)] and rehearsed[0] < 100_000
    assert "max_ids" in made.assumed[0] and "--nodes" in made.assumed[0]
    told = known_to(local, name, nodes=50)
    assert told.agreement.nodes == 50 and not any("max_ids" in one for one in told.assumed)
    assert total(told) < total(most)
    for nodes in (0, 10**6 + 1):
        with pytest.raises(ConfigError, match="--nodes cannot be used"):
            known_to(local, name, nodes=nodes)


def test_nodes_that_the_federation_file_names_are_not_given_again(tmp_path):
    local = small(tmp_path / "federation")
    with pytest.raises(ConfigError, match="--nodes cannot be used"):
        expect(local.file, OwnData(), nodes=7)


def test_work_ahead_is_counted(tmp_path):
    """The dealer's corrections and the holders' masks are made in threads of their own, which no clock showed."""
    local = small(tmp_path / "federation", dim=64, graph=random_graph(features=600))
    network = PaperNetwork(bits_per_s=1e12, latency_s=0.0, scale=1.0)
    ticks = rehearse(local.file.agreement, network, 3000, train_rows=20, val_rows=10)
    first, last = ticks[0], ticks[plan.WARM_UP + plan.TIMED - 1]
    assert last.background - first.background > 0.1 * (last.busy - first.busy) > 0


def test_shared_cores_and_slow_background_work_bound_a_step():
    """Ticks of a step with 1 s of messages and work in a chain, 2 s of work in all, 3 s ahead."""
    ticks = [Tick(at=1.0 * i, rounds=i, busy=2.0 * i, background=3.0 * i) for i in range(6)]
    assert plan._seconds(ticks, None) == pytest.approx(3.0 * plan.DEALERS_PART)
    assert plan._seconds(ticks, 2) == pytest.approx(2.5) and plan._seconds(ticks, 100) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["server", "dealer", "bank"])
def test_the_command_answers_at_every_party_of_a_federation_with_tables(tmp_path, name):
    local = federation_of_tables(tmp_path / "federation", **SECURE)
    said = vfgnn("plan", local.federation_toml, local.party_toml(name))
    assert "rounds per epoch" in said and "at most, as if" in said


@pytest.mark.slow
def test_on_one_machine_the_plan_is_near_a_real_run(tmp_path):
    """Over loopback; before the work ahead was counted it said half. Loosely: other programs share these cores too."""
    scenario = Scenario.of("citeseer", holders=2, preset="best", seed=0, epochs=20, patience=None)
    local = write_federation(tmp_path / "f", scenario.holdings, scenario.labels, scenario.settings)
    expected = Expected(local.file.agreement, len(scenario.labels.train), len(scenario.labels.val))
    planned = make_plan(expected, **FAST, shared_cores=os.cpu_count()).seconds_per_epoch
    with LocalProcesses(local) as running:
        running.wait()
    measured = median(after - before for before, after in pairwise(local.ticks[2:-1]))
    print(f"measured {measured:.3f} s, planned {planned:.3f} s")  # noqa: T201
    assert 0.5 < planned / measured < 2
