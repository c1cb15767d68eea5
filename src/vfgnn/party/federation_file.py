"""`vfgnn init federation`: the public file of a federation, from everybody's cards (cards.py).

Whoever writes it sees the cards and nothing else: sizes, addresses, certificates.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from vfgnn.agreement import DEALER, SERVER, HolderShape
from vfgnn.errors import ConfigError
from vfgnn.explained import explain
from vfgnn.files import FederationFile, Limits, ListedHolder, to_toml
from vfgnn.party.cards import Card
from vfgnn.settings import Preset, Sealed, Settings, make_settings
from vfgnn.writing import write_whole

SEALED, SPLIT = "sealed", "split"
PRESETS = {SEALED: "tables", SPLIT: "tables_split"}
COMMENTS = {
    "label_holder": "has the labels, leads the run, and alone learns loss, accuracy and predictions",
    "[alignment]": "how the holders find their common nodes; psi: two holders among themselves, tokens: by the server",
    "max_ids": "no holder may have more; delta of differential privacy must be below 1 / max_ids",
    "[settings]": "what is trained, and how: src/vfgnn/settings.py tells all of them",
    "class_weights": "balanced: a rare class counts as much as a frequent one",
    "[dealer]": "deals random numbers for the secret sharing; must not collude with a holder",
}
OF_PROTOCOL = {
    SEALED: {
        "protocol": "sealed: opens predicted classes and a few inner products, to the label holder alone",
        "select_by": "how the ridge is chosen, by the classes of validation nodes",
        "feature_bound": "no value of a mapped column may be larger",
        "[settings.sealed]": "docs/sealed.md",
        "[limits]": "of what a holder lets be opened to one label holder, over all runs; max_opened_rows: of rows too",
        "kernel": "hops: a weight for each hop; smooth: neighbours are alike",
        "columns": "bins: each holder makes quantile bins of its own columns, by itself",
        "own_degree": "the number of a node's own edges at a holder is one more column",
        "scaled": "each column less its mean, over its deviation",
        "opens": "classes, or scores: then every holder must set allow_scores in its party.toml",
        "[server]": "aligns the ids by their tokens, and does nothing else",
        "features": "columns after the maps",
        "entry_bound": "directed entries, at most: two for each edge; declared",
    },
    SPLIT: {
        "keep_local_neighbours": "nodes that only one holder has stay in its own graph (individual mode)",
        "initial_embedding": "individual: each holder embeds its own columns; collaborative: h0 = X W on shares",
        "hidden_layers": "without any (0) the label holder may rebuild others' rows: all must accept_row_leak",
        "joint_layer_epochs": "collaborative: epochs that train W; each shows the holders d more combinations of X",
        "select_by": "which epoch is the best one, on validation nodes",
        "[server]": "combines what holders publish; holds no data",
        "features": "columns after encoding",
    },
}


def write_federation_file(
    path: Path,
    cards: Sequence[Card],
    *,
    settings: Mapping[str, object] | None = None,
    method: str | None = None,
    max_ids: int = 1_000_000,
    keep_local_neighbours: bool = False,
) -> FederationFile:
    """federation.toml from everybody's cards, checked as every party will check it. `settings`: the user's own."""
    holders = [card for card in cards if card.features is not None]
    leader = _label_holder(holders)
    by_name = {card.name: card for card in cards}
    if len(by_name) < len(cards):
        raise ConfigError("two cards of one party", got=", ".join(card.name for card in cards))
    chosen = settings_over_default(settings or {}, leader.classes or 2)
    checked = make_settings(chosen, "these settings")
    method = method or ("psi" if len(holders) == 2 else "tokens")
    served = checked.protocol == SPLIT or method == "tokens"
    document: dict[str, object] = {
        "label_holder": leader.name,
        "classes": leader.classes,
        "alignment": {"method": method, "max_ids": max_ids, "keep_local_neighbours": keep_local_neighbours},
        **({"limits": Limits().model_dump()} if checked.protocol == SEALED else {}),
        "settings": chosen,
        "server": _reachable(by_name, SERVER) if served else None,
        "dealer": _reachable(by_name, DEALER) if DEALER in by_name else None,
        "holders": [{**_reachable(by_name, card.name), **_shape(card, checked), "ids": _ids(card)} for card in holders],
    }
    try:
        file = FederationFile.model_validate(document)
    except ValidationError as error:
        raise explain(error, "these cards", FederationFile) from None
    if path.exists():
        raise ConfigError(
            "there is such a file already", got=str(path), hint="move it away, or name another with --out"
        )
    write_whole(path, _federation_toml(document, checked.protocol), for_others=True, overwrite=False)
    return file


def settings_over_default(settings: Mapping[str, object], classes: int) -> dict[str, object]:
    """What users' tables begin with, and over it what the user has set.

    Two classes are taken for a rare one that is looked for. A sealed ridge is chosen by classes, and so by F1.
    """
    protocol = str(settings.get("protocol", SEALED))
    if protocol not in PRESETS:
        raise ConfigError("unknown protocol", expected=" or ".join(PRESETS), got=protocol)
    if protocol == SEALED and "initial_embedding" in settings:
        raise ConfigError(
            "the sealed protocol has no mode", expected="no --mode", hint="or --protocol split, which has two"
        )
    rare = {"class_weights": "balanced", "select_by": "f1" if protocol == SEALED else "average_precision"}
    chosen = Preset(PRESETS[protocol]).document | (rare if classes == 2 else {}) | {"protocol": protocol}
    own = {key: value for key, value in settings.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in settings.items() if isinstance(value, dict)}
    for key, table in tables.items():
        known = chosen.get(key, {})
        own[key] = {**(known if isinstance(known, dict) else {}), **table}
    return chosen | own


def _label_holder(holders: Sequence[Card]) -> Card:
    leaders = [card for card in holders if card.classes is not None]
    if len(leaders) != 1:
        raise ConfigError("one holder must have the labels", expected="one card with classes", got=str(len(leaders)))
    return leaders[0]


def _shape(card: Card, settings: Settings) -> dict[str, object]:
    """What the federation file says of a holder's data."""
    shape: dict[str, object] = {"name": card.name, "features": card.features, "edges": card.edges}
    if settings.protocol == SEALED:
        shape |= _sealed_shape(card, settings.sealed)
    return HolderShape.model_validate(shape).model_dump()


