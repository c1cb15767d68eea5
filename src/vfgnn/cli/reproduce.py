"""`vfgnn reproduce`: the paper's tables, and the search that chose the presets' values."""

from pathlib import Path
from typing import Annotated

import typer

from vfgnn.cli import options
from vfgnn.cli.reproducing import (
    RUNS,
    ArxivTables,
    Datasets,
    EdgeSplits,
    RunDir,
    SealedTables,
    Tables,
    Training,
    check_datasets,
    check_readings,
    everything,
    finish,
    measure,
    reproduce,
    search_missing,
    train,
)
from vfgnn.errors import ConfigError
from vfgnn.writing import write_whole

BOTH = "undirected,directed"
TIMES = "seconds per epoch, each party a process, over TLS on this machine"
app = typer.Typer(help="The paper's tables, and how the presets were chosen.", no_args_is_help=True)


@app.command()
@options.with_shared(Tables)
def compare(
    shared: Tables,
    datasets: Datasets = "cora,citeseer,pubmed",
    holders: options.Holders = 2,
    models: Annotated[str | None, typer.Option(help="Only these rows, comma-separated.")] = None,
    edge_split: EdgeSplits = "undirected",
    figure: options.Figure = None,
) -> None:
    """Table 2: each holder alone, the federation three ways and at its best, everything pooled.

    Example: `vfgnn reproduce compare --datasets cora,citeseer --seeds 5 --edge-split undirected,directed`
    """
    from vfgnn.experiments import parts
    from vfgnn.experiments.tables import models_named

    names = check_datasets(datasets)
    wanted = models_named(None if models is None else options.parse_list(models))
    if not wanted:
        raise ConfigError("no such row", expected=", ".join(m.name for m in models_named(None)), got=str(models))
    readings = check_readings(edge_split)
    part = parts.compare(shared.seeds, datasets=names, holders=holders, models=wanted, readings=readings)
    rows = reproduce(part, shared)
    if figure is not None:
        from vfgnn.report.figures import compare_figure

        compare_figure(rows, figure)


@app.command()
@options.with_shared(Tables)
def privacy(shared: Tables, edge_split: EdgeSplits = "undirected", figure: options.Figure = None) -> None:
    """Table 5: noise on published rows, with what it comes to over a whole run; then noise on the inputs, once.

    Example: `vfgnn reproduce privacy --seeds 5 --json privacy.json --figure privacy.png`
    """
    from vfgnn.experiments import parts

    rows = reproduce(parts.noised(shared.seeds, check_readings(edge_split)), shared)
    if figure is not None:
        from vfgnn.report.figures import privacy_figure

        privacy_figure(rows, figure)


@app.command()
@options.with_shared(Training)
def baseline(shared: Training, edge_split: EdgeSplits = "undirected") -> None:
    """Q3: VFGNN against SecureGNN on PubMed, accuracy and seconds per epoch over TLS; what an epoch of arXiv costs.

    Example: `vfgnn reproduce baseline --seeds 5 --json baseline.json`
    """
    from dataclasses import asdict

    from rich.console import Console

    from vfgnn.experiments import parts
    from vfgnn.report.reproduction.tables import show_tables, timings_grid

    console, part = Console(), parts.against_secure_gnn(shared.seeds, check_readings(edge_split))
    rows = part.rows(train(console, part.notes, shared))
    timings = measure(console, shared)
    show_tables(console, rows, shared.seeds)
    console.print(timings_grid(timings, TIMES).to_rich())
    content = {"rows": [row.to_json() for row in rows], "timings": [asdict(timing) for timing in timings]}
    options.write_json(shared.json, content)


@app.command("all")
@options.with_shared(Training)
def all_parts(
    shared: Training,
    edge_split: EdgeSplits = BOTH,
    report: Annotated[Path | None, typer.Option(help="Also make a page of it, HTML.")] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Also write it as Markdown, with figures in a folder beside.")
    ] = None,
) -> None:
    """Every table and claim of the paper, beside its figures. What was trained before is not trained again.

    arXiv's rows are taken from what `vfgnn reproduce arxiv` has kept in the same --run-dir.

    Example: `vfgnn reproduce all --seeds 5 --json all.json --report reproduction.html`
    """
    from rich.console import Console

    from vfgnn.report.reproduction.page import make_markdown, make_page
    from vfgnn.report.reproduction.tables import show_tables, summary_grid, timings_grid

    console = Console()
    found = everything(console, shared, check_readings(edge_split))
    show_tables(console, found.rows, shared.seeds)
    console.print(timings_grid(found.timings, TIMES).to_rich())
    console.print(summary_grid(found.claims).to_rich())
    options.write_json(shared.json, found.to_json())
    if report is not None:
        write_whole(report, make_page(found), for_others=True)
    if docs is not None:
        write_whole(docs, make_markdown(found, docs.with_suffix("")), for_others=True)


@app.command()
@options.with_shared(ArxivTables)
def arxiv(shared: ArxivTables) -> None:
    """The paper's arXiv column on features made from texts: values chosen on validation nodes, then all rows.

    Example: `vfgnn reproduce arxiv --seeds 2 --json arxiv.json`
    """
    from rich.console import Console

    from vfgnn.experiments import arxiv as on_texts
    from vfgnn.experiments.tables import compare_rows

    console = Console()
    searched = train(console, on_texts.search_tasks(), shared)
    tasks = on_texts.row_tasks(searched, shared.seeds)
    rows = compare_rows(tasks, train(console, {task: one.model.name for task, [one] in tasks.items()}, shared))
    finish(console, rows, shared, chosen=on_texts.told(searched))


