"""`vfgnn serve`: a trained federation that stays up."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vfgnn.writing import keep_private

if TYPE_CHECKING:
    from vfgnn.party.serve.party import ServingParty

LISTEN = "127.0.0.1:8080"
RECHECK_S = 60


def serve(
    federation: Annotated[Path, typer.Argument(help="The public file, the same at all parties.")],
    party: Annotated[Path, typer.Argument(help="This party's own file.")],
    listen: Annotated[str | None, typer.Option(help=f"Label holder: host:port of its endpoint [{LISTEN}].")] = None,
    max_age: Annotated[
        float | None, typer.Option(help="Label holder: seconds after which answers are computed anew.", min=1)
    ] = None,
    recheck: Annotated[
        float | None,
        typer.Option(help=f"Label holder: seconds before an id is looked for again [{RECHECK_S}].", min=0),
    ] = None,
    log: Annotated[str, typer.Option(help="text or json, on standard error.")] = "text",
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
) -> None:
    """Keep a trained federation up. All parties run this; the label holder's own systems ask it over HTTP.

    `POST /predictions` with `{"ids": [...]}` answers; `/health`, `/metrics` (Prometheus) and `/openapi.json` tell the
    rest. Ids that came after training are predicted too. While a party is away, the answer is 503 with the reason.

    Example: `vfgnn serve federation.toml party.toml --listen 127.0.0.1:8080`
    """
    import math

    from vfgnn.errors import ConfigError
    from vfgnn.files import load_federation, load_party
    from vfgnn.party.child import end_with_parent

    if log not in ("text", "json"):
        raise ConfigError("unknown kind of log", expected="text or json", got=log)
    if with_parent:
        end_with_parent()
    keep_private()
    file, own = load_federation(federation), load_party(party)
    as_json = log == "json"
    if own.name != file.label_holder:
        if (listen, max_age, recheck) != (None, None, None):
            only = "--listen, --max-age and --recheck at the label holder only"
            raise ConfigError(f"{own.name} has no endpoint", expected=only)
        from vfgnn.party.serve.party import ServingParty

        _until_stopped(ServingParty(file, own, log_json=as_json))
        return
    refuse_without_web_server()
    from vfgnn.party.serve.desk import Desk
    from vfgnn.party.serve.label_holder import ServingLabelHolder
    from vfgnn.party.serve.web import Endpoint

    host, port = _address(listen or LISTEN)
    desk = Desk(max_age_s=math.inf if max_age is None else max_age)
    serving = ServingLabelHolder(file, own, desk, recheck_s=RECHECK_S if recheck is None else recheck, log_json=as_json)
    endpoint = Endpoint(desk, host, port)
    endpoint.start()
    try:
        _until_stopped(serving)
    finally:
        endpoint.stop()


def refuse_without_web_server() -> None:
    """Where the extra `serve` is not installed."""
    from vfgnn.errors import ConfigError

    if any(find_spec(name) is None for name in ("fastapi", "uvicorn", "prometheus_client")):
        raise ConfigError("the endpoint needs a web server", hint="pip install 'vfgnn[serve]'")


def _until_stopped(serving: "ServingParty") -> None:
    """A service that its operator stops has not failed."""
    try:
        serving.serve()
    except (KeyboardInterrupt, SystemExit):
        typer.echo("stopped")


def _address(text: str) -> tuple[str, int]:
    from vfgnn.address import host_and_port
    from vfgnn.errors import ConfigError

    try:
        host, port = host_and_port(text)
    except ValueError:
        host, port = "", -1
    if not host or not 0 <= port < 65536:
        raise ConfigError("no address to listen at", expected="--listen host:port", got=text)
    return host, port
