"""What people see in a terminal: progress, tables, and a bar beside each figure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.table import Table

from vfgnn.agreement import DEALER, SERVER
from vfgnn.bench.epoch import EpochBenchmark
from vfgnn.bench.layer import LayerBenchmark
from vfgnn.bench.load import LoadBenchmark
from vfgnn.bench.scale import ScaleBenchmark
from vfgnn.bench.serve import ServeBenchmark
from vfgnn.lab.processes import Progress as Parties
from vfgnn.lab.scenario import SimulationResult
from vfgnn.party.finding import Finding
from vfgnn.plan.plan import Plan
from vfgnn.privacy.planning import Budget
from vfgnn.privacy.statement import Statement
from vfgnn.records import EpochMetrics, Outcome

BAR = 12
OTHER_METRICS = {"F1": "f1", "AUC": "auc", "AP": "average_precision"}


@contextmanager
def progress(console: Console) -> Iterator[Progress]:
    """A progress display with what remains; silent where the output is not a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as display:
        yield display


class EpochProgress:
    """One line per model, moved on by its epochs; early stops end a line."""

    def __init__(self, display: Progress, epochs: int) -> None:
        self._display, self._epochs = display, epochs
        self._lines = dict[str, object]()

    def __call__(self, model: str, metrics: EpochMetrics) -> None:
        """Hear of one epoch."""
        if model not in self._lines:
            self._lines[model] = self._display.add_task(model, total=self._epochs, note="")
        note = "" if metrics.val_accuracy is None else f"validation {metrics.val_accuracy:.3f}"
        line = self._lines[model]
        ended = {"total": metrics.epoch} if metrics.loss is None else {}
        self._display.update(line, completed=metrics.epoch, note=note, **ended)  # type: ignore[arg-type]


@contextmanager
def show_processes(console: Console) -> Iterator[Callable[[dict[str, Parties]], None]]:
    """One live line per party; loss and accuracy are the label holder's own. Silent where there is no terminal."""
    if not console.is_terminal:
        yield lambda parties: None
        return
    with Live(console=console, refresh_per_second=8) as live:
        yield lambda parties: live.update(_processes_table(parties))


def _processes_table(parties: dict[str, Parties]) -> Table:
    table = Table()
    for heading in ("party", "state", "epoch", "", "sent", "received", "loss", "validation"):
        table.add_column(heading, justify="left" if heading in ("party", "state", "") else "right")
    for name, at in parties.items():
        bar = ProgressBar(total=max(1, at.of), completed=at.of if at.state == "done" else at.epoch, width=20)
        table.add_row(
            name,
            at.state,
            f"{at.epoch}/{at.of}" if at.of else "",
            bar,
            f"{at.sent / 1e6:.1f} MB",
            f"{at.received / 1e6:.1f} MB",
            "" if at.loss is None else f"{at.loss:.3f}",
            "" if at.val_accuracy is None else f"{at.val_accuracy:.3f}",
        )
    return table


def _metric(outcome: Outcome, metric: str) -> str:
    return f"{outcome.scores[metric]:.3f}" if metric in outcome.scores else "-"


def show_simulation(console: Console, result: SimulationResult) -> None:
    """Isolated, federated and joint side by side."""
    table = Table(title=f"{result.dataset}, {result.holders} holders, preset {result.preset}, seed {result.seed}")
    table.add_column("model")
    table.add_column("trained on")
    table.add_column("val", justify="right")
    table.add_column("test", justify="right")
    for metric in OTHER_METRICS:
        table.add_column(metric, justify="right", style="dim")
    table.add_column("")
    rows = [(name, "own data", outcome) for name, outcome in result.isolated.items()]
    rows.append(("federated", "jointly", result.federated))
    if result.joint is not None:
        rows.append(("joint", "all pooled", result.joint))
    for name, sees, outcome in rows:
        style = "bold green" if name == "federated" else ""
        bar = "█" * round(BAR * outcome.test_accuracy)
        others = [_metric(outcome, metric) for metric in OTHER_METRICS.values()]
        reached = f"{outcome.val_accuracy:.3f}", f"{outcome.test_accuracy:.3f}"
        table.add_row(name, sees, *reached, *others, bar, style=style)
    console.print(table)
    settings = result.settings
    if result.sealed is not None:
        sent = ", ".join(f"{part} {count / 1e6:.1f}" for part, count in result.sealed.bytes.items())
        console.print(f"protocol sealed: {result.sealed.rounds} rounds; MB on all links: {sent}")
        console.print(f"opened: {result.sealed.opened.explain()}")
        return
    console.print(
        f"{result.federated.history[-1].epoch} epochs (best: {result.federated.best_epoch}), "
        f"{result.seconds_per_epoch:.3f} s and {result.bytes_per_epoch / 1e6:.2f} MB per epoch on all links"
    )
    if settings.initial_embedding == "collaborative":
        console.print(f"joint layer: {settings.joint_layer}")
        console.print("what the reveals of h0 give the other holders (from 100 % on, possibly all):")
        for meter in result.leak_meters:
            console.print(f"  {meter.explain()}")
    if result.exposed_publishers:
        exposed = " and ".join(result.exposed_publishers)
        console.print(f"the label holder can rebuild the published rows of {exposed} from z_L (accept_row_leak)")
    if result.privacy is not None:
        show_privacy(console, result.privacy, "differential privacy, as spent by the label holder")


