"""The way to a peer's host, before TLS: a connected socket, or why there is none, in the words of the cause."""

import asyncio
import errno
import os
import socket

from vfgnn.address import host_and_port
from vfgnn.errors import NotThere

CAUSES = {
    errno.ECONNREFUSED: "its host refuses connections to this port",
    errno.EHOSTUNREACH: "there is no way to its host",
    errno.ENETUNREACH: "there is no way to its network",
    errno.ECONNRESET: "its host ended the connection",
}
AS_RUNNING = "must be running (vfgnn run, or vfgnn doctor --wait 60) and listen there; then look at firewalls"


async def connected(peer: str, address: str, *, within_s: float) -> socket.socket:
    """A socket that is connected to the peer's host. Reveals: to the network, that this party dials it."""
    host, port = host_and_port(address)
    loop = asyncio.get_running_loop()
    last: OSError | None = None
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        hint = f"correct the address of {peer} in the federation file, or how this machine looks up names (DNS)"
        raise NotThere(f"the host {host} of {peer} is unknown", where=address, hint=hint) from None
    try:
        async with asyncio.timeout(within_s):
            for family, kind, protocol, _, where in found:
                try:
                    return await _connect(family, kind, protocol, where)
                except TimeoutError:
                    raise
                except OSError as error:
                    last = error
    except TimeoutError:
        hint = f"{peer} {AS_RUNNING}"
        raise NotThere(f"nobody answers at {address} within {within_s:g} s", where=address, hint=hint) from None
    number = 0 if last is None else last.errno or 0
    cause = CAUSES.get(number) or os.strerror(number).lower()
    raise NotThere(f"nobody answers at {address}: {cause}", where=address, hint=f"{peer} {AS_RUNNING}")


async def _connect(
    family: int, kind: int, protocol: int, where: tuple[str | int, ...] | tuple[int, bytes]
) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock
