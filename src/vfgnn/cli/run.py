"""`vfgnn run`, `vfgnn plan` and `vfgnn doctor`: one party of a federation."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vfgnn.cli import options
from vfgnn.writing import keep_private

if TYPE_CHECKING:
    from vfgnn.records import Outcome

Federation = Annotated[Path, typer.Argument(help="The public file, the same at all parties.")]
Party = Annotated[Path, typer.Argument(help="This party's own file.")]


def run(
    federation: Federation,
    party: Party,
    log: Annotated[str, typer.Option(help="text or json, on standard error.")] = "text",
    fresh: Annotated[bool, typer.Option("--fresh", help="Put an unfinished run aside and begin a new one.")] = False,
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
) -> None:
    """Run one party of a federation. Every party runs this command on its own machine.

    A party that was killed is started again with the same command: all go on from the last step they have in common.

    Example: `vfgnn run federation.toml party.toml`
    """
    from vfgnn.errors import ConfigError
    from vfgnn.files import load_federation, load_party
    from vfgnn.party.child import end_with_parent
    from vfgnn.party.train import run_party

    if log not in ("text", "json"):
        raise ConfigError("unknown kind of log", expected="text or json", got=log)
    if with_parent:
        end_with_parent()
    keep_private()
    file, own = load_federation(federation), load_party(party)
    outcome = run_party(file, own, log_json=log == "json", fresh=fresh)
    typer.echo(f"records: {own.run_folder}")
    if file.agreement.sealed:
        _tell_opened(own.run_folder)
    if outcome is not None:
        _tell_reached(outcome, sealed=file.agreement.sealed)
        _tell_alone(own.run_folder, outcome)


def _tell_alone(folder: Path, outcome: "Outcome") -> None:
    """Beside what own data gives by itself, where that was trained."""
    from vfgnn.party.folder import read_about

    alone = read_about(folder).get("alone")
    if not isinstance(alone, dict):
        return
    if "scores" not in alone:
        typer.echo(f"no model of your own data alone to compare: {alone.get('reason')}")
        return
    typer.echo(f"{'on test nodes':<18}{'own data alone':>16}{'federation':>12}")
    for name, value in outcome.scores.items():
        typer.echo(f"{name.replace('_', ' '):<18}{alone['scores'][name]:>16.4f}{value:>12.4f}")


def _tell_opened(folder: Path) -> None:
    """By the record of this party; a server that aligned ids has none."""
    from vfgnn.party.folder import read_about

    opened = read_about(folder).get("opened")
    if isinstance(opened, dict):
        typer.echo(
            f"opened to {opened['to']}: {opened['what']} of {opened['rows'] - opened['validation_rows']:,} rows, "
            f"{opened['validation_rows']:,} validation classes and {opened['scalars']} inner products; "
            "to everybody else nothing"
        )


def _tell_reached(outcome: "Outcome", *, sealed: bool) -> None:
    """What only the label holder knows."""
    if not sealed:
        typer.echo(f"best epoch {outcome.best_epoch}: validation accuracy {outcome.val_accuracy:.3f}")
        typer.echo(f"test accuracy {outcome.test_accuracy:.3f}")
        others = (
            f"{name.replace('_', ' ')} {value:.3f}" for name, value in outcome.scores.items() if name != "accuracy"
        )
        typer.echo("; ".join(others))
        return
    typer.echo(f"{'':<18}{'validation':>12}{'test':>8}")
    for name, value in outcome.scores.items():
        known = f"{outcome.val_accuracy:.3f}" if name == "accuracy" else "-"
        typer.echo(f"{name.replace('_', ' '):<18}{known:>12}{value:>8.3f}")


def plan(
    federation: Federation,
    party: Party,
    bandwidth: Annotated[float, typer.Option(help="Mbit/s of each party's line.", min=0.001)] = 100,
    latency: Annotated[float, typer.Option(help="Milliseconds one way.", min=0)] = 20,
    cores: Annotated[
        int | None, typer.Option(help="Of the one machine that all parties share; else each has its own.", min=1)
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="Nodes that the holders share, where they bring tables.")] = None,
    json: options.Json = None,
) -> None:
    """Tell what a run will cost: bytes, rounds, seconds, memory per party, privacy.

    Nothing is sent, and the peers need not be there. Rehearses the parties' own code on made-up data. What this party
    does not know, such as how many rows train, it takes for the most that there can be, and says so.

    Example: `vfgnn plan federation.toml party.toml --bandwidth 100 --latency 20 --json plan.json`
    """
    from dataclasses import asdict

    from rich.console import Console

    from vfgnn.files import load_federation, load_party
    from vfgnn.party.own_data import load_data
    from vfgnn.party.programs import trained_steps
    from vfgnn.plan.expected import expect
    from vfgnn.plan.plan import make_plan
    from vfgnn.plan.sealed import make_sealed_plan
    from vfgnn.privacy.statement import statement
    from vfgnn.report.console import show_plan, show_privacy
    from vfgnn.report.sealed_costs import show_sealed_plan

    file, own = load_federation(federation), load_party(party)
    expected = expect(file, load_data(file, own), nodes=nodes)
    agreed, console = expected.agreement, Console()
    if agreed.sealed:
        sealed = make_sealed_plan(expected, bandwidth_mbit_s=bandwidth, latency_ms=latency, shared_cores=cores)
        show_sealed_plan(console, sealed)
        options.write_json(json, asdict(sealed))
        return
    made = make_plan(expected, bandwidth_mbit_s=bandwidth, latency_ms=latency, shared_cores=cores)
    epochs = trained_steps(agreed)
    show_plan(console, made, epochs, min(epochs, file.settings.trained_joint_epochs))
    show_privacy(console, statement(agreed), "differential privacy, at most")
    options.write_json(json, asdict(made))


def doctor(
    federation: Federation,
    party: Party,
    wait: Annotated[float, typer.Option(help="Seconds to wait for peers that are not there yet.", min=0)] = 0,
) -> None:
    """Look for whatever would keep this party from running, and say who must do what.

    Peers answer while they wait in `vfgnn run`, or run `vfgnn doctor --wait 60` themselves. The exit code is 0 if a run
    would not fail, 2 if a file or the port of this party is at fault, and 3 if only peers are.

    Example: `vfgnn doctor federation.toml party.toml --wait 60`
    """
    from rich.console import Console

    from vfgnn.party.doctor import examine
    from vfgnn.party.finding import exit_code
    from vfgnn.report.console import show_findings

    findings = examine(federation, party, wait_s=wait)
    show_findings(Console(), findings)
    raise typer.Exit(exit_code(findings))
