"""What the pages have in common: a self-contained page with its style, escaped text, a table."""

import html
from collections.abc import Sequence

STYLE = """
:root { color-scheme: light dark; --ink: #1a202c; --soft: #5a6678; --line: #d7dde6; --back: #fff; --card: #f6f8fb;
        --good: #2f855a; --bad: #c53030; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #9aa6b8; --line: #333c4a; --back: #12161d; --card: #1a2029;
          --good: #68d391; --bad: #fc8181; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 62rem; color: var(--ink); background: var(--back);
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p, li { max-width: 46rem; } .soft { color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .7rem 1rem; }
.card b { display: block; font-size: 1.35rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.figure { background: #fff; border: 1px solid var(--line); border-radius: .5rem; padding: .5rem; margin: .6rem 0; }
.figure svg { width: 100%; height: auto; display: block; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
details { margin: .6rem 0; } summary { cursor: pointer; } code { font-size: .9em; }
td.n { white-space: nowrap; }
.prose td:nth-child(3) { color: var(--soft); } td b { font-weight: 600; }
h3 { font-size: .95rem; margin: 1.2rem 0 .3rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr)); gap: 0 2rem; }
.pair > .whole { grid-column: 1 / -1; } .pair > div { min-width: 0; }
nav a { margin-right: .9rem; white-space: nowrap; } a { color: inherit; }
@media (min-width: 40rem) { td:first-child { white-space: nowrap; } }
@media (max-width: 40rem) { body { padding: 1rem; } .card { flex: 1 1 40%; }
  table { font-size: .82rem; } th, td { padding-right: .35rem; }
  .prose thead { display: none; } .prose tr, .prose td { display: block; border: 0; padding: 0; }
  .prose tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .figure { overflow-x: auto; } .figure svg { min-width: 36rem; } }
"""


def escape(text: object) -> str:
    """As text of a page."""
    return html.escape(str(text))


def table_of(
    headings: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int] = (), look: str = ""
) -> str:
    """Cells are HTML already; the columns in `numbers` are right-aligned; look `prose`: cells are sentences."""
    kind = ["n" if i in numbers else "" for i in range(len(headings))]
    head = "".join(f'<th class="{kind[i]}">{escape(heading)}</th>' for i, heading in enumerate(headings))
    body = "".join(
        "<tr>" + "".join(f'<td class="{kind[i]}">{cell}</td>' for i, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return f'<div class="wide {look}"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def page_of(title: str, parts: Sequence[str]) -> str:
    """The whole page: no script, nothing to fetch."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>\n" + "\n".join(part for part in parts if part) + "\n</body></html>\n"
    )
