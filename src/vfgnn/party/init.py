"""`vfgnn init`: from tables and certificates to the files of a federation.

Each party makes its own party.toml, which stays at home, and a card with what the others may know of it: sizes, address
and certificate, no values. Somebody collects the cards and writes federation.toml from them.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from vfgnn.agreement import DEALER, SERVER, HolderShape
from vfgnn.errors import ConfigError
from vfgnn.files import FederationFile, PartyFile, to_toml
from vfgnn.settings import MOST, Count, Public, explain
from vfgnn.transport import certificates
from vfgnn.writing import write_whole

MODES = ("individual", "collaborative")


class Card(Public):
    """What a party tells the others of itself."""

    name: str
    certificate: str
    address: str | None = None
    features: Count | None = None  # holders
    edges: bool = False
    classes: Annotated[int, Field(ge=2, le=MOST)] | None = None  # the label holder


def write_party(
    folder: Path,
    name: str,
    *,
    address: str | None,
    nodes: Path | None = None,
    edges: Path | None = None,
    labels: Path | None = None,
    columns: dict[str, object] | None = None,
) -> tuple[Path, Path]:
    """party.toml and the card, in the party's own folder; paths to tables are kept as given."""
    key, certificate = folder / f"{name}.key.pem", folder / f"{name}.certificate.pem"
    if not key.is_file() or not certificate.is_file():
        raise ConfigError(
            f"no key of {name}",
            expected=f"{key.name} and {certificate.name} in {folder}",
            hint=f"vfgnn keys new {name} --folder {folder}",
        )
    holds = name not in (SERVER, DEALER)
    if holds != (nodes is not None):
        raise ConfigError(
            f"{name} {'needs' if holds else 'may not have'} data", expected="--nodes at holders, at nobody else"
        )
    data = {"nodes": nodes, "edges": edges, "labels": labels}
    tables = {kind: str(path.resolve()) for kind, path in data.items() if path is not None}
    party = PartyFile.model_validate(
        {
            "name": name,
            "key": key,
            "certificate": certificate,
            "data": {**tables, "columns": columns or {}} if holds else None,
        }
    )
    card = _card(party, address, certificate)  # refuses tables that cannot be read before anything is written
    where, told = folder / "party.toml", folder / f"{name}.card.toml"
    for path in (where, told):
        if path.exists():
            raise ConfigError(
                "there is such a file already", got=str(path), hint="move it away, or choose another folder"
            )
    write_whole(where, _party_toml(name, tables, columns or {}), overwrite=False)
    heading = f"# What the others may know of {name}: give this file to whoever writes the federation file.\n"
    write_whole(told, heading + to_toml(card.model_dump()), for_others=True, overwrite=False)
    return where, told


def _card(party: PartyFile, address: str | None, certificate: Path) -> Card:
    common = {"name": party.name, "address": address, "certificate": certificate.read_text()}
    if party.data is None:
        return Card.model_validate(common)
    from vfgnn.party.own_data import read_tables

    found = read_tables(party)
    return Card.model_validate(
        {
            **common,
            "features": int(found.nodes.x.shape[1]),
            "edges": found.edges is not None and len(found.edges.source) > 0,
            "classes": None if found.labels is None else len(found.labels.classes),
        }
    )


def _party_toml(name: str, tables: dict[str, str], columns: dict[str, object]) -> str:
    lines = [
        f"# {name}'s own file. Nothing of it is ever sent.",
        f'name = "{name}"',
        f'key = "{name}.key.pem"                  # the private key: stays here',
        f'certificate = "{name}.certificate.pem"  # listed in the federation file',
        'run_folder = "run"                      # records, checkpoints and predictions',
        '# listen = "0.0.0.0:7001"             # interface and port; default: the port of the federation file',
        "# threads = 4                           # default: all cores",
    ]
    text = "\n".join(lines) + "\n"
    if not tables:
        return text
    data = to_toml({"data": {**tables, "columns": columns}})
    data = data.replace("[data]", "[data]  # CSV or Parquet; paths may be relative to this file", 1)
    return text + data.replace("[data.columns]", "[data.columns]  # which column is what (docs/tables.md)", 1)


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


