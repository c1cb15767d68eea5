"""Where a run goes on: the label holder's word, from what every party says that it can go on from."""

from types import SimpleNamespace

import pytest

from vfgnn.errors import CheckpointRefused
from vfgnn.transport.network import Network

HOLDERS = ("A", "B")


def decided(*, keepers=(), unwritten=None, **known):
    """`known`: of each party, A the label holder, the run and the steps that it has."""
    network = Network.__new__(Network)
    run, steps = known.pop("A")
    file = SimpleNamespace(checkpoint_every=10)
    network._endpoint = SimpleNamespace(
        me="A", run=run, steps=steps, keepers=keepers, unwritten=unwritten, file=file, protocols=(2,)
    )
    hello = {name: SimpleNamespace(run=run, steps=steps, spoken=(2,)) for name, (run, steps) in known.items()}
    network._links = {name: SimpleNamespace(hello=one) for name, one in hello.items()}
    start = network._decide()
    return start.run, start.step


def sealed(**known):
    return decided(keepers=HOLDERS, unwritten=1, **known)


NOTHING = (None, ())


@pytest.mark.parametrize("decide", [decided, sealed])
def test_all_go_on_from_the_last_step_that_all_have(decide):
    assert decide(A=("one", (10, 20)), B=("one", (20, 30)), dealer=("one", (10, 20))) == ("one", 20)
    assert decide(A=("one", (0,)), B=("one", (0,)), dealer=("one", (0,))) == ("one", 0)


@pytest.mark.parametrize("decide", [decided, sealed])
def test_what_nobody_has_on_a_disk_is_begun_anew(decide):
    run, step = decide(A=("one", (0,)), B=NOTHING, dealer=("one", (0,)))
    assert (run != "one", step) == (True, 0)


def test_who_keeps_nothing_holds_nobody_up():
    for dealer in (NOTHING, ("one", (0,)), ("another", (0, 7)), ("one", (7,))):
        assert sealed(A=("one", (2, 3)), B=("one", (3, 5)), dealer=dealer) == ("one", 3)


def test_a_run_that_somebody_has_not_heard_of_begins_anew_while_nothing_is_lost():
    """A server that was killed before it had written down which nodes there are."""
    for server in (NOTHING, ("another", (0,))):
        run, step = sealed(A=("one", (0, 1)), B=("one", (0,)), server=server)
        assert (run != "one", step) == (True, 0)


def test_a_holder_that_lost_its_shares_is_named():
    """Also where others would have a step in common with the label holder: some of it may have been opened."""
    with pytest.raises(CheckpointRefused, match="B was rolled back, or lost its checkpoints"):
        sealed(A=("one", (2, 3)), B=NOTHING, dealer=("one", (0,)))
    with pytest.raises(CheckpointRefused, match="A was rolled back, or lost its checkpoints"):
        sealed(A=("one", (0,)), B=("one", (1, 2)), dealer=("one", (0,)))
    with pytest.raises(CheckpointRefused, match="B was rolled back, or lost its checkpoints"):
        decided(A=("one", (20, 30)), B=("one", (0, 10)), server=("one", (20, 30)))
