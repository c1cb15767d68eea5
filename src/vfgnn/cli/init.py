"""`vfgnn init`: each party's own file, and the federation's public one."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vfgnn.cli import options
from vfgnn.cli.tables import TableOptions
from vfgnn.errors import ConfigError

if TYPE_CHECKING:
    from vfgnn.files import DataFiles

app = typer.Typer(help="Write party.toml and federation.toml, with comments.", no_args_is_help=True)


def _ask(question: str, given: str | None, option: str) -> str:
    """What was not given as a flag is asked, where somebody can answer."""
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise ConfigError(f"nobody is there to ask: {question}", expected=option)
    return str(typer.prompt(question))


@app.command()
@options.with_shared(TableOptions)
def party(
    shared: TableOptions,
    name: Annotated[str, typer.Argument(help="This party's name; 'server' and 'dealer' are those two.")],
    folder: Annotated[Path, typer.Option(help="Where its key is, and both files go.")] = Path(),
    address: Annotated[str | None, typer.Option(help="host:port that the others dial; 'none' behind a NAT.")] = None,
    entry_bound: Annotated[
        int | None, typer.Option(help="Directed entries to declare, two for each edge. Default: counted, rounded up.")
    ] = None,
    allow_scores: Annotated[
        bool, typer.Option("--allow-scores", help="Let scores be opened to the label holder, not only classes.")
    ] = False,
    settings: options.Set = None,
) -> None:
    """Write this party's own party.toml, and a card with what the others may know of it.

    Reads the tables as `vfgnn data check` does, and writes nothing if there is an error. The card has counts, the
    address and the certificate, no values. Columns are counted with the default maps; where the federation will have
    others, say so here: `--set sealed.bins=8`.

    Example: `vfgnn init party bank --address bank.example:7001 --nodes accounts.csv --edges transfers.csv`
    """
    from vfgnn.agreement import DEALER, SERVER
    from vfgnn.party.init import keys_of, refuse_unusable_address, write_party
    from vfgnn.settings import Preset

    reached = _ask("address (host:port) that the others dial, or none", address, "--address")
    refuse_unusable_address(reached)
    data = None
    keys_of(folder, name)
    if name not in (SERVER, DEALER):
        data = shared.data_files(_ask("table of nodes", shared.nodes, "--nodes"))
        _check(data, shared.accepted)
    written = write_party(
        folder,
        name,
        address=None if reached == "none" else reached,
        data=data,
        sealed=Preset("tables").settings(overrides=options.parse_settings(settings)).sealed,
        entry_bound=entry_bound,
        accept=shared.accepted,
        allow_scores=allow_scores,
    )
    typer.echo(f"{written.own}\n    stays here")
    typer.echo(f"{written.told}\n    goes to whoever writes the federation file")
    for line in written.explain():
        typer.echo(f"    {line}")


def _check(data: "DataFiles", accepted: tuple[str, ...]) -> None:
    """Show what the tables are, and refuse what is wrong with them."""
    from rich.console import Console

    from vfgnn.party.data_check import profile_of, refuse_errors
    from vfgnn.report.data_profile import show_profile

    profile = profile_of(data, accepted)
    show_profile(Console(), profile)
    refuse_errors(profile)


@app.command()
def federation(
    cards: Annotated[list[Path], typer.Argument(help="The cards of all parties: NAME.card.toml.")],
    out: Annotated[Path, typer.Option(help="The public file.")] = Path("federation.toml"),
    protocol: Annotated[str, typer.Option(help="sealed: opens predictions alone; split: the paper's.")] = "sealed",
    mode: Annotated[
        str | None, typer.Option(help="split: individual (default), or collaborative: h0 under secret sharing.")
    ] = None,
    alignment: Annotated[str | None, typer.Option(help="tokens or psi. Default: psi for two holders.")] = None,
    max_ids: Annotated[int, typer.Option(help="No holder may have more ids.", min=1)] = 1_000_000,
    keep_local_neighbours: Annotated[
        bool, typer.Option(help="split: keep nodes that only one holder has in its graph.")
    ] = False,
    settings: options.Set = None,
) -> None:
    """Write the public federation.toml from everybody's cards.

    Example: `vfgnn init federation bank.card.toml telecom.card.toml dealer.card.toml --out federation.toml`
    """
    from vfgnn.party.cards import read_card
    from vfgnn.party.federation_file import lost_zeros_of, write_federation_file

    chosen = {"protocol": protocol, **({} if mode is None else {"initial_embedding": mode})}
    file = write_federation_file(
        out,
        [read_card(path) for path in cards],
        settings=chosen | options.parse_settings(settings),
        method=alignment,
        max_ids=max_ids,
        keep_local_neighbours=keep_local_neighbours,
    )
    typer.echo(f"{out}: {', '.join(file.parties)}; labels at {file.label_holder}")
    for one, other in lost_zeros_of(file.holders):
        typer.echo(f"    ids of {other} have leading zeros, those of {one} have none: {one} will refuse to run")
    typer.echo(
        "    give it to all parties; each runs `vfgnn doctor` and then `vfgnn run` with it and its own party.toml"
    )