def _ids(card: Card) -> dict[str, object] | None:
    return None if card.ids is None else card.ids.model_dump()


def lost_zeros_of(holders: Sequence[ListedHolder]) -> list[tuple[str, str]]:
    """Holders whose ids look like another's after their leading zeros were lost, each with that other."""
    return [
        (one.name, other.name)
        for one in holders
        for other in holders
        if one.ids is not None and other.ids is not None and one.ids.has_lost_zeros_of(other.ids)
    ]


def _sealed_shape(card: Card, chosen: Sealed) -> dict[str, object]:
    own = card.sealed
    if own is None:
        raise ConfigError(
            f"the card of {card.name} has nothing for the sealed protocol",
            expected="a card with [sealed]",
            hint=f"`vfgnn init party {card.name}` says why; or --protocol split",
        )
    if differing := own.differs_from(chosen):
        sets = " ".join(f"--set sealed.{name}={json.dumps(getattr(chosen, name))}" for name in differing)
        raise ConfigError(
            f"the columns of {card.name} were counted with other maps",
            expected=", ".join(f"{name} = {getattr(chosen, name)}" for name in differing),
            got=", ".join(f"{name} = {getattr(own, name)}" for name in differing),
            hint=f"make its card anew: vfgnn init party {card.name} {sets}",
        )
    return own.model_dump(include={"features", "integer", "entry_bound"})


def _reachable(cards: dict[str, Card], name: str) -> dict[str, object]:
    if name not in cards:
        raise ConfigError(f"no card of the {name}", expected=f"vfgnn init party {name}, and its card here")
    return cards[name].model_dump(include={"address", "certificate"})


def _federation_toml(document: Mapping[str, object], protocol: str) -> str:
    comments = COMMENTS | OF_PROTOCOL[protocol]
    lines = ["# The public file of this federation: the same at all parties, who compare it before anything else."]
    for line in to_toml(document).splitlines():
        note = comments.get(line) or comments.get(line.split(" = ")[0])
        lines.append(f"{line}  # {note}" if note and not line.endswith('"""') else line)
    return "\n".join(lines) + "\n"
