"""What a sealed training costs, in a terminal: measured beside the split protocol, and planned."""

from rich.console import Console
from rich.table import Table

from vfgnn.bench.sealed import SealedBenchmark
from vfgnn.plan.sealed import SealedPlan


def show_sealed_benchmark(console: Console, result: SealedBenchmark) -> None:
    """Both protocols and the floor, side by side."""
    where = "processes over TLS" if result.processes else f"one process, {result.device}"
    table = Table(title=f"a whole training, {result.dataset}, {result.holders} holders, preset best, {where}")
    for heading in ("", "steps", "seconds", "MB on all links", "test accuracy"):
        table.add_column(heading, justify="right" if heading else "left")
    own, other = result.bytes, result.split_bytes
    table.add_row("pooled, the sealed model in the clear", "", f"{result.pooled_seconds:.2f}", "", "")
    table.add_row(
        "sealed", f"{result.steps}", f"{result.seconds:.2f}", f"{own / 1e6:.1f}", f"{result.test_accuracy:.3f}"
    )
    table.add_row(
        "split",
        f"{result.split_epochs}",
        f"{result.split_seconds:.2f}",
        f"{other / 1e6:.1f}",
        f"{result.split_test_accuracy:.3f}",
    )
    console.print(table)
    time, size = result.seconds / result.split_seconds, own / other
    console.print(
        f"sealed takes {time:.2f} of split's time and sends {size:.3f} of its bytes, in {result.rounds} rounds"
    )
    parts = f"setup {result.bytes_setup / 1e6:.1f}, offline {result.bytes_offline / 1e6:.1f}"
    console.print(f"MB: {parts}, online {result.bytes_online / 1e6:.1f}")
    console.print(f"waited for the dealer {result.offline_s:.2f} s; everything else {result.online_s:.2f} s")
    if result.peak_bytes:
        peaks = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in result.peak_bytes.items())
        console.print(f"peak memory of each process: {peaks}")


def show_sealed_plan(console: Console, plan: SealedPlan) -> None:
    """What a run will cost."""
    where = "" if plan.shared_cores is None else f" on {plan.shared_cores} cores for all parties"
    table = Table(title=f"at {plan.bandwidth_mbit_s:g} Mbit/s and {plan.latency_ms:g} ms{where}, {plan.nodes:,} nodes")
    for heading in ("", "MB on all links", "rounds", "seconds"):
        table.add_column(heading, justify="left" if not heading else "right")
    rows = (
        ("setup", plan.bytes_setup, "", f"{plan.setup_s:.1f}"),
        ("offline: to and from the dealer, ahead", plan.bytes_offline, "", ""),
        ("online: among the holders", plan.bytes_online, str(plan.rounds), ""),
    )
    for name, size, rounds, seconds in rows:
        table.add_row(name, f"{size / 1e6:.1f}", rounds, seconds)
    whole = plan.bytes_setup + plan.bytes_offline + plan.bytes_online
    table.add_row("the whole training", f"{whole / 1e6:.1f}", str(plan.rounds), f"{plan.seconds:.1f}", style="bold")
    predicted = (f"{plan.bytes_predict / 1e6:.1f}", str(plan.rounds_predict), f"{plan.seconds_predict:.1f}")
    table.add_row("new nodes, later: one pass over all", *predicted)
    console.print(table)
    console.print(
        f"{plan.steps} steps, predictions of all nodes included; a holder waits {plan.waited_s:.1f} s for the dealer"
    )
    memory = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in plan.memory.items())
    console.print(f"memory for matrices, at most: {memory}")
    for one in plan.assumed:
        console.print(f"at most, as if {one}", highlight=False)
