"""`vfgnn init party`: a party's own file, which stays at home, and a card with what the others may know of it.

Somebody collects the cards and writes federation.toml from them (federation_file.py).
"""

from dataclasses import dataclass
from pathlib import Path

from vfgnn.agreement import DEALER, SERVER
from vfgnn.errors import ConfigError
from vfgnn.files import DataFiles, PartyFile, to_toml
from vfgnn.party.cards import Card, make_card
from vfgnn.settings import Preset, Sealed
from vfgnn.writing import write_whole

TABLES = ("nodes", "edges", "labels")


@dataclass(frozen=True)
class Written:
    """The files that a party made of itself."""

    own: Path  # party.toml
    told: Path  # the card
    card: Card
    not_sealed: str | None  # why the sealed protocol cannot take its tables

    def explain(self) -> list[str]:
        """What the card tells of a holder's tables, for its owner."""
        card, sealed = self.card, self.card.sealed
        if self.not_sealed is not None:
            return [f"columns: {card.features}", f"not for the sealed protocol: {self.not_sealed}"]
        if sealed is None:
            return []
        return [
            f"columns: {card.features}; for the sealed protocol {sealed.features}, after this holder's own maps",
            f"declared: at most {sealed.entry_bound} directed entries, two for each edge "
            "(the count is rounded up, so that it tells little; --entry-bound declares another number)",
        ]


def write_party(
    folder: Path,
    name: str,
    *,
    address: str | None,
    data: DataFiles | None = None,
    sealed: Sealed | None = None,
    entry_bound: int | None = None,
    allow_scores: bool = False,
) -> Written:
    """party.toml and the card, in the party's own folder.

    `sealed`: the maps that its columns are counted with; `entry_bound`: what it declares, None: proposed.
    `allow_scores`: its consent, which stays in party.toml.
    """
    key, certificate = folder / f"{name}.key.pem", folder / f"{name}.certificate.pem"
    if not key.is_file() or not certificate.is_file():
        raise ConfigError(
            f"no key of {name}",
            expected=f"{key.name} and {certificate.name} in {folder}",
            hint=f"vfgnn keys new {name} --folder {folder}",
        )
    holds = name not in (SERVER, DEALER)
    if holds != (data is not None):
        raise ConfigError(
            f"{name} {'needs' if holds else 'may not have'} data", expected="--nodes at holders, at nobody else"
        )
    tables = {} if data is None else {kind: path for kind in TABLES if (path := getattr(data, kind)) is not None}
    columns = {} if data is None else data.columns
    resolved = {kind: str(path.resolve()) for kind, path in tables.items()}
    party = PartyFile.model_validate(
        {
            "name": name,
            "key": key,
            "certificate": certificate,
            "data": {**resolved, "columns": columns} if holds else None,
        }
    )
    # Refuses tables that cannot be read before anything is written.
    made = make_card(party, address, sealed or Preset("tables").settings().sealed, entry_bound)
    where, told = folder / "party.toml", folder / f"{name}.card.toml"
    for path in (where, told):
        if path.exists():
            raise ConfigError(
                "there is such a file already", got=str(path), hint="move it away, or choose another folder"
            )
    write_whole(where, _party_toml(name, resolved, columns, allow_scores=allow_scores), overwrite=False)
    heading = f"# What the others may know of {name}: give this file to whoever writes the federation file.\n"
    write_whole(told, heading + to_toml(_without_nothing(made.card)), for_others=True, overwrite=False)
    return Written(where, told, made.card, made.not_sealed)


def _party_toml(name: str, tables: dict[str, str], columns: dict[str, object], *, allow_scores: bool) -> str:
    lines = [
        f"# {name}'s own file. Nothing of it is ever sent.",
        f'name = "{name}"',
        f'key = "{name}.key.pem"                  # the private key: stays here',
        f'certificate = "{name}.certificate.pem"  # listed in the federation file',
        'run_folder = "run"                      # records, checkpoints and predictions',
        '# listen = "0.0.0.0:7001"             # interface and port; default: the port of the federation file',
        "# threads = 4                           # default: all cores",
    ]
    if not tables:
        return "\n".join(lines) + "\n"
    consent = "allow_scores = true                     # sealed: the label holder may be shown scores, not only classes"
    text = "\n".join([*lines, consent if allow_scores else f"# {consent}"]) + "\n"
    data = to_toml({"data": {**tables, "columns": columns}})
    data = data.replace("[data]", "[data]  # CSV or Parquet; paths may be relative to this file", 1)
    return text + data.replace("[data.columns]", "[data.columns]  # which column is what (docs/tables.md)", 1)


def _without_nothing(card: Card) -> dict[str, object]:
    """A table that is not there is left out, like any value."""
    return {key: value for key, value in card.model_dump().items() if value is not None}
