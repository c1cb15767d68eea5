r"""Text that others chose, made harmless before it reaches a terminal or a log.

A peer may put terminal escapes, line breaks or characters that reverse the reading order into whatever it says. Errors
and log lines show such characters as Python would write them in a string: `\x1b`, `\n`, `\u202e`.
"""


def shown(text: str, *, most: int | None = None, lines: bool = False) -> str:
    """`text` with nothing but printable characters, cut to `most` of them; `lines`: line breaks stay."""
    if lines:
        return "\n".join(shown(line, most=most) for line in text.split("\n"))
    if not text.isprintable():
        text = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return text if most is None or len(text) <= most else text[: most - 1] + "…"
