"""What an answer of `vfgnn serve` takes, beside the same web server with nothing behind it.

A federation is trained on this machine, all its parties stay up, and the label holder's endpoint is asked: one question
after the other, a few at a time, and all at once. Every answer is compared with what `vfgnn predict` says. The floor is
an endpoint of the same kind, in a process of its own, that gives everyone one fixed answer of the same size.
"""

import asyncio
import json
import multiprocessing
import random
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import numpy as np
import torch

from vfgnn.errors import ConfigError, VfgnnError
from vfgnn.lab.local_files import LocalFederation, free_ports
from vfgnn.lab.local_training import predict, train
from vfgnn.lab.processes import LocalProcesses

SERVE = (sys.executable, "-m", "vfgnn", "serve")
AT_A_TIME = (1, 16, 1000)
START_S, ANSWER_S = 120.0, 120.0
EXACT = 1e-12  # JSON writes floats so that they are read as they were


@dataclass(frozen=True)
class Load:
    """Questions that were asked, so many at a time."""

    at_a_time: int
    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float
    wrong: int  # answers that are not those of `predict`

    @staticmethod
    def of(at_a_time: int, seconds: Sequence[float], took: float, wrong: int = 0) -> "Load":
        """From the time that each answer took."""
        p50, p99 = np.percentile(seconds, [50, 99]) * 1e3
        return Load(at_a_time, len(seconds), len(seconds) / took, float(p50), float(p99), wrong)


@dataclass(frozen=True)
class ServeBenchmark:
    """What `vfgnn bench serve` prints and writes."""

    dataset: str
    holders: int
    nodes: int
    ids: int  # in each question
    served: tuple[Load, ...]
    floor: tuple[Load, ...]


@dataclass(frozen=True)
class Reply:
    """One answer, and how long it took."""

    code: int
    body: dict[str, object]
    seconds: float


async def ask_all(url: str, questions: Sequence[Sequence[str]], *, at_a_time: int) -> list[Reply]:
    """Every question to `url`, so many at a time; a question waits for its turn outside of its time."""
    turn = asyncio.Semaphore(at_a_time)
    limits = aiohttp.TCPConnector(limit=0)
    patience = aiohttp.ClientTimeout(total=ANSWER_S)

    async def ask(session: aiohttp.ClientSession, ids: Sequence[str]) -> Reply:
        async with turn:
            began = time.perf_counter()
            async with session.post(url, json={"ids": list(ids)}) as response:
                body = await response.read()
            return Reply(response.status, json.loads(body), time.perf_counter() - began)

    async with aiohttp.ClientSession(connector=limits, timeout=patience) as session:
        return await asyncio.gather(*(ask(session, ids) for ids in questions))


class Served:
    """A trained federation on this machine whose parties stay up; a `with` block ends them."""

    def __init__(self, local: LocalFederation, *words: str) -> None:
        self.port = free_ports(1)[0]
        leader = local.file.label_holder
        listen = ("--listen", f"127.0.0.1:{self.port}", *words)
        self.processes = LocalProcesses(local, command=SERVE, words={leader: listen})

    @property
    def url(self) -> str:
        """Where it is asked."""
        return f"http://127.0.0.1:{self.port}/predictions"

    def __enter__(self) -> "Served":
        self.processes.__enter__()
        try:
            self.wait(200)
        except BaseException:
            self.processes.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.processes.stop()

    def health(self) -> tuple[int, dict[str, object]]:
        """What GET /health says; code 0 while nobody answers."""

        async def look() -> tuple[int, dict[str, object]]:
            limit = aiohttp.ClientTimeout(total=5)
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                session.get(f"http://127.0.0.1:{self.port}/health") as response,
            ):
                return response.status, await response.json()

        try:
            return asyncio.run(look())
        except (aiohttp.ClientError, TimeoutError):
            return 0, {}

    def wait(self, code: int, *, nodes: int = 1) -> dict[str, object]:
        """Until health has this code (and 200: so many nodes); a party that has ended is raised."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            found, body = self.health()
            if found == code and (code != 200 or int(str(body["nodes"])) >= nodes):
                return body
            self.processes.look()
            time.sleep(0.1)
        raise VfgnnError("the service is not as expected", expected=f"health {code} within {START_S:g} s")


def bench_serve(
    dataset: str = "citeseer",
    *,
    holders: int = 2,
    requests: int = 1000,
    ids: int = 10,
    data_dir: Path | None = None,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> ServeBenchmark:
    """Train, serve, ask."""
    if requests < 1 or ids < 1:
        raise ConfigError("nothing to ask", expected="one request of one id or more", got=f"{requests} of {ids}")
    with tempfile.TemporaryDirectory(prefix="vfgnn-bench-") as folder:
        on_stage("training")
        trained = train(dataset, folder=folder, holders=holders, epochs=20, data_dir=data_dir)
        on_stage("predicting")
        truth = predict(trained).probability
        draw = random.Random(0)  # noqa: S311 (which ids are asked for)
        questions = [[str(draw.randrange(len(truth))) for _ in range(ids)] for _ in range(requests)]
        on_stage("serving")
        with Served(trained.local) as served:
            loads = [_loaded(served.url, questions, at_a_time, truth) for at_a_time in AT_A_TIME]
            said = asyncio.run(ask_all(served.url, questions[:1], at_a_time=1))[0].body
    on_stage("the floor")
    with _Bare(json.dumps(said).encode()) as url:
        floor = [_loaded(url, questions, at_a_time, None) for at_a_time in AT_A_TIME]
    return ServeBenchmark(dataset, holders, len(truth), ids, tuple(loads), tuple(floor))


def _loaded(url: str, questions: Sequence[Sequence[str]], at_a_time: int, truth: torch.Tensor | None) -> Load:
    began = time.perf_counter()
    replies = asyncio.run(ask_all(url, questions, at_a_time=at_a_time))
    took = time.perf_counter() - began
    wrong = 0 if truth is None else sum(not _right(*both, truth) for both in zip(questions, replies, strict=True))
    return Load.of(at_a_time, [reply.seconds for reply in replies], took, wrong)


def _right(ids: Sequence[str], reply: Reply, truth: torch.Tensor) -> bool:
    """Whether a reply says what `vfgnn predict` does; ids of aligned tensors are row numbers."""
    found: list[dict[str, dict[str, float]]] = reply.body.get("predictions", [])  # type: ignore[assignment]
    if reply.code != 200 or [str(one["id"]) for one in found] != list(ids):
        return False
    said = torch.tensor([list(one["probability"].values()) for one in found], dtype=torch.float64)
    return bool((said - truth[[int(one) for one in ids]]).abs().max() <= EXACT)


class _Bare:
    """The same web framework with a fixed answer, in a process of its own."""

    def __init__(self, body: bytes) -> None:
        from vfgnn.party.serve.web import listening_at  # of the extra `serve`

        self._socket = listening_at("127.0.0.1", 0)
        spawn = multiprocessing.get_context("fork")
        self._process = spawn.Process(target=_answer_always, args=(self._socket, body), daemon=True)

    def __enter__(self) -> str:
        self._process.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/predictions"

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.join()
        self._socket.close()


def _answer_always(listening: socket.socket, body: bytes) -> None:
    import uvicorn
    from fastapi import FastAPI, Request, Response

    app = FastAPI()

    @app.post("/predictions")
    async def fixed(request: Request) -> Response:
        await request.json()
        return Response(body, media_type="application/json")

    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run([listening])
