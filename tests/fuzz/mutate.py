"""Random changes: of trees (JSON, TOML), of text and of bytes. Everything is drawn from the generator that is given."""

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

DEEP = 20_000
MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</style><script>1</script>",
    "<a href='javascript:1'>x</a>",
    "&lt;script&gt;",
)
TEXTS = (
    *MARKUP, "", " ", "\x00", "a\x00b", "\x1b[2J\x1b]0;x\x07", "\r\n", "\u202e\u2028", "\ufeff", "\U0001f4a9",
    "x" * 70_000, "../../../x", "/", ".", "-1", "1e999", "nan", "=1+1", "$x$", "$\\frac{$", "%s%n", "{0}", "server",
    "A", "B", "true",
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 2, 3, 255, 2**31, 2**32, 2**40, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**70), 10**400, 0.5,
    -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), -float("inf"),
)  # fmt: skip
SHAPES = (
    [], [0], [-1, 4], [2**40, 2**40, 2**40, 0], [0, 2**40, 2**40, 2**40], [2**63, 0], [2**64], [2**62, 4],
    [2**31, 2**31], [1] * 5, [1] * 5000, [2**26 + 1], [2**26], [1.0], ["1"], [True], [None], [[1]],
)  # fmt: skip
ODD_BYTES = (
    b"\x00",
    b"\xff",
    b"\x80",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\n",
    b"\r",
    b'"',
    b"{",
    b"[",
    b",",
    b"\x1b",
    b"-",
)
Path = tuple[Any, ...]


def odd_value(rng: Random) -> Any:
    """Of any kind that JSON knows."""
    return copy.deepcopy(
        rng.choice(
            (
                rng.choice(TEXTS),
                rng.choice(NUMBERS),
                rng.choice(SHAPES),
                rng.choice((None, True, False, [], {}, [[]], [None], {"": None}, {"name": 1})),
                nested(rng.choice((3, 50, 300))),
            )
        )
    )


def nested(depth: int) -> Any:
    tree: Any = 0
    for level in range(depth):
        tree = [tree] if level % 2 else {"a": tree}
    return tree


def paths(tree: Any, here: Path = ()) -> Iterator[Path]:
    """Of every value in a tree, the tree itself first."""
    yield here
    if isinstance(tree, (dict, list)):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from paths(value, (*here, key))


def replaced(tree: Any, path: Path, value: Any) -> Any:
    """A copy with one value changed."""
    if not path:
        return value
    made = copy.copy(tree)
    made[path[0]] = replaced(made[path[0]], path[1:], value)
    return made


def each_missing(tree: Any) -> Iterator[Any]:
    """The tree without one of its values, for each of them."""
    for *above, key in (path for path in paths(tree) if path):
        parent = tree
        for step in above:
            parent = parent[step]
        rest = dict(parent) if isinstance(parent, dict) else list(parent)
        del rest[key]
        yield replaced(tree, tuple(above), rest)


def mutate_tree(rng: Random, tree: Any) -> Any:
    """One or a few changes: another value, one missing, one twice, another name, one level more."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        path = rng.choice(list(paths(tree)))
        if not path or rng.random() < 0.6:
            tree = replaced(tree, path, odd_value(rng))
            continue
        *above, key = path
        parent = tree
        for step in above:
            parent = parent[step]
        tree = replaced(tree, tuple(above), _restructured(rng, copy.copy(parent), key))
    return tree


def _restructured(rng: Random, parent: Any, key: Any) -> Any:
    how, value = rng.choice(("drop", "double", "wrap", "text", "swap")), parent[key]
    if how == "drop":
        del parent[key]
    elif how == "double" and isinstance(parent, list):
        parent.insert(key, value)
    elif how == "double":
        parent[rng.choice(TEXTS)[:20]] = value
    elif how == "swap":
        other = rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
        parent[key], parent[other] = parent[other], value
    else:
        parent[key] = [value] if how == "wrap" else str(value)
    return parent


def mutate_bytes(rng: Random, content: bytes) -> bytes:
    """A few flips, cuts, repeats, moves and odd bytes."""
    made = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at, size = rng.randrange(len(made) + 1), rng.choice((1, 1, 2, 4, 8, 64, 1000))
        how = rng.randrange(7)
        if how == 0 and at < len(made):
            made[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            made[at : at + size] = rng.randbytes(size)
        elif how == 2:
            made[at:at] = rng.choice(ODD_BYTES) * rng.choice((1, 1, size))
        elif how == 3:
            del made[at : at + size]
        elif how == 4:
            made[at:at] = made[at : at + size]
        elif how == 5:
            there = rng.randrange(len(made) + 1)
            made[at : at + size], made[there : there + size] = made[there : there + size], made[at : at + size]
        elif rng.random() < 0.3:
            del made[at:]
    return bytes(made)


def deep_json(rng: Random) -> bytes:
    """Brackets without end, as a value of a known key or alone."""
    inside = rng.choice((b"[", b'{"a":')) * rng.choice((500, DEEP))
    return rng.choice((b"", b'{"type":"hello","federation":', b'{"type":"message","shape":', b'{"x":')) + inside
