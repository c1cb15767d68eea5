"""What is wrong with a file or a setting, in our own words: the library that checks them has others.

Run by everyone, over files of their own. The value of a key is shown, as TOML would write it; nothing else is.
"""

import json
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel, ValidationError

from vfgnn.errors import ConfigError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

OF_A_KEY = "[key]"  # how the library marks that a key is wrong, and not its value
WHOLE_NUMBER, NUMBER, TEXT, TRUTH, LIST = "a whole number", "a number", "text in quotes", "true or false", "a list"
KINDS = {"int": WHOLE_NUMBER, "float": NUMBER, "bool": TRUTH, "string": TEXT, "path": "a path", "dict": "a table"}
KINDS |= dict.fromkeys(("tuple", "list", "set"), LIST) | dict.fromkeys(("model", "dataclass"), "a table")
BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "multiple_of": ("a multiple of", "multiple_of"),
    "too_short": ("entries: at least", "min_length"),
    "too_long": ("entries: at most", "max_length"),
    "string_too_short": ("characters: at least", "min_length"),
    "string_too_long": ("characters: at most", "max_length"),
}


def explain(error: ValidationError, where: str, kind: type[BaseModel]) -> ConfigError:
    """The first finding in our own words; `kind` is what was being read."""
    finding = error.errors(include_url=False)[0]
    of, loc = finding["type"], finding["loc"]
    key = ".".join(str(part) for part in loc if part != OF_A_KEY)
    if of == "extra_forbidden":
        known = sorted(_fields_at(kind, loc[:-1]))
        meant = _meant(str(loc[-1]), known)
        listed = None if meant else f"one of {', '.join(known)}"
        return ConfigError(f"unknown key '{key}'", expected=listed, where=where, hint=meant or "check the spelling")
    if of == "missing":
        return ConfigError(f"'{key}' is missing", expected=f"{loc[-1]} = ...", where=where)
    given = finding["input"]
    simple = isinstance(given, (str, int, float, bool, list, tuple))
    shown = json.dumps(given, ensure_ascii=False, default=str) if simple else None
    return ConfigError(
        f"'{key}' cannot be used" if key else "what is there does not fit together",
        expected=expected_of(finding),
        got=shown,
        where=where,
        hint=_meant(given, _words(finding)) if isinstance(given, str) else None,
    )


def _meant(given: str, known: Sequence[str]) -> str | None:
    close = get_close_matches(given, known, n=1)
    return f"did you mean '{close[0]}'?" if close else None


def _words(finding: "ErrorDetails") -> list[str]:
    """Those that may stand there, if it is one of a few."""
    known = str(finding.get("ctx", {}).get("expected", ""))
    return re.findall(r"'([^']*)'", known) if finding["type"] == "literal_error" else []


def expected_of(finding: "ErrorDetails") -> str:
    """What should be there, by the kind of finding; validators of ours say it themselves."""
    of, context = finding["type"], finding.get("ctx", {})
    if of == "value_error":
        return str(finding["msg"]).removeprefix("Value error, ")
    if of == "literal_error":
        return " or ".join(_words(finding))
    if of in BOUNDS:
        words, bound = BOUNDS[of]
        return f"{words} {context[bound]:g}"
    if of == "finite_number":
        return "a finite number"
    if of == "string_pattern_mismatch":
        return f"text of the form {context.get('pattern')}"
    return KINDS.get(of.partition("_")[0], "another kind of value")


def _fields_at(kind: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The keys that are known at `path` of a file, following tables and lists of tables."""
    for part in path:
        annotation = kind.model_fields[part].annotation if part in kind.model_fields else None
        inner = [annotation, *get_args(annotation)]
        kind = next((one for one in inner if isinstance(one, type) and issubclass(one, BaseModel)), kind)
    return list(kind.model_fields)
