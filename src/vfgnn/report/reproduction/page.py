"""The report of a reproduction, as a page and as docs/reproduction.md: the same sections, drawn twice.

It is made from the record that `vfgnn reproduce all` keeps and from nothing else. The page is self-contained: figures
are drawn into it, nothing is fetched, no script runs.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from vfgnn.experiments.claims import NEAR, Claim
from vfgnn.experiments.reproduction import Reproduction
from vfgnn.experiments.tables import Mark
from vfgnn.report import charts
from vfgnn.report.figures import save
from vfgnn.report.html import Html, card_of, markup, page_of, tag
from vfgnn.report.reproduction.sections import Section, sections_of
from vfgnn.report.reproduction.tables import span, summary_grid

TITLE = "VFGNN, reproduced"
WIDTH = 120
PAPER = (
    "Chen et al., Vertically Federated Graph Neural Network for Privacy-Preserving Node Classification (IJCAI 2022): "
    "every table and claim, ours beside the paper's."
)
READ = (
    "± is the standard deviation over seeds, each a partition and an initialisation. Settings and epochs are chosen on "
    "validation nodes, accuracies are those of test nodes. Beside `VFGNN_best`, this project's own preset, stands the "
    "best of the paper's three figures. A claim is reproduced if our means are ordered as it says, and what was found "
    "tells where a difference is within one standard error. Near the pooled model (Q2) is below it by at most the "
    f"paper's own gap plus {NEAR}. The paper does not say how it split edges: `undirected`, every edge is at exactly "
    "one holder; `directed`, each of its two directions is dealt by itself, so that two holders know about three "
    "quarters of all edges each. All claims are judged under one reading, then all under the other."
)


def make_page(reproduction: Reproduction) -> str:
    """The whole page."""
    sections = list(sections_of(reproduction))
    links = [markup(tag("a", section.topic, href=f"#{section.name}"), " ") for section in sections]
    head = markup(
        tag("h1", TITLE),
        tag("p", PAPER),
        tag("p", _inline(_run(reproduction)), look="soft"),
        tag("div", *(card_of(value, name) for name, value in _cards(reproduction)), look="cards"),
        summary_grid(reproduction.claims).to_html(),
        tag("p", _inline(READ), look="soft"),
        tag("nav", *links),
    )
    return page_of(TITLE, [head, *map(_draw, sections)])


def make_markdown(reproduction: Reproduction, figures: Path) -> str:
    """The same for docs; figures are written to `figures`, which stands beside the file that the text goes to."""
    shown = "; ".join(f"{value} {name}" for name, value in _counts(reproduction))
    lines = [f"# {TITLE}", fill(PAPER, WIDTH), fill(_run(reproduction), WIDTH), f"**{shown}.**"]
    lines += [summary_grid(reproduction.claims).to_markdown().rstrip(), fill(READ, WIDTH)]
    for section in sections_of(reproduction):
        lines += [f"## {section.title}", fill(section.told, WIDTH)]
        for picture in section.pictures:
            save(picture.figure, figures / f"{picture.name}.svg")
            lines.append(f"![{picture.caption}]({figures.name}/{picture.name}.svg)")
        lines += [grid.to_markdown().rstrip() for grid in section.grids]
    return "\n\n".join(lines) + "\n"


def _draw(section: Section) -> Html:
    pictures = (
        markup(
            tag("div", charts.svg(picture.figure, picture.name), look="figure"),
            tag("p", picture.caption, look="soft"),
        )
        for picture in section.pictures
    )
    grids = (tag("div", grid.to_html(), look="whole" if grid.wide else "") for grid in section.grids)
    return markup(
        tag("h2", section.title, id=section.name),
        tag("p", _inline(section.told)),
        *pictures,
        tag("div", *grids, look="pair"),
    )


def _inline(text: str) -> Html:
    """Code stands between backticks."""
    return markup(*(tag("code", part) if i % 2 else part for i, part in enumerate(re.split(r"`([^`]+)`", text))))


def _counts(reproduction: Reproduction) -> list[tuple[str, str]]:
    """Under each reading, and of arXiv's claims what was judged on other features."""
    shown = []
    for reading in reproduction.readings:
        mine = [claim for claim in reproduction.claims if claim.reading == reading]
        shown.append((f"claims reproduced, edges {reading}", _share([one for one in mine if not one.judged_on])))
        if others := [one for one in mine if one.judged_on]:
            shown.append((f"of arXiv's, on features of texts, edges {reading}", _share(others)))
    return shown


def _share(claims: Sequence[Claim]) -> str:
    marks = [claim.mark for claim in claims]
    return f"{marks.count(Mark.REPRODUCED)} of {len(marks) - marks.count(Mark.OPEN)}"


def _cards(reproduction: Reproduction) -> list[tuple[str, str]]:
    return [
        *_counts(reproduction),
        ("seeds", str(reproduction.seeds)),
        ("trainings", f"{reproduction.total.trainings:,}"),
        ("of one core", f"{reproduction.total.cpu_seconds / 3600:.1f} h"),
    ]


def _run(reproduction: Reproduction) -> str:
    """What was run, when, how long, where."""
    work = reproduction.total
    when = f"trained {span(work.first, work.last)} UTC" if work.trainings else "nothing trained"
    program = f", vfgnn {', '.join(work.versions)}" if work.versions else ""
    minutes = work.cpu_seconds / 60
    return (
        f"By `vfgnn reproduce all --seeds {reproduction.seeds}`{program}, {when}, in {minutes:,.0f} minutes of one "
        f"core. Machine: {reproduction.machine}."
    )
