"""Where a party listens or is dialled: host and port, as text in files. Public."""

import re
from typing import Annotated

from pydantic import AfterValidator


def _dialled(address: str) -> str:
    """What a socket can be made of."""
    found = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[^:\s/]+):([0-9]{1,5})", address)
    if not found or not 0 < int(found[1]) < 65536:
        raise ValueError("host:port, such as bank.example:7001 or [::1]:7001")
    return address


Address = Annotated[str, AfterValidator(_dialled)]


def host_and_port(address: str) -> tuple[str, int]:
    """Of `host:port` or `[ipv6]:port`."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
