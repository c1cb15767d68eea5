"""Copies of noised data: what is done again is sent again, and every kill is counted exactly."""

import stat

import pytest
import torch
from safetensors.torch import load_file, save_file

from vfgnn import writing
from vfgnn.errors import BudgetSpent, DiskError, LedgerRefused
from vfgnn.privacy import publishing
from vfgnn.privacy.copies import MessageCopies, remove_copies
from vfgnn.privacy.ledger import Ledger, read_releases, worst
from vfgnn.privacy.publishing import Publisher
from vfgnn.randomness import new_seed
from vfgnn.settings import Privacy

PRIVACY = Privacy(row_epsilon=1.0, gradient_epsilon=2.0)
ROWS = torch.ones(3, 4)
NODES = torch.tensor([4, 1, 7])
EDGES = torch.tensor([[0, 1, 5], [1, 0, 9]])


class Killed(BaseException):
    """The process ends here."""


class Holder:
    """A holder's own disk, and each start of its process."""

    def __init__(self, home, privacy=PRIVACY):
        self.home, self.privacy, self.ledger_path = home, privacy, home / "ledger.jsonl"

    def start(self, work, *, run="run"):
        ledger = Ledger(self.ledger_path)
        copies = MessageCopies(self.home / "noised", run)
        publisher = Publisher(
            self.privacy, epochs=3, run=f"start of {run}", seed=new_seed(), ledger=ledger, copies=copies
        )
        try:
            return work(publisher)
        finally:
            ledger.close()

    def send(self, step=0, nodes=NODES, classes=("train",), run="run"):
        return self.start(lambda publisher: publisher.rows(ROWS, classes, step, nodes=nodes), run=run)

    @property
    def lines(self):
        return len(read_releases(self.ledger_path)) if self.ledger_path.is_file() else 0


def test_a_step_that_is_done_again_sends_the_same_message_and_pays_nothing(tmp_path):
    holder = Holder(tmp_path)
    first = holder.send()
    assert torch.equal(holder.send(), first) and holder.lines == 1
    assert first.dtype == torch.float32

    def gradient(publisher):
        return publisher.gradient(ROWS, ("train",), 0, nodes=NODES, train_rows=3)

    assert torch.equal(holder.start(gradient), holder.start(gradient)) and holder.lines == 2


def test_without_copies_a_step_that_is_done_again_is_noised_and_charged_again(tmp_path, monkeypatch):
    """The test above can fail."""
    monkeypatch.setattr(publishing, "read_copy", lambda path, what: None)
    holder = Holder(tmp_path)
    assert not torch.equal(holder.send(), holder.send()) and holder.lines == 2


@pytest.mark.parametrize(
    "other",
    [
        {"step": 1},
        {"step": None},
        {"run": "other"},
        {"nodes": torch.tensor([1, 4, 7])},
        {"nodes": torch.tensor([4, 1, 8])},
    ],
)
def test_no_other_message_is_taken_for_it(tmp_path, other):
    holder = Holder(tmp_path)
    assert not torch.equal(holder.send(), holder.send(**other)) and holder.lines == 2


def killed_between(monkeypatch, holder, place, name):
    """A process that ends right before `place.name` has done anything."""
    with monkeypatch.context() as patch:

        def die(*_, **__):
            raise Killed

        patch.setattr(place, name, die)
        with pytest.raises(Killed):
            holder.send()


def test_a_kill_between_noise_and_copy_draws_again(tmp_path, monkeypatch):
    holder = Holder(tmp_path)
    killed_between(monkeypatch, holder, publishing, "write_copy")
    assert holder.lines == 0
    holder.send()
    assert holder.lines == 1


def test_a_kill_between_copy_and_line_charges_once_and_sends_the_copy(tmp_path, monkeypatch):
    holder = Holder(tmp_path)
    killed_between(monkeypatch, holder, Ledger, "charge")
    (copy,) = (tmp_path / "noised").iterdir()
    assert holder.lines == 0  # nothing has left
    kept = load_file(copy)["rows"]
    assert torch.equal(holder.send(), kept) and holder.lines == 1
    assert torch.equal(holder.send(), kept) and holder.lines == 1


def test_a_copy_that_counts_as_paid_without_its_line_would_be_under_counted(tmp_path, monkeypatch):
    """The test above can fail: with a ledger that is not asked, what was never charged leaves."""
    holder = Holder(tmp_path)
    killed_between(monkeypatch, holder, Ledger, "charge")
    monkeypatch.setattr(Ledger, "knows", lambda self, copy_id: True)
    holder.send()
    assert holder.lines == 0


def test_the_copy_is_on_the_disk_before_the_line(tmp_path, monkeypatch):
    seen, charge = [], Ledger.charge

    def looking(self, release):
        seen.append(len(list((tmp_path / "noised").glob("*.safetensors"))))
        charge(self, release)

    monkeypatch.setattr(Ledger, "charge", looking)
    Holder(tmp_path).send()
    assert seen == [1]


def test_later_batches_of_an_epoch_are_sent_again_and_never_charged(tmp_path):
    holder = Holder(tmp_path)
    batches = [({"classes": ("train",)}, 0), ({"classes": (), "nodes": torch.tensor([2, 3, 5])}, 0)]
    sent = [holder.send(step, **batch) for batch, step in batches]
    again = [holder.send(step, **batch) for batch, step in batches]
    assert all(torch.equal(one, other) for one, other in zip(sent, again, strict=True)) and holder.lines == 1


