"""A party's own run: what ends an attempt, and what ends the run."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from vfgnn.errors import ChannelClosed, PeerRestarted
from vfgnn.party.train import OwnRun


@contextmanager
def meeting(error):
    """The parties never meet: the body is not reached."""
    raise error
    yield


def own_run(*, ended=False):
    run = OwnRun.__new__(OwnRun)
    run._ended, run._restarted, run.over = ended, False, False
    run.end, run.kept = 5, SimpleNamespace(steps=[5] if ended else [])
    run._already_over = lambda: setattr(run, "over", True)
    return run


def test_a_restart_while_the_parties_meet_is_another_attempt():
    run = own_run()
    with run.going_back(), meeting(PeerRestarted("B was started anew")):
        pytest.fail("nobody has met")
    assert (run._restarted, run.over) == (True, False)


def test_who_had_ended_before_misses_nobody():
    run = own_run(ended=True)
    with run.going_back(), meeting(ChannelClosed("B did not come")):
        pytest.fail("nobody has met")
    assert run.over


def test_who_has_gone_back_since_it_ended_hears_it_too():
    run = own_run(ended=True)
    run.kept.steps = [3]
    with pytest.raises(ChannelClosed), run.going_back(), meeting(ChannelClosed("B did not come")):
        pass


def test_who_had_not_ended_hears_that_nobody_came():
    with pytest.raises(ChannelClosed), own_run().going_back(), meeting(ChannelClosed("B did not come")):
        pass
