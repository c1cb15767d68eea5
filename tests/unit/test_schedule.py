import pytest
import torch

from vfgnn.config import DEALER, SERVER, HolderShape, Settings, make_federation
from vfgnn.messages import Kind, total_bytes
from vfgnn.parties import schedule
from vfgnn.parties.schedule import Rows


def federation(**settings):
    shapes = [
        HolderShape(name="A", features=3, edges=True),
        HolderShape(name="B", features=5, edges=True),
        HolderShape(name="C", features=2, edges=False),
    ]
    return make_federation(nodes=10, classes=3, holders=shapes, label_holder="A", settings=Settings(dim=4, **settings))


def all_messages(fed, rows):
    messages = schedule.setup_messages(fed)
    for step in schedule.steps(fed):
        messages += schedule.forward_messages(fed, step, rows)
        messages += schedule.backward_messages(fed, rows)
    return messages + schedule.predict_messages(fed)


ROWS = Rows(torch.arange(3), torch.arange(3, 7), 10)


def test_steps_evaluate_before_they_move_and_end_with_an_evaluation():
    steps = list(schedule.steps(federation(epochs=4, evaluate_every=2)))
    assert [step.evaluates for step in steps] == [False, False, True, False, True]
    assert [step.last for step in steps] == [False] * 4 + [True]
    assert [step.refresh for step in steps] == [False, True, True, True, True]


def test_a_frozen_joint_layer_is_silent():
    steps = list(schedule.steps(federation(epochs=4, joint_layer_epochs=2)))
    assert [step.trains_joint for step in steps] == [True, True, False, False, False]
    assert [step.refresh for step in steps] == [False, True, True, False, False]


MASKED = {Kind.MASKED_FEATURES, Kind.JOINT_WEIGHTS, Kind.JOINT_UPDATE, Kind.JOINT_PRODUCT}


def test_server_and_dealer_hear_no_message_between_holders():
    messages = all_messages(federation(epochs=2), ROWS)
    assert {m.kind for m in messages if m.receiver == DEALER} == {Kind.CONTROL}
    between = MASKED | {Kind.PAIR_SEED, Kind.H0_SHARE}
    assert not [m for m in messages if m.kind in between and {m.sender, m.receiver} & {SERVER, DEALER}]
    assert not [m for m in messages if {m.sender, m.receiver} == {SERVER, DEALER}]


def test_who_gets_what():
    """A holder without edges gets no h0 and no gradient; z_L and its gradient stay between A and the server."""
    messages = all_messages(federation(epochs=2), ROWS)
    received = {party: {m.kind for m in messages if m.receiver == party} for party in ("A", "B", "C", SERVER)}
    dealt = {Kind.DEALER_SEED, Kind.PAIR_SEED, Kind.CORRECTION_FORWARD}
    assert received["C"] == MASKED | dealt | {Kind.CONTROL}
    with_edges = {Kind.CORRECTION_BACKWARD, Kind.H0_SHARE, Kind.ROW_ROLES, Kind.LOCAL_GRADIENT}
    assert received["B"] == received["C"] | with_edges
    assert received[SERVER] == {Kind.LOCAL_EMBEDDINGS, Kind.HIDDEN_GRADIENT, Kind.CONTROL, Kind.ROW_ROLES}
    assert received["A"] - received["B"] == {Kind.HIDDEN, Kind.HIDDEN_EVALUATED}


@pytest.mark.parametrize("layer", ["secure", "insecure_clear"])
@pytest.mark.parametrize(("publish", "rows"), [("needed", ROWS), ("all", Rows.everything(10))])
def test_bytes_of_a_step(publish, rows, layer):
    """By hand, in 4-byte floats of d = 4, and 8-byte words for the joint layer."""
    fed = federation(epochs=3, publish=publish, evaluate_every=9, joint_layer=layer)
    step = list(schedule.steps(fed))[1]
    messages = schedule.forward_messages(fed, step, rows) + schedule.backward_messages(fed, rows)
    train = 3 if publish == "needed" else 10
    server_links = (2 + 1 + 1 + 2) * train * 4 * 4  # rows of A and B, z_L, its gradient, gradients of A and B
    joint = (4 + 4) * 10 * 4 * 8  # Q_A and Q_B to two others each (not to oneself), shares of 3 to A and B
    products = (5 + 2 + 3 + 2) * 4 * 8  # P_B and P_C from A, P_A and P_C from B
    corrections = (2 * 10 + (5 + 2) + (3 + 2)) * 4 * 8  # X P to A and B; X^T Q to A (of B, C) and B (of A, C)
    expected = server_links + joint + (products + corrections if layer == "secure" else 0)
    assert total_bytes(messages) == expected


def test_nothing_tells_which_rows_train_when_everything_is_published():
    kinds = {message.kind for message in all_messages(federation(publish="all", epochs=1), Rows.everything(10))}
    assert Kind.ROW_ROLES not in kinds
