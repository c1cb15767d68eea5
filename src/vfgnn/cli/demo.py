"""`vfgnn demo`: a whole federation on this machine, each party a process with its own key, over TLS."""

from pathlib import Path
from typing import Annotated

import typer

from vfgnn.cli import options
from vfgnn.writing import write_whole

SEED = 0  # of the partition, and of the models to compare with; the parties draw their own secrets


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
    """Train a federation of real processes on CiteSeer, then compare it with its holders alone.

    Writes keys and files for every party, starts each with `vfgnn run`, and leaves the folder behind.

    Example: `vfgnn demo --folder vfgnn-demo`
    """
    from rich.console import Console

    from vfgnn.lab.local_training import LocalTraining
    from vfgnn.lab.scenario import Scenario
    from vfgnn.report.console import EpochProgress, progress, show_processes, show_simulation

    console = Console()
    scenario = Scenario.of(
        dataset,
        holders=holders,
        preset=preset,
        seed=SEED,
        data_dir=data_dir,
        **options.parse_settings(settings),  # type: ignore[arg-type]
    )
    running = LocalTraining.prepare(folder, scenario)
    names = ", ".join(running.local.names)
    console.print(
        f"{len(running.local.names)} parties ({names}), each a process with its own key, TLS 1.3 between them"
    )
    with show_processes(console) as show:
        running.train(show)
    with progress(console) as display:
        result = running.result(on_epoch=EpochProgress(display, scenario.settings.epochs))
    show_simulation(console, result)
    from vfgnn.report.run.page import make_page  # not before: drawing leaves a cache of fonts behind

    page = folder / "report.html"
    write_whole(page, make_page([running.local.run_folder(name) for name in running.local.names]))
    console.print(f"\n[bold]{folder}[/] has the public federation.toml, and each party's own key, data and records;")
    console.print(f"[bold]{page}[/] shows the run: curves, traffic, an epoch, leaks, who saw what;")
    console.print("every party was started with the command that it would run on a host of its own, such as")
    name = running.local.file.label_holder
    console.print(f"  vfgnn run {folder}/federation.toml {folder}/{name}/party.toml", soft_wrap=True, highlight=False)
    options.write_json(json, result.to_json())
