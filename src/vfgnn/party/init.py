"""`vfgnn init party`: a party's own file, which stays at home, and a card with what the others may know of it.

Somebody collects the cards and writes federation.toml from them (federation_file.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from vfgnn.agreement import DEALER, SERVER
from vfgnn.errors import ConfigError
from vfgnn.files import DataFiles, PartyFile, Reachable, to_toml
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
    accept: Sequence[str] = (),
    allow_scores: bool = False,
) -> Written:
    """party.toml and the card, in the party's own folder.

    `sealed`: the maps that its columns are counted with; `entry_bound`: what it declares, None: proposed; `accept`:
    findings in its tables that are meant so; `allow_scores`: its consent, which stays in party.toml.
    """
    key, certificate = keys_of(folder, name)
    holds = name not in (SERVER, DEALER)
    if holds != (data is not None):
        raise ConfigError(
            f"{name} {'needs' if holds else 'may not have'} data", expected="--nodes at holders, at nobody else"
        )
    tables = {} if data is None else {kind: path for kind in TABLES if (path := getattr(data, kind)) is not None}
    how: dict[str, object] = {} if data is None else {"columns": data.columns, "csv": data.csv}
    resolved = {kind: path.resolve() for kind, path in tables.items()}
    party = PartyFile.model_validate(
        {
            "name": name,
            "key": key,
            "certificate": certificate,
            "accept": tuple(accept),
            "data": {**resolved, **how} if holds else None,
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
    named = {kind: str(_from(folder.resolve(), path)) for kind, path in resolved.items()}
    told_itself = _party_toml(name, {**named, **how} if holds else {}, accept, allow_scores=allow_scores)
    write_whole(where, told_itself, overwrite=False)
    heading = f"# What the others may know of {name}: give this file to whoever writes the federation file.\n"
    write_whole(told, heading + to_toml(_without_nothing(made.card)), for_others=True, overwrite=False)
    return Written(where, told, made.card, made.not_sealed)


def keys_of(folder: Path, name: str) -> tuple[Path, Path]:
    """The files of the key and of the certificate, which are there."""
    key, certificate = folder / f"{name}.key.pem", folder / f"{name}.certificate.pem"
    if not key.is_file() or not certificate.is_file():
        raise ConfigError(
            f"no key of {name}",
            expected=f"{key.name} and {certificate.name} in {folder}",
            hint=f"vfgnn keys new {name} --folder {folder}",
        )
    return key, certificate


def refuse_unusable_address(address: str) -> None:
    """Before tables are read: what the others cannot dial."""
    if address == "none":
        return
    try:
        Reachable(address=address)
    except ValidationError:
        raise ConfigError(
            "an address that cannot be dialled", expected="host:port, such as bank.example:7001, or none", got=address
        ) from None


def _from(folder: Path, path: Path) -> Path:
    """Within this folder as seen from it, so that the folder can be moved."""
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _party_toml(name: str, data: dict[str, object], accept: Sequence[str], *, allow_scores: bool) -> str:
    lines = [
        f"# {name}'s own file. Nothing of it is ever sent.",
        f'name = "{name}"',
        f'key = "{name}.key.pem"                  # the private key: stays here',
        f'certificate = "{name}.certificate.pem"  # listed in the federation file',
        'run_folder = "run"                      # records, checkpoints and predictions',
        '# listen = "0.0.0.0:7001"             # interface and port; default: the port of the federation file',
        "# threads = 4                           # default: all cores",
    ]
    if data:
        lines += ["# min_common = 0.1                      # share of our ids that all must have, or a run ends"]
        lines += [to_toml({"accept": list(accept)}).strip()] if accept else []
        consent = "allow_scores = true                     # sealed: the label holder may see scores, not just classes"
        lines += [consent if allow_scores else f"# {consent}"]
    text = "\n".join(lines) + "\n"
    if not data:
        return text
    written = to_toml({"data": {key: value for key, value in data.items() if value != {}}})
    for table, comment in (
        ("data", "CSV or Parquet; paths may be relative to this file"),
        ("data.columns", "which column is what (docs/tables.md)"),
    ):
        written = written.replace(f"[{table}]\n", f"[{table}]  # {comment}\n", 1)
    return text + written


def _without_nothing(card: Card) -> dict[str, object]:
    """A table that is not there is left out, like any value."""
    return {key: value for key, value in card.model_dump().items() if value is not None}
