"""What a sealed training costs, in a terminal: measured beside the split protocol."""

from rich.console import Console
from rich.table import Table

from vfgnn.bench.sealed import SealedBenchmark


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
