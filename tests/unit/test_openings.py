"""What a holder lets be opened: counted before it leaves, limited over all runs, and never counted twice."""

import pytest
import torch

from vfgnn.errors import ExitCode, LedgerRefused, PolicyRefused
from vfgnn.privacy.openings import Account, Opening, OpeningLedger, Policy, read_openings

NO_ROWS = torch.empty(0, dtype=torch.int64)


def opening(run="one", start="start", **changes):
    values = {"kind": "training", "what": "classes", "rows": 100, "validation_rows": 40, "columns": 1, "scalars": 18}
    return Opening(run=run, start=start, label_holder="A", **{**values, **changes})


def account(ledger, run="one", start="start", mark=lambda rows: None, label_holder="A", **policy):
    return Account(ledger, Policy("B", **policy), run, start, label_holder, mark)


def let(ledger, *, goes_on=False, run="one", start="start", rows=NO_ROWS, coming=None, **changes):
    """One start that opens something."""
    own = account(ledger, run, start, **changes)
    own.expect(opening(run, start) if coming is None else coming, rows, goes_on=goes_on)
    own.charge()


def test_a_line_is_on_the_disk_before_anything_leaves(tmp_path):
    ledger, path = OpeningLedger(tmp_path / "opened.jsonl"), tmp_path / "opened.jsonl"
    own = account(ledger)
    own.expect(opening(), NO_ROWS)
    assert not path.exists()
    own.charge()
    own.charge()  # of a training four values are opened
    assert read_openings(path) == [opening()]
    ledger.close()
    again = OpeningLedger(path)
    assert again.openings == [opening()]
    again.close()


def test_nothing_is_told_that_was_not_announced():
    with pytest.raises(PolicyRefused, match="B was not told what is to be opened"):
        account(OpeningLedger()).charge()


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"max_trainings": 2}, "B refuses to open more: max_trainings = 2 would be exceeded"),
        ({"max_opened_rows": 299}, "B refuses to open more: max_opened_rows = 299 would be exceeded"),
    ],
)
def test_a_limit_is_reached_and_not_passed(limits, says):
    ledger = OpeningLedger()
    for run in ("one", "two"):
        let(ledger, run=run, **limits)
    with pytest.raises(PolicyRefused, match=says) as refused:
        let(ledger, run="three", **limits)
    assert refused.value.exit_code == ExitCode.REFUSED == 4
    assert refused.value.got in ("3 with this one", "300 with this one")
    assert len(ledger.openings) == 2
    let(ledger, run="three", label_holder="C", **limits)  # each label holder has a count of its own


def test_predictions_count_as_rows_and_not_as_trainings():
    ledger, asked = OpeningLedger(), {"kind": "prediction", "rows": 5, "validation_rows": 0, "scalars": 0}
    let(ledger, max_trainings=1)
    for number in range(3):
        coming = opening(start=f"pass {number}", **asked)
        let(ledger, start=f"pass {number}", coming=coming, max_trainings=1, max_opened_rows=115)
    with pytest.raises(PolicyRefused, match="max_opened_rows = 115 would be exceeded"):
        let(ledger, start="pass 4", coming=opening(start="pass 4", **asked), max_trainings=1, max_opened_rows=115)


def test_scores_need_this_holders_own_consent():
    scores = opening(what="scores", columns=3)
    with pytest.raises(PolicyRefused, match="B does not allow scores to be opened"):
        let(OpeningLedger(), coming=scores, allow_scores=False)
    let(OpeningLedger(), coming=scores, allow_scores=True)


def test_what_goes_on_has_its_line_already():
    ledger = OpeningLedger()
    let(ledger, max_trainings=1, max_opened_rows=100)
    for number in range(20):
        let(ledger, start=f"again {number}", goes_on=True, max_trainings=1, max_opened_rows=100)
    assert len(ledger.openings) == 1
    with pytest.raises(PolicyRefused, match="max_trainings"):
        let(ledger, run="two", max_trainings=1)


def test_what_was_killed_before_it_was_counted_is_counted_when_it_goes_on():
    ledger = OpeningLedger()
    account(ledger).expect(opening(), NO_ROWS)
    let(ledger, start="again", goes_on=True)
    assert len(ledger.openings) == 1


def test_a_run_that_something_was_opened_of_cannot_begin_anew():
    """The label holder names runs: under an old name a new training would not be counted."""
    ledger = OpeningLedger()
    let(ledger)
    with pytest.raises(PolicyRefused, match="B refuses to begin run one anew: something of it has been opened"):
        let(ledger, start="again")
    assert len(ledger.openings) == 1


def test_a_prediction_goes_on_under_its_own_name():
    """A pass belongs to a run, of which there may be many; its line is found by the pass's name."""
    ledger, asked = OpeningLedger(), {"kind": "prediction", "rows": 5}
    for start, goes_on in (("one", False), ("one", True), ("two", False), ("two", True)):
        let(ledger, start=start, goes_on=goes_on, coming=opening(start=start, **asked))
    assert [line.start for line in ledger.openings] == ["one", "two"]


def test_rows_are_marked_before_they_are_counted():
    ledger, marked = OpeningLedger(), []
    let(ledger, rows=torch.tensor([3, 5]), mark=lambda rows: marked.append((rows.tolist(), len(ledger.openings))))
    assert marked == [([3, 5], 0)]


def test_a_ledger_that_lost_lines_or_has_others_is_refused(tmp_path):
    path = tmp_path / "opened.jsonl"
    ledger = OpeningLedger(path)
    for run in ("one", "two"):
        let(ledger, run=run)
    with pytest.raises(LedgerRefused, match="in use by another process"):
        OpeningLedger(path)
    ledger.close()
    whole = path.read_bytes()
    path.write_bytes(whole.splitlines(keepends=True)[0])
    with pytest.raises(LedgerRefused, match="a ledger of openings that was rolled back"):
        OpeningLedger(path)
    path.write_bytes(whole.replace(b'"rows": 100', b'"rows": 1'))
    with pytest.raises(LedgerRefused, match="a ledger of openings that was altered"):
        OpeningLedger(path)
    path.write_bytes(whole)
    OpeningLedger(path).close()
