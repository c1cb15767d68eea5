"""Each attack on the paper's protocol finds a planted leak, and stays at its baseline where there is only noise."""

import pytest
import torch
import torch.nn.functional as F

from tests.planted import DIM, NODES, draw, holdings, labels, noise, published, reveal, rows_over, smoothed, view_of
from tests.planted import verdicts as found_by
from vfgnn.audit import columns_from_h0, edges_from_gradient, edges_from_layers, features_from_h0, features_from_rows
from vfgnn.audit import labels_from_gradient, labels_from_rows, membership, published_rows, rows_from_hidden
from vfgnn.audit.statistics import LEAKS
from vfgnn.audit.views import NotInView
from vfgnn.model.cg1_edges import confidence_weight
from vfgnn.split.program import HIDDEN_EVALUATED, HIDDEN_GRADIENT, LOCAL_GRADIENT, ROW_ROLES

HELD, KNOWN = holdings(), labels()
A, B = HELD
LEAK = pytest.mark.parametrize("leak", [True, False])


def hidden(rows):
    return {(HIDDEN_EVALUATED, "server", "A"): rows}


def beside_own(rows):
    """z_L of `concat`: A's rows, which it knows, and B's."""
    own = noise(NODES, DIM, seed=2)
    return {**hidden(torch.cat([own, rows], dim=1)), **published(own, "A")}


def check(verdicts, leak):
    """All of them, or none of them."""
    assert verdicts
    for name, verdict in verdicts.items():
        assert (verdict == LEAKS) == leak, (name, verdict)


@LEAK
def test_edges_from_published_rows(leak):
    rows = rows_over(B) if leak else noise(NODES, DIM)
    check(found_by(published_rows.edges_from_rows, view_of("server", HELD, KNOWN, published(rows, "B"))), leak)


@LEAK
def test_edges_from_z_at_the_server(leak):
    rows = rows_over(A) + rows_over(B, 6) if leak else noise(NODES, DIM)
    check(found_by(published_rows.edges_from_hidden, view_of("server", HELD, KNOWN, hidden(rows))), leak)


@LEAK
def test_degrees_from_the_lengths_of_rows(leak):
    degree = torch.bincount(B.edge_index[1], minlength=NODES)
    length = confidence_weight(degree, 8) if leak else torch.rand(NODES, generator=draw())
    rows = F.normalize(noise(NODES, DIM), dim=1) * length[:, None]
    view = view_of("server", HELD, KNOWN, published(rows, "B"), combine="confidence")
    check(found_by(published_rows.degrees_from_rows, view), leak)


def test_other_combines_tell_no_degrees():
    with pytest.raises(NotInView, match="confidence"):
        found_by(published_rows.degrees_from_rows, view_of("server", HELD, KNOWN, published(rows_over(B), "B")))


@LEAK
@pytest.mark.parametrize(
    ("party", "link"), [("server", (HIDDEN_GRADIENT, "A", "server")), ("B", (LOCAL_GRADIENT, "server", "B"))]
)
def test_edges_from_a_gradient(party, link, leak):
    about = B if party == "server" else A
    messages = {link: rows_over(about) if leak else noise(NODES, DIM)}
    view, truth = view_of(party, HELD, KNOWN, messages)
    found = edges_from_gradient.edges_from_gradient(view, truth, draw())
    by_holder = {one.about: one.measured.verdict == LEAKS for one in found}
    assert by_holder["B" if party == "server" else "A"] == leak


def test_a_gradient_that_tells_labels_alone_tells_no_edges():
    """Neighbours of one class have one gradient: that is what labels tell, so it does not count as edges."""
    y = KNOWN.y
    alike = y[B.edge_index[0]] == y[B.edge_index[1]]
    held = [A, type(B)(B.x, B.edge_index[:, alike])]
    gradient = noise(3, DIM)[y] + 0.01 * noise(NODES, DIM)
    view = view_of("server", held, KNOWN, {(HIDDEN_GRADIENT, "A", "server"): gradient})
    check(found_by(edges_from_gradient.edges_from_gradient, view), False)


def of_classes(leak, *, rows=NODES, seed=4):
    clear = noise(3, DIM, seed=seed)[KNOWN.y[:rows]]
    return clear + 0.1 * noise(rows, DIM) if leak else noise(rows, DIM)


@LEAK
@pytest.mark.parametrize("publish", ["all", "needed"])
def test_labels_from_a_gradient(leak, publish):
    rows = len(KNOWN.train) if publish == "needed" else NODES
    roles = torch.zeros(NODES, dtype=torch.uint8).index_fill(0, KNOWN.train, 1)
    messages = {
        (HIDDEN_GRADIENT, "A", "server"): of_classes(leak, rows=rows),
        (ROW_ROLES, "A", "server"): roles,
        **published(noise(NODES, DIM, seed=8), "B"),
    }
    view = view_of("server", HELD, KNOWN, messages, publish=publish)
    check(found_by(labels_from_gradient.labels_from_gradient, view), leak)


@LEAK
def test_labels_from_the_length_of_gradients(leak):
    y = (torch.rand(NODES, generator=draw(2)) < 0.15).long()
    known = type(KNOWN)(y, KNOWN.train, KNOWN.val, KNOWN.test, 2)
    gradient = noise(NODES, DIM) * (1 + 0.5 * leak * y)[:, None]
    messages = {(HIDDEN_GRADIENT, "A", "server"): gradient, **published(noise(NODES, DIM, seed=8), "B")}
    check(found_by(labels_from_gradient.rare_class_from_gradient, view_of("server", HELD, known, messages)), leak)


