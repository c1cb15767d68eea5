"""`vfgnn privacy`: what an epsilon means, before anything is run."""

from pathlib import Path
from typing import Annotated

import typer

from vfgnn.cli import options

app = typer.Typer(help="Differential privacy: plan a budget, read a ledger.", no_args_is_help=True)


@app.command()
def plan(
    epsilon: Annotated[float, typer.Option(help="Of each release; with --total, of all of them together.")],
    delta: Annotated[float, typer.Option(help="Must be below 1 / nodes.")] = 1e-4,
    releases: Annotated[int, typer.Option(help="How often one row leaves: epochs + 1 in a run.", min=1)] = 201,
    total: Annotated[bool, typer.Option("--total", help="`epsilon` is for all releases together.")] = False,
    calibration: Annotated[str, typer.Option(help="analytic (exact) or classical (the paper's).")] = "analytic",
    adjacency: Annotated[str, typer.Option(help="zero_out or replace_one.")] = "zero_out",
    dim: Annotated[int, typer.Option(help="Width of a row.", min=1)] = 64,
    nodes: Annotated[int | None, typer.Option(help="To check delta, and what noised edges would be.", min=2)] = None,
    edges: Annotated[int | None, typer.Option(help="Of one holder, for the same.", min=1)] = None,
    classes: Annotated[int, typer.Option(help="For noised labels.", min=2)] = 7,
    json: options.Json = None,
) -> None:
    """Tell what noise a budget asks for, what it comes to, and which mode can meet it.

    Example: `vfgnn privacy plan --epsilon 8 --delta 1e-4 --releases 200 --json plan.json`
    """
    from rich.console import Console

    from vfgnn.privacy.planning import plan_budget
    from vfgnn.report.console import show_budget

    made = plan_budget(
        epsilon,
        delta,
        releases,
        total=total,
        calibration=calibration,
        adjacency=adjacency,
        dim=dim,
        nodes=nodes,
        edges=edges,
        classes=classes,
    )
    show_budget(Console(), made)
    options.write_json(json, made.to_json())


@app.command()
def ledger(
    path: Annotated[Path, typer.Argument(help="A holder's privacy_ledger.jsonl.")],
    delta: Annotated[float, typer.Option(help="At which totals are given.")] = 1e-4,
    budget: Annotated[float | None, typer.Option(help="The federation's budget_epsilon, to tell what is left.")] = None,
    json: options.Json = None,
) -> None:
    """Check a holder's ledger and tell what it has spent over all runs, and what is left of a budget.

    Example: `vfgnn privacy ledger privacy_ledger.jsonl --budget 10`
    """
    from rich.console import Console

    from vfgnn.errors import DataError
    from vfgnn.privacy.calibration import check_delta, check_epsilon
    from vfgnn.privacy.ledger import read_releases
    from vfgnn.privacy.statement import spent
    from vfgnn.report.console import show_spent

    check_delta(delta)
    if budget is not None:
        check_epsilon(budget, "budget")
    if not path.is_file():
        raise DataError("no such ledger", expected="a holder's privacy_ledger.jsonl", where=str(path))
    found = spent(read_releases(path), delta, budget)
    show_spent(Console(), found, delta)
    options.write_json(json, {"delta": delta, "budget_epsilon": budget, "units": found})
