"""Differential privacy inside a federation: what leaves is what the ledger says, noised, and nothing else."""

from collections import defaultdict

import pytest
import torch

from tests.conftest import random_graph
from vfgnn import randomness
from vfgnn.agreement import SERVER
from vfgnn.data.holdings import Holding, Labels
from vfgnn.data.partition import partition
from vfgnn.errors import BudgetSpent, ConfigError
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import build
from vfgnn.model.cg2_server import ReleaseAverage
from vfgnn.model.contribution import HolderContribution
from vfgnn.privacy.calibration import epsilon_of
from vfgnn.privacy.input_perturbation import edges_of, pairs_of
from vfgnn.privacy.ledger import Ledger, Release
from vfgnn.privacy.statement import statement
from vfgnn.settings import Privacy, make_settings
from vfgnn.split.holder import Holder
from vfgnn.split.program import HIDDEN_GRADIENT, LOCAL_EMBEDDINGS, NOISED_EDGES, prediction
from vfgnn.split.steps import trained_epochs

NODES = 40


def prepared(holders=2, **changes):
    graph = random_graph(nodes=NODES)
    values = {"dim": 8, "epochs": 12, "accept_h0_leak": True, "joint_layer": "insecure_clear", **changes}
    holdings = partition(graph.x, graph.edge_index, holders=holders, seed=0)
    return holdings, split_labels(graph), make_settings(values, where="test")


def trained(holders=2, *, holdings=None, labels=None, **changes):
    """A finished run, all its messages, and how many releases each holder had written down when each one left."""
    cut, split, settings = prepared(holders, **changes)
    parties = build(holdings or cut, labels or split, settings, seed=1)
    ledgers = {holder.channel.party: holder.publisher.ledger for holder in parties.holders}
    sent, original = [], parties.network.put

    def put(message, payload):
        known = ledgers[message.sender].count if message.sender in ledgers else 0
        sent.append((message, payload.clone(), known))
        original(message, payload)

    parties.network.put = put
    return parties, parties.train(), sent


def of(sent, kind, sender):
    return [(payload, known) for message, payload, known in sent if (message.kind, message.sender) == (kind, sender)]


@pytest.mark.parametrize("publish", ["needed", "all"])
def test_every_noised_message_is_in_the_ledger_before_it_leaves(publish):
    parties, _, sent = trained(publish=publish, privacy={"row_epsilon": 4.0})
    for holder in parties.holders:
        mine = of(sent, LOCAL_EMBEDDINGS, holder.channel.party)
        assert [known for _, known in mine[:-1]] == list(range(1, len(mine)))
        releases = holder.publisher.ledger.releases
        assert len(releases) == len(mine) - (publish == "all")  # the prediction re-sends the best epoch's message
        assert {release.noise_multiplier for release in releases} == {releases[0].noise_multiplier}


def test_the_prediction_sends_the_best_epochs_noise_again():
    parties, outcome, sent = trained(publish="all", privacy={"row_epsilon": 4.0})
    for holder in parties.holders:
        messages = [payload for payload, _ in of(sent, LOCAL_EMBEDDINGS, holder.channel.party)]
        assert torch.equal(messages[-1], messages[outcome.best_epoch])
        assert len({payload.numpy().tobytes() for payload in messages[:-1]}) == len(messages) - 1  # otherwise fresh


def test_needed_rows_are_sent_again_and_only_the_others_are_paid_for():
    parties, outcome, sent = trained(privacy={"row_epsilon": 4.0})
    holder, labels = parties.label_holder, prepared()[1]
    messages = [payload for payload, _ in of(sent, LOCAL_EMBEDDINGS, "A")]
    val = len(labels.val)
    assert torch.equal(messages[-1][labels.val], messages[outcome.best_epoch][-val:])
    last = holder.publisher.ledger.releases[-1]
    assert last.step is None and "other" in last.classes and "val" not in last.classes


