"""What the pages have in common: a self-contained page with its style, elements, a table.

A page shows records that other parties wrote. So markup has a type of its own: whatever is not `Html` is escaped where
it goes into an element, and only this file and charts.py make `Html`. Text that was forgotten is seen as text. Beneath
that, the page's content security policy allows one style and nothing else: no script, no image, nothing fetched.
"""

import base64
import hashlib
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
.matrix { table-layout: fixed; min-width: 40rem; } .matrix th { overflow-wrap: anywhere; }
.matrix th.of { color: var(--ink); padding-top: 1rem; } .matrix td > * { display: block; }
.matrix td { border: 2px solid var(--back); border-radius: .4rem; padding: .35rem .5rem; white-space: normal; }
.matrix .none { color: var(--soft); } .matrix i { font-style: normal; font-size: .85em; color: var(--soft); }
.matrix .cell { color: var(--ink); font-weight: 400; background: var(--card); } .matrix b { font-size: 1.05rem; }
.matrix .good { background: color-mix(in srgb, var(--good) 16%, var(--back)); } .matrix .good i { color: var(--good); }
.matrix .bad { background: color-mix(in srgb, var(--bad) 16%, var(--back)); }
.matrix .bad i { color: var(--bad); font-weight: 600; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .15rem 1rem; font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; }
nav a { margin-right: .9rem; white-space: nowrap; } a { color: inherit; }
@media (min-width: 40rem) { td:first-child { white-space: nowrap; } }
@media (max-width: 40rem) { body { padding: 1rem; } .card { flex: 1 1 40%; }
  table { font-size: .82rem; } th, td { padding-right: .35rem; }
  .matrix { min-width: 0; } .matrix thead { display: none; } .matrix tr { display: flex; flex-wrap: wrap; gap: .3rem; }
  .matrix tr > th { flex: 1 0 100%; } .matrix td { flex: 1 0 28%; border: 0; } .matrix td.none { display: none; }
  .matrix td::before { content: attr(data-what); font-weight: 600; }
  .prose thead { display: none; } .prose tr, .prose td { display: block; border: 0; padding: 0; }
  .prose tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .figure { overflow-x: auto; } .figure svg { min-width: 36rem; } }
"""
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'"
"""For browsers: only the style with this hash counts, an attribute `style` does not."""


class Html(str):
    """Markup that stands in a page as it is; whatever is done to it gives a plain text again."""

    __slots__ = ()


def markup(*parts: object) -> Html:
    """Parts of a page one after another: `Html` as it is, everything else as text."""
    return Html("".join(part if isinstance(part, Html) else html.escape(str(part)) for part in parts))


def tag(name: str, *inside: object, look: str = "", **attributes: str) -> Html:
    """An element; `look` is its class in the style."""
    all_of_them = ({"class": look} if look else {}) | attributes
    shown = "".join(f' {key}="{html.escape(value)}"' for key, value in all_of_them.items())
    return Html(f"<{name}{shown}>{markup(*inside)}</{name}>")


def list_of(items: Sequence[object]) -> Html:
    """A list with an item for each; nothing if there are none."""
    return tag("ul", *(tag("li", item) for item in items)) if items else Html()


def figure_of(drawn: Html) -> Html:
    """A drawing in its frame."""
    return tag("div", drawn, look="figure")


def card_of(value: object, name: str) -> Html:
    """A figure that stands out, over its name."""
    return tag("div", tag("b", value), name, look="card")


def table_of(
    headings: Sequence[object], rows: Sequence[Sequence[object]], numbers: Sequence[int] = (), look: str = ""
) -> Html:
    """The columns in `numbers` are right-aligned; look `prose`: cells are sentences."""
    kind = ["n" if i in numbers else "" for i in range(len(headings))]
    head = tag("tr", *(tag("th", heading, look=kind[i]) for i, heading in enumerate(headings)))
    body = (tag("tr", *(tag("td", cell, look=kind[i]) for i, cell in enumerate(row))) for row in rows)
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), look=f"wide {look}".strip())


def page_of(title: str, parts: Sequence[Html]) -> str:
    """The whole page: no script, nothing to fetch."""
    head = markup(
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        tag("title", title),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f"<style>{STYLE}</style>"),
    )
    body = markup(*(markup(Html("\n"), part) for part in parts if part), Html("\n"))
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'
