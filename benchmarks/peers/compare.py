"""One table: SPU, CrypTen and vfgnn on the same job, one after the other in the same run.

compare.py layer --shape pubmed       the joint layer of the paper's protocol, forward and backward
compare.py hop                        one hop of the sealed protocol, of Cora's size
"""

import argparse
import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table
from vfgnn_hop import bench_hop

from vfgnn.bench.layer import DIM, SIZES, bench_layer
from vfgnn.records import write_json

HERE = Path(__file__).parent
ROUNDS = 3
CORA = (2_708, 5_278, 6)  # nodes, undirected edges, classes less one
PEERS = {"CrypTen 0.4.1": (".venv-crypten", "crypten_jobs.py"), "SPU 0.9.5, semi2k": (".venv-spu", "spu_jobs.py")}
ALONE = ("unshare", "--net", "--map-root-user", "sh", "-c", 'ip link set lo up && GLOO_SOCKET_IFNAME=lo exec "$0" "$@"')
"""A namespace of its own, so that nobody else's bytes are counted."""


@dataclass(frozen=True)
class Found:
    """Of one run of the job."""

    seconds: float
    bytes: int | None  # on all links; None: not counted


def peer(name: str, job: str, numbers: Sequence[float]) -> Found:
    """Median seconds of a peer, measured by its own script in its own environment."""
    environment, script = PEERS[name]
    alone = ALONE if shutil.which("unshare") and shutil.which("ip") else ()
    python = str(HERE / environment / "bin" / "python")
    command = [*alone, python, "-W", "ignore", str(HERE / script), job, *map(str, numbers), str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return Found(median(found["seconds"]), found["bytes"] if alone else None)


def layer(shape: str) -> tuple[str, dict[str, Found], float]:
    """A title, the rows, and what they are compared with."""
    size, ours = SIZES[shape], bench_layer(shape, holders=2)
    online, whole = ours.bytes_online, ours.bytes_online + ours.bytes_offline
    rows = {
        "plaintext float32, dense": Found(ours.plaintext_dense_s, None),
        "vfgnn, online": Found(ours.online_s, online),
        "vfgnn, all work, dealer included": Found(ours.total_s, whole),
    }
    rows |= {name: peer(name, "layer", [size.nodes, size.columns, size.density, DIM]) for name in PEERS}
    return f"one joint layer, forward and backward, {shape}, 2 holders, d = {DIM}", rows, ours.total_s


def hop() -> tuple[str, dict[str, Found], float]:
    """Of Cora's size, with random edges."""
    nodes, edges, width = CORA
    ours = bench_hop(nodes, edges, width)
    rows = {
        "vfgnn, online": Found(ours.online_s, ours.bytes_online),
        "vfgnn, all work, dealer included": Found(ours.total_s, ours.bytes_online + ours.bytes_offline),
    }
    rows |= {name: peer(name, "hop", CORA) for name in PEERS}
    return f"one hop, {nodes:,} nodes, {edges:,} edges, {width} columns, 2 holders", rows, ours.total_s


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=["layer", "hop"])
    parser.add_argument("--shape", default="pubmed", choices=sorted(SIZES), help="of a layer")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    title, rows, ours = layer(options.shape) if options.job == "layer" else hop()
    table = Table(title=title)
    for column in ("", "s", "times ours (all work)", "MB"):
        table.add_column(column, justify="left" if not column else "right")
    for name, found in rows.items():
        size = "-" if found.bytes is None else f"{found.bytes / 1e6:.2f}"
        table.add_row(name, f"{found.seconds:.3f}", f"{found.seconds / ours:.1f}", size)
    Console().print(table)
    if options.json is not None:
        write_json(options.json, {name: vars(found) for name, found in rows.items()})


if __name__ == "__main__":
    main()
