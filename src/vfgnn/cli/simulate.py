"""`vfgnn simulate`."""

from typing import Annotated, Literal, cast

import typer

from vfgnn.cli import options


def simulate(
    dataset: options.Dataset = "citeseer",
    holders: options.Holders = 2,
    preset: options.Preset = "best",
    seed: Annotated[int, typer.Option(help="Of the partition and of all (insecure) randomness.", min=0)] = 0,
    settings: options.Set = None,
    proportions: Annotated[str | None, typer.Option(help="Shares of columns and edges, e.g. 0.7,0.3.")] = None,
    edge_split: Annotated[str, typer.Option(help="undirected or directed.")] = "undirected",
    module: Annotated[str | None, typer.Option(help="Your own GNN, package.module:Class, called with d.")] = None,
    compare: Annotated[bool, typer.Option(help="Train the isolated and pooled models too.")] = True,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Train a federation in one process; print isolated, federated and joint side by side.

    Example: `vfgnn simulate --dataset cora --holders 3 --set combine=mean --json result.json`
    """
    from rich.console import Console

    from vfgnn.lab import simulate as runner
    from vfgnn.party.own_code import load_module
    from vfgnn.report.console import EpochProgress, progress, show_privacy, show_simulation
    from vfgnn.settings import Preset

    overrides = options.parse_settings(settings)
    epochs = Preset(preset).settings(dataset=dataset, overrides=overrides).epochs
    if module is not None:
        overrides["gnn"] = load_module(module)
    console = Console()
    with progress(console) as display:
        result = runner.simulate(
            dataset,
            holders=holders,
            preset=preset,
            seed=seed,
            proportions=options.parse_proportions(proportions),
            edge_split=cast(Literal["undirected", "directed"], edge_split),
            compare=compare,
            device=device,
            data_dir=data_dir,
            on_epoch=EpochProgress(display, epochs),
            on_scenario=lambda scenario: show_privacy(console, scenario.stated(), "differential privacy, at most"),
            **overrides,  # type: ignore[arg-type]
        )
    show_simulation(console, result)
    options.write_json(json, result.to_json())