def write_federation_file(
    path: Path,
    cards: Sequence[Card],
    *,
    mode: str = "individual",
    method: str | None = None,
    max_ids: int = 1_000_000,
    keep_local_neighbours: bool = False,
    settings: dict[str, object] | None = None,
) -> FederationFile:
    """federation.toml from everybody's cards, checked as every party will check it."""
    holders = [card for card in cards if card.features is not None]
    leaders = [card for card in holders if card.classes is not None]
    if len(leaders) != 1:
        raise ConfigError("one holder must have the labels", expected="one card with classes", got=str(len(leaders)))
    if mode not in MODES:
        raise ConfigError("unknown mode", expected=" or ".join(MODES), got=mode)
    by_name = {card.name: card for card in cards}
    if len(by_name) < len(cards):
        raise ConfigError("two cards of one party", got=", ".join(card.name for card in cards))
    document = {
        "label_holder": leaders[0].name,
        "classes": leaders[0].classes,
        "alignment": {
            "method": method or ("psi" if len(holders) == 2 else "tokens"),
            "max_ids": max_ids,
            "keep_local_neighbours": keep_local_neighbours,
        },
        "settings": default_settings(mode, leaders[0].classes or 2) | (settings or {}),
        "server": _reachable(by_name, SERVER),
        "dealer": _reachable(by_name, DEALER) if DEALER in by_name else None,
        "holders": [
            {
                **_reachable(by_name, card.name),
                **HolderShape.model_validate(card.model_dump(include=SHAPE)).model_dump(),
            }
            for card in holders
        ],
    }
    try:
        file = FederationFile.model_validate(document)
    except ValidationError as error:
        raise explain(error, "these cards", FederationFile) from None
    if path.exists():
        raise ConfigError(
            "there is such a file already", got=str(path), hint="move it away, or name another with --out"
        )
    write_whole(path, _federation_toml(document), for_others=True, overwrite=False)
    return file


SHAPE = {"name", "features", "edges"}


def default_settings(mode: str, classes: int) -> dict[str, object]:
    """What users' tables begin with; two classes are taken for a rare one that is looked for."""
    rare = {"class_weights": "balanced", "select_by": "average_precision"} if classes == 2 else {}
    return {
        "initial_embedding": mode,
        "gnn": "sage_mean",
        "layers": 3,
        "dim": 64,
        "combine": "mean",
        "hidden_layers": 1,
        "dropout": 0.5,
        "learning_rate": 0.03,
        "weight_decay": 0.0005,
        "joint_layer_epochs": 5,
        "epochs": 200,
        "patience": 60,
        **rare,
    }


COMMENTS = {
    "label_holder": "has the labels, leads the run, and alone learns loss, accuracy and predictions",
    "[alignment]": "how the holders find their common nodes; psi: two holders among themselves, tokens: by the server",
    "max_ids": "no holder may have more; delta of differential privacy must be below 1 / max_ids",
    "keep_local_neighbours": "nodes that only one holder has stay in its own graph (individual mode)",
    "[settings]": "what is trained, and how: src/vfgnn/settings.py tells all of them",
    "initial_embedding": "individual: each holder embeds its own columns; collaborative: h0 = X W under secret sharing",
    "hidden_layers": "without any (0) the label holder may rebuild others' rows: all must accept_row_leak",
    "joint_layer_epochs": "collaborative: epochs that train W; each shows the holders d more combinations of X",
    "class_weights": "balanced: a rare class counts as much as a frequent one",
    "select_by": "which epoch is the best one, on validation nodes",
    "[server]": "combines what holders publish; holds no data",
    "[dealer]": "deals random numbers for the secret sharing; must not collude with a holder",
    "features": "columns after encoding",
}


def _reachable(cards: dict[str, Card], name: str) -> dict[str, object]:
    if name not in cards:
        raise ConfigError(f"no card of the {name}", expected=f"vfgnn init party {name}, and its card here")
    return cards[name].model_dump(include={"address", "certificate"})


def _federation_toml(document: Mapping[str, object]) -> str:
    text = to_toml(document)
    lines = ["# The public file of this federation: the same at all parties, who compare it before anything else."]
    for line in text.splitlines():
        note = COMMENTS.get(line) or COMMENTS.get(line.split(" = ")[0])
        lines.append(f"{line}  # {note}" if note and not line.endswith('"""') else line)
    return "\n".join(lines) + "\n"
