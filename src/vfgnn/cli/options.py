"""Options that several commands share."""

import inspect
import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from vfgnn import records
from vfgnn.errors import ConfigError

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder with planetoid/ or ogbn_arxiv/. Default: VFGNN_DATA, then the cache."),
]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the result to this file.")]
Figure = Annotated[Path | None, typer.Option("--figure", help="Also draw the result to this file.")]
Set = Annotated[list[str] | None, typer.Option("--set", help="A setting, key=value; may be repeated.")]
Preset = Annotated[str, typer.Option(help="best or paper.")]
Dataset = Annotated[str, typer.Option(help="cora, citeseer, pubmed, arxiv or arxiv_text.")]
Holders = Annotated[int, typer.Option(help="Number of data holders.")]


def with_shared(shared: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that a dataclass declares; it gets them together, as its argument `shared`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [one for name, one in inspect.signature(command).parameters.items() if name != "shared"]
        hints, keyword = get_type_hints(shared, include_extras=True), inspect.Parameter.KEYWORD_ONLY
        more = [
            inspect.Parameter(one.name, keyword, default=one.default, annotation=hints[one.name])
            for one in fields(shared)
        ]
        parameters = [one.replace(kind=keyword) for one in own] + more

        def called(**given: object) -> None:
            common = shared(**{one.name: given.pop(one.name) for one in fields(shared)})
            command(shared=common, **given)

        called.__name__, called.__doc__ = command.__name__, command.__doc__
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in parameters}
        return called

    return decorate


def parse_settings(pairs: list[str] | None) -> dict[str, object]:
    """`key=value` with the value as in TOML; a bare word is a string. `table.key=value` sets a key of a table."""
    settings: dict[str, object] = {}
    for pair in pairs or []:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise ConfigError("a setting that cannot be read", expected="--set key=value", got=pair)
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        table, dot, inner = key.partition(".")
        if not dot:
            settings[key] = value
            continue
        within = settings.setdefault(table, {})
        if not isinstance(within, dict):
            raise ConfigError("a setting is given twice, as a value and as a table", got=key)
        within[inner] = value
    return settings


def parse_list(text: str) -> list[str]:
    """Comma-separated words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def parse_proportions(text: str | None) -> list[float] | None:
    """Comma-separated shares."""
    if text is None:
        return None
    try:
        return [float(word) for word in parse_list(text)]
    except ValueError:
        raise ConfigError("proportions that cannot be read", expected="numbers like 0.7,0.3", got=text) from None


def parse_counts(text: str) -> list[int]:
    """Comma-separated whole numbers."""
    try:
        return [int(word) for word in parse_list(text)]
    except ValueError:
        raise ConfigError("numbers that cannot be read", expected="whole numbers like 100,1000", got=text) from None


def write_json(path: Path | None, content: object) -> None:
    """What `--json` asks for."""
    if path is not None:
        records.write_json(path, content, for_others=True)
