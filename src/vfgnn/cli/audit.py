"""`vfgnn audit`: what a curious party could have learnt from a run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vfgnn.cli import options
from vfgnn.errors import ConfigError
from vfgnn.writing import write_whole

if TYPE_CHECKING:
    from vfgnn.audit.attack import Target
    from vfgnn.audit.case import Case
    from vfgnn.audit.result import Audit

KEPT = Path("runs/audit")
PROTOCOLS: dict[str, dict[str, object]] = {
    "split": {"protocol": "split"},
    "sealed": {"protocol": "sealed"},
    "sealed-scores": {"protocol": "sealed", "sealed": {"opens": "scores"}},
}
RunDir = Annotated[Path, typer.Option(help="Finished attacks are kept here; a stopped audit goes on from them.")]
Page = Annotated[Path | None, typer.Option("--report", help="Also make a page of it, HTML.")]


@dataclass(frozen=True)
class Simulated:
    """Test federations, with --dataset."""

    dataset: Annotated[
        str | None, typer.Option(help="Instead of RUNS: train test federations on this graph, or on several.")
    ] = None
    protocol: Annotated[str, typer.Option(help="With --dataset: split, sealed, sealed-scores.")] = "split,sealed"
    mitigations: Annotated[
        bool, typer.Option("--mitigations", help="With --dataset: one federation for each mitigation there is.")
    ] = False
    holders: Annotated[str, typer.Option(help="With --dataset: how many, or several numbers.")] = "3"
    preset: options.Preset = "best"
    settings: options.Set = None
    seed: Annotated[int, typer.Option(help="Of the partition, and of all that attacks draw.", min=0)] = 0
    data_dir: options.DataDir = None
    markdown: Annotated[
        Path | None, typer.Option(help="With --dataset: also write the tables as Markdown, or between a file's marks.")
    ] = None

    @property
    def command(self) -> str | None:
        """That makes it again."""
        what = "--mitigations" if self.mitigations else f"--protocol {self.protocol}"
        changed = "".join(f" --set {one}" for one in self.settings or [])
        told = f"vfgnn audit --dataset {self.dataset} {what} --holders {self.holders} --preset {self.preset}"
        return None if self.dataset is None else f"{told} --seed {self.seed}{changed}"


@options.with_shared(Simulated)
def audit(
    shared: Simulated,
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Run folders of one party, or of several in a test federation.")
    ] = None,
    as_: Annotated[
        list[str] | None, typer.Option("--as", help="Attack this party's view alone; may be repeated.")
    ] = None,
    truth: Annotated[
        list[Path] | None, typer.Option(help="A holder's party.toml: its data is the truth. Default: beside each RUN.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(help="TARGET=MARGIN, such as edges=0.02: exit code 4 if attacks are better; may be repeated."),
    ] = None,
    run_dir: RunDir = KEPT,
    json: options.Json = None,
    page: Page = None,
) -> None:
    """Attack the views of a run, and say beside each figure what could have been guessed anyway.

    With one holder's RUN it is a self-audit: what could the others learn about this holder from what it sent them? It
    reads that holder's folder and data alone. The run needs `record_view = true` in party.toml.

    Example: `vfgnn audit A/run --report audit.html --limit edges=0.02`

    Example: `vfgnn audit --dataset cora --protocol split,sealed --holders 3 --json audit.json`
    """
    from vfgnn.audit.result import refuse_exceeded

    limits = _limits(limit)
    if (shared.dataset is None) == (not runs):
        raise ConfigError("what is to be audited?", expected="either run folders, or --dataset")
    if shared.dataset is None:
        from vfgnn.audit.recorded_views import recorded_case

        cases = [recorded_case(runs or [], truth or [])]
    else:
        cases = _simulated(shared, options.parse_list(shared.dataset))
    found = _attack(cases, as_, run_dir, shared)
    options.write_json(json, found.to_json())
    if page is not None:
        from vfgnn.report.audit.page import make_page

        write_whole(page, make_page(found), for_others=shared.dataset is not None)
    if shared.markdown is not None:
        _write_markdown(shared.markdown, found)
    refuse_exceeded(found.rows, limits)


def _simulated(wanted: Simulated, datasets: list[str]) -> "list[Case]":
    """One for each protocol, on the same parts of the same graphs; or one for each mitigation."""
    from vfgnn.audit.mitigations import mitigation_cases
    from vfgnn.audit.simulated_run import Simulation

    common = Simulation(2, wanted.preset, wanted.seed, wanted.data_dir, options.parse_settings(wanted.settings))
    simulations = [replace(common, holders=count) for count in options.parse_counts(wanted.holders)]
    if wanted.mitigations:
        return [case for one in simulations for name in datasets for case in mitigation_cases(one, name)]
    names = options.parse_list(wanted.protocol)
    if unknown := set(names) - set(PROTOCOLS):
        raise ConfigError("unknown protocol", expected=", ".join(PROTOCOLS), got=", ".join(sorted(unknown)))
    return [one.case(name, PROTOCOLS[protocol]) for one in simulations for name in datasets for protocol in names]


def _attack(cases: "list[Case]", parties: list[str] | None, run_dir: Path, wanted: Simulated) -> "Audit":
    """All attacks, with a progress bar; then what they found."""
    from rich.console import Console

    from vfgnn.audit.result import Audit
    from vfgnn.audit.runner import Store, attack, jobs_of
    from vfgnn.report.audit.console import show_audit
    from vfgnn.report.console import progress

    store, results, console = Store(run_dir), [], Console()
    if unknown := set(parties or ()) - {party for case in cases for party in case.parties}:
        known = ", ".join(dict.fromkeys(party for case in cases for party in case.parties))
        raise ConfigError(f"there is no view of {' and '.join(sorted(unknown))}", expected=f"one of {known}")
    jobs = [jobs_of(case, parties) for case in cases]
    with progress(console) as display:
        line = display.add_task("attacks", total=sum(map(len, jobs)), note="")
        for case, of_case in zip(cases, jobs, strict=True):
            display.update(line, note=case.title)
            results.append(
                attack(
                    case,
                    of_case,
                    store=store,
                    seed=wanted.seed,
                    on_done=lambda job, done: display.update(line, advance=1, note=f"{job.party}: {job.entry.name}"),
                )
            )
    found = Audit(tuple(results), defended=wanted.mitigations, command=wanted.command)
    show_audit(console, found)
    return found


def _write_markdown(path: Path, found: "Audit") -> None:
    from vfgnn.report.audit.markdown import put_into

    before = path.read_text() if path.is_file() else ""
    write_whole(path, put_into(before, found.to_json()), for_others=True)


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
