"""`vfgnn demo`: one federation on this machine, trained by both protocols; each party a process with its own key."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vfgnn.cli import options
from vfgnn.errors import ConfigError
from vfgnn.writing import write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from vfgnn.lab.local_training import LocalTraining

SEED = 0  # of the partition; the parties draw their own secrets


def demo(
    folder: Annotated[Path, typer.Option(help="Keys, files and records of all parties; left to look at.")] = Path(
        "vfgnn-demo"
    ),
    dataset: options.Dataset = "citeseer",
    holders: options.Holders = 2,
    preset: options.Preset = "best",
    settings: options.Set = None,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Train a federation of real processes by the paper's protocol, then sealed; say what each opened, and to whom.

    Writes keys and files for every party, starts each with `vfgnn run`, and leaves the folder behind.

    Example: `vfgnn demo --folder vfgnn-demo`
    """
    overrides = options.parse_settings(settings)
    if "protocol" in overrides:
        raise ConfigError(
            "the demo trains by both protocols",
            expected="no --set protocol",
            hint="`vfgnn simulate --set protocol=sealed` trains by one",
        )
    # Said before anything large is loaded: torch alone takes seconds.
    typer.echo(f"{dataset}, {holders} holders: first the paper's protocol, then the sealed one")
    from rich.console import Console

    from vfgnn.lab.local_files import fresh_folder
    from vfgnn.lab.local_training import LocalTraining
    from vfgnn.lab.scenario import Scenario

    scenario = Scenario.of(
        dataset,
        holders=holders,
        preset=preset,
        seed=SEED,
        data_dir=data_dir,
        **overrides,  # type: ignore[arg-type]
    )
    scenarios = {"split": scenario, "sealed": scenario.sealed()}
    fresh_folder(folder)
    trainings = {protocol: LocalTraining.prepare(folder / protocol, one) for protocol, one in scenarios.items()}
    console = Console()
    _train(console, trainings)
    options.write_json(json, {"rows": _show(console, trainings, preset)})


def _train(console: "Console", trainings: "dict[str, LocalTraining]") -> None:
    """One after the other, with their parties at work."""
    from vfgnn.report.console import show_processes

    for protocol, training in trainings.items():
        names = ", ".join(training.local.names)
        console.print(f"{protocol}: {names}; each a process with its own key, over TLS 1.3", highlight=False)
        with show_processes(console) as show:
            training.train(show)


def _show(console: "Console", trainings: "dict[str, LocalTraining]", preset: str) -> list[dict[str, object]]:
    """Compare, write both pages, and say where everything is."""
    from vfgnn.report.demo import (
        REPORT,
        rows_of,
        show_rows,
        show_trained,
    )  # only now: it leaves a cache of fonts behind
    from vfgnn.report.run.page import make_page

    scenario = trainings["sealed"].scenario
    trained = {protocol: training.local for protocol, training in trainings.items()}
    for local in trained.values():
        write_whole(local.folder / REPORT, make_page([local.run_folder(name) for name in local.names]))
    alone, pooled = scenario.compare(scenario.hearing(None))
    rows = rows_of(scenario, trained, alone, pooled)
    show_rows(console, rows, title=f"{scenario.dataset}, {len(scenario.names)} holders, preset {preset}, seed {SEED}")
    show_trained(console, trained)
    home = trained["sealed"].folder
    leader = trained["sealed"].file.label_holder
    console.print("Every party was started as on a host of its own, for example:")
    console.print(f"  vfgnn run {home}/federation.toml {home}/{leader}/party.toml", soft_wrap=True, highlight=False)
    return [row.to_json() for row in rows]
