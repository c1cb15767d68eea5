"""The joint layer in SPU, semi2k, two processes. Prints seconds per run as JSON.

.venv-spu/bin/python spu_layer.py NODES COLUMNS DENSITY DIM ROUNDS
"""

import json
import multiprocessing
import socket
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

import jax
import numpy as np
import spu
import spu.utils.frontend as frontend
from spu import libspu

NAMES = ["x_a", "x_b", "w_a0", "w_a1", "w_b0", "w_b1", "g0", "g1"]
OWNERS = [0, 1, 0, 1, 0, 1, 0, 1]


def layer(x_a: Any, x_b: Any, w_a0: Any, w_a1: Any, w_b0: Any, w_b1: Any, g0: Any, g1: Any) -> tuple[Any, Any, Any]:
    """Forward and backward; W and G are sums of what each party holds."""
    g = g0 + g1
    h0 = x_a @ (w_a0 + w_a1) + x_b @ (w_b0 + w_b1)
    return h0, x_a.T @ g, x_b.T @ g


def inputs(nodes: int, columns: int, density: float, dim: int) -> list[Any]:
    """The same numbers at both parties; each only feeds in its own."""
    rng = np.random.default_rng(0)
    half = columns // 2
    x = [(rng.random((nodes, p)) < density) * rng.random((nodes, p)) for p in (half, columns - half)]
    w = [rng.standard_normal((p, dim)) * 0.1 for p in (half, half, columns - half, columns - half)]
    g = [rng.standard_normal((nodes, dim)) * 0.01 for _ in range(2)]
    return [array.astype(np.float32) for array in (*x, *w, *g)]


def party(
    rank: int, ports: list[int], sizes: tuple[int, int, float, int], rounds: int, results: "Connection[Any, Any]"
) -> None:
    """One process."""
    description = libspu.link.Desc()
    for i, port in enumerate(ports):
        description.add_party(f"party{i}", f"127.0.0.1:{port}")
    link = libspu.link.create_brpc(description, rank)
    config = libspu.RuntimeConfig(protocol=libspu.ProtocolKind.SEMI2K, field=libspu.FieldType.FM64)
    io, runtime = spu.Io(2, config), spu.Runtime(link, config)
    arrays = inputs(*sizes)
    visibility = libspu.Visibility.VIS_SECRET
    executable, _ = frontend.compile(
        frontend.Kind.JAX,
        layer,
        arrays,
        {},
        NAMES,
        [visibility] * len(NAMES),
        lambda out: [f"out{i}" for i in range(len(out))],
    )
    for name, array, owner in zip(NAMES, arrays, OWNERS, strict=True):
        mine = array if owner == rank else np.zeros_like(array)
        runtime.set_var(name, io.make_shares(mine, visibility, owner)[rank])
    seconds = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        runtime.run(executable)
        seconds.append(time.perf_counter() - began)
    if rank == 0:
        results.send(seconds[1:])
    link.stop_link()


def main() -> None:
    """Both processes, from the sizes on the command line."""
    nodes, columns, density, dim, rounds = (float(word) for word in sys.argv[1:])
    sizes, ports = (int(nodes), int(columns), density, int(dim)), list[int]()
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
        ports.append(one.getsockname()[1])
    for one in sockets:
        one.close()
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    processes = [context.Process(target=party, args=(rank, ports, sizes, int(rounds), there)) for rank in range(2)]
    for process in processes:
        process.start()
    print(json.dumps(here.recv()))
    for process in processes:
        process.join()


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    main()
