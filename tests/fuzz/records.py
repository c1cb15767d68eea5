"""Target: the records of a run in `vfgnn report`, which may come from another party.

Only our own errors may come out, or a page without script, event attributes, or anything that would be fetched. The
first cases put markup into every field of every record, one after another; the others are random.
"""

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from unittest.mock import patch

from matplotlib import pyplot

from tests.fuzz.case import UNNAMED, Case, Outcome, judge
from tests.fuzz.files import caught
from tests.fuzz.formats import mutate_file
from tests.fuzz.ground import Ground
from tests.fuzz.mutate import MARKUP, paths, replaced
from vfgnn.report import charts
from vfgnn.report.run.page import make_page

NAME = "records"
WITHOUT_FIGURES, WITH_FIGURES = "page", "page with figures"
RECORDS = ("run.json", "traffic.json", "metrics.jsonl", "federation.json")
ACTIVE = {"script", "iframe", "object", "embed", "link", "base", "form", "img", "video", "audio", "foreignobject"}


class Watch(HTMLParser):
    """Finds whatever a browser would run or fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag, attrs):
        if tag in ACTIVE:
            self.found.add(f"<{tag}>")
        if tag == "meta" and dict(attrs).get("http-equiv", "").lower() == "refresh":
            self.found.add("<meta refresh>")
        for name, value in attrs:
            if name.startswith("on"):
                self.found.add(f"an event attribute of <{tag}>")
            if name.endswith(("href", "src")) and not (value or "").startswith("#"):
                self.found.add(f"an address in <{tag}>")


def make(rng: Random, number: int, ground: Ground) -> Case:
    """Every field once, then at random; figures take long, so few pages have them."""
    fields = _fields(ground)
    if number < 2 * len(fields):
        name, path = fields[number // 2]
        return Case(NAME, WITHOUT_FIGURES, ((name, _with(ground, name, path, MARKUP[number % 2])),))
    name = f"run/{rng.choice((*RECORDS, RECORDS[0], 'messages.jsonl', 'messages.seal.json'))}"
    content = ground.files(WITHOUT_FIGURES)[name]
    if rng.random() < 0.4 and name.endswith(".json"):
        changed = _with(ground, name, rng.choice(list(paths(json.loads(content)))), rng.choice(MARKUP))
    else:
        changed = mutate_file(rng, name, content, ground)
    return Case(NAME, WITH_FIGURES if rng.random() < 0.1 else WITHOUT_FIGURES, ((name, changed),))


def run(case: Case, ground: Ground) -> Outcome:
    watch = Watch()

    def read(folder: Path) -> None:
        watch.feed(make_page([folder / "run"]))

    if case.way == WITH_FIGURES:
        error = caught(read, case, ground)
    else:
        with patch.object(charts, "svg", lambda figure, name: "<svg></svg>"):
            error = caught(read, case, ground)
    pyplot.close("all")  # what a page that failed left open
    if watch.found:
        what = ", ".join(sorted(watch.found))
        return Outcome(UNNAMED, f"a page with {what}", f"{NAME} {WITHOUT_FIGURES}: a page with {what}")
    return judge(error, replace(case, way=WITHOUT_FIGURES))  # one signature, whichever page found it


def _fields(ground: Ground) -> list[tuple[str, tuple]]:
    """Of all records that are JSON, and of the first line of those that have lines."""
    found = []
    for name in (f"run/{record}" for record in RECORDS):
        first = ground.files(WITHOUT_FIGURES)[name].splitlines()[0] if name.endswith("l") else None
        tree = json.loads(first or ground.files(WITHOUT_FIGURES)[name])
        found += [(name, path) for path in paths(tree) if path]
    return found


def _with(ground: Ground, name: str, path: tuple, value: str) -> bytes:
    content = ground.files(WITHOUT_FIGURES)[name]
    if not name.endswith("l"):
        return json.dumps(replaced(json.loads(content), path, value)).encode()
    first, *rest = content.splitlines()
    return b"\n".join([json.dumps(replaced(json.loads(first), path, value)).encode(), *rest, b""])
