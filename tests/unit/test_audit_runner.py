"""What is done with attacks: kept when finished, told when not possible, held against limits, shown without markup."""

import json
import re
from dataclasses import replace

import pytest
import torch

from tests.pages import CHROMIUM, Elements, browsed
from vfgnn.agreement import HolderShape, make_agreement
from vfgnn.audit import catalogue, runner
from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.case import Attacked, Case, PartyRole, role_of
from vfgnn.audit.catalogue import Entry
from vfgnn.audit.result import Audit, by_run, matrix, refuse_exceeded
from vfgnn.audit.runner import Done, Store, attack, jobs_of
from vfgnn.audit.statistics import HARMLESS, LEAKS, compare_rankings, compare_shares
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.errors import ConfigError, LimitExceeded
from vfgnn.report.audit.page import make_page
from vfgnn.settings import Settings

EDGES = Attack("edges from rows", "server", "nothing", Target.EDGES, "edges", "AUC", "features", "noise", "somebody")
LABELS = replace(EDGES, name="labels from rows", target=Target.LABELS, metric="share")
HOLDERS = [HolderShape(name=name, features=3, edges=True, integer=True) for name in "AB"]
AGREEMENT = make_agreement(nodes=20, classes=2, holders=HOLDERS, label_holder="A", settings=Settings())
TRUTH = torch.arange(400) % 2 == 0


def scores(strength, rng):
    return TRUTH * strength + torch.randn(len(TRUTH), generator=rng)


def edges(view, truth, rng):
    measured = compare_rankings(scores(3.0, rng), {"features": scores(0.5, rng)}, TRUTH, rng)
    return [AttackFinding(EDGES, view.party, "B", measured, pooled=measured.attack)]


def labels(view, truth, rng):
    right = torch.arange(300) % 2 == 0
    return [AttackFinding(LABELS, view.party, "A", compare_shares(right, {"frequent": right}))]


def impossible(view, truth, rng):
    raise NotInView("rows from B to server")


ENTRIES = (
    Entry(edges, (EDGES,), "split", (PartyRole.SERVER,)),
    Entry(labels, (LABELS,), "split", (PartyRole.SERVER, PartyRole.HOLDER)),
    Entry(impossible, (EDGES, LABELS), "split", (PartyRole.HOLDER,)),
    Entry(impossible, (EDGES,), "sealed", (PartyRole.SERVER,)),
)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setattr(catalogue, "CATALOGUE", ENTRIES)


def case(title="a run", made=None, **changes):
    views = {name: View(name, AGREEMENT, {}) for name in ("server", "B")}

    def make():
        if made is not None:
            made.append(title)
        return Attacked(views, Truth(), 0.8)

    return replace(Case(title, "split", AGREEMENT, ("server", "B"), f"digest of {title}", make), **changes)


def audited(title="a run", store=None, **more):
    one = case(title)
    return Audit((attack(one, jobs_of(one), store=store or Store(None), **more),))


def test_each_role_has_its_attacks():
    assert [role_of(AGREEMENT, name) for name in ("server", "dealer", "A", "B")] == [
        PartyRole.SERVER,
        PartyRole.DEALER,
        PartyRole.LABEL_HOLDER,
        PartyRole.HOLDER,
    ]
    jobs = [(job.party, job.entry.carry_out) for job in jobs_of(case())]
    assert jobs == [("server", edges), ("server", labels), ("B", labels), ("B", impossible)]
    assert [job.party for job in jobs_of(case(), ["B"])] == ["B", "B"]


def test_what_is_finished_is_kept_and_nothing_is_trained_for_it_again(tmp_path, monkeypatch):
    made, heard = [], []
    one = case(made=made)
    first = attack(one, jobs_of(one), store=Store(tmp_path), on_done=lambda job, done: heard.append(done))
    assert made == ["a run"] and len(heard) == 4
    again = attack(one, jobs_of(one), store=Store(tmp_path))
    assert made == ["a run"]
    assert again.done == first.done == tuple(heard)
    assert again.accuracy == 0.8
    assert not [path for path in tmp_path.iterdir() if path.stat().st_mode & 0o077]
    attack(one, jobs_of(one), store=Store(tmp_path), seed=1)
    attack(replace(one, digest="another"), jobs_of(one), store=Store(tmp_path))
    monkeypatch.setattr(runner, "code_of", lambda module: "changed")
    attack(one, jobs_of(one), store=Store(tmp_path))
    assert made == ["a run"] * 4


def test_an_attack_is_done_again_where_its_code_or_what_it_uses_has_changed(monkeypatch):
    before = runner.code_of("vfgnn.audit.labels_from_gradient")
    assert before != runner.code_of("vfgnn.audit.membership")
    runner.code_of.cache_clear()
    assert runner.code_of("vfgnn.audit.labels_from_gradient") == before
    runner.code_of.cache_clear()
    monkeypatch.setattr(runner, "IMPORTED", re.compile("no such line"))  # without what it uses it is another one
    assert runner.code_of("vfgnn.audit.labels_from_gradient") != before
    runner.code_of.cache_clear()


