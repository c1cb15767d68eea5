"""The two files a party is started with.

`federation.toml` is public and the same at all parties: who takes part, where each can be reached, whose certificates
are trusted, the settings. All parties compare it before step 0. `party.toml` stays at home: where this party's key,
data and run folder are. Unknown keys are refused in both.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from vfgnn.address import Address
from vfgnn.agreement import DEALER, SERVER, Agreement, HolderShape, make_agreement
from vfgnn.errors import ConfigError
from vfgnn.explained import explain
from vfgnn.id_shape import IdShape
from vfgnn.settings import Public, Settings, Whole

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
File = TypeVar("File", bound=BaseModel)
FEDERATION, PARTY = "federation file", "party file"
LONGEST_NAME = 255  # bytes, on the disks that we know


class Reachable(Public):
    """How a party is found and known. One of a pair needs an address; a private CA may stand for the certificates."""

    address: Address | None = None  # host:port that the others dial
    certificate: str | None = None  # PEM


class ListedHolder(Reachable, HolderShape):
    """A holder's sizes, and how it is found and known."""

    ids: IdShape | None = None  # where it brings a table


class Patience(Public):
    """How long the parties wait for each other, in seconds."""

    start_s: Seconds = 600.0  # until all parties have come
    message_s: Seconds = 600.0  # for a message whose sender is connected
    away_s: Seconds = 60.0  # for a party whose connection was lost


class Alignment(Public):
    """How the holders find out which nodes they share, where they bring tables with ids (alignment/)."""

    method: Literal["tokens", "psi"] = "tokens"  # psi: two holders, without the server
    max_ids: Whole = 1_000_000  # no holder may have more; so many nodes at most
    keep_local_neighbours: bool = False  # nodes that only one holder has stay in its own graph (individual mode)


class Limits(Public):
    """Sealed: what every holder lets be opened to one label holder, over all runs on its data (privacy/openings.py)."""

    max_trainings: Whole = 10
    max_opened_rows: Whole | None = None  # of all trainings and predictions; None: any number


class FederationFile(Public):
    """The content of federation.toml. Nodes are numbered alike at all holders (`nodes`), or found out at the start."""

    nodes: int | None = None
    alignment: Alignment | None = None
    classes: int
    label_holder: str
    holders: tuple[ListedHolder, ...]
    server: Reachable | None = None  # sealed: only where ids are aligned by tokens
    dealer: Reachable | None = None
    certificate_authority: str | None = None  # PEM; trusted for every party that lists no certificate
    patience: Patience = Patience()
    limits: Limits = Limits()
    checkpoint_every: Whole = 10  # steps between two checkpoints of every party
    settings: Settings

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.nodes is None) == (self.alignment is None):
            raise ValueError("either nodes (data that is aligned already) or an [alignment] table is needed")
        if self.alignment is not None:
            if self.alignment.method == "psi" and len(self.holders) != 2:
                raise ValueError(f"alignment by psi is for two holders, not {len(self.holders)}: use tokens")
            if self.alignment.keep_local_neighbours and self.settings.protocol == "sealed":
                raise ValueError("keep_local_neighbours needs protocol = split: sealed, every row is a common one")
            if self.alignment.keep_local_neighbours and self.settings.initial_embedding != "individual":
                raise ValueError("keep_local_neighbours needs initial_embedding = individual")
        if SERVER in self.agreement.parties and self.server is None:
            raise ValueError(f"a [server] is needed: it {'aligns ids' if self.agreement.sealed else 'combines rows'}")
        if self.agreement.dealt and self.dealer is None:
            why = "protocol = sealed" if self.agreement.sealed else "the joint layer is secure"
            raise ValueError(f"a [dealer] is needed: {why}, and there are several holders")
        if self.limits != Limits() and not self.agreement.sealed:
            raise ValueError("limits are on what the sealed protocol opens: they need protocol = sealed")
        for name, party in self.parties.items():
            if party.certificate is None and self.certificate_authority is None:
                raise ValueError(f"{name} needs a certificate, or the file a certificate_authority")
        return self

    @property
    def parties(self) -> dict[str, Reachable]:
        """Everyone who takes part, in the order that decides who dials whom."""
        listed = {SERVER: self.server, DEALER: self.dealer, **{holder.name: holder for holder in self.holders}}
        return {name: party for name in self.agreement.parties if (party := listed[name]) is not None}

    @cached_property
    def agreement(self) -> Agreement:
        """What the parties' code works with: sizes and settings, without addresses; as many nodes as there may be."""
        return self.agreement_over(None)

    def agreement_over(self, nodes: int | None) -> Agreement:
        """The same over the nodes that the holders share, once they know how many; None: they do not know yet."""
        most = self.nodes if self.alignment is None else self.alignment.max_ids
        by_tokens = self.alignment is not None and self.alignment.method == "tokens"
        return make_agreement(
            where="the federation file",
            nodes=most if nodes is None else nodes,
            classes=self.classes,
            holders=[
                HolderShape(**holder.model_dump(include=set(HolderShape.model_fields))) for holder in self.holders
            ],
            label_holder=self.label_holder,
            tokens=by_tokens and self.settings.protocol == "sealed",
            settings=self.settings,
        )

    @property
    def document(self) -> dict[str, object]:
        """The whole file, defaults filled in: what parties compare."""
        content: dict[str, object] = self.model_dump(mode="json")
        return content

    @property
    def digest(self) -> str:
        """One word for the whole file."""
        return hashlib.sha256(json.dumps(self.document, sort_keys=True).encode()).hexdigest()


