"""`vfgnn audit`: what a curious party could have learnt from a run."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vfgnn.cli import options
from vfgnn.errors import ConfigError
from vfgnn.writing import write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from vfgnn.audit.attack import Target
    from vfgnn.audit.case import Case
    from vfgnn.audit.result import Audit
    from vfgnn.audit.simulated_run import Simulation

RUNS = Path("runs/audit")
PROTOCOLS: dict[str, dict[str, object]] = {
    "split": {"protocol": "split"},
    "sealed": {"protocol": "sealed"},
    "sealed-scores": {"protocol": "sealed", "sealed": {"opens": "scores"}},
}


def audit(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Run folders of one party, or of several in a test federation.")
    ] = None,
    as_: Annotated[
        list[str] | None, typer.Option("--as", help="Attack this party's view alone; may be repeated.")
    ] = None,
    truth: Annotated[
        list[Path] | None,
        typer.Option(help="party.toml of a holder whose data guesses are held against. Default: beside each RUN."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Instead of RUN: train test federations on this graph, or on several.")
    ] = None,
    protocol: Annotated[str, typer.Option(help="With --dataset: split, sealed, sealed-scores.")] = "split,sealed",
    mitigations: Annotated[
        bool, typer.Option("--mitigations", help="With --dataset: one federation for each mitigation there is.")
    ] = False,
    holders: options.Holders = 3,
    preset: options.Preset = "best",
    settings: options.Set = None,
    seed: Annotated[int, typer.Option(help="Of the partition, and of all that attacks draw.", min=0)] = 0,
    limit: Annotated[
        list[str] | None,
        typer.Option(help="TARGET=MARGIN, such as edges=0.02: exit code 4 if attacks are better; may be repeated."),
    ] = None,
    run_dir: Annotated[Path, typer.Option(help="Finished attacks are kept here; a stopped audit goes on.")] = RUNS,
    data_dir: options.DataDir = None,
    json: options.Json = None,
    report: Annotated[Path | None, typer.Option(help="Also make a page of it, HTML.")] = None,
) -> None:
    """Attack the views of a run, and say beside each figure what could have been guessed anyway.

    With one holder's RUN it is a self-audit: what could the others learn about this holder from what it sent them? It
    reads that holder's folder and data alone. The run needs `record_view = true` in party.toml.

    Example: `vfgnn audit A/run --report audit.html --limit edges=0.02`

    Example: `vfgnn audit --dataset cora --protocol split,sealed --holders 3 --json audit.json`
    """
    from rich.console import Console

    from vfgnn.audit.result import refuse_exceeded
    from vfgnn.report.audit.console import show_audit

    limits = _limits(limit)
    if (dataset is None) == (not runs):
        raise ConfigError("what is to be audited?", expected="either run folders, or --dataset")
    if dataset is None:
        from vfgnn.audit.recorded_views import recorded_case

        cases = [recorded_case(runs or [], truth or [])]
    else:
        from vfgnn.audit.simulated_run import Simulation

        simulation = Simulation(holders, preset, seed, data_dir, options.parse_settings(settings))
        cases = _simulated(simulation, dataset, None if mitigations else protocol)
    console = Console()
    found = replace(_attack(console, cases, as_, run_dir, seed), defended=mitigations)
    show_audit(console, found)
    options.write_json(json, found.to_json())
    if report is not None:
        from vfgnn.report.audit.page import make_page

        write_whole(report, make_page(found), for_others=dataset is not None)
    refuse_exceeded(found.rows, limits)


def _simulated(simulation: "Simulation", datasets: str, protocols: str | None) -> "list[Case]":
    """One for each protocol, on the same parts of the same graphs; None: one for each mitigation."""
    from vfgnn.audit.mitigations import mitigation_cases

    names = options.parse_list(datasets)
    if protocols is None:
        return [case for name in names for case in mitigation_cases(simulation, name)]
    wanted = options.parse_list(protocols)
    if unknown := set(wanted) - set(PROTOCOLS):
        raise ConfigError("unknown protocol", expected=", ".join(PROTOCOLS), got=", ".join(sorted(unknown)))
    return [simulation.case(name, PROTOCOLS[protocol]) for name in names for protocol in wanted]


def _attack(console: "Console", cases: "list[Case]", parties: list[str] | None, run_dir: Path, seed: int) -> "Audit":
    """All attacks, with a progress bar."""
    from vfgnn.audit.result import Audit
    from vfgnn.audit.runner import Store, attack, jobs_of
    from vfgnn.report.console import progress

    store, found = Store(run_dir), []
    jobs = [jobs_of(case, parties) for case in cases]
    with progress(console) as display:
        line = display.add_task("attacks", total=sum(map(len, jobs)), note="training" if jobs else "")
        for case, of_case in zip(cases, jobs, strict=True):
            found.append(
                attack(
                    case,
                    of_case,
                    store=store,
                    seed=seed,
                    on_done=lambda job, done: display.update(line, advance=1, note=f"{job.party}: {job.entry.name}"),
                )
            )
    return Audit(tuple(found))


def _limits(given: list[str] | None) -> "dict[Target, float]":
    from vfgnn.audit.attack import Target

    limits = {}
    for one in given or []:
        name, _, value = one.partition("=")
        try:
            limits[Target(name.strip())] = float(value)
        except ValueError:
            wanted = f"TARGET=MARGIN, TARGET one of {', '.join(Target)}"
            raise ConfigError("a limit that cannot be read", expected=wanted, got=one) from None
    return limits
