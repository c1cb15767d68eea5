"""What the commands of `vfgnn reproduce` have in common: their options, and training with a progress bar.

Whoever reproduces runs it on public benchmarks: nothing here is private.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vfgnn.cli import options
from vfgnn.errors import ConfigError
from vfgnn.writing import write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from vfgnn.data.partition import EdgeSplit
    from vfgnn.experiments.baseline import Timing
    from vfgnn.experiments.claims import Claim
    from vfgnn.experiments.parts import Part
    from vfgnn.experiments.reproduction import Reproduction
    from vfgnn.experiments.runner import Store, Task, TaskResult
    from vfgnn.experiments.search import Wanted
    from vfgnn.experiments.tables import TableRow

RUNS = Path("runs/reproduce")
Datasets = Annotated[str, typer.Option(help="Comma-separated.")]
RunDir = Annotated[Path, typer.Option(help="Finished trainings are kept here; a stopped run goes on from them.")]
Record = Annotated[Path | None, typer.Option(help="Trainings that another run has finished, in one file.")]
Seeds = Annotated[int, typer.Option(help="Partitions and initialisations.", min=1)]
Workers = Annotated[int | None, typer.Option(help="Trainings at a time. Default: one per core.", min=1)]
EdgeSplits = Annotated[
    str,
    typer.Option("--edge-split", help="undirected: each edge at one holder; directed: each direction; or both."),
]


@dataclass(frozen=True)
class Training:
    """What every reproduction can be told."""

    seeds: Seeds = 5
    run_dir: RunDir = RUNS
    record: Record = None
    workers: Workers = None
    data_dir: options.DataDir = None
    json: options.Json = None

    @property
    def store(self) -> "Store":
        """What was trained before."""
        from vfgnn.experiments.runner import Store

        return Store(self.run_dir, self.record)


@dataclass(frozen=True)
class Tables(Training):
    """And those that end in tables of rows."""

    markdown: Annotated[Path | None, typer.Option(help="Also write the table as Markdown.")] = None


@dataclass(frozen=True)
class ArxivTables(Tables):
    """arXiv's trainings take longer."""

    seeds: Seeds = 2


@dataclass(frozen=True)
class SealedTables(Tables):
    """The sealed model depends on a seed by rounding alone."""

    seeds: Seeds = 3


def train(console: "Console", notes: "Mapping[Task, str]", shared: Training) -> "dict[Task, TaskResult]":
    """All trainings with a progress bar; `notes` tells what each one is."""
    from vfgnn.experiments.runner import run_all
    from vfgnn.report.console import progress

    with progress(console) as display:
        line = display.add_task("trainings", total=len(notes), note="")
        return run_all(
            list(notes),
            shared.store,
            data_dir=shared.data_dir,
            workers=shared.workers,
            on_done=lambda task, _: display.update(line, advance=1, note=notes[task]),
        )


def measure(console: "Console", shared: Training) -> "list[Timing]":
    """Seconds per epoch, one measurement after another, with a progress bar."""
    from vfgnn.experiments.baseline import measure_all, measurements
    from vfgnn.report.console import progress

    with progress(console) as display:
        line = display.add_task("times", total=len(list(measurements())), note="")
        return measure_all(
            shared.run_dir,
            shared.data_dir,
            on_done=lambda one: display.update(line, advance=1, note=f"{one.dataset} {one.model}"),
        )


def search_missing(console: "Console", wanted: "Wanted", run_dir: Path, device: str) -> None:
    """All trainings of a prepared search that are missing, with a progress bar."""
    from vfgnn.experiments import search as searching
    from vfgnn.party.device import choose_device
    from vfgnn.report.console import progress

    with progress(console) as display:
        line = display.add_task("trainings", total=None, note="")
        searching.search(
            run_dir,
            wanted,
            device=choose_device(device),
            on_start=lambda total: display.update(line, total=total),
            on_group=lambda found, _: display.update(line, advance=len(found), note=found[0].job.dataset),
        )


def everything(console: "Console", shared: Training, readings: "list[EdgeSplit]") -> "Reproduction":
    """Train and measure all that is missing, but arXiv: of that, what was kept."""
    from vfgnn.experiments import arxiv as on_texts
    from vfgnn.experiments import parts
    from vfgnn.experiments.reproduction import Reproduction, machine, work_of

    whole, store = parts.everything(shared.seeds, readings), shared.store
    notes = {task: f"{part.name}: {note}" for part in whole for task, note in part.notes.items()}
    results = train(console, notes, shared)
    arxiv_rows, arxiv_tasks = on_texts.kept_rows(store)
    work = [work_of(part.name, part.notes, store) for part in whole]
    return Reproduction(
        seeds=shared.seeds,
        rows=(*(row for part in whole for row in part.rows(results)), *arxiv_rows),
        timings=tuple(measure(console, shared)),
        work=(*work, *([work_of("arxiv, apart", arxiv_tasks, store)] if arxiv_tasks else [])),
        total=work_of("in all, each once", notes, store),
        machine=machine(),
    )


def reproduce(part: "Part", shared: Tables) -> "list[TableRow]":
    """One part: train what is missing, show, write."""
    from rich.console import Console

    console = Console()
    rows = part.rows(train(console, part.notes, shared))
    finish(console, rows, shared)
    return rows


def finish(console: "Console", rows: "list[TableRow]", shared: Tables, **also: object) -> None:
    """Show rows and the claims that they decide, and write them; `also`: more for the JSON file."""
    from vfgnn.report.reproduction.tables import markdown_tables, show_tables, summary_grid

    claims = decided(rows)
    show_tables(console, rows, shared.seeds)
    if claims:
        console.print(summary_grid(claims).to_rich())
    content = {"rows": [row.to_json() for row in rows], "claims": [claim.to_json() for claim in claims]}
    options.write_json(shared.json, content | also)
    if shared.markdown is not None:
        write_whole(shared.markdown, markdown_tables(rows), for_others=True)


def decided(rows: "list[TableRow]") -> "list[Claim]":
    """The claims that some rows are enough for, under each of their readings."""
    from vfgnn.experiments.claims import check_claims, readings_of

    claims = [claim for reading in readings_of(rows) for claim in check_claims(rows, [], reading)]
    return [claim for claim in claims if claim.reproduced is not None]


def check_readings(text: str) -> "list[EdgeSplit]":
    """What `--edge-split` asks for."""
    from vfgnn.experiments.catalogue import READINGS

    words = options.parse_list(text)
    found = [reading for reading in READINGS if reading in words]
    if not words or len(found) < len(set(words)):
        raise ConfigError("unknown edge_split", expected="undirected, directed, or both with a comma", got=text)
    return found


def check_datasets(text: str) -> list[str]:
    """What `--datasets` asks for."""
    from vfgnn.data.datasets import NAMES

    names = options.parse_list(text)
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        raise ConfigError("unknown dataset", expected=f"some of {', '.join(NAMES)}", got=", ".join(unknown) or "none")
    return names
