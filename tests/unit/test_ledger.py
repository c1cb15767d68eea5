"""The ledger: totals, what survives on disk, and what is refused."""

import json

import pytest
import torch

from vfgnn.cli.privacy import ledger as show_ledger
from vfgnn.errors import BudgetSpent, LedgerRefused
from vfgnn.privacy import input_perturbation
from vfgnn.privacy.calibration import analytic_multiplier, epsilon_of
from vfgnn.privacy.ledger import Ledger, Release, read_releases, refuse_beyond, total_epsilon, worst
from vfgnn.privacy.publishing import Publisher, affordable_epochs
from vfgnn.privacy.statement import spent
from vfgnn.randomness import new_seed
from vfgnn.settings import Privacy

DELTA = 1e-4


def rows(step=0, classes=("train",), multiplier=2.0, run="r", adjacency="zero_out"):
    return Release(run, step, "rows", "row", classes, adjacency=adjacency, noise_multiplier=multiplier)


def response(epsilon, unit="label", categories=7, run="r"):
    return Release(run, None, "labels", unit, ("all",), epsilon=epsilon, categories=categories)


def test_gaussian_releases_add_up_in_closed_form():
    assert total_epsilon([rows(t) for t in range(50)], DELTA, "zero_out") == pytest.approx(
        epsilon_of(2.0, DELTA, 50), rel=1e-9
    )
    mixed = [rows(multiplier=2.0), rows(multiplier=1.0)]
    assert total_epsilon(mixed, DELTA, "zero_out") == pytest.approx(epsilon_of((1 / 4 + 1) ** -0.5, DELTA), rel=1e-9)


def test_adjacency_is_translated():
    there = total_epsilon([rows(adjacency="zero_out", multiplier=2.0)], DELTA, "replace_one")
    assert there == pytest.approx(epsilon_of(1.0, DELTA), rel=1e-9)


def test_other_mechanisms_go_through_dp_accounting():
    one = total_epsilon([response(1.0)], DELTA, "replace_one")
    assert one == 1.0  # a single one is pure
    many = [response(0.1, run=str(i)) for i in range(60)]
    together = total_epsilon(many, DELTA, "replace_one")
    assert 1.0 < together < 6.0  # less than the sum: advanced composition
    gaussian = [rows(multiplier=3.0, adjacency="replace_one")]
    both = total_epsilon([*gaussian, response(0.5)], DELTA, "replace_one")
    alone = total_epsilon(gaussian, DELTA, "replace_one")
    assert max(alone, 0.5) < both <= alone + 0.5 + 1e-3


def test_dp_accounting_reads_our_gaussian_as_we_do():
    """A response that says nothing beside Gaussian releases leaves their closed form."""
    gaussian = [rows(t, multiplier=4.0, adjacency="replace_one") for t in range(10)]
    through = total_epsilon([*gaussian, response(1e-9)], DELTA, "replace_one")
    assert through == pytest.approx(epsilon_of(4.0, DELTA, 10), rel=1e-3)


def test_rows_count_by_class_and_runs_add_up():
    releases = [rows(t, ("train", "val") if t % 2 else ("train",)) for t in range(10)]
    assert len(worst([*releases, rows(None, ("other",))], "row")) == 10
    again = [rows(t, ("val",), run="second") for t in range(3)]
    assert len(worst([*releases, *again], "row")) == 13


