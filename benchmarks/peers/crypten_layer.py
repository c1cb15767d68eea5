"""The joint layer in CrypTen, two processes. Prints seconds per run as JSON.

.venv-crypten/bin/python crypten_layer.py NODES COLUMNS DENSITY DIM ROUNDS
"""

import json
import sys
import time
import types

# CrypTen 0.4.1 imports a private module of torch that newer versions no longer have.
registration = types.ModuleType("torch.onnx._internal.registration")
registration.__dict__["registry"] = None
sys.modules.setdefault("torch.onnx._internal.registration", registration)

import crypten  # noqa: E402
import crypten.communicator as comm  # noqa: E402
import crypten.mpc as mpc  # noqa: E402
import torch  # noqa: E402


@mpc.run_multiprocess(world_size=2)  # type: ignore[untyped-decorator]
def run(nodes: int, columns: int, density: float, dim: int, rounds: int) -> list[float]:
    """One party's seconds for each round."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    half = columns // 2
    x = [
        crypten.cryptensor((torch.rand(nodes, p) < density) * torch.rand(nodes, p), src=i)
        for i, p in enumerate((half, columns - half))
    ]
    w = [crypten.cryptensor(torch.randn(p, dim) * 0.1, src=0) for p in (half, columns - half)]
    g = crypten.cryptensor(torch.randn(nodes, dim) * 0.01, src=0)
    seconds = []
    for _ in range(rounds + 1):
        comm.get().barrier()
        began = time.perf_counter()
        x[0].matmul(w[0]) + x[1].matmul(w[1])
        x[0].t().matmul(g)
        x[1].t().matmul(g)
        comm.get().barrier()
        seconds.append(time.perf_counter() - began)
    return seconds[1:]


if __name__ == "__main__":
    nodes, columns, density, dim, rounds = (float(word) for word in sys.argv[1:])
    both = run(int(nodes), int(columns), density, int(dim), int(rounds))
    print(json.dumps([max(pair) for pair in zip(*both, strict=True)]))