def test_the_label_holder_does_not_attack_its_own_labels():
    messages = {(LOCAL_GRADIENT, "server", "A"): of_classes(leak=True)}
    for carry_out in (labels_from_gradient.labels_from_gradient, labels_from_rows.labels_from_rows):
        with pytest.raises(NotInView):
            found_by(carry_out, view_of("A", HELD, KNOWN, {**messages, **published(of_classes(leak=True), "A")}))


@LEAK
@pytest.mark.parametrize("party", ["server", "B"])
def test_labels_by_completing_the_model(party, leak):
    rows = of_classes(leak)
    messages = hidden(rows) if party == "server" else published(rows, "B")
    check(found_by(labels_from_rows.labels_from_rows, view_of(party, HELD, KNOWN, messages)), leak)


@LEAK
def test_edges_from_two_successive_layers(leak):
    """h0, and what comes out of B's GNN after another matrix."""
    h0 = noise(NODES, DIM, seed=7)
    out = F.normalize((smoothed(B, h0.tanh()) if leak else noise(NODES, DIM)) @ noise(DIM, DIM, seed=1), dim=1)
    messages = {**reveal(h0, to="A", sender="B"), **beside_own(out)}
    view = view_of("A", HELD, KNOWN, messages, combine="concat", hidden_layers=0)
    check(found_by(edges_from_layers.edges_from_layers, view), leak)


@LEAK
def test_edges_from_h0(leak):
    h0 = smoothed(B, noise(NODES, DIM)) if leak else noise(NODES, DIM)
    check(found_by(edges_from_layers.edges_from_h0, view_of("A", HELD, KNOWN, reveal(h0, to="A", sender="B"))), leak)


@LEAK
def test_rows_degrees_and_edges_from_z(leak):
    """With `concat` z_L is the rows side by side."""
    degree = torch.bincount(B.edge_index[1], minlength=NODES)
    rows = rows_over(B) * confidence_weight(degree, 8)[:, None]
    messages = {**beside_own(rows if leak else noise(NODES, DIM)), **published(rows, "B")}
    view = view_of("A", HELD, KNOWN, messages, combine="concat", hidden_layers=0)
    check(found_by(rows_from_hidden.from_hidden, view), leak)


def summed(leak, known_columns=6):
    """X_A W_A + X_B W_B, or something else of the same kind."""
    other = B if leak else holdings(seed=40)[1]
    return A.x @ noise(known_columns, DIM, seed=1) + other.x @ noise(known_columns, DIM, seed=2)


@LEAK
def test_features_from_h0(leak):
    view = view_of("A", HELD, KNOWN, reveal(summed(leak), to="A", sender="B"))
    check(found_by(features_from_h0.features_from_h0, view), leak)


@LEAK
def test_columns_and_their_space_from_h0(leak):
    """One reveal of more dimensions than there are columns."""
    view = view_of("A", HELD, KNOWN, reveal(summed(leak), to="A", sender="B"))
    check(found_by(columns_from_h0.columns_from_h0, view), leak)


def test_columns_are_found_in_a_large_span_too():
    held = holdings(columns=110, nodes=700, density=0.03)
    h0 = held[0].x @ noise(110, 120, seed=1) + held[1].x @ noise(110, 120, seed=2)
    known = labels(nodes=700)
    view = view_of("A", held, known, reveal(h0, to="A", sender="B"), dim=120)
    check(found_by(columns_from_h0.columns_from_h0, view), True)


def test_a_span_of_everything_shows_nothing():
    held = holdings(columns=40, nodes=60, edges=60)
    view = view_of("A", held, labels(nodes=60), reveal(noise(60, DIM), to="A", sender="B"))
    with pytest.raises(NotInView, match="everything lies"):
        found_by(columns_from_h0.columns_from_h0, view)


@LEAK
@pytest.mark.parametrize("party", ["server", "A"])
def test_features_from_rows(party, leak):
    rows = B.x @ noise(6, DIM) + 0.1 * noise(NODES, DIM) if leak else noise(NODES, DIM)
    messages = published(rows, "B") if party == "server" else beside_own(rows)
    view = view_of(party, HELD, KNOWN, messages, combine="concat", hidden_layers=0)
    check(found_by(features_from_rows.features_from_rows, view), leak)


@LEAK
def test_training_rows_from_a_gradient(leak):
    """With `publish = "all"` nobody announces them, and the gradient is 0 in all other rows."""
    member = torch.zeros(NODES, 1, dtype=torch.float64).index_fill(0, KNOWN.train, 1)
    messages = {(HIDDEN_GRADIENT, "A", "server"): noise(NODES, DIM) * (member if leak else 1)}
    check(found_by(membership.training_rows, view_of("server", HELD, KNOWN, messages)), leak)


def test_announced_training_rows_are_no_finding():
    roles = torch.zeros(NODES, dtype=torch.uint8).index_fill(0, KNOWN.train, 1)
    view = view_of("server", HELD, KNOWN, {(ROW_ROLES, "A", "server"): roles}, publish="needed")
    check(found_by(membership.training_rows, view), False)


def test_a_self_audit_has_one_holders_messages():
    """What B knows of the server's view: what it sent there. Nothing is said of A."""
    view, truth = view_of("server", HELD, KNOWN, published(rows_over(B), "B"))
    own = type(truth)({"B": B}, None, truth.messages)
    found = published_rows.edges_from_rows(view, own, draw())
    assert [(one.about, one.measured.verdict) for one in found] == [("B", LEAKS)]
    assert list(found[0].measured.baselines) == ["features alone"]
    with pytest.raises(NotInView):
        published_rows.edges_from_rows(view, type(truth)({"A": A}, None, {}), draw())