def test_a_ledger_is_read_back_as_it_was_written(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    written = [rows(0), rows(1, ("train", "val")), response(4.0)]
    for release in written:
        ledger.charge(release)
    ledger.close()
    again = Ledger(path)
    assert read_releases(path) == written == again.releases
    with pytest.raises(LedgerRefused, match="in use by another process"):
        Ledger(path)
    again.close()


def test_an_edited_ledger_is_refused(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    for step in range(3):
        ledger.charge(rows(step))
    ledger.close()
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join([lines[0], lines[1].replace('"noise_multiplier": 2.0', '"noise_multiplier": 9.0'), lines[2]])
    )
    with pytest.raises(LedgerRefused, match="altered"):
        Ledger(path)
    path.write_text("\n".join([lines[0], lines[2]]) + "\n")
    with pytest.raises(LedgerRefused, match="altered"):
        Ledger(path)


def test_a_ledger_that_was_rolled_back_is_refused(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    ledger.charge(rows(0))
    earlier = path.read_bytes()
    ledger.charge(rows(1))
    ledger.close()
    path.write_bytes(earlier)
    with pytest.raises(LedgerRefused, match="rolled back"):
        Ledger(path)
    path.unlink()
    with pytest.raises(LedgerRefused, match="rolled back"):
        Ledger(path)


def test_a_line_that_a_kill_cut_never_happened(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    ledger.charge(rows(0))
    ledger.close()
    with path.open("ab") as file:
        file.write(b'{"number": 2, "run": "r"')
    again = Ledger(path)
    assert again.releases == [rows(0)]
    again.close()


def test_the_budget_is_never_passed():
    ledger, budget = Ledger(), epsilon_of(2.0, DELTA, 3)
    for step in range(3):
        refuse_beyond(ledger, [rows(step)], budget=budget, delta=DELTA, adjacency="zero_out")
        ledger.charge(rows(step))
    with pytest.raises(BudgetSpent, match="does not cover"):
        refuse_beyond(ledger, [rows(3)], budget=budget, delta=DELTA, adjacency="zero_out")


def test_a_spent_budget_is_refused_before_anything_is_sent():
    privacy = Privacy(row_epsilon=1.0, budget_epsilon=2.0)
    ledger = Ledger()
    for step in range(40):
        ledger.charge(rows(step, multiplier=analytic_multiplier(1.0, DELTA)))
    publisher = Publisher(privacy, epochs=10, run="r", seed=new_seed(), ledger=ledger)
    with pytest.raises(BudgetSpent, match="budget_epsilon = 2"):
        publisher.refuse_spent()


def test_where_training_ends():
    privacy = Privacy(row_epsilon=1.0, budget_epsilon=5.0)
    epochs = affordable_epochs(privacy, 200)
    multiplier = analytic_multiplier(1.0, DELTA)
    assert epsilon_of(multiplier, DELTA, epochs + 1) <= 5.0 < epsilon_of(multiplier, DELTA, epochs + 2)
    assert affordable_epochs(Privacy(row_epsilon=1.0), 200) == 200
    together = Privacy(row_epsilon=1.0, gradient_epsilon=1.0, budget_epsilon=5.0)
    assert affordable_epochs(together, 200) < epochs


def test_what_a_ledger_comes_to():
    found = spent([rows(0), rows(1), response(4.0)], DELTA)
    assert [(unit["unit"], unit["adjacency"], unit["releases"]) for unit in found] == [
        ("row", "zero_out", 2),
        ("row", "replace_one", 2),
        ("label", "-", 1),
    ]
    assert json.dumps(found)


def test_noised_inputs_are_drawn_and_paid_for_once(tmp_path):
    edges = torch.tensor([[0, 1, 5], [1, 0, 9]])

    def start(epsilon=2.0, edges=edges, **options):
        ledger = Ledger(tmp_path / "ledger.jsonl", **options)
        publisher = Publisher(Privacy(edge_epsilon=epsilon), epochs=1, run="r", seed=new_seed(), ledger=ledger)
        try:
            return publisher.edges(edges, 50), ledger.count
        finally:
            ledger.close()

    first, charged = start()
    again, still = start()
    assert torch.equal(first, again) and charged == still == 1
    assert start(epsilon=3.0)[1] == 2
    assert torch.equal(start(trained=True)[0], first)
    with pytest.raises(LedgerRefused, match="have changed since they were noised"):
        start(edges=edges[:, :2], trained=True)  # a prediction must not draw, nor pay, again
    assert len(read_releases(tmp_path / "ledger.jsonl")) == 2


BUDGETED = Privacy(edge_epsilon=2.0, label_epsilon=2.0, budget_epsilon=3.0)
EDGES = torch.tensor([[0, 1, 5], [1, 0, 9]])


def inputs(path, *, edges=None, labels=None, privacy=BUDGETED, run="r"):
    """One run's noised edges or labels."""
    ledger = Ledger(path)
    publisher = Publisher(privacy, epochs=1, run=run, seed=new_seed(), ledger=ledger)
    try:
        if edges is not None:
            return publisher.edges(edges, 50)
        return publisher.labels(labels, 3, torch.arange(len(labels)))
    finally:
        ledger.close()


def refused_inputs(path, monkeypatch):
    """Other edges and other labels than those that spent the budget: whether anything was noised."""
    drawn = []
    for name in ("flip_pairs", "flip_labels"):
        monkeypatch.setattr(input_perturbation, name, lambda *values, **_: drawn.append(1) or values[0])
    for other in ({"edges": EDGES[:, :2]}, {"labels": torch.tensor([2, 2, 0])}):
        with pytest.raises(BudgetSpent, match="does not cover the coming release"):
            inputs(path, **other, run="second")
    return drawn


def test_edges_and_labels_have_a_budget_of_their_own_over_all_runs(tmp_path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    noised = inputs(path, edges=EDGES)
    inputs(path, labels=torch.tensor([0, 1, 2]))
    files = sorted(tmp_path.iterdir())
    assert not refused_inputs(path, monkeypatch)
    assert sorted(tmp_path.iterdir()) == files and len(read_releases(path)) == 2
    assert torch.equal(inputs(path, edges=EDGES, run="third"), noised)  # the kept noise costs nothing
    assert len(read_releases(path)) == 2


def test_without_the_budget_other_edges_are_noised_and_spend_more(tmp_path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    inputs(path, edges=EDGES)
    monkeypatch.setattr(Publisher, "_refuse_beyond", lambda self, coming: None)
    with pytest.raises(pytest.fail.Exception):
        refused_inputs(path, monkeypatch)
    assert total_epsilon(worst(read_releases(path), "edge"), DELTA, "zero_out") > 3.0


def test_what_a_budget_leaves():
    releases = [rows(0), response(2.0), response(1.5, unit="edge")]
    left = {(unit["unit"], unit["adjacency"]): unit["epsilon_left"] for unit in spent(releases, DELTA, budget=3.0)}
    assert left["label", "-"] == 1.0 and left["edge", "-"] == 1.5
    assert left["row", "zero_out"] == pytest.approx(3.0 - epsilon_of(2.0, DELTA))
    assert left["row", "replace_one"] == 0.0  # beyond
    assert [unit["epsilon_left"] for unit in spent([], DELTA, budget=3.0)] == [3.0] * 4


def test_the_command_tells_what_is_left(tmp_path, capsys):
    path, out = tmp_path / "ledger.jsonl", tmp_path / "spent.json"
    inputs(path, edges=EDGES)
    show_ledger(path, delta=DELTA, budget=3.0, json=out)
    said = json.loads(out.read_text())
    assert "left of the budget" in capsys.readouterr().out and said["budget_epsilon"] == 3.0
    assert next(unit["epsilon_left"] for unit in said["units"] if unit["unit"] == "edge") == 1.0