@app.command()
@options.with_shared(SealedTables)
def sealed(
    shared: SealedTables,
    datasets: Datasets = "cora,citeseer,pubmed",
    holders: Annotated[str, typer.Option(help="Numbers of holders, comma-separated.")] = "2,3,4,8",
    draws: Annotated[int, typer.Option(help="Other draws of 20 training nodes a class, at 2 holders.", min=0)] = 0,
    protocols: Annotated[str, typer.Option(help="What is trained, comma-separated.")] = "sealed,isolated,pooled,split",
    kept_only: Annotated[bool, typer.Option(help="Rows of what RUN_DIR has, and train nothing.")] = False,
    figure: options.Figure = None,
) -> None:
    """The sealed protocol beside the paper's own, each holder alone and everything in one place.

    Example: `vfgnn reproduce sealed --datasets cora,citeseer --holders 2,4 --seeds 3 --json sealed.json`
    """
    from rich.console import Console

    from vfgnn.experiments import sealed as sealing
    from vfgnn.report.sealed import sealed_figure, sealed_grids

    console = Console()
    wanted = sealing.Wanted(
        tuple(check_datasets(datasets)),
        tuple(options.parse_counts(holders)),
        sealing.protocols_named(options.parse_list(protocols)),
        seeds=shared.seeds,
        draws=draws,
    )
    tasks = sealing.sealed_tasks(wanted)
    notes = sealing.notes_of(tasks)
    results = sealing.kept_of(notes, shared.store) if kept_only else train(console, notes, shared)
    rows = sealing.sealed_rows(tasks, results)
    grids = sealed_grids(rows)
    for grid in grids:
        console.print(grid.to_rich())
    options.write_json(shared.json, {"rows": [row.to_json() for row in rows]})
    if shared.markdown is not None:
        write_whole(shared.markdown, "\n".join(grid.to_markdown() for grid in grids), for_others=True)
    if figure is not None and rows:
        sealed_figure(rows, figure)


@app.command()
def record(
    out: Annotated[Path, typer.Option(help="The file; what is in it already stays.")],
    run_dir: RunDir = RUNS,
) -> None:
    """All finished trainings in one file, so that `--record FILE` takes them for done, on another machine too.

    Example: `vfgnn reproduce record --out trainings.json`
    """
    from rich.console import Console

    from vfgnn.experiments.runner import Store

    count = Store(run_dir, out if out.is_file() else None).write_record(out)
    Console().print(f"{count} trainings in {out}", highlight=False)


@app.command("new-nodes")
@options.with_shared(Tables)
def new_nodes(shared: Tables) -> None:
    """Beyond the paper: a tenth of Cora's nodes come after training; accuracy on them, beside a model that had them.

    Example: `vfgnn reproduce new-nodes --seeds 5 --json new_nodes.json`
    """
    from vfgnn.experiments import parts

    reproduce(parts.with_new_nodes(shared.seeds), shared)


def _add_study(name: str, about: str, *, printed: bool = False) -> None:
    """A command for one study; those that the paper prints can be had under both readings."""

    @options.with_shared(Tables)
    def study(shared: Tables) -> None:
        from vfgnn.experiments import parts

        reproduce(parts.study(name, shared.seeds), shared)

    @options.with_shared(Tables)
    def printed_study(shared: Tables, edge_split: EdgeSplits = "undirected") -> None:
        from vfgnn.experiments import parts

        reproduce(parts.study(name, shared.seeds, check_readings(edge_split)), shared)

    example = f"`vfgnn reproduce {name} --seeds 5 --json {name}.json`"
    app.command(name, help=f"{about}\n\nExample: {example}")(printed_study if printed else study)


_add_study("proportions", "Table 3 (Q4): uneven shares of columns and edges, Cora.", printed=True)
_add_study("holders", "Table 4 (Q5): 2, 3 and 4 holders, and 5 and 8, Cora.", printed=True)
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
    judged_only: Annotated[bool, typer.Option(help="Choose among what RUN_DIR has, and train nothing.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the choice to this file, which keeps its tables of other data sets.")
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Write all validation figures to this file.")] = None,
    run_dir: RunDir = Path("runs/search"),
    data_dir: options.DataDir = None,
) -> None:
    """Choose a preset's values on validation nodes; what RUN_DIR has is not trained again.

    Another machine needs Python, numpy and torch alone: `python -m vfgnn.experiments.batched.main --help`.

    Example: `vfgnn reproduce search --device cuda --out src/vfgnn/presets/paper_chosen.toml`
    """
    from rich.console import Console

    from vfgnn.experiments import choice
    from vfgnn.experiments import search as searching

    if preset not in searching.MODELS:
        raise ConfigError("no grid for this preset", expected=" or ".join(searching.MODELS), got=preset)
    wanted = searching.Wanted(preset, tuple(check_datasets(datasets)), tuple(check_readings(readings)), points)
    console = Console()
    if not judged_only:
        jobs = searching.prepare(run_dir, wanted, data_dir)
        if prepare_only:
            console.print(f"{len(jobs)} trainings in {run_dir / searching.jobs_name(preset)}", highlight=False)
            return
        search_missing(console, wanted, run_dir, device)
    command = f"vfgnn reproduce search --preset {preset} --datasets {datasets} --points {points} --readings {readings}"
    chosen = choice.chosen_of(wanted, run_dir)
    if out is None:
        console.print(choice.to_toml(chosen, command), markup=False, highlight=False)
    else:
        before = out.read_text() if out.is_file() else ""
        kept = choice.tables_of_others(before, wanted.datasets)
        write_whole(out, choice.to_toml(chosen, command, kept), for_others=True)
    if record is not None:
        write_whole(record, choice.to_record(wanted, run_dir, command), for_others=True)
