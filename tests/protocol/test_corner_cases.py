"""Holders with no features, no edges, or neither; who is shown what in each case."""

from collections import defaultdict

import pytest
import torch

from tests.conftest import random_graph
from vfgnn.agreement import SERVER
from vfgnn.common_programs import END
from vfgnn.data.holdings import Holding
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import build
from vfgnn.settings import make_settings
from vfgnn.split.program import CONTROL, H0_SHARE, HIDDEN_GRADIENT, LOCAL_EMBEDDINGS, ROW_ROLES

NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


def cut(graph, *parts):
    """Holders with (share of columns, share of edges) given as slices."""
    return [Holding(x=graph.x[:, columns], edge_index=graph.edge_index[:, edges]) for columns, edges in parts]


ALL, NONE = slice(None), slice(0, 0)
FIRST, SECOND = slice(0, 6), slice(6, 12)
CASES = {
    "label holder with nothing": [(NONE, NONE), (FIRST, slice(0, 60)), (SECOND, slice(60, None))],
    "a holder without features": [(ALL, slice(0, 60)), (NONE, slice(60, None))],
    "a holder without edges": [(FIRST, ALL), (SECOND, NONE)],
    "features here, edges there": [(ALL, NONE), (NONE, ALL)],
    "a bystander": [(FIRST, slice(0, 60)), (SECOND, slice(60, None)), (NONE, NONE)],
    "one holder": [(ALL, ALL)],
}


def record(parties):
    """All that is sent from now on, by link and in order."""
    links = defaultdict(list)
    original = parties.network.put

    def put(message, payload):
        links[message.sender, message.receiver].append((message, payload.clone()))
        original(message, payload)

    parties.network.put = put
    return links


def run(case, **changes):
    graph = random_graph()
    settings = make_settings(
        {"dim": 8, "epochs": 30, "joint_learning_rate": 1.0, "accept_h0_leak": True, **changes}, where="test"
    )
    parties = build(cut(graph, *CASES[case]), split_labels(graph), settings, seed=1)
    links = record(parties)
    outcome = parties.train()
    return parties, outcome, [pair for link in links.values() for pair in link]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", ["collaborative", "individual"])
@pytest.mark.parametrize("publish", ["needed", "all"])
def test_it_trains(case, mode, publish):
    parties, outcome, _ = run(case, initial_embedding=mode, publish=publish)
    losses = [metrics.loss for metrics in outcome.history if metrics.loss is not None]
    assert losses[-1] < losses[0]
    assert parties.result.logits.shape == (40, 3)


def test_h0_is_not_shown_to_a_holder_without_edges():
    _, _, sent = run("a holder without edges")
    assert {message.receiver for message, _ in sent if message.kind == H0_SHARE} == {"A"}
    assert {message.sender for message, _ in sent if message.kind == LOCAL_EMBEDDINGS} == {"A"}


def test_the_server_sees_only_published_rows_gradients_and_control():
    _, _, sent = run("a bystander")
    assert {message.kind for message, _ in sent if message.receiver == SERVER} == {
        ROW_ROLES,
        LOCAL_EMBEDDINGS,
        HIDDEN_GRADIENT,
        CONTROL,
        END,
    }


def test_only_needed_rows_are_published_while_training():
    _, _, sent = run("a holder without features", epochs=3, evaluate_every=2)
    sizes = [message.shape[0] for message, _ in sent if message.kind == LOCAL_EMBEDDINGS and message.sender == "A"]
    assert sizes == [20, 20, 30, 10, 40]  # train, train, train + val, val (last), all (prediction)


def test_published_rows_have_unit_length_at_most():
    _, _, sent = run("a holder without features", combine="confidence")
    rows = torch.cat([payload for message, payload in sent if message.kind == LOCAL_EMBEDDINGS])
    assert float(rows.norm(dim=1).max()) <= 1 + 1e-6  # a few roundings of 6e-8


def test_test_labels_influence_nothing_that_is_sent():
    """Two runs whose labels differ only in the test rows send the same bytes."""
    transcripts = []
    for shift in (0, 1):
        graph = random_graph()
        graph.y[graph.test_mask] = (graph.y[graph.test_mask] + shift) % 3
        settings = make_settings({"dim": 8, "epochs": 4, "accept_h0_leak": True}, where="test")
        parties = build(cut(graph, *CASES["a holder without features"]), split_labels(graph), settings, seed=1)
        links = record(parties)
        parties.train()
        transcripts.append(links)
    assert transcripts[0].keys() == transcripts[1].keys()
    for link, messages in transcripts[0].items():
        for (one, first), (other, second) in zip(messages, transcripts[1][link], strict=True):
            assert one == other
            assert torch.equal(first, second)


def test_a_run_can_be_repeated():
    first, second = (run("a holder without features", gnn=gnn)[1] for gnn in ("gat", "gat"))
    assert first == second


def test_the_label_holder_stops_a_run_that_does_not_improve():
    _, outcome, sent = run("a holder without features", epochs=200, patience=3)
    assert outcome.history[-1].epoch < 200
    stops = [payload for message, payload in sent if message.kind == CONTROL and int(payload[0]) & 2]
    assert len(stops) == 3  # server, dealer, the other holder
