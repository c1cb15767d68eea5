"""`vfgnn bench`: what it costs, always beside the floor measured in the same run."""

from dataclasses import asdict
from typing import Annotated

import typer

from vfgnn.cli import options

app = typer.Typer(help="Measure costs beside their floor.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Measure costs beside their floor."""


@app.command()
def layer(
    shape: Annotated[str, typer.Option(help="cora, citeseer, pubmed or arxiv.")] = "pubmed",
    holders: options.Holders = 2,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: options.Json = None,
) -> None:
    """The joint layer, forward and backward, beside plaintext float32.

    Example: `vfgnn bench layer --shape pubmed --holders 2 --json layer.json`
    """
    from rich.console import Console

    from vfgnn.bench.layer import bench_layer
    from vfgnn.report.console import show_layer_benchmark

    result = bench_layer(shape, holders=holders, device=device)
    show_layer_benchmark(Console(), result)
    options.write_json(json, asdict(result))


@app.command()
def epoch(
    dataset: options.Dataset = "pubmed",
    holders: options.Holders = 2,
    preset: options.Preset = "paper",
    settings: options.Set = None,
    processes: Annotated[bool, typer.Option("--processes", help="Each party a process, over TLS.")] = False,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """One training step of the federation beside the pooled model in plain PyG.

    Example: `vfgnn bench epoch --dataset pubmed --processes --set publish=needed --json epoch.json`
    """
    from rich.console import Console

    from vfgnn.bench.epoch import bench_epoch
    from vfgnn.report.console import show_epoch_benchmark

    overrides = options.parse_settings(settings)
    result = bench_epoch(
        dataset, preset=preset, holders=holders, overrides=overrides, data_dir=data_dir, processes=processes
    )
    show_epoch_benchmark(Console(), result)
    options.write_json(json, asdict(result))


@app.command()
def load(
    nodes: Annotated[int, typer.Option(help="Ids of each holder.", min=10)] = 1_000_000,
    columns: Annotated[int, typer.Option(help="Numeric columns of each holder.", min=0)] = 20,
    edges: Annotated[int, typer.Option(help="Edges of each holder.", min=0)] = 5_000_000,
    holders: options.Holders = 2,
    method: Annotated[str, typer.Option(help="tokens or psi.")] = "tokens",
    json: options.Json = None,
) -> None:
    """Read made-up tables and find the common nodes: seconds and memory.

    Example: `vfgnn bench load --nodes 1000000 --columns 20 --edges 5000000 --json load.json`
    """
    from rich.console import Console

    from vfgnn.bench.load import bench_load
    from vfgnn.report.console import show_load_benchmark

    console = Console()
    with console.status("") as status:
        result = bench_load(
            nodes=nodes, columns=columns, edges=edges, holders=holders, method=method, on_stage=status.update
        )
    show_load_benchmark(console, result)
    options.write_json(json, asdict(result))


@app.command()
def scale(
    nodes: Annotated[str, typer.Option(help="Sizes, comma-separated.")] = "10000,100000,1000000",
    settings: options.Set = None,
    figure: options.Figure = None,
    json: options.Json = None,
) -> None:
    """One epoch of a made-up federation against its size: seconds, memory of every party, bytes; all over TLS.

    Example: `vfgnn bench scale --nodes 10000,100000,1000000 --json scale.json --figure scale.png`
    """
    from rich.console import Console

    from vfgnn.bench.scale import bench_scale
    from vfgnn.report.console import show_scale_benchmark
    from vfgnn.report.figures import scale_figure

    console, sizes = Console(), options.parse_counts(nodes)
    with console.status("") as status:
        result = bench_scale(sizes, overrides=options.parse_settings(settings), on_stage=status.update)
    show_scale_benchmark(console, result)
    if figure is not None:
        scale_figure(result, figure)
    options.write_json(json, {**asdict(result), "settings": result.settings.model_dump(mode="json")})


@app.command()
def serve(
    dataset: options.Dataset = "citeseer",
    holders: options.Holders = 2,
    requests: Annotated[int, typer.Option(help="Questions of each load.", min=1)] = 1000,
    ids: Annotated[int, typer.Option(help="Ids in each question.", min=1)] = 10,
    data_dir: options.DataDir = None,
    figure: options.Figure = None,
    json: options.Json = None,
) -> None:
    """Answers of `vfgnn serve`: latency beside a bare web server's, and that they are those of `vfgnn predict`.

    Example: `vfgnn bench serve --requests 1000 --json serve.json --figure serve.png`
    """
    from rich.console import Console

    from vfgnn.cli.serve import refuse_without_web_server

    refuse_without_web_server()  # before a model is trained for it
    from vfgnn.bench.serve import bench_serve
    from vfgnn.report.console import show_serve_benchmark
    from vfgnn.report.figures import serve_figure

    console = Console()
    with console.status("") as status:
        result = bench_serve(
            dataset, holders=holders, requests=requests, ids=ids, data_dir=data_dir, on_stage=status.update
        )
    show_serve_benchmark(console, result)
    if figure is not None:
        serve_figure(result, figure)
    options.write_json(json, asdict(result))


@app.command()
def sealed(
    dataset: options.Dataset = "pubmed",
    holders: options.Holders = 2,
    processes: Annotated[bool, typer.Option("--processes", help="Each party a process, over TLS.")] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda (in one process).")] = "cpu",
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """A whole sealed training with predictions of all nodes, beside the split protocol's until its patience ends.

    Example: `vfgnn bench sealed --dataset pubmed --holders 2 --processes --json sealed.json`
    """
    from rich.console import Console

    from vfgnn.bench.sealed import bench_sealed
    from vfgnn.report.sealed_costs import show_sealed_benchmark

    console = Console()
    with console.status("") as status:
        result = bench_sealed(
            dataset,
            holders=holders,
            processes=processes,
            device=device,
            data_dir=data_dir,
            on_stage=status.update,
        )
    show_sealed_benchmark(console, result)
    options.write_json(json, asdict(result))