def test_rows_that_leave_carry_the_noise_that_was_agreed():
    clean = trained(gnn="appnp", publish="all", epochs=2)[2]
    noised = trained(gnn="appnp", publish="all", epochs=2, privacy={"row_epsilon": 4.0, "clip_norm": 1.0})[2]
    first = [of(sent, LOCAL_EMBEDDINGS, "B")[0][0].double() for sent in (clean, noised)]
    difference = (first[1] - first[0]).flatten()  # the same weights at step 0
    assert float(difference.std()) == pytest.approx(0.9587, rel=0.15)


def test_without_noise_everything_is_as_before():
    parties, _, _ = trained()
    assert all(holder.publisher.ledger.count == 0 for holder in parties.holders)
    assert Privacy().off and parties.agreement.edge_links == ()


def test_gradients_are_clipped_and_noised():
    quiet = {"gradient_epsilon": 5e5, "gradient_clip_norm": 0.01}
    parties, _, sent = trained(epochs=3, privacy=quiet)
    rows = len(prepared()[1].train)
    for payload, known in of(sent, HIDDEN_GRADIENT, "A"):
        assert float(payload.norm(dim=1).max()) <= 0.0101 / rows
        assert known >= 1
    assert {release.what for release in parties.label_holder.publisher.ledger.releases} == {"gradient"}
    assert all(holder.publisher.ledger.count == 0 for holder in parties.holders[1:])
    loud = trained(epochs=1, privacy={"gradient_epsilon": 1.0})[2]
    assert float(of(loud, HIDDEN_GRADIENT, "A")[0][0].std()) == pytest.approx(3.1857 / rows, rel=0.2)


def test_training_on_noised_edges_is_training_on_those_edges():
    """Nothing of the true edges is left: a run without privacy on the noised list gives the same, bit by bit."""
    parties, outcome, _ = trained(combine="confidence", privacy={"edge_epsilon": 3.0})
    noised = [Holding(x=holder_x, edge_index=holder._edge_index) for holder_x, holder in zip(
        [holding.x for holding in prepared()[0]], parties.holders, strict=True)]  # fmt: skip
    assert not torch.equal(pairs_of(noised[0].edge_index), pairs_of(prepared()[0][0].edge_index))
    assert trained(combine="confidence", holdings=noised)[1] == outcome
    assert [holder.publisher.ledger.count for holder in parties.holders] == [1, 1]


@pytest.mark.parametrize("holders", [2, 3])
def test_published_noised_edges_reach_every_holder_and_nobody_else(holders):
    parties, _, sent = trained(holders, privacy={"edge_epsilon": 3.0, "publish_noised_edges": True})
    own = {holder.channel.party: pairs_of(holder._edge_index) for holder in parties.holders}
    got = defaultdict(list)
    for message, payload, known in sent:
        if message.kind == NOISED_EDGES:
            assert torch.equal(payload, own[message.sender]) and known == 1
            got[message.receiver].append(message.sender)
    assert {name: sorted(senders) for name, senders in got.items()} == {name: sorted(set(own) - {name}) for name in own}
    union = torch.unique(torch.cat(list(own.values())))
    degree = torch.bincount(edges_of(union)[1], minlength=NODES)
    assert all(torch.equal(holder._graph.degree, degree) for holder in parties.holders)
    assert SERVER not in got


def test_training_on_noised_labels_is_training_on_those_labels():
    parties, outcome, _ = trained(privacy={"label_epsilon": 1.0})
    true, seen = prepared()[1], parties.label_holder._y
    used = torch.cat([true.train, true.val])
    assert not torch.equal(seen[used], true.y[used]) and torch.equal(seen[true.test], true.y[true.test])
    noised = Labels(y=seen, train=true.train, val=true.val, test=true.test, classes=true.classes)
    assert trained(labels=noised)[1] == outcome


