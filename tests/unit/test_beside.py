"""Work in a thread of its own beside a party's steps: it runs ahead, and neither outlives the other's failure."""

from dataclasses import dataclass
from functools import partial
from threading import Event
from threading import enumerate as threads

import pytest
import torch

from vfgnn.errors import DataError, ProtocolError
from vfgnn.messages import Declared, Kind
from vfgnn.program import Beside, Phase, Program, Repeated, carry_out
from vfgnn.sealed.supply import Supply
from vfgnn.transport.memory import InMemoryNetwork

DEALT, WORD, STEPS = Kind("dealt", "a test"), Kind("word", "a test"), 3
WAIT_S = 20.0


@dataclass(frozen=True)
class Moment:
    number: int | None = None
    opens: bool = True
    closes: bool = True


def one(kind, sender, receiver):
    return [Declared(kind, sender, receiver, torch.int64, (2,))]


def steps(name, method, messages):
    moments = lambda known, begin: map(Moment, range(begin, STEPS))  # noqa: E731
    return Repeated(moments, (Phase(name, method, lambda _: messages),))


TABLE = (
    Beside("offline", (steps("offline", "deal", one(DEALT, "dealer", "A")),)),
    steps("step", "step", one(WORD, "A", "B")),
)
PROGRAM = Program("toy", ("dealer", "A", "B"), "A", TABLE, Moment())


def got(channel, sender, kind):
    channel.receive(sender, kind)


class Part:
    known = Moment()

    def __init__(self, channel, deal):
        self.channel, self.deal, self.failures = channel, deal, []

    def fail(self, error):
        self.failures.append(error)


class Toy:
    known = Moment()

    def __init__(self, channel, step=lambda moment: None, peers=(), deal=None):
        self.channel, self.step = channel, step
        self.offline = None if deal is None else Part(channel.beside(peers), deal)


def roles(network, *, receive=None, speak=None, hear=None):
    channels = {name: network.channel(name) for name in PROGRAM.parties}
    zeros = torch.zeros(2, dtype=torch.int64)
    dealer = Toy(channels["dealer"], peers=("A", "B"), deal=lambda _: dealer.offline.channel.send("A", DEALT, zeros))
    a = Toy(channels["A"], peers=("dealer",), deal=receive or (lambda _: got(a.offline.channel, "dealer", DEALT)))
    a.step = speak or (lambda _: channels["A"].send("B", WORD, zeros))
    b = Toy(channels["B"], hear or (lambda _: got(channels["B"], "A", WORD)))
    return {"dealer": dealer, "A": a, "B": b}


def run(network, made):
    network.run({name: partial(carry_out, PROGRAM, role) for name, role in made.items()})


def test_what_is_beside_runs_ahead_and_is_counted():
    """All is dealt while A stands in its first step; both threads are in one count."""
    network, dealt = InMemoryNetwork(), Event()

    def receive(moment):
        made["A"].offline.channel.receive("dealer", DEALT)
        if moment.number == STEPS - 1:
            dealt.set()

    def speak(moment):
        assert dealt.wait(WAIT_S)
        made["A"].channel.send("B", WORD, torch.zeros(2, dtype=torch.int64))

    made = roles(network, receive=receive, speak=speak)
    assert made["A"].channel.apart == {"dealer"}
    run(network, made)
    counted = {(phase, sender): link.messages for (phase, sender, _), link in made["A"].channel.traffic.links.items()}
    assert counted == {("offline", "dealer"): STEPS, ("step", "A"): STEPS}
    assert not made["A"].channel.apart  # A's own thread may use these links again
    assert not made["A"].offline.failures


def test_a_failure_beside_ends_whoever_waits_for_somebody_else():
    """A's step waits for a word that never comes: without the interruption it would wait for ever."""

    def receive(moment):
        raise DataError("the dealt words are odd")

    network = InMemoryNetwork()
    made = roles(network, receive=receive, speak=lambda _: made["A"].channel.receive("B", WORD))
    waiting = Program("toy", PROGRAM.parties, "A", (TABLE[0], steps("step", "step", one(WORD, "B", "A"))), Moment())
    with pytest.raises(DataError, match="the dealt words are odd"):
        network.run({"A": partial(carry_out, waiting, made["A"])})
    assert [error.what for error in made["A"].offline.failures[:1]] == ["the dealt words are odd"]


def test_a_failed_step_ends_what_is_beside_it():
    """No message is received, noted or counted after the party has failed, and no thread is left."""
    network = InMemoryNetwork()

    def speak(moment):
        raise DataError("the step is odd")

    made = roles(network, speak=speak)
    made.pop("dealer")  # nothing is ever dealt: A's other thread waits
    with pytest.raises(DataError, match="the step is odd"):
        run(network, made)
    (failure,) = made["A"].offline.failures[:1]
    assert failure.what == "the step is odd"
    assert not [thread for thread in threads() if thread.name == "A, ahead"]
    network.put(*one(DEALT, "dealer", "A"), torch.zeros(2, dtype=torch.int64))  # it came too late
    network._failure = None
    with pytest.raises(DataError, match="the step is odd"):
        made["A"].offline.channel.receive("dealer", DEALT)
    assert not made["A"].channel.traffic.links


def test_a_supply_is_bounded_and_keeps_its_order():
    supply, laid = Supply(most_bytes=100), []
    network = InMemoryNetwork()

    def fill():
        for number in range(50):
            supply.corrections.put(torch.tensor([number]), 40)
            laid.append(supply.held)

    found = []
    network.run({"fill": fill, "use": lambda: found.extend(int(supply.next_correction()) for _ in range(50))})
    assert found == list(range(50)) and max(laid) <= 80 and supply.held == 0
    supply.corrections.put(torch.zeros(1), 1000)  # one thing has room wherever nothing else lies
    supply.fail(ProtocolError("over"))
    assert supply.next_correction().shape == (1,)  # what is there is not lost
    with pytest.raises(ProtocolError, match="over"):
        supply.next_correction()
    with pytest.raises(ProtocolError, match="over"):
        supply.corrections.put(torch.zeros(1), 1)