def test_an_audit_that_was_stopped_goes_on(tmp_path):
    made, one = [], case()

    def stop(job, done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attack(one, jobs_of(one), store=Store(tmp_path), on_done=stop)
    whole = attack(one, jobs_of(one), store=Store(None))
    went_on = attack(case(made=made), jobs_of(one), store=Store(tmp_path))
    assert made == ["a run"]
    assert [done.findings for done in went_on.done] == [done.findings for done in whole.done]


def test_what_was_spoiled_is_found_out_again(tmp_path):
    one = case()
    first = attack(one, jobs_of(one), store=Store(tmp_path))
    for path in tmp_path.iterdir():
        path.write_text('{"entry": 7}')
    again = attack(one, jobs_of(one), store=Store(tmp_path))
    assert [done.findings for done in again.done] == [done.findings for done in first.done]


def test_what_an_attack_draws_does_not_depend_on_what_was_attacked_before():
    one = case()
    whole = attack(one, jobs_of(one), store=Store(None))
    alone = attack(one, jobs_of(one)[1:2], store=Store(None))
    assert alone.done[0].findings == whole.done[1].findings


def test_rows_have_what_an_auditor_reads():
    rows = [row.to_json() for row in audited().rows]
    found = rows[0]
    wanted = {"protocol", "party", "attack", "target", "n", "auc", "low", "high", "baseline", "pooled_auc", "verdict"}
    assert wanted <= set(found)
    assert (found["protocol"], found["party"], found["attack"], found["target"], found["n"]) == (
        "split",
        "server",
        EDGES.name,
        "edges",
        400,
    )
    assert found["low"] < found["auc"] < found["high"]
    assert found["verdict"] == LEAKS and found["pooled_auc"] == found["auc"]
    missing = [row for row in rows if row["party"] == "B" and "auc" not in row]
    assert [row["attack"] for row in missing] == [EDGES.name, LABELS.name]
    assert missing[0]["verdict"] == "not measurable here: no rows from B to server"
    json.dumps(audited().to_json())


def test_the_matrix_has_the_worst_of_each_cell():
    rows = audited().rows
    cells = matrix(rows)
    server = cells["a run", "split", PartyRole.SERVER]
    assert server[Target.EDGES].verdict == LEAKS
    assert server[Target.EDGES].worst.attack == EDGES
    assert server[Target.LABELS].verdict != LEAKS
    holder = cells["a run", "split", PartyRole.HOLDER]
    assert holder[Target.EDGES].worst is None
    assert by_run(rows)["a run"][Target.EDGES].worst.party == "server"


def test_a_limit_is_held_against_the_whole_interval():
    rows = audited().rows
    worst = max(row.excess for row in rows if row.finding is not None)
    refuse_exceeded(rows, {Target.EDGES: worst})
    with pytest.raises(LimitExceeded) as refused:
        refuse_exceeded(rows, {Target.EDGES: worst - 1e-6})
    assert refused.value.exit_code == 4
    assert "noise" in str(refused.value)  # what would help
    with pytest.raises(ConfigError, match="nothing was measured"):
        refuse_exceeded(rows, {Target.FEATURES: 0.02})


def test_the_page_has_every_attack_and_says_what_it_assumed():
    page = make_page(audited())
    for part in ("Who finds out what", EDGES.name, "assumed beyond its view", "what would help", "few false positives"):
        assert part in page
    assert page.count("<svg") == 1  # shares have no ROC
    assert "no rows from B to server" in page
    assert "<script" not in page


def test_nobodys_text_becomes_markup():
    """A run's name, a party's and a view's lack may be another party's text."""
    hostile = "<script>alert(1)</script>"
    clean = Elements(make_page(audited())).kinds
    found = audited(title=hostile)
    job, done = found.results[0].jobs[0], found.results[0].done[0]
    spoiled = replace(done, findings=tuple(replace(one, party=hostile, about=hostile) for one in done.findings))
    lack = Done("x", hostile, (), missing=hostile)
    result = replace(found.results[0], jobs=(job, job), done=(spoiled, lack))
    assert Elements(make_page(Audit((result,)))).kinds <= clean


def test_mitigations_stand_beside_their_accuracy():
    one, other = case("none"), case("edge_epsilon = 8")
    results = tuple(attack(each, jobs_of(each), store=Store(None)) for each in (one, other))
    page = make_page(Audit(results, defended=True))
    for part in ("What each mitigation does", "edge_epsilon = 8", "accuracy", "0.800", "by role"):
        assert part in page


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_draws_it_and_fetches_nothing(tmp_path, width):
    drawn = browsed(make_page(audited()), tmp_path, width)
    assert drawn.count("<svg") == 1
    assert drawn.count("<path") > 5


def test_a_verdict_at_the_baseline_is_green():
    one = case()
    right = torch.ones(1000, dtype=torch.bool)
    finding = AttackFinding(LABELS, "server", "A", compare_shares(right, {"frequent": right}))
    job = jobs_of(one)[1]
    done = Done("labels", "server", (finding,))
    result = replace(attack(one, [], store=Store(None)), jobs=(job,), done=(done,))
    assert finding.measured.verdict == HARMLESS
    assert 'class="cell good"' in make_page(Audit((result,)))