def show_privacy(console: Console, statement: Statement, heading: str) -> None:
    """What is noised, what it comes to, and what it does not cover; nothing where nothing is noised."""
    lines = statement.lines()
    if lines:
        console.print(f"[bold]{heading}[/]")
    for line in lines:
        console.print(f"  {line}", highlight=False)


def show_budget(console: Console, plan: Budget) -> None:
    """What a budget asks for."""
    scope = f"all {plan.releases} releases together" if plan.total else "each release"
    title = f"epsilon {plan.epsilon:g} for {scope}, delta {plan.delta:g}, {plan.calibration}, {plan.adjacency}"
    console.print(title, style="bold", highlight=False)
    console.print(f"noise multiplier {plan.noise_multiplier:.5f}; a row of width {plan.dim} is", end=" ")
    console.print(f"{plan.signal_to_noise_per_row:.3f} times its noise", highlight=False)
    console.print(
        f"epsilon per release {plan.epsilon_per_release:.5g}, "
        f"total {plan.epsilon_total:.5g} after {plan.releases} releases"
    )
    table = Table(title=f"to spend {plan.epsilon:g} over a whole run")
    for heading in ("mode", "unit", "total epsilon", "meets it", "what it means"):
        table.add_column(heading, overflow="fold")
    for mode in plan.modes:
        meets = "[green]yes[/]" if mode.meets else "[red]no[/]"
        table.add_row(mode.name, mode.unit, f"{mode.epsilon_total:.4g}", meets, mode.means)
    console.print(table)


def show_spent(console: Console, units: Sequence[Mapping[str, object]], delta: float) -> None:
    """What a ledger comes to."""
    table = Table(title=f"spent over all runs, at delta {delta:g}")
    left = ["left of the budget"] * any("epsilon_left" in unit for unit in units)
    for heading in ("unit", "adjacency", "releases", "total epsilon", *left):
        table.add_column(heading, justify="left" if heading in ("unit", "adjacency") else "right")
    for unit in units:
        numbers = [f"{unit[key]:.4g}" for key in ("epsilon_total", "epsilon_left") if key in unit]
        table.add_row(str(unit["unit"]), str(unit["adjacency"]), str(unit["releases"]), *numbers)
    console.print(table)


