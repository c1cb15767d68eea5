"""`vfgnn data`: a holder's own tables, before anything else."""

from pathlib import Path
from typing import Annotated

import typer

from vfgnn.cli import options
from vfgnn.cli.tables import TableOptions

app = typer.Typer(help="Look at your own tables before a run.", no_args_is_help=True)


@app.callback()
def data() -> None:
    """Look at your own tables before a run."""


@app.command()
@options.with_shared(TableOptions)
def check(
    shared: TableOptions,
    party: Annotated[Path | None, typer.Argument(help="A party.toml, or the options below.")] = None,
    json: options.Json = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page with a histogram of each column. It stays at home.")
    ] = None,
) -> None:
    """Print what each column becomes, what is dropped, and everything that is wrong with the tables.

    Needs no key and no federation; nothing leaves, and no id is shown. The exit code is 2 if there is an error.
    Errors with a name such as DETERMINES_LABEL can be accepted in party.toml: accept = ["DETERMINES_LABEL"].

    Example: `vfgnn data check --nodes accounts.csv --edges transfers.csv --labels fraud.csv --report check.html`
    """
    from rich.console import Console

    from vfgnn.errors import ConfigError, ExitCode
    from vfgnn.files import load_party
    from vfgnn.party.data_check import profile_of
    from vfgnn.report.data_profile import profile_page, show_profile
    from vfgnn.writing import write_whole

    if (party is None) == (shared.nodes is None):
        raise ConfigError(
            "no tables to check", expected="either a party.toml or --nodes", hint="vfgnn data check --help"
        )
    if party is not None and shared.is_given:
        raise ConfigError("tables are named twice", expected="a party.toml without other options, or --nodes")
    accepted: tuple[str, ...] = shared.accepted
    if party is None:
        files = shared.data_files(shared.nodes or "")
    else:
        own = load_party(party)
        accepted = own.accept
        if own.data is None:
            raise ConfigError(f"{own.name} has no data", expected="[data] nodes = ...", where=str(party))
        files = own.data
    profile = profile_of(files, accepted)
    show_profile(Console(), profile)
    options.write_json(json, profile.to_json())
    if report is not None:
        write_whole(report, profile_page(profile))
    if profile.errors:
        raise typer.Exit(ExitCode.BAD_INPUT)
