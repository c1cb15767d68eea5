import threading

import pytest
import torch

from vfgnn.errors import ChannelClosed, ProtocolError
from vfgnn.messages import Declared, total_bytes
from vfgnn.split.program import CONTROL, HIDDEN, LOCAL_GRADIENT
from vfgnn.transport.memory import InMemoryNetwork

ONE = Declared(HIDDEN, "a", "b", torch.float32, (2, 3))
TWO = Declared(CONTROL, "a", "b", torch.uint8, (1,))


@pytest.fixture
def ends():
    network = InMemoryNetwork()
    a, b = network.channel("a"), network.channel("b")
    for end in (a, b):
        end.enter("forward", [ONE, TWO], step=7)
    return a, b


def test_declared_messages_pass(ends):
    a, b = ends
    payload = torch.arange(6.0).reshape(2, 3)
    a.send("b", HIDDEN, payload)
    a.send("b", CONTROL, torch.tensor([1], dtype=torch.uint8))
    assert torch.equal(b.receive("a", HIDDEN), payload)
    b.receive("a", CONTROL)
    a.finish()
    b.finish()
    assert a.traffic.bytes_in("forward") == b.traffic.bytes_in("forward") == total_bytes([ONE, TWO]) == 25


def test_what_arrives_is_a_copy(ends):
    a, b = ends
    payload = torch.ones(2, 3)
    a.send("b", HIDDEN, payload)
    payload.zero_()
    assert float(b.receive("a", HIDDEN).sum()) == 6


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (CONTROL, torch.tensor([1], dtype=torch.uint8)),  # out of order
        (LOCAL_GRADIENT, torch.zeros(2, 3)),  # not declared
        (HIDDEN, torch.zeros(3, 2)),  # wrong shape
        (HIDDEN, torch.zeros(2, 3, dtype=torch.float64)),  # wrong dtype
        (HIDDEN, torch.full((2, 3), torch.nan)),
        (HIDDEN, torch.tensor([[0.0, 1, 2], [3, torch.inf, -torch.inf]])),
    ],
)
def test_anything_else_is_refused_before_it_is_sent(ends, kind, payload):
    a, b = ends
    with pytest.raises(ProtocolError, match="party a, forward of step 7"):
        a.send("b", kind, payload)
    assert not b._transport._network._queues["a", "b"]


def test_large_but_finite_values_pass(ends):
    a, _ = ends
    a.send("b", HIDDEN, torch.full((2, 3), 3e38))  # their sum overflows


def test_no_message_to_or_from_a_stranger(ends):
    a, _ = ends
    with pytest.raises(ProtocolError, match="outside the schedule"):
        a.send("c", HIDDEN, torch.zeros(2, 3))
    with pytest.raises(ProtocolError, match="outside the schedule"):
        a.receive("c", HIDDEN)


def test_a_receiver_checks_for_itself(ends):
    """A sender that lies about its schedule is found out at the other end."""
    a, b = ends
    a.enter = None
    a._expected["a", "b"].appendleft(Declared(HIDDEN, "a", "b", torch.float32, (9, 9)))
    a.send("b", HIDDEN, torch.zeros(9, 9))
    with pytest.raises(ProtocolError, match="party b"):
        b.receive("a", HIDDEN)


def test_a_message_is_sent_once(ends):
    a, _ = ends
    a.send("b", HIDDEN, torch.zeros(2, 3))
    with pytest.raises(ProtocolError):
        a.send("b", HIDDEN, torch.zeros(2, 3))


def test_a_phase_cannot_end_early(ends):
    a, _ = ends
    with pytest.raises(ProtocolError, match="too early"):
        a.enter("backward", [])


def test_errors_carry_no_payload(ends):
    a, _ = ends
    with pytest.raises(ProtocolError) as caught:
        a.send("b", HIDDEN, torch.full((2, 2), 0.123456))
    assert "0.123" not in str(caught.value)


def test_the_first_failure_ends_all():
    network = InMemoryNetwork()
    a, b = network.channel("a"), network.channel("b")
    for end in (a, b):
        end.enter("forward", [ONE])
    seen, before = [], threading.active_count()

    def fails():
        raise ValueError("mine")

    def waits():
        try:
            b.receive("a", HIDDEN)
        except ChannelClosed:
            seen.append("closed")
            raise

    with pytest.raises(ValueError, match="mine"):
        network.run({"a": fails, "b": waits})
    assert seen == ["closed"]
    assert threading.active_count() <= before
