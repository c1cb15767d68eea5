"""When the label holder of a federation that serves asks for a pass, and what callers hear if it went wrong."""

import time

import pytest

from tests.unit.test_desk import answers, opened
from vfgnn.errors import BudgetSpent, DataError, PeerRestarted
from vfgnn.serve.desk import OutOfService
from vfgnn.serve.label_holder import Looked, ServingLabelHolder

STAMP = (0, 0, 0)  # of a party without tables


class Nobody:
    """A network on which all are there."""

    away: dict[str, str] = {}  # noqa: RUF012

    def refuse_failed(self):
        pass


def label_holder(*, own=(), recheck_s=60.0, **state):
    """All but the federation."""
    made = ServingLabelHolder.__new__(ServingLabelHolder)
    made.desk, made._recheck_s, made._extends = opened(answers("a")), recheck_s, True
    made._due, made._extended, made._looked = False, False, None
    made._stamp, made._own = lambda: STAMP, lambda stamp: frozenset(own)
    vars(made).update(state)
    return made


def test_a_pass_comes_first_whenever_the_parties_have_met():
    made = label_holder()
    made._failed(PeerRestarted("shop was started anew"))
    made._met()
    assert made.desk.trouble == "shop was started anew"  # until that pass has gone well
    assert made._wanted(Nobody()) == (set(), False)


def test_after_a_restart_the_new_nodes_of_before_come_with_that_pass():
    made = label_holder(_extended=True)
    made._failed(PeerRestarted("shop was started anew"))
    made._met()
    assert made._wanted(Nobody()) == (set(), True)


def test_an_id_of_the_own_table_is_looked_for_and_no_other():
    made = label_holder(own={"new"})
    waits = made.desk.put(["a", "new"])
    assert made._wanted(Nobody()) == ({"a", "new"}, True)
    assert not waits.done()
    assert not made._any_new({"nobody"})


def test_what_was_looked_for_is_not_looked_for_again_too_soon():
    looked = Looked(STAMP, time.monotonic(), going_on=False)
    assert not label_holder(own={"new"}, _looked=looked)._any_new({"new"})
    assert label_holder(own={"new"}, _looked=looked, recheck_s=0)._any_new({"new"})
    assert label_holder(own={"new"}, _looked=Looked((1, 1, 1), time.monotonic(), going_on=False))._any_new({"new"})


def test_what_could_not_be_looked_for_is_not_called_unknown():
    made = label_holder(own={"new"}, _extended=True, _looked=Looked(STAMP, time.monotonic(), going_on=True))
    made._failed(BudgetSpent("the privacy budget is spent"))
    made.desk.open()  # the pass after it, without new nodes, has gone well
    assert not made._extended
    hears, waits = made.desk.put(["a", "new"]), made.desk.put(["a"])
    assert not made._any_new({"new"})
    with pytest.raises(OutOfService, match="budget is spent"):
        hears.result(0)
    assert not waits.done()  # whom it does not concern


def test_a_restart_while_looking_is_no_answer():
    made = label_holder(own={"new"}, _looked=Looked(STAMP, time.monotonic(), going_on=True))
    made._failed(PeerRestarted("shop was started anew"))
    assert made._any_new({"new"})


def test_an_own_table_that_cannot_be_read_disturbs_nobody_else(monkeypatch):
    class Model:
        loads = iter([DataError("accounts.csv ends in the middle of a row"), "nodes"])

        def load(self):
            found = next(self.loads)
            if isinstance(found, Exception):
                raise found
            return found

    monkeypatch.setattr("vfgnn.serve.label_holder.AGAIN_S", 0)
    made = label_holder(_due=True, model=Model())
    hears = made.desk.put(["a"])
    assert made._ready(Nobody()) == ("nodes", set(), False)
    with pytest.raises(OutOfService, match="middle of a row"):
        hears.result(0)
