"""When the label holder of a federation that serves asks for a pass, and what callers hear if it went wrong."""

import time
from types import SimpleNamespace

import pytest

from tests.unit.test_desk import answers, opened
from vfgnn.errors import BudgetSpent, DataError, PeerRefused, PeerRestarted
from vfgnn.party.serve.desk import OutOfService
from vfgnn.party.serve.label_holder import Looked, ServingLabelHolder, Wanted
from vfgnn.party.serve.party import AGAIN_S

STAMP = (0, 0, 0)  # of a party without tables


class Nobody:
    """A network on which all are there."""

    away: dict[str, str] = {}  # noqa: RUF012

    def refuse_failed(self):
        pass


class Model:
    """What is read of the own tables, one time after the other."""

    def __init__(self, *loads):
        self._loads = iter(loads)

    def load(self):
        found = next(self._loads)
        if isinstance(found, Exception):
            raise found
        return found


def label_holder(*, own=(), recheck_s=60.0, **state):
    """All but the federation."""
    made = ServingLabelHolder.__new__(ServingLabelHolder)
    made.desk, made._recheck_s, made._extends = opened(answers("a")), recheck_s, True
    made._due, made._extended, made._looked, made._pause = False, False, None, AGAIN_S
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


def test_what_was_found_before_a_failure_is_looked_for_anew():
    made = label_holder(own={"new"}, _extended=True, _looked=Looked(STAMP, time.monotonic(), going_on=False))
    made._failed(PeerRefused("shop has another federation file"))
    assert made._any_new({"new"})  # and not "unknown", because the pass after it has only the trained nodes


def test_answers_are_there_before_the_desk_opens(monkeypatch):
    made = label_holder(_due=True, model=Model("nodes"))
    made.desk.close("shop was started anew")
    answered, seen = made.desk.answer, []
    made.desk.answer = lambda *known, **about: seen.append(made.desk.trouble) or answered(*known, **about)
    made._call = lambda channel, new_nodes: new_nodes
    monkeypatch.setattr("vfgnn.party.serve.label_holder.Answers", lambda found: answers(*found))
    made.agreement, made.model.ask = None, lambda *how, **about: ["a", "b"]
    made._take_part(SimpleNamespace(network=Nobody(), channel=None), run="pass")
    assert seen == ["shop was started anew"] and made.desk.trouble is None
    assert made.desk.at_once(["b"]) is not None


def test_what_comes_while_the_table_is_read_is_looked_for_again():
    made = label_holder(own={"new"}, _stamp=iter([(1, 1, 1), (2, 2, 2)]).__next__, model=Model("nodes"))
    made.desk.put(["new"])
    made._any_new = lambda ids: True
    assert made._ready(Nobody()).stamp == (1, 1, 1)  # of the table that was read, not of the one that replaced it


def test_each_failure_in_a_row_is_waited_for_longer(monkeypatch):
    made = label_holder(_began=True, _pause=AGAIN_S)

    def fail():
        raise DataError("accounts.csv ends in the middle of a row")

    made._stay_connected = fail
    assert [made._until_interrupted() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    made._tell_pass(False, 0.0)
    assert made._until_interrupted() == 1


def test_an_own_table_that_cannot_be_read_disturbs_nobody_else(monkeypatch):
    monkeypatch.setattr("vfgnn.party.serve.label_holder.AGAIN_S", 0)
    made = label_holder(_due=True, model=Model(DataError("accounts.csv ends in the middle of a row"), "nodes"))
    made.desk.close("shop was started anew")
    hears = made.desk.put(["a"])
    assert made._ready(Nobody()) == Wanted(set(), False, STAMP, "nodes")
    with pytest.raises(OutOfService, match="middle of a row"):
        hears.result(0)
    assert "middle of a row" in made.desk.trouble  # and not the shop, which is back
