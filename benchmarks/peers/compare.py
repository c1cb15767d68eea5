"""One table: SPU, CrypTen and vfgnn on the same job, one after the other in the same run."""

import argparse
import json
import subprocess
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from vfgnn.bench.layer import DIM, SIZES, bench_layer
from vfgnn.records import write_json

HERE = Path(__file__).parent
ROUNDS = 3


def peer(environment: str, script: str, shape: str) -> float:
    """Median seconds of a peer, measured by its own script in its own environment."""
    size = SIZES[shape]
    numbers = [size.nodes, size.columns, size.density, DIM, ROUNDS]
    command = [str(HERE / environment / "bin" / "python"), "-W", "ignore", str(HERE / script), *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr[-2000:]}")
    seconds: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
    return median(seconds)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="pubmed", choices=sorted(SIZES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    ours = bench_layer(options.shape, holders=2)
    rows = {
        "plaintext float32, dense": ours.plaintext_dense_s,
        "vfgnn, online": ours.online_s,
        "vfgnn, all work, dealer included": ours.total_s,
        "CrypTen 0.4.1": peer(".venv-crypten", "crypten_layer.py", options.shape),
        "SPU 0.9.5, semi2k": peer(".venv-spu", "spu_layer.py", options.shape),
    }
    table = Table(title=f"one joint layer, forward and backward, {options.shape}, 2 holders, d = {DIM}")
    for column in ("", "s", "times ours (all work)"):
        table.add_column(column, justify="left" if not column else "right")
    for name, seconds in rows.items():
        table.add_row(name, f"{seconds:.3f}", f"{seconds / ours.total_s:.1f}")
    Console().print(table)
    if options.json is not None:
        write_json(options.json, rows)


if __name__ == "__main__":
    main()
