"""The label holder's local HTTP endpoint: predictions, health, metrics, and the OpenAPI document of all three.

For the label holder's own systems. Answers from its desk (desk.py); sends nothing to any other party. No id and no
prediction is logged or counted by name.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Annotated, Literal
from urllib.parse import urlsplit

import prometheus_client
import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vfgnn import logs
from vfgnn.errors import ConfigError
from vfgnn.party.serve.desk import Answers, Desk, OutOfService, Prediction
from vfgnn.party.trained import NOT_SHARED, OK, UNKNOWN
from vfgnn.version import __version__

MOST_IDS = 10_000  # in one question
MOST_BYTES = 2**24  # of its body: enough for so many ids of common length
LOOK_S = 0.25  # how often a question that waits sees whether it waits in vain
BACKLOG = 2048  # calls that wait to be taken
RETRY_S = 2  # told to whoever got no answer
LOOPBACK = ("localhost", "127.0.0.1", "::1")
Id = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00]+$")]


class Question(BaseModel):
    """What is asked."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"ids": ["A-17", "A-18"]}]})

    ids: Annotated[list[Id], Field(min_length=1, max_length=MOST_IDS, description="As the node table writes them.")]


class Reply(BaseModel):
    """Predictions in the order of the question."""

    predictions: list[Prediction]
    as_of: Annotated[str, Field(description="When they were computed, UTC.")]


class Trouble(BaseModel):
    """Why there is no answer."""

    error: str
    hint: str


class Health(BaseModel):
    """Whether questions are answered."""

    status: Literal["in service", "out of service"]
    reason: Annotated[str | None, Field(description="Why not; null in service.")]
    away: Annotated[list[str], Field(description="The parties that are not connected.")]
    nodes: Annotated[int, Field(description="How many ids can be answered at once.")]
    as_of: Annotated[str | None, Field(description="When they were computed, UTC; null before the first time.")]
    version: str


class Meters:
    """What Prometheus reads. Counts and times; no id, no class."""

    def __init__(self, desk: Desk) -> None:
        self.registry = CollectorRegistry()
        self._desk = desk
        self.requests = Counter("vfgnn_requests", "Requests answered.", ["path", "code"], registry=self.registry)
        self.seconds = Histogram("vfgnn_request_seconds", "Time to answer.", ["path"], registry=self.registry)
        self.ids = Counter("vfgnn_ids", "Ids answered.", ["status"], registry=self.registry)
        for status in (OK, NOT_SHARED, UNKNOWN):
            self.ids.labels(status)
        prometheus_client.ProcessCollector(registry=self.registry)
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """What the desk knows."""
        desk, known = self._desk, self._desk.known
        yield GaugeMetricFamily("vfgnn_in_service", "1 if questions are answered.", value=desk.trouble is None)
        yield GaugeMetricFamily("vfgnn_parties_away", "Parties that are not connected.", value=len(desk.away))
        yield GaugeMetricFamily("vfgnn_known_ids", "Ids answered at once.", value=0 if known is None else len(known))
        yield GaugeMetricFamily(
            "vfgnn_answers_age_seconds", "Since the last pass.", value=0.0 if known is None else known.age_s
        )
        yield CounterMetricFamily("vfgnn_passes", "Passes of the federation.", value=desk.passes)
        yield CounterMetricFamily("vfgnn_pass_seconds", "Time they took.", value=desk.pass_seconds)
        yield CounterMetricFamily("vfgnn_interruptions", "Times that the parties had to meet again.", desk.failures)


class Metered:
    """Counts and times whatever is answered."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self._app, self._meters = app, meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call."""
        began = time.perf_counter()
        path = scope.get("path") if scope.get("path") in ("/predictions", "/health", "/metrics") else "other"

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._meters.requests.labels(path, message["status"]).inc()
                self._meters.seconds.labels(path).observe(time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, counted)


class Limited:
    """Refuses a body that no valid question has, before it fills the memory."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call."""
        came = 0

        async def counted() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > MOST_BYTES:
                raise HTTPException(413, f"more than {MOST_BYTES} bytes")
            return message

        await self._app(scope, counted, send)


