"""The command line. A command imports what it needs when it is called, so that `--help` answers at once."""

import signal
import sys
from types import FrameType

import typer

from vfgnn import __version__
from vfgnn.cli import bench, demo, init, keys, predict, privacy, report, reproduce, run, serve, simulate
from vfgnn.errors import SHOWN_AS, VfgnnError

app = typer.Typer(
    help="Graph neural networks across organisations that may not pool their data.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("demo")(demo.demo)
app.command("simulate")(simulate.simulate)
app.command("run")(run.run)
app.command("doctor")(run.doctor)
app.command("predict")(predict.predict)
app.command("serve")(serve.serve)
app.command("report")(report.report)
app.add_typer(init.app, name="init")
app.add_typer(keys.app, name="keys")
app.add_typer(privacy.app, name="privacy")
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(bench.app, name="bench")


@app.callback(invoke_without_command=True)
def version(show: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Train one graph model on what several organisations hold, without pooling it."""
    if show:
        typer.echo(__version__)
        raise typer.Exit


def _stop(number: int, frame: FrameType | None) -> None:
    """A `kill` ends a command as Ctrl-C does: peers hear of it, records are written, children end."""
    raise SystemExit(128 + number)


def main() -> None:
    """Run a command; what we raise on purpose becomes one message and exit code 2."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        app()
    except VfgnnError as error:
        typer.secho(f"{SHOWN_AS}{error}", fg=typer.colors.RED, err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.secho("interrupted", err=True)
        sys.exit(130)
