import pytest
import torch

from vfgnn.agreement import DEALER, SERVER, HolderShape, make_agreement
from vfgnn.messages import total_bytes
from vfgnn.program import Phase
from vfgnn.rows import RowSet
from vfgnn.settings import Settings
from vfgnn.split import program
from vfgnn.split.program import (
    CONTROL,
    CORRECTION_BACKWARD,
    CORRECTION_FORWARD,
    DEALER_SEED,
    H0_SHARE,
    HIDDEN,
    HIDDEN_EVALUATED,
    HIDDEN_GRADIENT,
    JOINT_PRODUCT,
    JOINT_UPDATE,
    JOINT_WEIGHTS,
    LOCAL_EMBEDDINGS,
    LOCAL_GRADIENT,
    MASKED_FEATURES,
    PAIR_SEED,
    ROW_ROLES,
)
from vfgnn.split.steps import Moment, Rows, steps


def federation(**settings):
    shapes = [
        HolderShape(name="A", features=3, edges=True),
        HolderShape(name="B", features=5, edges=True),
        HolderShape(name="C", features=2, edges=False),
    ]
    return make_agreement(nodes=10, classes=3, holders=shapes, label_holder="A", settings=Settings(dim=4, **settings))


def all_messages(fed, rows):
    messages, table = [], program.training(fed).table
    for row in table:
        if isinstance(row, Phase):
            messages += row.messages(Moment(rows))
        else:
            for moment in row.moments(Moment(rows), 0):
                messages += [m for phase in row.phases if phase.when(moment) for m in phase.messages(moment)]
    return messages


ROWS = Rows(RowSet(torch.arange(3)), RowSet(torch.arange(3, 7)))


def test_steps_evaluate_before_they_move_and_end_with_an_evaluation():
    found = list(steps(federation(epochs=4, evaluate_every=2)))
    assert [step.evaluates for step in found] == [False, False, True, False, True]
    assert [step.last for step in found] == [False] * 4 + [True]
    assert [step.refresh for step in found] == [False, True, True, True, True]


def test_a_frozen_joint_layer_is_silent():
    found = list(steps(federation(epochs=4, joint_layer_epochs=2)))
    assert [step.trains_joint for step in found] == [True, True, False, False, False]
    assert [step.refresh for step in found] == [False, True, True, False, False]


MASKED = {MASKED_FEATURES, JOINT_WEIGHTS, JOINT_UPDATE, JOINT_PRODUCT}


def test_server_and_dealer_hear_no_message_between_holders():
    messages = all_messages(federation(epochs=2), ROWS)
    assert {m.kind for m in messages if m.receiver == DEALER} == {CONTROL}
    between = MASKED | {PAIR_SEED, H0_SHARE}
    assert not [m for m in messages if m.kind in between and {m.sender, m.receiver} & {SERVER, DEALER}]
    assert not [m for m in messages if {m.sender, m.receiver} == {SERVER, DEALER}]


def test_who_gets_what():
    """A holder without edges gets no h0 and no gradient; z_L and its gradient stay between A and the server."""
    messages = all_messages(federation(epochs=2), ROWS)
    received = {party: {m.kind for m in messages if m.receiver == party} for party in ("A", "B", "C", SERVER)}
    dealt = {DEALER_SEED, PAIR_SEED, CORRECTION_FORWARD}
    assert received["C"] == MASKED | dealt | {CONTROL}
    with_edges = {CORRECTION_BACKWARD, H0_SHARE, ROW_ROLES, LOCAL_GRADIENT}
    assert received["B"] == received["C"] | with_edges
    assert received[SERVER] == {LOCAL_EMBEDDINGS, HIDDEN_GRADIENT, CONTROL, ROW_ROLES}
    assert received["A"] - received["B"] == {HIDDEN, HIDDEN_EVALUATED}


@pytest.mark.parametrize("layer", ["secure", "insecure_clear"])
@pytest.mark.parametrize(("publish", "rows"), [("needed", ROWS), ("all", Rows.all(10))])
def test_bytes_of_a_step(publish, rows, layer):
    """By hand, in 4-byte floats of d = 4, and 8-byte words for the joint layer."""
    fed = federation(epochs=3, publish=publish, evaluate_every=9, joint_layer=layer)
    moment = Moment(rows, list(steps(fed))[1])
    step = program.training(fed).table[1]
    messages = [m for phase in step.phases if phase.when(moment) for m in phase.messages(moment)]
    train = 3 if publish == "needed" else 10
    server_links = (2 + 1 + 1 + 2) * train * 4 * 4  # rows of A and B, z_L, its gradient, gradients of A and B
    joint = (4 + 4) * 10 * 4 * 8  # Q_A and Q_B to two others each (not to oneself), shares of 3 to A and B
    products = (5 + 2 + 3 + 2) * 4 * 8  # P_B and P_C from A, P_A and P_C from B
    corrections = (2 * 10 + (5 + 2) + (3 + 2)) * 4 * 8  # X P to A and B; X^T Q to A (of B, C) and B (of A, C)
    expected = server_links + joint + (products + corrections if layer == "secure" else 0)
    assert total_bytes(messages) == expected


def test_nothing_tells_which_rows_train_when_everything_is_published():
    kinds = {message.kind for message in all_messages(federation(publish="all", epochs=1), Rows.all(10))}
    assert ROW_ROLES not in kinds
