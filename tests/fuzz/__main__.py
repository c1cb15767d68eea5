"""`python -m tests.fuzz run --seconds 120`, and `python -m tests.fuzz replay tests/corpus/CASE.json`."""

import json
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tests.fuzz.attacked import Victim
from tests.fuzz.campaign import Campaign
from tests.fuzz.case import read_case
from tests.fuzz.ground import Ground
from tests.fuzz.targets import run_case

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.command()
def run(
    seconds: Annotated[float, typer.Option(help="For how long.")] = 120.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the cases; drawn if none is given.")] = None,
) -> None:
    """Attack a party for some time; exit code 1 if anything failed that has no name, or hung."""
    console = Console(width=None if sys.stdout.isatty() else 150)
    seed = secrets.randbelow(10**9) if seed is None else seed
    console.print(f"seed {seed}, {seconds:g} s; again: python -m tests.fuzz run --seconds {seconds:g} --seed {seed}")
    campaign = Campaign(seconds, seed, console)
    found = campaign.run()
    console.print(campaign.table())
    if campaign.tally.signatures:
        console.print(campaign.failures())
    console.print(json.dumps(found))
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=2) + "\n")
    raise typer.Exit(int(bool(found["unnamed"] or found["hangs"])))


@app.command()
def replay(path: Annotated[Path, typer.Argument(help="A file of tests/corpus.")]) -> None:
    """Run one case again, in this process; exit code 1 if it still fails."""
    with tempfile.TemporaryDirectory(prefix="vfgnn-fuzz-") as folder:
        ground = Ground(Path(folder))
        victim = Victim(ground)
        outcome = run_case(read_case(path), ground, victim.ask)
        victim.close()
    Console(soft_wrap=True).print(f"{outcome.verdict}: {outcome.signature or outcome.said}", markup=False)
    raise typer.Exit(int(outcome.failed))


if __name__ == "__main__":
    app()
