"""The product with private graphs equals the integer product, word by word, and costs what is declared."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.graphs import KINDS, Run, adjacency, random_edges, undirected
from vfgnn.errors import ConfigError, CorrelationReused, DataError, ProtocolError
from vfgnn.messages import total_bytes
from vfgnn.mpc.graph_shape import GraphShape, offline_messages, online_messages, setup_messages
from vfgnn.randomness import Stream, insecure_seed


def words(*shape, of="u"):
    return Stream(insecure_seed(3), of).words(*shape)


def plain(edges, u, *, self_loops):
    total = u.clone() if self_loops else torch.zeros_like(u)
    for each in edges:
        if each is not None:
            total += adjacency(each, len(u)) @ u
    return total


def star(nodes):
    return undirected([(0, k) for k in range(1, nodes)])


@st.composite
def cases(draw):
    nodes, holders = draw(st.integers(1, 14)), draw(st.integers(2, 5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    edges, declared = [], []
    for _ in range(holders):
        each = random_edges(nodes, draw(st.sampled_from([0, 3, 40])), generator)
        padding = draw(st.sampled_from([0, 0, 1, 9]))
        edges.append(each if each.shape[1] or draw(st.booleans()) else None)
        declared.append(each.shape[1] + padding)
    return nodes, edges, declared, draw(st.integers(1, 3)), draw(st.booleans())


@settings(max_examples=60, deadline=None)
@given(cases())
def test_the_product_is_the_integer_product(case):
    nodes, edges, declared, width, self_loops = case
    u = words(nodes, width)
    (found,) = Run(nodes, edges, declared).go([u], self_loops=self_loops)
    assert torch.equal(found, plain(edges, u, self_loops=self_loops))


@pytest.mark.parametrize("holders", [2, 3, 4, 5])
@pytest.mark.parametrize("padding", [0, 5])
@pytest.mark.parametrize("self_loops", [False, True])
def test_star_isolated_nodes_shared_edges_and_holders_without_edges(holders, padding, self_loops):
    nodes = 9
    edges = [star(nodes), undirected([(1, 2), (0, 3)]), None, star(5), None][:holders]
    declared = [0 if each is None else each.shape[1] + padding for each in edges]
    secrets = [words(nodes, 2, of="one"), words(nodes, 1, of="two"), words(nodes, 3, of="three")]
    for ahead in (False, True):
        found = Run(nodes, edges, declared).go(secrets, self_loops=self_loops, ahead=ahead)
        for product, u in zip(found, secrets, strict=True):
            assert torch.equal(product, plain(edges, u, self_loops=self_loops))


@pytest.mark.parametrize("declared", [(0, 0), (0, 4), (8, 0)])
def test_without_any_edges(declared):
    u = words(6, 2)
    for self_loops in (False, True):
        (found,) = Run(6, [None, None], declared).go([u], self_loops=self_loops)
        assert torch.equal(found, u * self_loops)


def test_what_is_declared_is_what_is_sent():
    nodes, width, draw = 30, 2, torch.Generator().manual_seed(0)
    edges = [random_edges(nodes, 20, draw), None, random_edges(nodes, 30, draw)]
    run = Run(nodes, edges, (64, 0, 80))
    run.go([words(nodes, width)])
    declared = {
        "setup": setup_messages(run.shape, KINDS),
        "offline": offline_messages(run.shape, KINDS, width),
        "online": online_messages(run.shape, KINDS, width),
    }
    assert len(run.transcript) == sum(map(len, declared.values()))
    for phase, messages in declared.items():
        for link in {(message.sender, message.receiver) for message in messages}:
            expected = total_bytes(message for message in messages if (message.sender, message.receiver) == link)
            for party in link:  # both ends count the same
                assert run.channels[party].traffic.links[phase, *link].bytes == expected


def test_words_of_a_hop_do_not_depend_on_the_edges():
    shape = GraphShape(10, {"a": 6, "b": 0, "c": 20})
    slots, width = {"a": 16, "c": 30}, 3
    offline = offline_messages(shape, KINDS, width)
    assert total_bytes(offline) == 8 * sum(3 * slots[owner] * width for owner in slots for _ in range(2))
    assert total_bytes(online_messages(shape, KINDS, width)) == 8 * 4 * 10 * width
    tables = sum(slots[owner] + 2 * (slots[owner] + 10) for owner in slots)
    assert total_bytes(setup_messages(shape, KINDS)) == 4 * tables + 4 * 2 * 32


def test_a_product_takes_as_many_steps_as_declared():
    """Whoever waits for it sees the time; so a holder with fewer entries than it declared multiplies with zeros too."""
    few, many = (Run(12, [edges, star(12)], (30, 30)).graphs["h0"]._matrix for edges in (star(4), star(12)))
    pointers, columns, _ = few._arrays
    assert len(columns) == pointers[-1] == 30 == len(many._arrays[1])
    u = words(12, 2)
    assert torch.equal(few.times(u), adjacency(star(4), 12) @ u)


def test_fresh_pads_for_each_hop_and_the_same_factors():
    nodes, u = 12, words(12, 2)
    edges = [star(nodes), undirected([(1, 2), (4, 5)]), None]
    run = Run(nodes, edges, (30, 10, 0))
    first, second = run.go([u, u.clone()])
    assert torch.equal(first, second)
    for kind in (KINDS.bounce_1, KINDS.bounce_2, KINDS.bounce_3, KINDS.masked):
        one, other = run.sent(kind, 0), run.sent(kind, 1)
        for link in one:
            for before, after in zip(one[link], other[link], strict=True):
                assert not bool((before == after).any()), kind
    assert len(run.sent(KINDS.gather_1)["h0", "h1"]) == 1


def test_two_runs_have_nothing_in_common():
    edges, u = [star(8), star(8)], words(8, 2)
    one, other = (Run(8, edges, (20, 20), run=name) for name in ("one", "two"))
    one.go([u])
    other.go([u])
    payloads = [dict(run.transcript) for run in (one, other)]
    for message, payload in payloads[0].items():
        assert not torch.equal(payload, payloads[1][message]), message


def test_a_hop_number_is_prepared_once_and_used_once():
    run = Run(6, [star(6), star(6)], (10, 10))
    run.go([words(6, 2)])
    graphs = run.graphs["h0"]
    for party in (graphs, run.dealer):
        with pytest.raises(CorrelationReused):
            party.begin(party._channel, 0, 2)
        for number in (0, 1):  # one that was completed, and one that never began
            with pytest.raises(CorrelationReused):
                party.complete(party._channel, number)
    with pytest.raises(CorrelationReused):
        graphs.times(words(6, 2), run.prepared["h0"][0], self_loops=True)


@pytest.mark.parametrize("share", [words(6, 3), words(7, 2), words(6, 2).int(), words(12)])
def test_a_share_of_another_size_is_refused(share):
    run = Run(6, [star(6), star(6)], (10, 10))
    run.go([words(6, 2)])
    with pytest.raises(ProtocolError, match="not prepared for"):
        run.graphs["h0"].times(share, run.prepared["h0"][0], self_loops=True)


def test_changed_edges_and_nodes_are_refused():
    edges = undirected([(0, 1), (2, 3)])
    run = Run(6, [edges, star(6)], (10, 10))
    run.go([words(6, 2)])
    graphs = run.graphs["h0"]
    graphs.require_unchanged(edges.flip(1), nodes=6)  # the order of entries means nothing
    for changed, nodes in ((undirected([(0, 1)]), 6), (undirected([(0, 1), (2, 4)]), 6), (edges, 7), (None, 6)):
        with pytest.raises(DataError, match="have changed"):
            graphs.require_unchanged(changed, nodes=nodes)
    other = Run(6, [undirected([(0, 1)]), star(6)], (10, 10))
    with pytest.raises(ProtocolError, match="other edges"):
        other.graphs["h0"].times(words(6, 2), run.prepared["h0"][0], self_loops=True)


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]]), "listed twice"),
        (torch.tensor([[0, 1, 2], [1, 0, 2]]), "to itself"),
        (torch.tensor([[0, 1], [1, 2]]), "one direction only"),
        (torch.tensor([[0, 6], [6, 0]]), "not there"),
        (torch.tensor([[0, -1], [-1, 0]]), "not there"),
        (torch.tensor([0, 1]), "no list of entries"),
        (torch.tensor([[0.0, 1.0], [1.0, 0.0]]), "no list of entries"),
    ],
)
def test_edges_that_cannot_be_used_are_refused_before_anything_is_sent(edges, said):
    with pytest.raises(DataError, match=said):
        Run(6, [edges, None], (10, 10))


def test_more_entries_than_declared_are_refused_with_both_numbers():
    with pytest.raises(DataError, match=r"at most 9\n.*10") as refused:
        Run(6, [star(6), None], (9, 10))
    assert "9" not in refused.value.what  # peers hear this part only
    with pytest.raises(DataError, match="more directed entries"):
        Run(6, [star(6), None], (0, 10))


@pytest.mark.parametrize(
    ("nodes", "entries"), [(0, {"a": 1, "b": 1}), (5, {"a": 1}), (5, {"a": -1, "b": 0}), (5, {"a": 2**31, "b": 0})]
)
def test_sizes_that_cannot_be_used(nodes, entries):
    with pytest.raises(ConfigError):
        GraphShape(nodes, entries)


def test_a_table_that_is_no_permutation_is_refused(monkeypatch):
    def repeated(placement, drawn):
        return torch.zeros_like(drawn)

    monkeypatch.setattr("vfgnn.mpc.sparse.left_factor", repeated)
    with pytest.raises(ProtocolError, match="names a place twice"):
        Run(6, [star(6), star(6)], (10, 10)).go([words(6, 2)])


def test_nothing_private_in_a_repr():
    run = Run(6, [star(6), star(6)], (10, 10))
    run.go([words(6, 2)])
    assert "tensor" not in repr(run.prepared["h0"][0]) + repr(run.graphs["h0"]) + repr(run.graphs["h0"]._masks)
