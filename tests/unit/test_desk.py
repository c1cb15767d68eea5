"""The label holder's desk: what is answered at once, what waits, and that one pass serves all who wait."""

import threading
import time

import pyarrow as pa
import pytest
import torch

from vfgnn.party.serve.desk import MOST_WAITING, Answers, Desk, OutOfService
from vfgnn.party.trained import NOT_SHARED, OK, UNKNOWN, Predictions


def answers(*common, also=()):
    probability = torch.tensor([[0.25, 0.75], [1.0, 0.0]], dtype=torch.float64).repeat(len(common), 1)[: len(common)]
    return Answers(Predictions(pa.array(common), pa.array([*common, *also]), ("no", "yes"), probability))


def opened(known=None, max_age_s=float("inf")):
    desk = Desk(max_age_s=max_age_s)
    desk.open()
    desk.known = known
    return desk


def test_an_answer_says_what_is_known_of_an_id():
    known = answers("a", "b", also=("c",))
    assert (known.of("a").likeliest, known.of("a").probability) == ("yes", {"no": 0.25, "yes": 0.75})
    assert known.of("b").likeliest == "no"
    assert [known.of(one).status for one in "abcd"] == [OK, OK, NOT_SHARED, UNKNOWN]
    assert known.of("c").probability is None and known.of("d").likeliest is None


def test_what_is_known_is_answered_at_once_and_nothing_else():
    desk = opened()
    assert desk.at_once(["a"]) is None
    desk.known = answers("a")
    assert desk.at_once(["a", "a"]) is desk.known
    assert desk.at_once(["a", "b"]) is None


def test_what_is_too_old_waits():
    assert opened(answers("a"), max_age_s=60).at_once(["a"]) is not None
    desk = opened(answers("a"), max_age_s=0.05)
    time.sleep(0.06)
    assert desk.at_once(["a"]) is None


def test_one_pass_answers_all_who_wait_for_it():
    desk = opened(answers("a"))
    waits = [desk.put(["a", f"new-{i}"]) for i in range(50)]
    ids = desk.waiting(1)
    late = desk.put(["later"])
    desk.answer(answers("a", *(f"new-{i}" for i in range(50))), ids, seconds=0.5)
    assert all(one.result(0) is desk.known for one in waits)
    assert not late.done() and desk.waiting(0) == {"later"}
    assert (desk.passes, desk.pass_seconds) == (1, 0.5)


def test_whoever_gave_up_is_not_waited_for():
    desk = opened(answers("a"))
    given_up, waits = desk.put(["b"]), desk.put(["c"])
    given_up.cancel()
    assert desk.waiting(0) == {"c"}
    desk.fail("no")
    with pytest.raises(OutOfService, match="no"):
        waits.result(0)


def test_questions_wake_the_party():
    desk = opened(answers("a"))
    threading.Timer(0.1, lambda: desk.put(["b"])).start()
    began = time.monotonic()
    assert desk.waiting(5) == {"b"}
    assert time.monotonic() - began < 2


def test_not_more_than_so_many_wait():
    desk = opened()
    for _ in range(4):
        desk.put(["a"] * (MOST_WAITING // 4))
    with pytest.raises(OutOfService, match="waiting already"):
        desk.put(["a"])


def test_only_those_who_wait_for_an_id_hear_why_it_failed():
    desk = opened(answers("a"))
    hears, waits = desk.put(["a", "new"]), desk.put(["other"])
    desk.fail("no", {"new"})
    with pytest.raises(OutOfService, match="no"):
        hears.result(0)
    assert not waits.done() and desk.waiting(0) == {"other"}


def test_while_a_party_is_away_nothing_is_answered_not_even_what_is_known():
    desk, away = opened(answers("a")), {"shop": "lost"}
    desk.meeting(lambda: away)
    desk.open()
    with pytest.raises(OutOfService, match=r"shop is away \(lost\)"):
        desk.refuse_trouble()
    away.clear()
    desk.refuse_trouble()
    desk.close("the privacy budget is spent")
    away["shop"] = "lost"
    with pytest.raises(OutOfService, match=r"the privacy budget is spent; shop is away \(lost\)"):
        desk.refuse_trouble()


def test_no_prediction_is_in_a_repr():
    found = Predictions(pa.array(["Miller"]), pa.array(["Miller"]), ("no", "yes"), torch.tensor([[0.25, 0.75]]))
    known = Answers(found)
    for shown in (found, known, opened(known), known.of("Miller")):
        assert not any(private in f"{shown} {shown!r}" for private in ("Miller", "yes", "0.25"))
