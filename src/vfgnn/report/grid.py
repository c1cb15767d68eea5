"""A table as text, cell by cell, shown in terminals, Markdown and pages."""

from dataclasses import dataclass
from textwrap import wrap
from typing import Literal

from rich.table import Table
from rich.text import Text

from vfgnn.experiments.tables import Mark
from vfgnn.report.html import Html, markup, table_of, tag

MARKS = {
    Mark.REPRODUCED: ("good", "green"),
    Mark.NOT_REPRODUCED: ("bad", "bold red"),
    Mark.OPEN: ("soft", "yellow"),
}
"""Verdicts among the cells: their class in a page, their style in a terminal."""
PROSE = 28
"""Longer cells are sentences: they may be folded."""
HALF = 45
"""Characters of a line for which half the width of a page is enough."""


@dataclass(frozen=True)
class Grid:
    """A table, cell by cell; the columns from `numbers` on are right-aligned, the rows `strong` stand out."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int = 1
    strong: frozenset[int] = frozenset()

    @property
    def prose(self) -> bool:
        """Whether its cells are sentences."""
        return self.numbers >= len(self.headings)

    @property
    def wide(self) -> bool:
        """Whether it needs the whole width of a page."""
        columns = zip(*self.rows, strict=True)
        words = (heading.split() for heading in self.headings)
        return sum(max(map(len, (*column, *word))) for column, word in zip(columns, words, strict=False)) > HALF

    def to_rich(self) -> Table:
        """For a terminal."""
        table = Table(title=Text(self.title))
        for i, heading in enumerate(self.headings):
            side: Literal["left", "right"] = "right" if i >= self.numbers else "left"
            widest = max((len(row[i]) for row in self.rows), default=0)
            if widest > PROSE or (self.prose and i):
                table.add_column(Text(heading), justify=side)
            else:  # what is folded is the heading, never a figure
                least = max(widest, 1, *map(len, heading.split()))
                table.add_column(Text("\n".join(wrap(heading, least))), justify=side, no_wrap=True)
        for i, row in enumerate(self.rows):
            cells = [Text(cell, MARKS[cell][1] if isinstance(cell, Mark) else "") for cell in row]
            table.add_row(*cells, style="bold green" if i in self.strong else "")
        return table

    def to_markdown(self) -> str:
        """For README and docs."""
        rule = "".join("|---:" if i >= self.numbers else "|---" for i in range(len(self.headings))) + "|"
        rows = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in (self.headings, *self.rows))
        head, *body = (f"| {row} |" for row in rows)
        return "\n".join([f"**{self.title}**", "", head, rule, *body]) + "\n"

    def to_html(self) -> Html:
        """For a page."""
        rows = [[self._cell(cell, strong=i in self.strong) for cell in row] for i, row in enumerate(self.rows)]
        numbers = range(self.numbers, len(self.headings))
        table = table_of(self.headings, rows, numbers, "prose" if self.prose else "")
        return markup(tag("h3", self.title), table)

    @staticmethod
    def _cell(cell: str, *, strong: bool) -> str:
        if isinstance(cell, Mark):
            return tag("span", cell, look=MARKS[cell][0])
        text = cell.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
        return tag("b", text) if strong else text
