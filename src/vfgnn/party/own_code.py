"""A user's own code (a GNN, a combine, a mechanism) by import path: from the command line or a party's own file.

Never from a public file: that would make a counterparty's machine run code.
"""

import importlib
from dataclasses import dataclass

from vfgnn.agreement import DEALER, SERVER
from vfgnn.contribution import Own
from vfgnn.errors import ConfigError

EXPECTED = "package.module:Class"


def load_module(path: str) -> Own:
    """`package.module:Class`."""
    place, colon, name = path.partition(":")
    if not colon:
        raise ConfigError("a module that cannot be found", expected=EXPECTED, got=path)
    try:
        made: Own = getattr(importlib.import_module(place), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError("a module that cannot be found", expected=EXPECTED, got=str(error)) from error
    return made


def path_of(own: Own) -> str:
    """Where other processes find a class or function of the caller's."""
    place, name = getattr(own, "__module__", "__main__"), getattr(own, "__qualname__", "")
    if place == "__main__" or "." in name or not name:
        raise ConfigError(
            "code that other processes cannot find",
            expected=f"a class or function of a module that can be imported ({EXPECTED})",
            got=f"{name or type(own).__name__} of {'this program' if place == '__main__' else place}",
            hint="write it to a file beside the notebook and import it from there",
        )
    return f"{place}:{name}"


@dataclass(frozen=True)
class OwnCode:
    """What a user brings in the place of ours; None: nothing."""

    gnn: Own | None = None  # every holder's
    combine: Own | None = None  # the server's
    mechanism: Own | None = None  # every holder's

    def paths_at(self, party: str) -> dict[str, str]:
        """For a party file: where its own process finds what is its business."""
        if party == DEALER:
            return {}
        named = {"module": self.combine} if party == SERVER else {"module": self.gnn, "mechanism": self.mechanism}
        return {key: path_of(own) for key, own in named.items() if own is not None}


def chosen(given: Own | str | None) -> tuple[str | None, Own | None]:
    """The setting, and the code if it is the user's own: one of ours by name, an import path, or the thing itself."""
    if isinstance(given, str) and ":" in given:
        given = load_module(given)
    return ("own", given) if callable(given) else (given, None)
