"""Options that name a holder's tables and their columns, for `vfgnn data check` and `vfgnn init party`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vfgnn.cli import options
from vfgnn.errors import ConfigError

if TYPE_CHECKING:
    from vfgnn.files import DataFiles


@dataclass(frozen=True)
class TableOptions:
    """Where a holder's tables are, and which column is what."""

    nodes: Annotated[str | None, typer.Option(help="Holders: table of ids and features, CSV or Parquet.")] = None
    edges: Annotated[Path | None, typer.Option(help="Holders: table of pairs of ids.")] = None
    labels: Annotated[Path | None, typer.Option(help="The label holder: table of ids and classes.")] = None
    id_column: Annotated[str | None, typer.Option("--id", help="Column of ids. Default: id.")] = None
    source: Annotated[str | None, typer.Option(help="Column of edges. Default: source.")] = None
    target: Annotated[str | None, typer.Option(help="Column of edges. Default: target.")] = None
    weight: Annotated[str | None, typer.Option(help="Column of edges. Default: no weights.")] = None
    label: Annotated[str | None, typer.Option(help="Column of labels. Default: label.")] = None
    split: Annotated[str | None, typer.Option(help="Column of labels with train, val, test.")] = None
    time: Annotated[str | None, typer.Option(help="Column of labels: oldest train, newest test.")] = None
    drop: Annotated[str | None, typer.Option(help="Node columns that are no features, comma-separated.")] = None
    column: Annotated[
        list[str] | None,
        typer.Option(help="Any other key of [data.columns]: missing=zero, dates.opened=%d.%m.%Y; may be repeated."),
    ] = None
    csv: Annotated[
        list[str] | None,
        typer.Option(help="How a CSV file is written, if not as it looks: nodes.delimiter=;, labels.encoding=cp1252."),
    ] = None
    accept: Annotated[
        str | None, typer.Option(help="Findings of `vfgnn data check` that are meant so, comma-separated.")
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether any of them is."""
        return any(value is not None for value in vars(self).values())

    @property
    def accepted(self) -> tuple[str, ...]:
        """Names of findings, checked."""
        from vfgnn.files import ACCEPTABLE

        names = tuple(options.parse_list(self.accept or ""))
        for name in names:
            if name not in ACCEPTABLE:
                raise ConfigError("nothing that can be accepted", expected=f"one of {', '.join(ACCEPTABLE)}", got=name)
        return names

    def data_files(self, nodes: str) -> "DataFiles":
        """As [data] of party.toml would say it, with the dialects that the files look like."""
        from vfgnn.files import make_data_files
        from vfgnn.party.data_check import with_dialects

        given = {
            "id": self.id_column,
            "source": self.source,
            "target": self.target,
            "weight": self.weight,
            "label": self.label,
            "split": self.split,
            "time": self.time,
            "drop": None if self.drop is None else options.parse_list(self.drop),
        }
        columns = {key: value for key, value in given.items() if value is not None}
        return with_dialects(
            make_data_files(
                "these options",
                nodes=Path(nodes),
                edges=self.edges,
                labels=self.labels,
                columns=columns | options.parse_settings(self.column),
                csv=options.parse_settings(self.csv),
            )
        )
