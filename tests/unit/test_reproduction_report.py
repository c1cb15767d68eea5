"""The report of a reproduction, from made-up rows: everything is in it, as a page, as Markdown and in a terminal."""

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from tests.pages import Elements, changed, places
from vfgnn.errors import VfgnnError
from vfgnn.experiments.baseline import PAPER_SECONDS, Timing, baseline_rows, baseline_tasks
from vfgnn.experiments.catalogue import COMPARE
from vfgnn.experiments.privacy import privacy_rows, privacy_tasks
from vfgnn.experiments.reproduction import Reproduction, Work
from vfgnn.experiments.studies import STUDIES, study_rows, study_tasks
from vfgnn.experiments.tables import Mark, compare_rows, compare_tasks, open_rows
from vfgnn.report import charts
from vfgnn.report.grid import Grid
from vfgnn.report.reproduction.page import make_markdown, make_page
from vfgnn.report.reproduction.tables import claims_grid, grids_of, show_tables, summary_grid, timings_grid, work_grid

FIGURES = ("compare", "times", "proportions", "holders", "privacy", "aggregators", "joint_layer_epochs")
VOID = {"meta", "br", "hr", "img"}


def results(tasks):
    return {
        task: {"val_accuracy": 0.5, "test_accuracy": 0.6 + 0.01 * task.seed, "best_epoch": 3, "epochs": 99}
        for task in tasks
    }


def all_rows(readings=("undirected",)):
    compare = compare_tasks(("cora", "citeseer", "pubmed"), 2, holders=2, models=COMPARE, readings=readings)
    rows = compare_rows(compare, results(compare)) + open_rows()
    baseline, privacy = baseline_tasks(2, readings), privacy_tasks(2, readings)
    rows += baseline_rows(baseline, results(baseline)) + privacy_rows(privacy, results(privacy))
    for name in STUDIES:
        tasks = study_tasks(name, 2, readings)
        rows += study_rows(tasks, results(tasks))
    return tuple(rows)


@pytest.fixture(scope="module")
def reproduction():
    timings = [
        Timing("pubmed", model, publish, "real", seconds / 50, 46_000_000, seconds)
        for model, seconds in PAPER_SECONDS.items()
        for publish in ("all", "needed")
    ]
    timings.append(Timing("arxiv", "VFGNN_M", "all", "generated", 6.25, 700_000_000))
    work = Work("compare & more", 12, 3600.0, "2026-11-16T16:01:02+00:00", "2026-11-17T17:20:00+00:00", ("1.2.3",))
    return Reproduction(2, all_rows(), tuple(timings), (work,), total=work, machine="2 cores <i>&amp;")


@pytest.fixture(scope="module")
def both(reproduction):
    """Under both readings, and arXiv's on features of texts."""
    text = [replace(row, dataset="arxiv_text", mean=0.5, std=0.01, n=2) for row in open_rows()]
    return replace(reproduction, rows=(*all_rows(("undirected", "directed")), *text))


@pytest.fixture(scope="module")
def page(reproduction):
    return make_page(reproduction)


class Checked(HTMLParser):
    """Every element is closed in its order; what is seen is kept."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.cells = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.ids += [value for key, value in attributes if key == "id"]
        self.open += [] if tag in VOID else [tag]
        self.cells += [""] if tag in ("td", "th", "h3") else []

    def handle_startendtag(self, tag, attributes):
        self.ids += [value for key, value in attributes if key == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th", "h3"} & set(self.open):
            self.cells[-1] += data


def every_grid(reproduction):
    return [
        *grids_of(reproduction.rows),
        summary_grid(reproduction.claims),
        *(timings_grid([one], "") for one in reproduction.timings),
        work_grid(reproduction.work),
    ]


def test_the_page_has_every_table_and_claim(reproduction, page):
    seen = Checked(page)
    assert seen.open == [] and len(set(seen.ids)) == len(seen.ids)
    shown = {cell.replace("\xa0", " ") for cell in seen.cells}
    for grid in every_grid(reproduction):
        assert {cell for row in grid.rows for cell in row} <= shown
    for claim in reproduction.claims:
        assert {claim.name, claim.says, claim.told, claim.mark} <= shown
    assert shown >= {"18.65 s", "166.81 s", "6.25 s", "2026-11-16 16:01 to 2026-11-17 17:20", "1.2.3"}
    assert page.count('<div class="figure">') == len(FIGURES)


def test_the_page_is_told_and_fetches_nothing(page):
    assert "2 cores &lt;i&gt;&amp;amp;" in page and "<i>" not in page and "compare &amp; more" in page
    assert "vfgnn reproduce all --seeds 2" in page
    assert not re.findall(r"None|\bnan\b", page)
    assert "<script" not in page and "@import" not in page
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#)""", page) and not re.findall(r"url\((?!#)", page)


def test_markdown_has_the_same_and_its_figures(reproduction, tmp_path):
    text = make_markdown(reproduction, tmp_path / "figures")
    assert not re.findall(r"None|\bnan\b|[^\\]\|\|", text)
    for grid in grids_of(reproduction.rows):
        assert grid.to_markdown() in text + "\n"
    for claim in reproduction.claims:
        assert f"| {claim.mark} | {claim.name} | {claim.says} | {claim.told} |" in text
    assert re.findall(r"\]\((.*?)\)", text) == [f"figures/{name}.svg" for name in FIGURES]
    for name in FIGURES:
        assert (tmp_path / "figures" / f"{name}.svg").read_text().count("<svg") == 1


def test_a_kept_record_gives_the_same_page(reproduction, page):
    again = Reproduction.from_json(json.loads(json.dumps(reproduction.to_json())))
    assert again == reproduction and make_page(again) == page


