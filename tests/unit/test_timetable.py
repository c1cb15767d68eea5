"""Threads, lines and cores on a clock that is only on paper: every time is worked out by hand."""

import pytest

from vfgnn.plan.timetable import Lines, Receive, Send, Timetable, Wait, Work

FAST = Lines(bits_per_s=8000, latency_s=1.0)  # 1,000 bytes in a second


def seconds(threads, lines=FAST, piece=100.0):
    return Timetable(lines, piece=piece).run(threads)


def test_a_message_takes_its_bytes_and_the_latency():
    threads = {"A": [iter([Work(0.5), Send("B", 2000)])], "B": [iter([Receive("A"), Work(0.25)])]}
    assert seconds(threads) == pytest.approx(3.75)


def test_a_round_is_one_latency_and_a_chain_is_several():
    both = {me: [iter([Send(other, 1000), Receive(other)])] for me, other in ("AB", "BA")}
    assert seconds(both) == pytest.approx(2.0)
    chain = {"A": [iter([Send("B", 1000), Receive("B")])], "B": [iter([Receive("A"), Send("A", 1000)])]}
    assert seconds(chain) == pytest.approx(4.0)


def test_connections_have_equal_parts_of_a_line():
    """B's 1,000 bytes take turns with C's 4,000, and so they leave after 2,000; all C's after 5,000."""
    ends = {}

    def receive(me):
        yield Receive("A")
        ends[me] = clock.now

    clock = Timetable(FAST, piece=1.0)
    clock.run({"A": [iter([Send("C", 4000), Send("B", 1000)])], "B": [receive("B")], "C": [receive("C")]})
    assert ends == pytest.approx({"B": 3.0, "C": 6.0}, abs=0.01)


def test_messages_of_one_connection_keep_their_order():
    received = []

    def receive():
        for _ in range(2):
            yield Receive("A")
            received.append(clock.now)

    clock = Timetable(FAST)
    clock.run({"A": [iter([Send("B", 1000), Send("B", 0)])], "B": [receive()]})
    assert received == pytest.approx([2.0, 2.0])


def test_threads_of_a_party_wait_for_each_other():
    there = []

    def make():
        yield Work(2.0)
        there.append(1)

    def use():
        yield Wait(lambda: bool(there))
        yield Work(1.0)

    assert seconds({"A": [use(), make()]}) == 3.0


@pytest.mark.parametrize(("cores", "expected"), [(None, 2.0), (3, 2.0), (2, 4.0), (1, 6.0)])
def test_cores_are_shared(cores, expected):
    lines = Lines(bits_per_s=8000, latency_s=0.0, cores=cores)
    assert seconds({name: [iter([Work(2.0)])] for name in "ABC"}, lines) == expected


def test_threads_that_would_wait_for_ever_are_named():
    with pytest.raises(RuntimeError, match="A for B"):
        seconds({"A": [iter([Receive("B")])], "B": [iter([Work(1.0)])]})