def test_copies_are_for_their_owner_alone_and_go_when_nobody_can_go_back(tmp_path):
    holder = Holder(tmp_path)
    for step in (0, 1, 2, None):
        holder.send(step)
    folder = tmp_path / "noised"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    MessageCopies(folder, "run").forget(before=2)
    assert sorted(path.name[:13] for path in folder.iterdir()) == ["prediction-ro", "step-00000002"]
    remove_copies(folder)
    remove_copies(folder)
    assert not folder.exists()


def test_a_copy_that_cannot_be_read_is_refused_by_name(tmp_path):
    holder = Holder(tmp_path)
    holder.send()
    (copy,) = (tmp_path / "noised").iterdir()
    copy.write_bytes(b"nonsense")
    with pytest.raises(LedgerRefused, match="noised rows cannot be read"):
        holder.send()


def test_a_budget_holds_for_all_steps_and_those_that_are_done_again(tmp_path):
    holder = Holder(tmp_path, Privacy(row_epsilon=1.0, budget_epsilon=1.0))
    first = holder.send()
    assert torch.equal(holder.send(), first)
    with pytest.raises(BudgetSpent):
        holder.send(1)
    assert holder.lines == 1 and len(list((tmp_path / "noised").iterdir())) == 1


def test_a_run_that_goes_on_with_nothing_more_to_release_is_not_refused(tmp_path):
    """Killed after its last release: all of the budget is spent, and nothing new leaves."""
    holder = Holder(tmp_path, Privacy(row_epsilon=1.0, budget_epsilon=1.0))
    first = holder.send()

    def goes_on(publisher):
        publisher.resumed(1)
        publisher.refuse_spent()
        return publisher.rows(ROWS, ("train",), 0, nodes=NODES)

    assert torch.equal(holder.start(goes_on), first)


def prediction_after_a_kill(holder):
    """Rows that train in two starts, then rows of neither class in a third: the most exposed row was released twice."""
    train, val, other = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5]), torch.tensor([6, 7, 8])

    def send(classes, step, nodes):
        def work(publisher):
            publisher.learn_rows(train, val)
            publisher.rows(ROWS, classes, step, nodes=nodes)

        holder.start(work, run="run")

    send(("train",), 0, train)
    send(("train",), 1, train)
    send(("other",), None, other)
    return len(worst(read_releases(holder.ledger_path), "row"))


def test_starts_of_one_run_add_up_by_class(tmp_path):
    assert prediction_after_a_kill(Holder(tmp_path)) == 2


def test_lines_that_name_the_start_would_count_a_row_that_no_message_had_thrice(tmp_path, monkeypatch):
    """The test above can fail: it did when each start counted as a run."""
    starts = iter("abc")
    monkeypatch.setattr(Publisher, "learn_rows", lambda self, train, val: setattr(self, "_run", next(starts)))
    assert prediction_after_a_kill(Holder(tmp_path)) == 3


def test_rows_that_change_their_class_within_a_run_count_in_both(tmp_path):
    holder = Holder(tmp_path)
    for step, train in enumerate((torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5]))):

        def work(publisher, step=step, train=train):
            publisher.learn_rows(train, NODES)
            publisher.rows(ROWS, ("train", "val")[step : step + 1], step, nodes=train)

        holder.start(work)
    assert len(worst(read_releases(holder.ledger_path), "row")) == 2


def edges_of(holder):
    return holder.start(lambda publisher: publisher.edges(EDGES, 50))


def test_noised_edges_under_a_new_ledger_are_charged_there(tmp_path):
    holder = Holder(tmp_path, Privacy(edge_epsilon=2.0))
    first = edges_of(holder)
    holder.ledger_path = tmp_path / "another.jsonl"
    assert torch.equal(edges_of(holder), first) and holder.lines == 1
    assert torch.equal(edges_of(holder), first) and holder.lines == 1
    assert read_releases(holder.ledger_path)[0].epsilon == 2.0


def test_a_new_ledger_with_a_line_for_other_edges_is_charged_for_these_too(tmp_path):
    holder = Holder(tmp_path, Privacy(edge_epsilon=2.0))
    edges_of(holder)
    holder.ledger_path = tmp_path / "another.jsonl"
    holder.start(lambda publisher: publisher.edges(EDGES[:, :2], 50))
    edges_of(holder)
    assert holder.lines == 2


def test_noised_edges_of_an_earlier_version_get_a_line_once(tmp_path):
    """Their file does not name its line: over, never under."""
    holder = Holder(tmp_path, Privacy(edge_epsilon=2.0))
    first = edges_of(holder)
    (kept,) = tmp_path.glob("noised-edges-*.safetensors")
    save_file(load_file(kept), kept)
    assert torch.equal(edges_of(holder), first) and holder.lines == 2
    assert torch.equal(edges_of(holder), first) and holder.lines == 2


def test_a_kill_between_noised_edges_and_their_line_is_counted_exactly(tmp_path, monkeypatch):
    holder = Holder(tmp_path, Privacy(edge_epsilon=2.0))
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", lambda self, release: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            edges_of(holder)
    assert holder.lines == 0
    edges_of(holder)
    assert holder.lines == 1


def test_an_unfinished_copy_is_not_taken_for_one(tmp_path, monkeypatch):
    holder = Holder(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(writing, "_fill", lambda path, content: path.write_bytes(b"half") and 1 / 0)
        with pytest.raises(ZeroDivisionError):
            holder.send()
    assert not list((tmp_path / "noised").glob("*.safetensors"))
    holder.send()
    assert holder.lines == 1


def test_a_full_disk_is_named_and_nothing_is_charged(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    holder = Holder(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(writing, "_fill", full)
        with pytest.raises(DiskError, match="cannot be written"):
            holder.send()
    assert holder.lines == 0
    holder.send()
    assert holder.lines == 1
