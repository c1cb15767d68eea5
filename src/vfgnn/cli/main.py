"""The command line. A command imports what it needs when it is called, so that `--help` answers at once."""

import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

import typer

from vfgnn import __version__
from vfgnn.cli import audit, bench, data, demo, init, keys, predict, privacy, report, reproduce, run, serve, simulate
from vfgnn.errors import SHOWN_AS, SIGNALLED, ExitCode, VfgnnError
from vfgnn.shown import shown

INTERRUPTED = SIGNALLED + signal.SIGINT
EXIT_CODES = {
    "0": "done",
    **{str(code.value): code.meaning for code in ExitCode},
    f"{SIGNALLED} + n": f"ended by signal n: {INTERRUPTED} by Ctrl-C, {SIGNALLED + signal.SIGTERM} by `kill`",
}
"""The same as in docs/deployment.md."""
app = typer.Typer(
    help="Graph neural networks across organisations that may not pool their data.",
    epilog="Exit codes:\n\n" + "\n".join(f"- {code}: {meaning}" for code, meaning in EXIT_CODES.items()),
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("demo")(demo.demo)
app.command("simulate")(simulate.simulate)
app.command("run")(run.run)
app.command("plan")(run.plan)
app.command("doctor")(run.doctor)
app.command("predict")(predict.predict)
app.command("serve")(serve.serve)
app.command("report")(report.report)
app.command("audit")(audit.audit)
app.add_typer(data.app, name="data")
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
    raise SystemExit(SIGNALLED + number)


def main() -> None:
    """Run a command; what we raise on purpose becomes one message, and its class gives the exit code."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        app()
    except VfgnnError as error:
        _end(error)
    except KeyboardInterrupt:
        typer.secho("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001 (what is not one of ours is our fault)
        typer.echo(shown(traceback.format_exc(), lines=True), nl=False, err=True)
        _end(
            VfgnnError(
                f"vfgnn itself failed ({type(error).__name__}); this is our fault",
                hint="report it with the lines above, without what is private in them",
            )
        )


def _end(error: VfgnnError) -> NoReturn:
    typer.secho(f"{SHOWN_AS}{error}", fg=typer.colors.RED, err=True)
    sys.exit(error.exit_code)
