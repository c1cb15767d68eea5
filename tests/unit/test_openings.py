"""A holder's ledger of openings: what its limits and its consent refuse, and when a line is written."""

from dataclasses import replace

import pytest
import torch

from vfgnn.errors import LedgerRefused, PolicyRefused
from vfgnn.privacy.openings import Account, Opening, OpeningLedger, Policy, read_openings

TRAINING = Opening(
    run="r1",
    start="s1",
    label_holder="bank",
    kind="training",
    what="classes",
    rows=120,
    validation_rows=20,
    columns=1,
    scalars=18,
)
PREDICTION = replace(TRAINING, kind="prediction", rows=5, validation_rows=0, scalars=0)
NONE = torch.empty(0, dtype=torch.int64)


def ask(ledger, *, run="r1", start="s1", label_holder="bank", opening=TRAINING, **policy):
    """One training or prediction, up to the first share that is opened."""
    account = Account(ledger, Policy("shop", **policy), run, start, label_holder)
    account.expect(replace(opening, run=run, start=start, label_holder=label_holder), NONE)
    return account


def test_a_line_is_on_the_disk_before_anything_is_opened(tmp_path):
    path = tmp_path / "opened_ledger.jsonl"
    ledger = OpeningLedger(path)
    account = ask(ledger)
    assert not path.exists() or read_openings(path) == []  # what ends before it costs nothing
    account.charge()
    account.charge()
    assert read_openings(path) == [TRAINING]
    ledger.close()
    assert path.stat().st_mode & 0o077 == 0
    path.write_text(path.read_text().replace('"rows": 120', '"rows": 100'))
    with pytest.raises(LedgerRefused):
        OpeningLedger(path)


def test_more_trainings_than_agreed_are_refused_by_name():
    ledger = OpeningLedger()
    for number in range(2):
        ask(ledger, run=f"r{number}", start=f"s{number}", max_trainings=2).charge()
    with pytest.raises(PolicyRefused, match="shop refuses to open more: max_trainings = 2") as refused:
        ask(ledger, run="r2", start="s2", max_trainings=2)
    assert "3 with this one" in str(refused.value) and "[limits]" in str(refused.value)
    ask(ledger, run="r2", start="s2", opening=PREDICTION, max_trainings=2)  # no training
    ask(ledger, run="r2", start="s2", label_holder="telecom", max_trainings=2)  # counted for each label holder
    ask(ledger, run="r2", start="s2", max_trainings=3)


def test_rows_of_trainings_and_predictions_count_together():
    ledger = OpeningLedger()
    ask(ledger, max_opened_rows=125).charge()
    ask(ledger, start="s2", opening=PREDICTION, max_opened_rows=125).charge()
    with pytest.raises(PolicyRefused, match="max_opened_rows = 125"):
        ask(ledger, start="s3", opening=replace(PREDICTION, rows=1), max_opened_rows=125)


def test_scores_need_this_holders_consent():
    scores = replace(TRAINING, what="scores", columns=3)
    with pytest.raises(PolicyRefused, match="shop does not allow scores"):
        ask(OpeningLedger(), opening=scores, allow_scores=False)
    ask(OpeningLedger(), opening=scores, allow_scores=True)
    ask(OpeningLedger(), opening=TRAINING, allow_scores=False)


def test_nothing_is_opened_that_was_not_announced():
    with pytest.raises(PolicyRefused, match="was not told"):
        Account(OpeningLedger(), Policy("shop"), "r1", "s1", "bank").charge()
