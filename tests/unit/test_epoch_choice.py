from hypothesis import given
from hypothesis import strategies as st

from vfgnn.model.epoch_choice import EpochChoice
from vfgnn.model.task import Evaluation


def heard(scores, patience=None):
    """A choice that has heard these scores, of epochs 1, 2, ..., and what it said of each."""
    choice = EpochChoice(patience=patience)
    said = [choice.hear(epoch, Evaluation(score=score, accuracy=score / 2)) for epoch, score in enumerate(scores, 1)]
    return choice, said


def test_the_highest_score_is_kept_with_its_accuracy():
    choice, said = heard([0.3, 0.2, 0.5, 0.4])
    assert said == [True, False, True, False]
    assert (choice.best_epoch, choice.best_accuracy) == (3, 0.25)


def test_of_equal_scores_the_first_is_kept():
    choice, said = heard([0.3, 0.5, 0.5])
    assert said == [True, True, False]
    assert choice.best_epoch == 2


def test_the_first_evaluation_is_the_best_whatever_its_score():
    choice, said = heard([-1.0])
    assert said == [True]
    assert choice.best_epoch == 1


def test_patience_counts_epochs_since_the_best_one():
    choice, _ = heard([0.3, 0.5, 0.4], patience=2)
    assert [choice.lost_patience(epoch) for epoch in (3, 4, 5)] == [False, True, True]
    unbounded, _ = heard([0.3, 0.5, 0.4])
    assert not unbounded.lost_patience(10**9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.data())
def test_a_loaded_choice_goes_on_as_if_nothing_had_happened(scores, data):
    at = data.draw(st.integers(0, len(scores)))
    before, said = heard(scores[:at], patience=3)
    loaded = EpochChoice(patience=3)
    loaded.load(before.state())
    rest = enumerate(scores[at:], at + 1)
    said += [loaded.hear(epoch, Evaluation(score=score, accuracy=score / 2)) for epoch, score in rest]
    whole, expected = heard(scores, patience=3)
    assert said == expected
    assert (loaded.best_epoch, loaded.best_accuracy) == (whole.best_epoch, whole.best_accuracy)
    assert loaded.lost_patience(len(scores)) == whole.lost_patience(len(scores))
    assert whole.best_epoch == scores.index(max(scores)) + 1
