"""What a hostile record is made of, and what a page is seen to be made of."""

import copy
from html.parser import HTMLParser

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
