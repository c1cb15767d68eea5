"""A user's own GNN by import path: from the command line or a party's own file, never from a public one."""

import importlib
from collections.abc import Callable
from typing import Any

from vfgnn.errors import ConfigError


def load_module(path: str) -> Callable[[int], Any]:
    """`package.module:Class`."""
    place, colon, name = path.partition(":")
    if not colon:
        raise ConfigError("a module that cannot be found", expected="package.module:Class", got=path)
    try:
        made: Callable[[int], Any] = getattr(importlib.import_module(place), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError("a module that cannot be found", expected="package.module:Class", got=str(error)) from error
    return made
