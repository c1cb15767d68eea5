"""A job in SPU, semi2k, two processes. Prints seconds of each round and bytes of one as JSON.

.venv-spu/bin/python spu_jobs.py layer NODES COLUMNS DENSITY DIM ROUNDS
.venv-spu/bin/python spu_jobs.py hop NODES EDGES WIDTH ROUNDS
"""

import json
import multiprocessing
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import jax
import numpy as np
import spu
import spu.utils.frontend as frontend
from spu import libspu
from traffic import bytes_so_far


@dataclass(frozen=True)
class Job:
    """A function of secret arrays, and who feeds in which."""

    function: Callable[..., Any]
    inputs: dict[str, tuple[int, Any]]  # the owner's rank and its array, by name


def layer_function(x_a: Any, x_b: Any, w_a0: Any, w_a1: Any, w_b0: Any, w_b1: Any, g0: Any, g1: Any) -> Any:
    """Forward and backward; W and G are sums of what each party holds."""
    g = g0 + g1
    h0 = x_a @ (w_a0 + w_a1) + x_b @ (w_b0 + w_b1)
    return h0, x_a.T @ g, x_b.T @ g


def layer(nodes: int, columns: int, density: float, dim: int) -> Job:
    """The joint layer: each X private to one of the two."""
    rng = np.random.default_rng(0)
    halves = (columns // 2, columns - columns // 2)
    x = [(rng.random((nodes, p)) < density) * rng.random((nodes, p)) for p in halves]
    w = [rng.standard_normal((p, dim)) * 0.1 for p in (halves[0], halves[0], halves[1], halves[1])]
    g = [rng.standard_normal((nodes, dim)) * 0.01 for _ in range(2)]
    names = ["x_a", "x_b", "w_a0", "w_a1", "w_b0", "w_b1", "g0", "g1"]
    arrays = [array.astype(np.float32) for array in (*x, *w, *g)]
    return Job(layer_function, dict(zip(names, zip([0, 1] * 4, arrays, strict=True), strict=True)))


def hop_function(a_a: Any, a_b: Any, u0: Any, u1: Any, s0: Any, s1: Any) -> Any:
    """S^2 (A + I) U; all three are sums of what each party holds. One product of shares: two cost twice as much."""
    u = u0 + u1
    return ((a_a + a_b) @ u + u) * (s0 + s1)


def hop(nodes: int, edges: int, width: int) -> Job:
    """Dense matrices of 0 and 1: no protocol of this engine has a sparse product whose places are secret."""
    rng, halves = np.random.default_rng(0), []
    for _ in range(2):
        one, other = rng.integers(nodes, size=(2, edges // 2))
        halves.append(np.zeros((nodes, nodes), dtype=np.float32))
        halves[-1][one, other] = halves[-1][other, one] = 1.0
    u, s = ([rng.random((nodes, of)).astype(np.float32) for _ in range(2)] for of in (width, 1))
    names = ["a_a", "a_b", "u0", "u1", "s0", "s1"]
    return Job(hop_function, dict(zip(names, zip([0, 1] * 3, [*halves, *u, *s], strict=True), strict=True)))


JOBS: dict[str, Callable[..., Job]] = {"layer": layer, "hop": hop}


def party(rank: int, ports: list[int], job: Job, rounds: int, results: "Connection[Any, Any]") -> None:
    """One process."""
    description = libspu.link.Desc()
    for i, port in enumerate(ports):
        description.add_party(f"party{i}", f"127.0.0.1:{port}")
    link = libspu.link.create_brpc(description, rank)
    config = libspu.RuntimeConfig(protocol=libspu.ProtocolKind.SEMI2K, field=libspu.FieldType.FM64)
    io, runtime = spu.Io(2, config), spu.Runtime(link, config)
    visibility = libspu.Visibility.VIS_SECRET
    arrays = [array for _, array in job.inputs.values()]
    executable, _ = frontend.compile(
        frontend.Kind.JAX,
        job.function,
        arrays,
        {},
        list(job.inputs),
        [visibility] * len(arrays),
        lambda out: [f"out{i}" for i in range(len(out))],
    )
    for name, (owner, array) in job.inputs.items():
        mine = array if owner == rank else np.zeros_like(array)
        runtime.set_var(name, io.make_shares(mine, visibility, owner)[rank])
    seconds, before = list[float](), 0
    for number in range(rounds + 1):
        link.barrier()
        before = bytes_so_far() if number == 1 else before
        began = time.perf_counter()
        runtime.run(executable)
        link.barrier()
        seconds.append(time.perf_counter() - began)
    if rank == 0:
        results.send({"seconds": seconds[1:], "bytes": (bytes_so_far() - before) // rounds})
    link.stop_link()


def main() -> None:
    """Both processes, from the sizes on the command line."""
    _, name, *numbers, rounds = sys.argv
    job = JOBS[name](*(float(number) if "." in number else int(number) for number in numbers))
    ports = list[int]()
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
        ports.append(one.getsockname()[1])
    for one in sockets:
        one.close()
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    processes = [context.Process(target=party, args=(rank, ports, job, int(rounds), there)) for rank in range(2)]
    for process in processes:
        process.start()
    print(json.dumps(here.recv()))
    for process in processes:
        process.join()


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    main()