def test_a_prediction_with_a_trained_model_noises_no_label():
    parties, _, _ = trained(privacy={"label_epsilon": 1.0})
    again = build(*prepared(privacy={"label_epsilon": 1.0}), seed=1)
    for name, party in again.parties.items():
        party.load(parties.parties[name].state())
    again.carry_out(prediction(again.agreement, new_nodes=False))
    assert parties.label_holder.publisher.ledger.count == 1
    assert again.label_holder.publisher.ledger.count == 0
    assert torch.equal(again.result.logits, parties.result.logits)


def test_the_budget_ends_training_for_all_at_the_same_step():
    privacy = {"row_epsilon": 1.0, "budget_epsilon": 3.0}
    parties, outcome, _ = trained(epochs=40, privacy=privacy)
    epochs = trained_epochs(parties.agreement)
    assert 1 <= epochs < 40 and outcome.history[-1].epoch == epochs
    for holder in parties.holders:
        releases = holder.publisher.ledger.releases
        most = sum("train" in release.classes for release in releases)
        assert epsilon_of(releases[0].noise_multiplier, 1e-4, most) <= 3.0


def test_a_budget_for_nothing_is_refused():
    with pytest.raises(ConfigError, match="does not allow a single epoch"):
        trained(privacy={"row_epsilon": 4.0, "budget_epsilon": 4.0})


def test_a_budget_that_earlier_runs_spent_is_refused():
    cut, split, settings = prepared(privacy={"row_epsilon": 1.0, "budget_epsilon": 3.0}, epochs=4)
    parties = build(cut, split, settings, seed=1)
    parties.train()
    again = build(cut, split, settings, seed=1)
    ledger: Ledger = again.holders[1].publisher.ledger
    for _ in range(3):
        ledger.releases += parties.holders[1].publisher.ledger.releases
    with pytest.raises(BudgetSpent, match="budget_epsilon = 3"):
        again.train()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"privacy": {"row_epsilon": 0.0}}, "expected: more than 0"),
        ({"privacy": {"row_epsilon": 1.0, "delta": 1.0}}, "less than 1"),
        ({"privacy": {"publish_noised_edges": True}}, "needs edge_epsilon"),
        ({"privacy": {"shrink": "james_stein"}}, "need row_epsilon"),
        ({"privacy": {"budget_epsilon": 3.0}}, "needs row_epsilon"),
        ({"privacy": {"edge_epsilon": 4.0, "budget_epsilon": 3.0}}, "edge_epsilon = 4 is more than budget_epsilon"),
        ({"privacy": {"label_epsilon": 4.0, "budget_epsilon": 3.0}}, "label_epsilon = 4 is more than budget_epsilon"),
        ({"privacy": {"label_correction": True}}, "needs label_epsilon"),
        ({"privacy": {"row_epsilon": 1.0, "shrink": "james_stein"}, "dim": 2}, "dim >= 3"),
        ({"privacy": {"row_epsilon": 1.0}, "combine": "confidence"}, "degrees"),
        ({"privacy": {"row_epsilom": 1.0}}, "did you mean .row_epsilon"),
    ],
)
def test_settings_that_would_not_protect_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        make_settings(changes, where="test")


def test_delta_must_be_below_one_over_n():
    with pytest.raises(ConfigError, match="delta must be less than 1/n"):
        trained(privacy={"row_epsilon": 1.0, "delta": 0.03})


def test_the_servers_average_weighs_older_releases_less():
    average = ReleaseAverage(0.5, (1, 3, 2), torch.float64, torch.device("cpu"))
    one, two = torch.ones(1, 2, 2).double(), 4 * torch.ones(1, 2, 2).double()
    rows = torch.tensor([0, 2])
    assert torch.equal(average.add(rows, one), one)
    assert torch.allclose(average.add(rows, two), (0.5 * one + two) / 1.5)
    everything = average.where_known(torch.full((1, 3, 2), 9.0).double())
    assert everything[0, :, 0].tolist() == [3.0, 9.0, 3.0]
    other = ReleaseAverage(0.5, (1, 3, 2), torch.float64, torch.device("cpu"))
    other.load(average.state())
    assert torch.equal(other.add(rows, one), average.add(rows, one))


