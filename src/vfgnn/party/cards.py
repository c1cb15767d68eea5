"""What a party tells the others of itself before there is a federation: sizes, address and certificate, no values.

Each party makes its own with `vfgnn init party`, from its own tables. Whoever writes the federation file reads all.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from vfgnn.errors import ConfigError, VfgnnError
from vfgnn.explained import explain
from vfgnn.files import PartyFile
from vfgnn.id_shape import IdShape
from vfgnn.settings import MOST, Count, Public, Sealed
from vfgnn.transport import certificates


class SealedShape(Public):
    """What the sealed protocol has to know of a holder: its columns after the maps, and its declared bound."""

    # These four as in [settings.sealed]: the number of columns is what comes of these maps.
    columns: Literal["as they are", "bins", "binary"]
    bins: int
    own_degree: bool
    scaled: bool
    features: Count  # columns after the maps
    integer: bool  # whether they are all whole numbers
    entry_bound: Count  # directed entries, at most; DECLARED

    def differs_from(self, chosen: Sealed) -> list[str]:
        """Settings that ask for other maps than those that the columns were counted with."""
        asked = ((name, getattr(chosen, name), getattr(self, name)) for name in ("columns", "own_degree", "scaled"))
        differing = [name for name, wanted, here in asked if wanted != here]
        binned = chosen.columns == "bins" or chosen.own_degree
        return [*differing, *(["bins"] if binned and chosen.bins != self.bins else [])]


class Card(Public):
    """What a party tells the others of itself."""

    name: str
    certificate: str
    address: str | None = None
    features: Count | None = None  # holders: columns after encoding
    edges: bool = False
    classes: Annotated[int, Field(ge=2, le=MOST)] | None = None  # the label holder
    ids: IdShape | None = None  # holders: how their ids are written
    sealed: SealedShape | None = None  # holders whose tables the sealed protocol can take


@dataclass(frozen=True)
class MadeCard:
    """A card, and why it has nothing for the sealed protocol where it has not."""

    card: Card
    not_sealed: str | None = None


def make_card(party: PartyFile, address: str | None, chosen: Sealed, entry_bound: int | None) -> MadeCard:
    """From this party's own files. `entry_bound`: what it declares; None: its own count, rounded up.

    Reveals: numbers of columns and classes, a rounded number of edges, and how ids are written (digits or not, how
    long, whether some begin with 0), to whoever is given the card.
    """
    common = {"name": party.name, "address": address, "certificate": party.certificate.read_text()}
    if party.data is None:
        return MadeCard(Card.model_validate(common))
    from vfgnn.data.ids import shape_of_ids
    from vfgnn.party import sealed_tables
    from vfgnn.party.own_data import columns_of, read_tables
    from vfgnn.party.sealed_data import is_whole

    found, columns = read_tables(party), columns_of(party)
    shape: dict[str, object] = {
        "ids": shape_of_ids(found.nodes.ids),
        "features": int(found.nodes.x.shape[1]),
        "edges": found.edges is not None and len(found.edges.source) > 0,
        "classes": None if found.labels is None else len(found.labels.classes),
    }
    try:
        sealed_tables.refuse_edges(found, columns)
    except VfgnnError as error:
        return MadeCard(Card.model_validate({**common, **shape}), error.what)
    mapped = sealed_tables.mapped(found, chosen)
    sealed = {
        **chosen.model_dump(include={"columns", "bins", "own_degree", "scaled"}),
        "features": int(mapped.nodes.x.shape[1]),
        "integer": is_whole(mapped.whole),
        "entry_bound": sealed_tables.declared_bound(mapped, entry_bound),
    }
    return MadeCard(Card.model_validate({**common, **shape, "sealed": sealed}))


def read_card(path: Path) -> Card:
    """A card, checked."""
    try:
        card = Card.model_validate(tomllib.loads(path.read_text()))
    except OSError as error:
        raise ConfigError("no such card", got=str(error.strerror), where=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError("a card that is not TOML", got=str(error), where=str(path)) from None
    except ValidationError as error:
        raise explain(error, str(path), Card) from None
    if certificates.name_of(certificates.parse(card.certificate, str(path))) != card.name:
        raise ConfigError("a card with another party's certificate", expected=card.name, where=str(path))
    return card