def test_a_record_of_nothing_says_what_it_lacks(tmp_path):
    nothing = Work("in all", 0, 0.0, "", "", ())
    empty = Reproduction(1, (), (), (), total=nothing, machine="none")
    lacking = ("compare", "baseline", "proportions", "holders", "privacy, privacy variants", "aggregators, modes")
    for text in (make_page(empty), make_markdown(empty, tmp_path)):
        told = " ".join(text.split())
        assert all(f"Not in this record: {names}" in told for names in lacking)
        assert text.count("missing: no ") == len(empty.claims) and text.count("not measured") == 2


def test_everything_can_be_read_in_80_columns(reproduction):
    out = io.StringIO()
    console = Console(file=out, width=80)
    show_tables(console, reproduction.rows, 2)
    for grid in every_grid(reproduction):
        console.print(grid.to_rich())
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    for row in reproduction.rows:
        assert any(row.shown in line and (row.paper is None or f"{row.paper:.3f}" in line) for line in lines)
    console.print(claims_grid(reproduction.claims, "claims").to_rich())
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_cells_are_escaped_everywhere():
    grid = Grid("a <b> & [red]", ("x|y",), (("[bold]a|b[/] <script>",),))
    out = io.StringIO()
    Console(file=out, width=80).print(grid.to_rich())
    assert "[bold]a|b[/] <script>" in out.getvalue() and "a <b> & [red]" in out.getvalue()
    assert "[bold]a\\|b[/] <script>" in grid.to_markdown()
    assert "<script" not in grid.to_html() and "a &lt;b&gt; &amp; [red]" in grid.to_html()


def test_colours_follow_the_kind_of_a_cell_and_not_its_text():
    grid = Grid("t", ("", "model"), ((Mark.OPEN, "VFGNN_best"), ("open", "other")), strong=frozenset({1}))
    text = grid.to_html()
    assert text.count('<span class="soft">open</span>') == 1
    assert "<b>other</b>" in text and "<b>VFGNN_best</b>" not in text


def test_preset_best_stands_out(reproduction):
    for table, lines in (("compare", 1), ("proportions", 3), ("holders", 5), ("privacy", 0)):
        assert all(len(grid.strong) == lines for grid in grids_of(reproduction.of(table)))


def test_rows_of_another_data_set_have_a_column_of_their_own(reproduction):
    rows = [replace(row, dataset="other") if row.dataset == "pubmed" else row for row in reproduction.of("modes")]
    for grid in grids_of(rows):
        assert grid.headings[1:] == ("Cora", "CiteSeer", "other")


def test_no_record_can_put_markup_into_the_page(reproduction, page, monkeypatch):
    """Whoever is given another's all.json: a value is refused by name, or shown as text."""
    monkeypatch.setattr("vfgnn.report.reproduction.sections._picture", lambda *_: ())
    few = replace(reproduction, rows=reproduction.rows[:3], timings=reproduction.timings[:1])
    content, clean = json.loads(json.dumps(few.to_json())), Elements(page).kinds
    shown = refused = 0
    for place in places({key: value for key, value in content.items() if key != "claims"}):
        try:
            text = make_page(Reproduction.from_json(changed(content, *place)))
        except VfgnnError:
            refused += 1
        else:
            assert Elements(text).kinds <= clean, place
            shown += 1
    assert refused > 10 and shown > 10


def test_figures_show_names_as_text():
    name = '<script>alert(1)</script> "\'><img onerror=x> style="fill: red" id="a" $\\frac{'
    drawn = Elements(charts.links({name: 1.0}))
    assert drawn.kinds == Elements(charts.links({"A": 1.0})).kinds and "<script>" in drawn.text
    assert not {"style", "script"} & {tag for tag, _ in drawn.kinds} and ("path", "style") not in drawn.kinds


def test_markup_is_made_in_two_files_only():
    """Elsewhere a text becomes markup through `tag` and `markup` alone, which escape it."""
    sources = Path(charts.__file__).parent.rglob("*.py")
    assert {path.name for path in sources if re.search(r"\bHtml\([^)]", path.read_text())} == {"html.py", "charts.py"}


def test_both_readings_stand_side_by_side_and_both_counts_are_shown(both, tmp_path):
    text, page = make_markdown(both, tmp_path), make_page(both)
    told = " ".join(text.split())
    for reading in ("undirected", "directed"):
        claims = [claim for claim in both.claims if claim.reading == reading and not claim.judged_on]
        marks = [claim.mark for claim in claims]
        share = f"{marks.count(Mark.REPRODUCED)} of {len(marks) - marks.count(Mark.OPEN)}"
        assert f"{share} claims reproduced, edges {reading}" in told
        assert f"claims reproduced, edges {reading}" in page
    assert "of arXiv's, on features of texts, edges undirected" in told
    assert "| model | edges undirected | edges directed | paper |" in text
    pictures = {path.stem for path in tmp_path.iterdir()}
    assert pictures == {*FIGURES, "proportions_directed", "holders_directed"}
    lines = [grid.to_markdown() for grid in grids_of(both.rows)]
    assert all(grid in text + "\n" for grid in lines)
    verdicts = {(claim["id"], claim["reading"]) for claim in both.to_json()["claims"]}
    assert len(verdicts) == 2 * 57
    assert {row["edge_split"] for row in both.to_json()["rows"]} == {"undirected", "directed"}
    assert Reproduction.from_json(json.loads(json.dumps(both.to_json()))) == both


def test_both_readings_can_be_read_in_80_columns(both):
    out = io.StringIO()
    console = Console(file=out, width=80)
    show_tables(console, both.rows, 2)
    console.print(summary_grid(both.claims).to_rich())
    console.print(claims_grid(both.claims, "claims").to_rich())
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
