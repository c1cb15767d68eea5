"""What a hostile record is made of, and what a page is seen to be made of."""

import copy
import json
import re
import shutil
import subprocess
from functools import partial
from html.parser import HTMLParser

from vfgnn.chain import Chain
from vfgnn.errors import LogRefused, VfgnnError
from vfgnn.report import charts
from vfgnn.report.html import Html
from vfgnn.report.run.page import make_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

PAYLOADS = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</title></style></svg><svg onload=alert(1)>",
    "$\\frac{ \x00\x1b[2J\u2028\ud83d\ude00",
    "7",
    "x" * 100_000,
    None,
    -1,
    2**70,
    1e308,
    float("nan"),
    [],
    {"<b>": "<b>"},
)
"""Markup in texts, attributes and figures; numbers as texts; what JSON has beside them; too much of each."""
NOT_JSON = (b"", b"{", b"[" * 100_000 + b"\n", b'{"party": "\xff"}\n', b"null\n", b"1\n", b'"x"\n', b"[]\n", b"{}\n")


def places(document, path=()):
    """Every leaf and every key of a document, with each payload; of a list, the first item."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*path, key))
            yield (path, key), PAYLOADS[0]
    elif isinstance(document, list) and document:
        yield from places(document[0], (*path, 0))
    yield from ((path, payload) for payload in PAYLOADS)


def changed(document, place, payload):
    """A copy with the payload in that place; a place of (path, key) is that key itself."""
    document = copy.deepcopy(document)
    renamed = len(place) == 2 and isinstance(place[0], tuple)
    path = (*place[0], place[1]) if renamed else place
    if not path:
        return payload
    above = document
    for key in path[:-1]:
        above = above[key]
    if renamed:
        above[payload] = above.pop(path[-1])
    else:
        above[path[-1]] = payload
    return document


class Elements(HTMLParser):
    """The kinds of element in a page, each with the names of its attributes; links that leave the page are marked."""

    def __init__(self, page):
        super().__init__()
        self.kinds, self.text = set(), ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        for name, value in [("", ""), *attributes]:
            outside = name in ("href", "src", "xlink:href") and not value.startswith("#")
            self.kinds.add((tag, f"{name} outside" if outside else name))

    def handle_data(self, data):
        self.text += data


def figures_beside(monkeypatch, *names):
    """Figures are drawn beside the page, once for equal values: pages are then made and read in milliseconds."""
    drawn = {}

    def beside(draw, *values):
        drawn[repr(values)] = drawn.get(repr(values)) or draw(*values)
        return Html()

    for name in names:
        monkeypatch.setattr(charts, name, partial(beside, getattr(charts, name)))
    return drawn


def variants(path):
    """The content of a record with one value or free key changed, each in turn; a log is chained anew."""
    text = path.read_text()
    if path.suffix == ".json":
        document = json.loads(text)
        yield from (json.dumps(changed(document, *place)) for place in places(document))
        return
    lines = [json.loads(line) for line in text.splitlines() if '"step": null' not in line]
    if path.name == "messages.jsonl":
        lines = [one for step in {line["step"]: 0 for line in lines} for one in of_step(lines, step)[:8]]
    steps = sorted({line.get("step", 0) for line in lines})
    number = next(i for i, line in enumerate(lines) if line.get("step", 0) == steps[len(steps) // 2])  # that is drawn
    for place in places(lines[number]):
        if place[0] == ():
            continue  # no line of a chain
        altered = [*lines[:number], changed(lines[number], *place), *lines[number + 1 :]]
        yield chained(path, altered) if path.name == "messages.jsonl" else "\n".join(map(json.dumps, altered)) + "\n"


def of_step(lines, step):
    return [line for line in lines if line["step"] == step]


def chained(path, lines):
    log = path.with_name("anew.jsonl")
    log.unlink(missing_ok=True)
    chain = Chain(log, "message log", LogRefused)
    for line in lines:
        chain.append({key: value for key, value in line.items() if key not in ("number", "hash")})
    chain.close()
    return log.read_text()


def put_into(folder, name, clean):
    """Every variant of a record: how often it was shown as text, and how often refused by name; nothing else may be."""
    path, shown, refused = folder / name, 0, 0
    for content in [*variants(path), *NOT_JSON]:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        try:
            page = make_page([folder])
        except VfgnnError:
            refused += 1
        else:
            assert Elements(page).kinds <= clean, content
            shown += 1
    return shown, refused


def browsed(text, folder, width):
    """What a browser makes of a page of ours; it is seen to fetch nothing, and that its policy stopped nothing."""
    page, log, shot = folder / "report.html", folder / "net.json", folder / "shot.png"
    page.write_text(text)
    common = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
              "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}",
              f"--window-size={width},3000"]  # fmt: skip
    drawn = subprocess.run(
        [*common, f"--log-net-log={log}", "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120
    )
    assert "CONSOLE" not in drawn.stderr  # where a browser says what the page's policy kept it from
    fetched = re.findall(r'"url":"(https?://[^"]*)"', log.read_text())
    assert not [url for url in fetched if "report" in url or "vfgnn" in url or url in text]
    subprocess.run([*common, f"--screenshot={shot}", page.as_uri()], capture_output=True, timeout=120, check=True)
    assert shot.stat().st_size > 20_000
    return drawn.stdout
