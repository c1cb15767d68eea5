"""What is dealt ahead: bounded at every holder, waited for by name; what fails in it ends the training by its name."""

import time
from functools import partial
from threading import enumerate as threads

import pytest
import torch

from tests.sealed_twin import small, train
from vfgnn import logs
from vfgnn.errors import DataError
from vfgnn.mpc.graph_dealer import GraphDealer
from vfgnn.mpc.material import Corrections
from vfgnn.sealed import exchange
from vfgnn.sealed.supply import HolderOffline, Stock, Supply

SETTINGS = {"hops": 3, "order": "labels", "record": False}


class Watched(Supply):
    """Notes how much has lain in it, and how much the largest thing was."""

    made = ()

    def __init__(self, **bound):
        super().__init__(**bound)
        self.most = self.largest = self.laid = 0
        Watched.made += (self,)

    def make_room(self, size):
        super().make_room(size)
        self.most, self.largest, self.laid = max(self.most, self.held), max(self.largest, size), self.laid + size


def supplies(monkeypatch, **bound):
    """Those of a whole training, and what the label holder learnt."""
    Watched.made, take = (), Stock.take

    def slowly(self):
        time.sleep(0.001)  # so that what is dealt is far ahead of the steps
        return take(self)

    monkeypatch.setattr(Stock, "take", slowly)
    monkeypatch.setattr(exchange, "Supply", partial(Watched, **bound))
    held, labels = small(3, real=(1,), seed=41)
    logits = train(held, labels, degree_bits=5, **SETTINGS).leader.result.logits
    monkeypatch.setattr(Stock, "take", take)
    return Watched.made, logits


def test_a_holder_never_lays_down_more_than_its_bound(monkeypatch):
    ample, expected = supplies(monkeypatch)
    bound = max(supply.largest for supply in ample) + 1
    tight, found = supplies(monkeypatch, most_bytes=bound)
    assert sorted(supply.laid for supply in tight) == sorted(supply.laid for supply in ample)
    assert all(supply.most <= bound and supply.held == 0 for supply in tight)
    assert torch.equal(found, expected)
    unbounded, _ = supplies(monkeypatch, most_bytes=2**40)
    assert max(supply.most for supply in unbounded) > bound  # the test can fail: without it more lies there


def test_a_thing_beyond_the_bound_has_room_alone(monkeypatch):
    tiny, found = supplies(monkeypatch, most_bytes=1)
    assert all(supply.most == supply.largest for supply in tiny)
    assert torch.equal(found, supplies(monkeypatch)[1])


def failing_at(number, call):
    """The same, but for one call."""
    count = 0

    def called(self, *arguments):
        nonlocal count
        count += 1
        if count == number:
            raise DataError("what is dealt is odd")
        return call(self, *arguments)

    return called


@pytest.mark.parametrize(
    ("of", "method"),
    [(HolderOffline, "deal"), (Corrections, "compute"), (GraphDealer, "complete")],
    ids=["at a holder", "the dealer's corrections", "the dealer's graphs"],
)
@pytest.mark.parametrize("number", [1, 5])
def test_what_fails_ahead_ends_both_threads_by_its_name(of, method, number, monkeypatch):
    monkeypatch.setattr(of, method, failing_at(number, getattr(of, method)))
    held, labels = small(2, seed=42)
    with pytest.raises(DataError, match="what is dealt is odd"):
        train(held, labels, **SETTINGS)
    assert not [thread for thread in threads() if thread.name.endswith(", ahead")]


def test_a_slow_dealer_is_waited_for_by_name(monkeypatch):
    told, complete = [], GraphDealer.complete

    def slowly(self, *arguments):
        time.sleep(0.1)
        complete(self, *arguments)

    monkeypatch.setattr(GraphDealer, "complete", slowly)
    monkeypatch.setattr(logs, "TOLD_S", 0.02)
    monkeypatch.setattr(logs, "event", lambda what, **fields: told.append((what, fields)))
    held, labels = small(2, seed=43)
    train(held, labels, **{**SETTINGS, "hops": 1, "steps": 1})
    waited = [fields for what, fields in told if what == "waiting"]
    assert waited and {fields["peers"] for fields in waited} == {"dealer"}
    assert waited[0] == {"peers": "dealer", "since_s": 0, "of": "what it deals ahead"}
