"""`vfgnn run` and `vfgnn doctor`: one party of a federation."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

Federation = Annotated[Path, typer.Argument(help="The public file, the same at all parties.")]
Party = Annotated[Path, typer.Argument(help="This party's own file.")]


def run(
    federation: Federation,
    party: Party,
    log: Annotated[str, typer.Option(help="text or json, on standard error.")] = "text",
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
) -> None:
    """Run one party of a federation. Every party runs this command on its own machine.

    Example: `vfgnn run federation.toml party.toml`
    """
    from vfgnn.errors import ConfigError
    from vfgnn.files import load_federation, load_party
    from vfgnn.run.party import run_party

    if log not in ("text", "json"):
        raise ConfigError("unknown kind of log", expected="text or json", got=log)
    if with_parent:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    file, own = load_federation(federation), load_party(party)
    outcome = run_party(file, own, log_json=log == "json")
    typer.echo(f"records: {own.run_folder}")
    if outcome is not None:
        typer.echo(f"best epoch {outcome.best_epoch}: validation accuracy {outcome.val_accuracy:.3f}")
        typer.echo(f"test accuracy {outcome.test_accuracy:.3f}")


def _end_with_parent() -> None:
    """Standard input closes when the process that started this one is gone."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def doctor(
    federation: Federation,
    party: Party,
    wait: Annotated[float, typer.Option(help="Seconds to wait for peers that are not there yet.", min=0)] = 0,
) -> None:
    """Look for whatever would keep this party from running, and say who must do what.

    Peers answer while they wait in `vfgnn run`, or run `vfgnn doctor --wait 60` themselves.

    Example: `vfgnn doctor federation.toml party.toml --wait 60`
    """
    from rich.console import Console

    from vfgnn.report.console import show_findings
    from vfgnn.run.doctor import examine

    findings = examine(federation, party, wait_s=wait)
    show_findings(Console(), findings)
    if any(finding.bad for finding in findings):
        raise typer.Exit(2)