class Named:
    """Refuses callers that call it by another name: a web page can make a browser call any address, but not so."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call."""
        called = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        if _host(called) not in self._hosts:
            await PlainTextResponse("not by this name", status_code=400)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _host(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def make_app(desk: Desk, *, hosts: tuple[str, ...] | None = None) -> FastAPI:
    """The endpoint over a desk; `hosts`: the names that callers may use for it, any if None."""
    meters = Meters(desk)
    app = FastAPI(
        title="vfgnn",
        version=__version__,
        summary="Predictions of a federation, at its label holder.",
        description="All parties run `vfgnn serve`; while one of them is away there are no predictions.",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.add_middleware(Limited)
    if hosts is not None:
        app.add_middleware(Named, hosts=hosts)
    app.add_middleware(Metered, meters=meters)  # outermost: it sees what the others refuse

    @app.exception_handler(RequestValidationError)
    async def refuse(request: Request, error: RequestValidationError) -> JSONResponse:
        # Without what was sent: it may be nothing that could be sent back.
        found = [{"loc": one["loc"], "msg": one["msg"], "type": one["type"]} for one in error.errors()]
        return JSONResponse({"detail": found}, status_code=422)

    @app.exception_handler(OutOfService)
    async def out_of_service(request: Request, error: OutOfService) -> JSONResponse:
        trouble = Trouble(error=error.what, hint="ask again later; GET /health tells when")
        return JSONResponse(trouble.model_dump(), status_code=503, headers={"Retry-After": str(RETRY_S)})

    @app.post(
        "/predictions",
        response_model=Reply,
        responses={
            400: {"description": "A body that is not UTF-8, or a Host that this endpoint is not called by."},
            413: {"description": f"More than {MOST_BYTES} bytes."},
            503: {"model": Trouble, "description": "No predictions now, and why."},
        },
    )
    async def predictions(question: Question) -> Response:
        """Predictions for ids, in their order. Repeats and unknown ids are answered as such."""
        desk.refuse_trouble()
        answers = desk.at_once(question.ids) or await _renewed(desk, question.ids)
        found = [answers.of(one) for one in question.ids]
        for status in (OK, NOT_SHARED, UNKNOWN):
            meters.ids.labels(status).inc(sum(one.status == status for one in found))
        reply = Reply.model_construct(predictions=found, as_of=answers.at.isoformat(timespec="seconds"))
        return Response(reply.model_dump_json(by_alias=True), media_type="application/json")

    @app.get("/health", responses={503: {"model": Health, "description": "Out of service, and why."}})
    async def health(response: Response) -> Health:
        """Whether questions are answered now."""
        trouble, known = desk.trouble, desk.known
        response.status_code = 200 if trouble is None else 503
        return Health(
            status="in service" if trouble is None else "out of service",
            reason=trouble,
            away=desk.away,
            nodes=0 if known is None else len(known),
            as_of=None if known is None else known.at.isoformat(timespec="seconds"),
            version=__version__,
        )

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Prometheus text."""
        return Response(prometheus_client.generate_latest(meters.registry), media_type="text/plain; version=0.0.4")

    return app


async def _renewed(desk: Desk, ids: list[str]) -> Answers:
    """Wait for a pass, but not for one that cannot come."""
    waits = asyncio.wrap_future(desk.put(ids))
    while not waits.done():
        await asyncio.wait({waits}, timeout=LOOK_S)
        trouble = desk.trouble
        if not waits.done() and trouble is not None:
            waits.cancel()
            raise OutOfService(trouble)
    return waits.result()


class Endpoint:
    """The web server, in a thread of its own; the party keeps the main thread, where signals arrive."""

    def __init__(self, desk: Desk, host: str, port: int) -> None:
        self._socket = listening_at(host, port)
        shown, here = f"[{host}]" if ":" in host else host, host in LOOPBACK
        self._address = f"http://{shown}:{port}"
        self._callers = "this machine" if here else "whoever reaches it: it has no login"
        config = uvicorn.Config(
            make_app(desk, hosts=LOOPBACK if here else None),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        self._server = uvicorn.Server(config)
        logs.adopt("uvicorn.error")
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="web", daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()
        logs.event("answers", at=self._address, callers=self._callers)

    def stop(self) -> None:
        """End what is being answered, then go."""
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()


def listening_at(host: str, port: int) -> socket.socket:
    """A socket for a web server, or why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(
            "the endpoint cannot listen",
            expected=f"{host}:{port} to be this machine's, and free",
            got=error.strerror,
            hint="name another with --listen",
        ) from None
    # Calls inherit it; asyncio sets it only where it made the socket, and without it every answer waits 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
