"""A job in CrypTen, two processes. Prints seconds of each round and bytes of one as JSON.

.venv-crypten/bin/python crypten_jobs.py layer NODES COLUMNS DENSITY DIM ROUNDS
.venv-crypten/bin/python crypten_jobs.py hop NODES EDGES WIDTH ROUNDS
"""

import json
import sys
import time
import types
from collections.abc import Callable

# CrypTen 0.4.1 imports a private module of torch that newer versions no longer have.
registration = types.ModuleType("torch.onnx._internal.registration")
registration.__dict__["registry"] = None
sys.modules.setdefault("torch.onnx._internal.registration", registration)

import crypten  # noqa: E402
import crypten.communicator as comm  # noqa: E402
import crypten.mpc as mpc  # noqa: E402
import torch  # noqa: E402
from traffic import bytes_so_far  # noqa: E402


def layer(nodes: int, columns: int, density: float, dim: int) -> Callable[[], None]:
    """The joint layer, forward and backward: each X private to one of the two, W and G shared."""
    half = columns // 2
    x = [
        crypten.cryptensor((torch.rand(nodes, p) < density) * torch.rand(nodes, p), src=i)
        for i, p in enumerate((half, columns - half))
    ]
    w = [crypten.cryptensor(torch.randn(p, dim) * 0.1, src=0) for p in (half, columns - half)]
    g = crypten.cryptensor(torch.randn(nodes, dim) * 0.01, src=0)

    def run() -> None:
        x[0].matmul(w[0]) + x[1].matmul(w[1])
        x[0].t().matmul(g)
        x[1].t().matmul(g)

    return run


def hop(nodes: int, edges: int, width: int) -> Callable[[], None]:
    """S^2 (A + I) U. A is the sum of two private matrices, as shares of 0 and 1 without fraction bits: one product."""
    halves = []
    for owner in range(2):
        ends = torch.randint(nodes, (2, edges // 2))
        a = torch.zeros(nodes, nodes)
        a[ends[0], ends[1]] = a[ends[1], ends[0]] = 1.0
        halves.append(crypten.cryptensor(a, src=owner, precision=0))
    u = crypten.cryptensor(torch.rand(nodes, width), src=0)
    s = crypten.cryptensor(torch.rand(nodes, 1), src=0)

    def run() -> None:
        ((halves[0] + halves[1]).matmul(u) + u) * s

    return run


JOBS: dict[str, Callable[..., Callable[[], None]]] = {"layer": layer, "hop": hop}


@mpc.run_multiprocess(world_size=2)  # type: ignore[untyped-decorator]
def measured(job: str, numbers: list[float], rounds: int) -> tuple[list[float], int]:
    """One party's seconds for each round, and the bytes of one round on all links."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = [number if 0 < number < 1 else int(number) for number in numbers]
    run = JOBS[job](*sizes)
    seconds, before = list[float](), 0
    for number in range(rounds + 1):
        comm.get().barrier()
        before = bytes_so_far() if number == 1 else before
        began = time.perf_counter()
        run()
        comm.get().barrier()
        seconds.append(time.perf_counter() - began)
    return seconds[1:], (bytes_so_far() - before) // rounds


if __name__ == "__main__":
    _, job, *numbers, rounds = sys.argv
    both = measured(job, [float(number) for number in numbers], int(rounds))
    seconds = [max(pair) for pair in zip(*(one for one, _ in both), strict=True)]
    print(json.dumps({"seconds": seconds, "bytes": max(size for _, size in both)}))
