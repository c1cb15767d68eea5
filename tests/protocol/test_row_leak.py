"""The label holder rebuilds published rows exactly where the agreement says so, and is not let without consent."""

import pytest
import torch

from tests.conftest import random_graph
from vfgnn.agreement import HolderShape, make_agreement
from vfgnn.audit.rows_from_hidden import degrees_found, edges_found, rows_found
from vfgnn.audit.simulated_run import train_and_record
from vfgnn.audit.statistics import LEAKS
from vfgnn.data.holdings import Holding
from vfgnn.data.partition import partition
from vfgnn.errors import PolicyRefused
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import build
from vfgnn.model import leak_meter
from vfgnn.party.federation_file import settings_over_default
from vfgnn.report.run import split
from vfgnn.secure_gnn.program import serverless
from vfgnn.settings import Preset, Settings, make_settings
from vfgnn.split import holder
from vfgnn.split.program import LOCAL_EMBEDDINGS

COMBINES = ("concat", "mean", "regression", "confidence")


def agreed(publishers, *, leads=True, others=0, **settings):
    """h0 has the labels and, where it `leads`, publishes too; `others` have no edges."""
    edges = [leads] + [True] * (publishers - leads) + [False] * others
    shapes = [HolderShape(name=f"h{i}", features=3, edges=has) for i, has in enumerate(edges)]
    return make_agreement(nodes=10, classes=3, holders=shapes, label_holder="h0", settings=Settings(**settings))


@pytest.mark.parametrize("combine", [*COMBINES, "own"])
@pytest.mark.parametrize("hidden_layers", [0, 1, 2])
@pytest.mark.parametrize("publishers", [1, 2, 3, 4])
@pytest.mark.parametrize("leads", [True, False])
def test_who_is_exposed_follows_from_public_numbers(combine, hidden_layers, publishers, leads):
    agreement = agreed(publishers, leads=leads, others=1, combine=combine, hidden_layers=hidden_layers)
    unknown = publishers - leads
    shown = combine in ("concat", "own") or unknown == 1
    expected = [f"h{i}" for i in range(1, 1 + unknown)] if hidden_layers == 0 and shown else []
    assert list(agreement.exposed_publishers) == expected
    if not expected:
        leak_meter.refuse_row_leak(agreement)
        return
    with pytest.raises(PolicyRefused, match="accept_row_leak") as refused:
        leak_meter.refuse_row_leak(agreement)
    assert refused.value.exit_code == 4
    accepted = agreement.settings.model_copy(update={"accept_row_leak": True})
    leak_meter.refuse_row_leak(agreement.model_copy(update={"settings": accepted}))


def test_noised_rows_need_no_consent():
    noised = {"row_epsilon": 1.0, "delta": 1e-5}
    assert not agreed(2, combine="mean", hidden_layers=0, privacy=noised).exposed_publishers
    assert agreed(2, combine="mean", hidden_layers=0, privacy={"edge_epsilon": 1.0}).exposed_publishers


def test_secure_gnn_shows_nobody_z_and_exposes_nobody():
    assert not serverless(agreed(2, combine="mean", hidden_layers=0)).exposed_publishers


def test_users_tables_begin_with_a_hidden_layer_and_benchmarks_accept():
    for mode in ("individual", "collaborative"):
        own = {"protocol": "split", "initial_embedding": mode}
        assert settings_over_default(own, 2)["hidden_layers"] == 1
    assert all(Preset(name).settings().accept_row_leak for name in ("best", "paper"))
    assert not Settings().accept_row_leak


def parts(holders=2, *, label_holder_has_edges=True):
    graph = random_graph(nodes=60, edges=120)
    holdings = partition(graph.x, graph.edge_index, holders=holders, seed=0)
    if not label_holder_has_edges:
        holdings[0] = Holding(holdings[0].x, torch.empty(2, 0, dtype=torch.int64))
    return holdings, split_labels(graph)


