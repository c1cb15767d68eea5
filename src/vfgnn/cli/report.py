"""`vfgnn report`: one page about a run."""

from pathlib import Path
from typing import Annotated

import typer

from vfgnn.writing import write_whole


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of one or several parties of one run.")],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
) -> None:
    """Make one self-contained page: curves, traffic, an epoch's timeline, leaks, who saw what, configuration.

    Checks every message log on the way, those of predictions and services with the run's model too: its chain, its
    seal, the schedule, and both ends of each link.

    Example: `vfgnn report A/run --out report.html`
    """
    from vfgnn.report.run.page import make_page

    page = make_page(runs)
    write_whole(out, page)
    typer.echo(f"{out}: {len(page) / 1e3:.0f} kB, opens without a network")