@pytest.mark.parametrize("publish", ["needed", "all"])
def test_averaging_and_shrinking_run_to_the_end(publish):
    for shrink in ("james_stein", "james_stein_positive", "known_norm"):
        privacy = {"row_epsilon": 16.0, "shrink": shrink, "average_releases": 0.8, "calibration": "classical"}
        assert trained(publish=publish, privacy=privacy)[1].test_accuracy > 0


def test_an_empty_edge_list_is_noised_like_any_other():
    """Declared edges of which none is between common nodes: that there is none must not show."""
    cut, split, settings = prepared(privacy={"edge_epsilon": 1.0, "publish_noised_edges": True})
    parties = build(cut, split, settings, seed=1)
    nobody = Holding(x=cut[1].x, edge_index=torch.empty(2, 0, dtype=torch.int64))
    channel = parties.network.channel("B")
    holder = Holder(parties.agreement, channel, HolderContribution(run="test", seed=b"s" * 32, holding=nobody))
    assert holder._edge_index.shape[1] > 100 and holder.publisher.ledger.count == 1


def test_a_loaded_holder_aggregates_over_everybodys_edges():
    parties, _, _ = trained(privacy={"edge_epsilon": 3.0, "publish_noised_edges": True})
    before, (cut, split, settings) = (
        parties.holders[1],
        prepared(privacy={"edge_epsilon": 3.0, "publish_noised_edges": True}),
    )
    again = build(cut, split, settings, seed=1).holders[1]
    again.load(before.state())
    assert torch.equal(again._graph.degree, before._graph.degree)


@pytest.mark.parametrize("seed", [1, 2])
def test_inputs_are_noised_once_whatever_the_order_of_the_nodes(tmp_path, seed):
    """Tables are aligned in another order in every run; the draw goes by the ids."""
    cut, split, settings = prepared(privacy={"edge_epsilon": 2.0})
    agreement = build(cut, split, settings, seed=1).agreement
    lists = []
    for order in (torch.arange(NODES), torch.randperm(NODES, generator=torch.Generator().manual_seed(seed))):
        number = torch.argsort(order)
        holding = Holding(x=cut[1].x[order], edge_index=number[cut[1].edge_index], rank=order)
        ledger = Ledger(tmp_path / "ledger.jsonl")
        channel = build(cut, split, settings, seed=1).network.channel("B")
        own = HolderContribution(run="test", seed=randomness.new_seed(), holding=holding, ledger=ledger)
        holder = Holder(agreement, channel, own)
        lists.append(pairs_of(order[holder._edge_index]))
        count = ledger.count
        ledger.close()
    assert torch.equal(lists[0], lists[1]) and count == 1


def test_what_is_said_before_a_run_is_what_a_row_may_come_to():
    """Rows and gradients of a node are one unit at the label holder: the total is over both."""
    both = {"row_epsilon": 1.0, "gradient_epsilon": 1.0, "per": "run"}
    cut, split, settings = prepared(privacy=both)
    agreement = build(cut, split, settings, seed=1).agreement
    rows, gradients = statement(agreement, labels=True).guarantees
    (others,) = statement(agreement, labels=False).guarantees
    assert rows.epsilon_total == gradients.epsilon_total > 1.2
    assert others.epsilon_total == pytest.approx(1.0, rel=1e-6)


def test_what_a_budget_covers_is_said_before_a_run_and_what_it_leaves_after_it():
    privacy = {"edge_epsilon": 4.0, "label_epsilon": 2.0, "budget_epsilon": 5.0}
    agreement = build(*prepared(privacy=privacy), seed=1).agreement
    assert statement(agreement).notes == (
        "budget: 5 for any row, any edge and any label, each over all runs in the ledger",
    )
    released = [Release("r", None, what, what[:-1], ("all",), epsilon=e) for what, e in (("edges", 4.0), ("labels", 2))]
    assert statement(agreement, spent=released).notes == (
        "budget: of 5 for one edge, 1 is left",
        "budget: of 5 for one label, 3 is left",
    )
