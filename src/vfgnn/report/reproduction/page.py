"""The report of a reproduction, as a page and as docs/reproduction.md: the same sections, drawn twice.

It is made from the record that `vfgnn reproduce all` keeps and from nothing else. The page is self-contained: figures
are drawn into it, nothing is fetched, no script runs.
"""

import re
from pathlib import Path
from textwrap import fill

from vfgnn.experiments.claims import NEAR
from vfgnn.experiments.reproduction import Reproduction
from vfgnn.experiments.tables import Mark
from vfgnn.report import charts
from vfgnn.report.figures import save
from vfgnn.report.html import escape, page_of
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
    f"paper's own gap plus {NEAR}."
)


def make_page(reproduction: Reproduction) -> str:
    """The whole page."""
    sections = list(sections_of(reproduction))
    links = " ".join(f'<a href="#{section.name}">{escape(section.topic)}</a>' for section in sections)
    cards = "".join(
        f'<div class="card"><b>{escape(value)}</b>{escape(name)}</div>' for name, value in _cards(reproduction)
    )
    head = (
        f'<h1>{TITLE}</h1><p>{escape(PAPER)}</p><p class="soft">{_inline(_run(reproduction))}</p>'
        f'<div class="cards">{cards}</div>{summary_grid(reproduction.claims).to_html()}'
        f'<p class="soft">{_inline(READ)}</p><nav>{links}</nav>'
    )
    return page_of(TITLE, [head, *map(_draw, sections)])


def make_markdown(reproduction: Reproduction, figures: Path) -> str:
    """The same for docs; figures are written to `figures`, which stands beside the file that the text goes to."""
    shown = ", ".join(f"{value} {name}" for name, value in _cards(reproduction)[:3])
    lines = [f"# {TITLE}", fill(PAPER, WIDTH), fill(_run(reproduction), WIDTH), f"**{shown}.**"]
    lines += [summary_grid(reproduction.claims).to_markdown().rstrip(), fill(READ, WIDTH)]
    for section in sections_of(reproduction):
        lines += [f"## {section.title}", fill(section.told, WIDTH)]
        for picture in section.pictures:
            save(picture.figure, figures / f"{picture.name}.svg")
            lines.append(f"![{picture.caption}]({figures.name}/{picture.name}.svg)")
        lines += [grid.to_markdown().rstrip() for grid in section.grids]
    return "\n\n".join(lines) + "\n"


def _draw(section: Section) -> str:
    pictures = "".join(
        f'<div class="figure">{charts.svg(picture.figure, picture.name)}</div>'
        f'<p class="soft">{escape(picture.caption)}</p>'
        for picture in section.pictures
    )
    grids = "".join(f'<div class="{"whole" if grid.wide else ""}">{grid.to_html()}</div>' for grid in section.grids)
    return (
        f'<h2 id="{section.name}">{escape(section.title)}</h2><p>{_inline(section.told)}</p>{pictures}'
        f'<div class="pair">{grids}</div>'
    )


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _cards(reproduction: Reproduction) -> list[tuple[str, str]]:
    marks = [claim.mark for claim in reproduction.claims]
    return [
        ("claims reproduced", f"{marks.count(Mark.REPRODUCED)} of {len(marks) - marks.count(Mark.OPEN)}"),
        ("not reproduced", str(marks.count(Mark.NOT_REPRODUCED))),
        ("open", str(marks.count(Mark.OPEN))),
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
