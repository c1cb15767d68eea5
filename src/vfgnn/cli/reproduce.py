"""`vfgnn reproduce`: the paper's tables, and the search that chose the presets' values."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vfgnn.cli import options
from vfgnn.errors import ConfigError
from vfgnn.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from vfgnn.experiments.baseline import Timing
    from vfgnn.experiments.parts import Part
    from vfgnn.experiments.runner import Task, TaskResult
    from vfgnn.experiments.search import Wanted
    from vfgnn.experiments.tables import TableRow

app = typer.Typer(help="The paper's tables, and how the presets were chosen.", no_args_is_help=True)

RUNS = Path("runs/reproduce")
TIMES = "seconds per epoch, each party a process, over TLS on this machine"
Datasets = Annotated[str, typer.Option(help="Comma-separated.")]
RunDir = Annotated[Path, typer.Option(help="Finished trainings are kept here; a stopped run goes on from them.")]
Seeds = Annotated[int, typer.Option(help="Partitions and initialisations.", min=1)]
Workers = Annotated[int | None, typer.Option(help="Trainings at a time. Default: one per core.", min=1)]


@dataclass(frozen=True)
class Training:
    """What every reproduction can be told."""

    seeds: Seeds = 5
    run_dir: RunDir = RUNS
    workers: Workers = None
    data_dir: options.DataDir = None
    json: options.Json = None


@dataclass(frozen=True)
class Tables(Training):
    """And those that end in tables of rows."""

    markdown: Annotated[Path | None, typer.Option(help="Also write the table as Markdown.")] = None


@app.command()
@options.with_shared(Tables)
def compare(
    shared: Tables,
    datasets: Datasets = "cora,citeseer,pubmed",
    holders: options.Holders = 2,
    models: Annotated[str | None, typer.Option(help="Only these rows, comma-separated.")] = None,
    figure: options.Figure = None,
) -> None:
    """Table 2: each holder alone, the federation three ways and at its best, everything pooled.

    Example: `vfgnn reproduce compare --datasets cora,citeseer,pubmed --seeds 5 --json compare.json`
    """
    from vfgnn.experiments import parts
    from vfgnn.experiments.tables import models_named

    names = _check_datasets(datasets)
    wanted = models_named(None if models is None else options.parse_list(models))
    if not wanted:
        raise ConfigError("no such row", expected=", ".join(m.name for m in models_named(None)), got=str(models))
    part = parts.compare(shared.seeds, datasets=names, holders=holders, models=wanted)
    rows = _reproduce(part, shared)
    if figure is not None:
        from vfgnn.report.figures import compare_figure

        compare_figure(rows, figure)


@app.command()
@options.with_shared(Tables)
def privacy(shared: Tables, figure: options.Figure = None) -> None:
    """Table 5: noise on published rows, with what it comes to over a whole run; then noise on the inputs, once.

    Example: `vfgnn reproduce privacy --seeds 5 --json privacy.json --figure privacy.png`
    """
    from vfgnn.experiments import parts

    rows = _reproduce(parts.noised(shared.seeds), shared)
    if figure is not None:
        from vfgnn.report.figures import privacy_figure

        privacy_figure(rows, figure)


@app.command()
@options.with_shared(Training)
def baseline(shared: Training) -> None:
    """Q3: VFGNN against SecureGNN on PubMed, accuracy and seconds per epoch over TLS; what an epoch of arXiv costs.

    Example: `vfgnn reproduce baseline --seeds 5 --json baseline.json`
    """
    from dataclasses import asdict

    from rich.console import Console

    from vfgnn.experiments import parts
    from vfgnn.report.reproduction.tables import show_tables, timings_grid

    console, part = Console(), parts.against_secure_gnn(shared.seeds)
    rows = part.rows(_train(console, part.notes, shared))
    timings = _measure(console, shared)
    show_tables(console, rows, shared.seeds)
    console.print(timings_grid(timings, TIMES).to_rich())
    content = {"rows": [row.to_json() for row in rows], "timings": [asdict(timing) for timing in timings]}
    options.write_json(shared.json, content)


@app.command("all")
@options.with_shared(Training)
def all_parts(
    shared: Training,
    report: Annotated[Path | None, typer.Option(help="Also make a page of it, HTML.")] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Also write it as Markdown, with figures in a folder beside.")
    ] = None,
) -> None:
    """Every table and claim of the paper, beside its figures. What was trained before is not trained again.

    Example: `vfgnn reproduce all --seeds 5 --json all.json --report reproduction.html`
    """
    from rich.console import Console

    from vfgnn.experiments import parts
    from vfgnn.experiments.reproduction import Reproduction, machine, work_of
    from vfgnn.experiments.runner import Store
    from vfgnn.experiments.tables import open_rows
    from vfgnn.report.reproduction.page import make_markdown, make_page
    from vfgnn.report.reproduction.tables import show_tables, summary_grid, timings_grid

    console, whole, store = Console(), parts.everything(shared.seeds), Store(shared.run_dir)
    notes = {task: f"{part.name}: {note}" for part in whole for task, note in part.notes.items()}
    results = _train(console, notes, shared)
    found = Reproduction(
        seeds=shared.seeds,
        rows=(*(row for part in whole for row in part.rows(results)), *open_rows("arxiv")),
        timings=tuple(_measure(console, shared)),
        work=tuple(work_of(part.name, part.notes, store) for part in whole),
        total=work_of("in all, each once", notes, store),
        machine=machine(),
    )
    show_tables(console, found.rows, shared.seeds)
    console.print(timings_grid(found.timings, TIMES).to_rich())
    console.print(summary_grid(found.claims).to_rich())
    options.write_json(shared.json, found.to_json())
    if report is not None:
        write_whole(report, make_page(found), for_others=True)
    if docs is not None:
        write_whole(docs, make_markdown(found, docs.with_suffix("")), for_others=True)


@app.command("new-nodes")
@options.with_shared(Tables)
def new_nodes(shared: Tables) -> None:
    """Beyond the paper: a tenth of Cora's nodes come after training; accuracy on them, beside a model that had them.

    Example: `vfgnn reproduce new-nodes --seeds 5 --json new_nodes.json`
    """
    from vfgnn.experiments import parts

    _reproduce(parts.with_new_nodes(shared.seeds), shared)


def _train(console: "Console", notes: "Mapping[Task, str]", shared: Training) -> "dict[Task, TaskResult]":
    """All trainings with a progress bar; `notes` tells what each one is."""
    from vfgnn.experiments.runner import Store, run_all
    from vfgnn.report.console import progress

    with progress(console) as display:
        line = display.add_task("trainings", total=len(notes), note="")
        return run_all(
            list(notes),
            Store(shared.run_dir),
            data_dir=shared.data_dir,
            workers=shared.workers,
            on_done=lambda task, _: display.update(line, advance=1, note=notes[task]),
        )


def _measure(console: "Console", shared: Training) -> "list[Timing]":
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


def _reproduce(part: "Part", shared: Tables) -> "list[TableRow]":
    """One part: train what is missing, show, write."""
    from rich.console import Console

    from vfgnn.report.reproduction.tables import markdown_tables, show_tables

    console = Console()
    rows = part.rows(_train(console, part.notes, shared))
    show_tables(console, rows, shared.seeds)
    options.write_json(shared.json, {"rows": [row.to_json() for row in rows]})
    if shared.markdown is not None:
        write_whole(shared.markdown, markdown_tables(rows), for_others=True)
    return rows


def _add_study(name: str, about: str) -> None:
    """A command for one study; all of them take the same options."""

    @options.with_shared(Tables)
    def study(shared: Tables) -> None:
        from vfgnn.experiments import parts

        _reproduce(parts.study(name, shared.seeds), shared)

    example = f"`vfgnn reproduce {name} --seeds 5 --json {name}.json`"
    app.command(name, help=f"{about}\n\nExample: {example}")(study)


_add_study("proportions", "Table 3 (Q4): uneven shares of columns and edges, Cora.")
_add_study("holders", "Table 4 (Q5): 2, 3 and 4 holders, and 5 and 8, Cora.")
_add_study("aggregators", "Mean, LSTM, Pooling, GCN, GAT and APPNP side by side (LSTM on Cora only).")
_add_study("modes", "Individual against collaborative, and fewer refreshes of the joint layer.")
_add_study("sensitivity", "Width d and depth K of the paper's model, Cora.")


@app.command()
def search(
    preset: options.Preset = "paper",
    datasets: Datasets = "cora,citeseer,pubmed",
    points: Annotated[int, typer.Option(help="Random points of the grid for each row.", min=1)] = 200,
    readings: Annotated[str, typer.Option(help="How edges are split.")] = "undirected,directed",
    device: Annotated[str, typer.Option(help="cpu or cuda: all points of one shape are one computation.")] = "cpu",
    prepare_only: Annotated[bool, typer.Option(help="Write the jobs and the data, and train elsewhere.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the choice to this file.")] = None,
    record: Annotated[Path | None, typer.Option(help="Write all validation figures to this file.")] = None,
    run_dir: RunDir = Path("runs/search"),
    data_dir: options.DataDir = None,
) -> None:
    """Choose a preset's values on validation nodes; what RUN_DIR has is not trained again.

    Another machine needs Python, numpy and torch alone: `python -m vfgnn.experiments.batched.main --help`.

    Example: `vfgnn reproduce search --device cuda --out src/vfgnn/presets/paper_chosen.toml`
    """
    from rich.console import Console

    from vfgnn.experiments import search as searching

    if preset not in searching.MODELS:
        raise ConfigError("no grid for this preset", expected=" or ".join(searching.MODELS), got=preset)
    splits = options.parse_list(readings)
    if not splits or set(splits) - set(searching.READINGS):
        raise ConfigError("unknown reading", expected=" or ".join(searching.READINGS), got=readings)
    wanted = searching.Wanted(preset, tuple(_check_datasets(datasets)), tuple(splits), points)
    jobs = searching.prepare(run_dir, wanted, data_dir)
    console = Console()
    if prepare_only:
        console.print(f"{len(jobs)} trainings in {run_dir / searching.jobs_name(preset)}", highlight=False)
        return
    _search(console, wanted, run_dir, device)
    command = f"vfgnn reproduce search --preset {preset} --datasets {datasets} --points {points} --readings {readings}"
    text = searching.to_toml(searching.chosen_of(wanted, run_dir), command)
    if out is None:
        console.print(text, markup=False, highlight=False)
    else:
        write_whole(out, text, for_others=True)
    if record is not None:
        write_whole(record, searching.to_record(wanted, run_dir, command), for_others=True)


def _search(console: "Console", wanted: "Wanted", run_dir: Path, device: str) -> None:
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


def _check_datasets(text: str) -> list[str]:
    from vfgnn.data.datasets import NAMES

    names = options.parse_list(text)
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        raise ConfigError("unknown dataset", expected=f"some of {', '.join(NAMES)}", got=", ".join(unknown) or "none")
    return names