def _possible(path: Path) -> Path:
    """A name that a disk can have: otherwise every look at it would be an error of its own."""
    if "\0" in str(path) or any(len(part.encode(errors="replace")) > LONGEST_NAME for part in path.parts):
        raise ValueError(f"each name in a path has at most {LONGEST_NAME} bytes, and no zero byte")
    return path


OwnPath = Annotated[Path, AfterValidator(_possible)]
TableKind = Literal["nodes", "edges", "labels"]
Acceptable = Literal["LABEL_AMONG_FEATURES", "DETERMINES_LABEL", "UNKNOWN_ENDS", "LOST_ZEROS", "CLASSES_ALIKE"]
ACCEPTABLE: tuple[str, ...] = get_args(Acceptable)
"""What a holder may accept in its tables (data/disasters.py)."""


class DataFiles(BaseModel):
    """Where a holder's own data is: tables with ids, or tensors that are aligned already."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: OwnPath | None = None  # table of ids and features, CSV or Parquet (data/tables.py)
    edges: OwnPath | None = None  # table of pairs of ids
    columns: dict[str, Any] = {}  # which column is what (data/columns.py)
    csv: dict[TableKind, dict[str, Any]] = {}  # how each CSV file is written (data/dialect.py)
    holding: OwnPath | None = None  # instead of tables: aligned features and edges (data/prepared.py)
    labels: OwnPath | None = None  # label holder only; of the same kind as the others

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.nodes is None) == (self.holding is None):
            raise ValueError("either nodes (a table with ids) or holding (aligned tensors) is needed")
        if self.holding is not None and (self.edges is not None or self.columns or self.csv):
            raise ValueError("edges, [data.columns] and [data.csv] go with a table of nodes, not with a holding")
        return self


class PartyFile(BaseModel):
    """The content of party.toml. Nothing of it is ever sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    key: OwnPath  # private key, PEM
    certificate: OwnPath  # its certificate, PEM; the only one of these files that leaves
    revocation_list: OwnPath | None = None  # of the CA that the federation file names, PEM
    passphrase_file: OwnPath | None = None  # of the key; or the environment variable VFGNN_PASSPHRASE
    listen: Address | None = None  # interface and port; default: all interfaces, the port of the federation file
    proxy: str | None = None  # http://host:port, for the connections that this party dials
    run_folder: OwnPath = Path("run")
    privacy_ledger: OwnPath = Path(
        "privacy_ledger.jsonl"
    )  # over all runs on this data; what was noised once lies beside it
    opened_ledger: OwnPath = Path("opened_ledger.jsonl")  # sealed: over all runs on this data
    allow_scores: bool = False  # sealed: whether this holder lets scores be opened, and not only classes
    record_view: bool = False  # keep what this party sends and receives in a run, contents too (view_file.py)
    threads: Annotated[int, Field(ge=1)] | None = None  # default: all cores
    device: Literal["cpu", "cuda"] = "cpu"
    module: str | None = None  # package.module:Class for `gnn = "own"` at a holder, for `combine = "own"` at the server
    mechanism: str | None = None  # holder: package.module:Class in the place of the Gaussian noise on its rows
    insecure_seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None  # for tests: nothing is secret with it
    accept: tuple[Acceptable, ...] = ()  # what would be refused in this holder's tables; `vfgnn data check` names it
    min_common: Annotated[float, Field(ge=0, le=1)] = 0.1  # of this holder's ids; a run with fewer common ones ends
    own_model: bool = True  # label holder: after a run, a model of its own data alone, to compare
    data: DataFiles | None = None


