"""Holds TCP connections open and sends nothing, as a stranger may: `idle_callers.py COUNT PORT...`, until it is ended.

A connection that is hung up on is opened again. Prints `ready` when all are open for the first time.
"""

import resource
import socket
import sys
import time


def closed(sock):
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def opened(port):
    try:
        sock = socket.create_connection(("127.0.0.1", port), timeout=1)
    except OSError:
        return None
    sock.setblocking(False)
    return sock


def main(count, ports):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held, ready = [None] * count, False
    while True:
        for place, sock in enumerate(held):
            if sock is None or closed(sock):
                if sock is not None:
                    sock.close()
                held[place] = opened(ports[place % len(ports)])
        if not ready:
            print("ready", flush=True)  # noqa: T201
            ready = True
        time.sleep(0.2)


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(port) for port in sys.argv[2:]])