def show_findings(console: Console, findings: Sequence[Finding]) -> None:
    """What the doctor found."""
    marks = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "fault": "[bold red]fault[/]"}
    table = Table(show_lines=False)
    for heading in ("", "what", "found", "to do"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        table.add_row(marks[finding.state], finding.about, escape(finding.found), escape(finding.to_do))
    console.print(table)
    faults = sum(finding.bad for finding in findings)
    console.print("ready to run" if not faults else f"{faults} fault{'s' * (faults > 1)} to mend before a run")


def show_plan(console: Console, plan: Plan, epochs: int, joint_epochs: int) -> None:
    """What a run will cost."""
    where = "" if plan.shared_cores is None else f" on {plan.shared_cores} cores for all parties"
    title = f"at {plan.bandwidth_mbit_s:g} Mbit/s and {plan.latency_ms:g} ms{where}, {epochs} epochs at most"
    table = Table(title=title)
    for heading in ("", "on all links", "seconds"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("setup, once", f"{plan.bytes_setup / 1e6:.1f} MB", f"{plan.setup_s:.1f}")
    if joint_epochs:
        table.add_row("an epoch", f"{plan.bytes_per_epoch / 1e6:.2f} MB", f"{plan.seconds_per_epoch:.2f}")
    if joint_epochs < epochs:
        size, seconds = plan.bytes_per_frozen_epoch, plan.seconds_per_frozen_epoch
        table.add_row("an epoch, joint layer frozen", f"{size / 1e6:.2f} MB", f"{seconds:.2f}")
    table.add_row("prediction, once", f"{plan.bytes_predict / 1e6:.1f} MB", "")
    console.print(table)
    total = (
        plan.setup_s + joint_epochs * plan.seconds_per_epoch + (epochs - joint_epochs) * plan.seconds_per_frozen_epoch
    )
    console.print(f"{plan.rounds_per_epoch} rounds per epoch; the whole run about {total / 60:.1f} minutes")
    memory = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in plan.memory.items())
    console.print(f"memory for matrices: {memory}")
    for one in plan.assumed:
        console.print(f"at most, as if {one}", highlight=False)


def show_epoch_benchmark(console: Console, result: EpochBenchmark) -> None:
    """Seconds and ratios."""
    where = "processes over TLS" if result.processes else "one process"
    title = f"one training step, {result.dataset}, {result.holders} holders, preset {result.preset}, {where}"
    table = Table(title=title)
    table.add_column("")
    table.add_column("ms", justify="right")
    table.add_column("ratio", justify="right")
    table.add_row("central, plain PyG", f"{result.central_s * 1e3:.1f}", "1.00")
    table.add_row(f"federated, {result.joint_layer}", f"{result.federated_s * 1e3:.1f}", f"{result.ratio:.2f}")
    table.add_row("federated, joint layer frozen", f"{result.frozen_s * 1e3:.1f}", f"{result.frozen_ratio:.2f}")
    console.print(table)
    size, frozen = result.bytes_per_epoch / 1e6, result.frozen_bytes_per_epoch / 1e6
    console.print(f"{size:.2f} MB per epoch on all links together, {frozen:.2f} MB with the joint layer frozen")


def show_layer_benchmark(console: Console, result: LayerBenchmark) -> None:
    """Seconds and ratios to plaintext dense."""
    table = Table(title=f"one joint layer, {result.shape}, {result.holders} holders, d = 64, {result.device}")
    table.add_column("")
    table.add_column("ms", justify="right")
    table.add_column("ratio", justify="right")
    rows = (
        ("plaintext float32, dense", result.plaintext_dense_s),
        ("plaintext float32, CSR", result.plaintext_csr_s),
        ("secure, online", result.online_s),
        ("secure, all work, dealer included", result.total_s),
    )
    for name, seconds in rows:
        table.add_row(name, f"{seconds * 1e3:.1f}", f"{seconds / result.plaintext_dense_s:.2f}")
    console.print(table)
    online, offline, once = (size / 1e6 for size in (result.bytes_online, result.bytes_offline, result.bytes_setup))
    console.print(f"on all links: {online:.1f} MB online, {offline:.1f} MB from the dealer, {once:.1f} MB once per run")


def show_load_benchmark(console: Console, result: LoadBenchmark) -> None:
    """Seconds of each stage, and memory."""
    size = f"{result.nodes:,} nodes x {result.columns} columns, {result.edges:,} edges"
    table = Table(title=f"{result.holders} holders with {size} each, by {result.method}")
    table.add_column("")
    table.add_column("seconds", justify="right")
    for name, seconds in (
        ("read all tables", result.read_s),
        ("align", result.align_s),
        ("into the common order", result.order_s),
        ("in all", result.total_s),
    ):
        table.add_row(name, f"{seconds:.1f}")
    console.print(table)
    console.print(f"{result.common:,} common nodes; {result.peak_bytes / 2**30:.1f} GiB at most, all parties together")


def show_serve_benchmark(console: Console, result: ServeBenchmark) -> None:
    """Latency of each load beside the floor's, and whether all answers were right."""
    table = Table(title=f"answers of {result.ids} ids: {result.dataset}, {result.holders} holders, all parties up")
    for name in ("at a time", "requests", "per s", "p50 ms", "p99 ms", "floor p50", "floor p99", "wrong"):
        table.add_column(name, justify="right")
    for load, floor in zip(result.served, result.floor, strict=True):
        table.add_row(
            f"{load.at_a_time}",
            f"{load.requests}",
            f"{load.per_second:.0f}",
            *(f"{value:.1f}" for value in (load.p50_ms, load.p99_ms, floor.p50_ms, floor.p99_ms)),
            f"{load.wrong}",
        )
    console.print(table)
    console.print("floor: the same web framework with a fixed answer; wrong: not what `vfgnn predict` says")


def show_scale_benchmark(console: Console, result: ScaleBenchmark) -> None:
    """Seconds, memory and bytes at each size, how they grow, and what limits them."""
    table = Table(title="one training epoch, 10 edges per node, 3 holders, over TLS")
    for name in ("nodes", "batches", "s", "CPU s", "GB", "GiB holder", "GiB dealer", "GiB server"):
        table.add_column(name, justify="right", no_wrap=name == "nodes")
    for point in result.points:
        holders = [size for name, size in point.peak_bytes.items() if name not in (SERVER, DEALER)]
        needs = max(holders), point.peak_bytes.get(DEALER, 0), point.peak_bytes[SERVER]
        table.add_row(
            f"{point.nodes:,}",
            f"{point.batches}",
            f"{point.epoch_s:.2f}",
            f"{point.cpu_s:.2f}",
            f"{point.bytes_per_epoch / 1e9:.3f}",
            *(f"{size / 2**30:.2f}" for size in needs),
        )
    console.print(table)
    grown = {"seconds": result.time_growth, "CPU seconds": result.cpu_growth, "memory": result.memory_growth}
    told = ", ".join(f"{name} {growth.over_all:.2f} ({growth.at_the_end:.2f})" for name, growth in grown.items())
    console.print(f"exponents against nodes + edges, over all sizes (between the two largest): {told}")
    console.print(
        f"{result.bytes_per_node:,.0f} bytes per node at {result.points[-1].largest_party}: "
        f"24 GiB are enough for about {result.largest_nodes:,} nodes"
    )