def make_data_files(where: str, **given: object) -> DataFiles:
    """[data] of a party.toml, from options; `where` is for messages."""
    try:
        return DataFiles.model_validate(given)
    except ValidationError as error:
        raise explain(error, where, DataFiles) from None


def load_federation(path: Path) -> FederationFile:
    """Read and check federation.toml."""
    return _load(path, FederationFile, FEDERATION)


def load_party(path: Path) -> PartyFile:
    """Read and check party.toml; its paths become relative to the folder it lies in."""
    party = _load(path, PartyFile, PARTY)
    home = path.parent
    changed: dict[str, object] = {
        key: home / getattr(party, key)
        for key in ("key", "certificate", "run_folder", "privacy_ledger", "opened_ledger")
    }
    for key in ("passphrase_file", "revocation_list"):
        if getattr(party, key) is not None:
            changed[key] = home / getattr(party, key)
    if party.data is not None:
        keys = ("nodes", "edges", "holding", "labels")
        paths = {key: home / path for key in keys if (path := getattr(party.data, key)) is not None}
        changed["data"] = party.data.model_copy(update=paths)
    return party.model_copy(update=changed)


def _load(path: Path, kind: type[File], what: str) -> File:
    document: dict[str, object] = {}
    try:
        document = tomllib.loads(path.read_text())
        return kind.model_validate(document)
    except OSError as error:
        raise ConfigError(f"no {what}", expected="a readable file", got=str(error.strerror), where=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        got = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "no UTF-8, or too many levels"
        raise ConfigError(f"the {what} is not TOML", got=got, where=str(path)) from None
    except ValidationError as error:
        other = _looks_like(document)
        if other not in (None, what):
            raise ConfigError(
                f"a {other} in the place of the {what}",
                expected=what,
                where=str(path),
                hint="the federation file comes first: vfgnn run federation.toml party.toml",
            ) from None
        raise explain(error, str(path), kind) from None


def _looks_like(document: Mapping[str, object]) -> str | None:
    """Which of the three files it is, by keys that the others do not have."""
    if "holders" in document and "settings" in document:
        return FEDERATION
    if "key" in document or "run_folder" in document:
        return PARTY
    return "card" if {"name", "certificate"} <= document.keys() else None


def to_toml(document: Mapping[str, object], table: str = "") -> str:
    """A document of ours as TOML: values first, then tables and lists of tables; what is None is left out."""
    lines = [f"{key} = {_toml_value(value)}" for key, value in document.items() if _is_value(value)]
    for key, value in document.items():
        if isinstance(value, dict):
            lines += ["", f"[{table}{key}]", to_toml(value, f"{table}{key}.").rstrip()]
        elif isinstance(value, list) and not _is_value(value):
            for entry in value:
                lines += ["", f"[[{table}{key}]]", to_toml(entry, f"{table}{key}.").rstrip()]
    return "\n".join(lines) + "\n"


def _is_value(value: object) -> bool:
    tables = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(entry, dict) for entry in value))
    return value is not None and not tables


def _toml_value(value: object) -> str:
    if isinstance(value, str) and "\n" in value:
        return f"'''\n{value.strip()}\n'''"
    # JSON writes strings, numbers, booleans and lists of them as TOML does.
    return json.dumps(value, ensure_ascii=False)
