"""`vfgnn data check`: a holder's tables looked at before any key exists, and the dialects that its CSV files look like.

Run by a holder over its own tables; nothing leaves.
"""

from collections.abc import Sequence

from vfgnn.data.profile import Profile, TableSources, make_profile
from vfgnn.data.sources import sniffed
from vfgnn.data.tables import Columns
from vfgnn.errors import ConfigError, TableError
from vfgnn.files import DataFiles, TableKind
from vfgnn.party.own_data import checked_columns, table_of

KINDS: tuple[TableKind, ...] = ("nodes", "edges", "labels")


def profile_of(data: DataFiles, accepted: Sequence[str]) -> Profile:
    """Of tables that a party.toml names, as `vfgnn run` would read them."""
    columns = checked_columns(data)
    nodes = table_of(data, "nodes")
    if nodes is None:
        raise ConfigError(
            "no tables to check",
            expected="[data] nodes = ... in party.toml, or --nodes",
            hint="vfgnn data check --help",
        )
    return make_profile(TableSources(nodes, table_of(data, "edges"), table_of(data, "labels")), columns, accepted)


def with_dialects(data: DataFiles) -> DataFiles:
    """The same, with what each CSV file looks like where nothing is stated of it: `vfgnn init` writes it down."""
    columns, found = checked_columns(data), dict(data.csv)
    for kind in KINDS:
        path = getattr(data, kind)
        if path is None:
            continue
        names = _named(columns, kind)
        source = sniffed(path, names)
        if source.is_csv:
            looks = source.dialect
            if not looks.header and not all(_is_number_of_column(name) for name in names):
                looks = looks.model_copy(update={"header": True})  # that the expected names are not there is an error
            found[kind] = looks.model_dump() | data.csv.get(kind, {})
    return data.model_copy(update={"csv": found})


def _named(columns: Columns, kind: TableKind) -> list[str]:
    """Columns that this table must have."""
    by_kind = {
        "nodes": [columns.id],
        "edges": [columns.source, columns.target],
        "labels": [columns.id, columns.label],
    }
    return by_kind[kind]


def _is_number_of_column(name: str) -> bool:
    """As the columns of a file without a header are called: f0, f1."""
    return name[:1] == "f" and name[1:].isdigit()


def refuse_errors(profile: Profile) -> None:
    """Where tables have to be right."""
    if not profile.errors:
        return
    first, more = profile.errors[0], len(profile.errors) - 1
    raise TableError(
        first.code,
        first.found,
        file=first.file,
        column=first.column,
        count=first.count,
        got=f"this and {more} more error{'s' * (more > 1)}" if more else None,
        hint=first.advice,
    )