def chosen(**changes):
    values = {"dim": 8, "epochs": 3, "dropout": 0.0, "accept_h0_leak": True, "joint_layer": "insecure_clear"}
    values |= {"accept_row_leak": True, "hidden_layers": 0, "gnn": "appnp", "precision": "float64"}
    return make_settings({**values, **changes}, where="test")


def attacked(settings, holders=2, **how):
    """The share of B's rows that the label holder rebuilds, its view, and what B has."""
    holdings, labels = parts(holders, **how)
    views = train_and_record(holdings, labels, settings, seed=1).views
    rows = views["B"].sent(LOCAL_EMBEDDINGS, "server")[-1]
    return rows_found(views["A"], "B", rows).measured, views["A"], holdings[1]


@pytest.mark.parametrize("combine", COMBINES)
def test_with_one_other_publisher_every_row_is_rebuilt(combine):
    measured, view, _ = attacked(chosen(combine=combine))
    assert view.agreement.exposed_publishers == ("B",)
    assert measured.attack.value > 0.95  # rows of one direction at both holders have no single solution
    assert measured.verdict == LEAKS


@pytest.mark.parametrize("combine", ["concat", "mean", "regression"])
def test_a_label_holder_without_rows_sees_the_only_row(combine):
    measured, view, _ = attacked(chosen(combine=combine), label_holder_has_edges=False)
    assert view.agreement.exposed_publishers == ("B",)
    assert measured.attack.value == 1.0


@pytest.mark.parametrize(
    ("changes", "holders", "rebuilt"),
    [
        ({"combine": "concat"}, 3, True),
        ({"combine": "mean"}, 3, False),
        ({"combine": "regression"}, 3, False),
        ({"combine": "confidence"}, 3, False),
        ({"combine": "mean", "hidden_layers": 1}, 2, False),
        ({"combine": "concat", "hidden_layers": 1}, 2, False),
    ],
)
def test_elsewhere_rows_are_rebuilt_only_where_the_agreement_says_so(changes, holders, rebuilt):
    measured, view, _ = attacked(chosen(**changes), holders)
    assert bool(view.agreement.exposed_publishers) == rebuilt
    assert measured.attack.value == (1.0 if rebuilt else 0.0)
    assert (measured.verdict == LEAKS) == rebuilt


def test_confidence_gives_degrees_and_edges():
    _, view, other = attacked(chosen(combine="confidence", confidence_degree=3))
    degree = torch.bincount(other.edge_index[1], minlength=60)
    assert degrees_found(view, "B", degree).measured.verdict == LEAKS
    found = edges_found(view, "B", other, torch.Generator().manual_seed(0)).measured
    assert found.attack.value > max(one.value for one in found.baselines.values())


def test_noise_on_rows_is_what_is_rebuilt():
    noised = {"row_epsilon": 1.0, "delta": 1e-3}
    measured, view, _ = attacked(chosen(combine="mean", accept_row_leak=False, privacy=noised))
    assert not view.agreement.exposed_publishers
    assert measured.attack.value == 1.0  # of what B sent, which is the noised rows


def test_a_view_has_no_message_between_others():
    _, view, _ = attacked(chosen(combine="mean"))
    assert all("A" in link[1:] for link in view.messages)


def test_a_run_that_exposes_rows_is_refused_before_anything_is_sent(monkeypatch):
    holdings, labels = parts()
    settings = chosen(combine="confidence", accept_row_leak=False)
    with pytest.raises(PolicyRefused, match="could rebuild the published rows of B"):
        build(holdings, labels, settings, seed=1)
    monkeypatch.setattr(holder, "refuse_row_leak", lambda agreement: None)  # without the guard the attack succeeds
    assert attacked(settings)[0].verdict == LEAKS


def test_the_report_says_whose_rows_could_be_rebuilt():
    assert "h0 can rebuild the published rows of h1" in split._rebuilt(agreed(2, hidden_layers=0))
    assert "cannot rebuild" in split._rebuilt(agreed(2, hidden_layers=1))
