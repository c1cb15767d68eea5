"""Small federations with real keys, and what tests do to their connections."""

import socket
import threading
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import torch

from tests.conftest import random_graph
from vfgnn.data.partition import partition
from vfgnn.files import FederationFile, Patience, load_party, to_toml
from vfgnn.lab.federation import split_labels
from vfgnn.lab.local_files import write_federation
from vfgnn.messages import Declared
from vfgnn.settings import Settings
from vfgnn.split.program import CONTROL, H0_SHARE
from vfgnn.transport import certificates
from vfgnn.transport.capacity import Capacity, LinkBudget
from vfgnn.transport.endpoint import Endpoint
from vfgnn.transport.network import Network

WINDOW = 8
QUICK = Patience(start_s=20, message_s=20, away_s=5)
SMALL = {"dim": 8, "epochs": 4, "layers": 2, "accept_h0_leak": True}


def small(folder, *, holders=2, patience=QUICK, seed=0, holdings=None, graph=None, **settings):
    """The files of a federation over a random graph."""
    graph = graph or random_graph()
    holdings = holdings or partition(graph.x, graph.edge_index, holders=holders, seed=seed)
    made = Settings(**{**SMALL, **settings})
    return write_federation(
        Path(folder), holdings, split_labels(graph), made, insecure_seed=seed, patience=patience, threads=1
    )


def rewrite(local, **changes):
    """The same federation with another public file: `changes` are top-level fields or `name={...}` of a party."""
    document = local.file.document
    for key, value in changes.items():
        holders = {holder["name"]: holder for holder in document["holders"]}
        if key in holders:
            holders[key].update(value)
        elif isinstance(value, dict):
            document[key].update(value)
        else:
            document[key] = value
    local.federation_toml.write_text(to_toml(document))
    return type(local)(local.folder, FederationFile.model_validate(document))


def new_certificate(local, party, *, name=None, days=1, age_days=0):
    """Replace a party's key and certificate on its disk; the federation file does not know."""
    now = datetime.now(UTC) - timedelta(days=age_days)
    key, certificate = certificates.new(name or party, days=days, passphrase=None, now=now)
    home = local.folder / party
    (home / f"{party}.key.pem").write_bytes(key)
    (home / f"{party}.certificate.pem").write_bytes(certificate)
    return certificate.decode()


def open_to_others(folder):
    """What `find FOLDER -perm /077` finds; links have no mode of their own."""
    found = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    return sorted(path for path in found if path.stat().st_mode & 0o077)


def endpoint(local, name, **changes):
    return Endpoint(local.file, load_party(local.party_toml(name)), **changes)


class Party:
    """One end of the link between A and B, in a thread; what it heard and how it ended."""

    def __init__(self, local, name, work=lambda network, peer: None, *, also=(), **changes):
        self.name, self.peer = name, "B" if name == "A" else "A"
        self.events, self.error, self._work = [], None, work
        either_way = LinkBudget(WINDOW, WINDOW * 2**26, {H0_SHARE: 2**26, CONTROL: 2**26})
        peers = dict.fromkeys((self.peer, *also), Capacity(either_way, either_way))
        self.network = Network(endpoint(local, name, **changes), peers, on_event=self._hear)
        self.thread = threading.Thread(target=self._live, name=name)

    def begin(self):
        """Start; its port takes calls when this returns. Looks without a call, which the party would have to answer."""
        self.thread.start()
        port = int(self.network._endpoint.party.listen.split(":")[1])
        deadline = time.monotonic() + 20
        while f":{port:04X} 00000000:0000 0A " not in Path("/proc/net/tcp").read_text():  # 0A: listening
            assert self.thread.is_alive() and time.monotonic() < deadline, self.error
            time.sleep(0.01)

    def _hear(self, event, /, **fields):
        self.events.append((event, fields))

    def _live(self):
        try:
            self.start = self.network.open(wait_s=self.network._endpoint.file.patience.start_s)
            self._work(self.network, self.peer)
            self.network.close()
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            self.error = error
            self.network.close(error)

    @property
    def refusals(self):
        return [(fields["peer"], fields["reason"]) for event, fields in self.events if event == "refused"]


def run_pair(one, other):
    run_all(one, other)


def run_all(*parties):
    for party in parties:
        party.thread.start()
    for party in parties:
        party.thread.join(40)
        assert not party.thread.is_alive()


def words(count, start=0):
    return torch.arange(start, start + count)


def declare(sender, receiver, payload, kind=H0_SHARE):
    return Declared(kind, sender, receiver, payload.dtype, tuple(payload.shape))


class Proxy:
    """Forwards TCP and remembers what it saw; `cut` breaks every connection that is open.

    `down` refuses new ones; while `flows` is clear nothing is forwarded: lines that are cut with and without a word.
    """

    def __init__(self, port):
        self.target, self.seen, self._open, self._lock = port, [], [], threading.Lock()
        self._closed = False
        self.down, self.flows = False, threading.Event()
        self.flows.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.down:
                    raise OSError
                callee = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                caller.close()
                continue
            to_callee, to_caller = bytearray(), bytearray()
            with self._lock:
                if self._closed:  # `accept` may let one more in while the listener is being closed
                    caller.close()
                    callee.close()
                    return
                self._open += [caller, callee]
                self.seen.append((to_callee, to_caller))
            for source, sink, kept in ((caller, callee, to_callee), (callee, caller, to_caller)):
                threading.Thread(target=self._pump, args=(source, sink, kept), daemon=True).start()

    def _pump(self, source, sink, kept):
        try:
            while data := source.recv(65536):
                self.flows.wait()
                kept += data
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        with self._lock:
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
            self._open.clear()

    def close(self):
        self.flows.set()
        with self._lock:
            self._closed = True
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


@contextmanager
def proxied(local, *names):
    """The federation with a proxy before each of `names`."""
    proxies = {name: Proxy(int(local.file.parties[name].address.split(":")[1])) for name in names}
    changes = {name: {"address": f"localhost:{proxy.port}"} for name, proxy in proxies.items()}
    try:
        yield rewrite(local, **changes), proxies
    finally:
        for proxy in proxies.values():
            proxy.close()


def tls_records(stream):
    """The records of a TLS stream: (type, version, body)."""
    at, found = 0, []
    while at + 5 <= len(stream):
        size = int.from_bytes(stream[at + 3 : at + 5], "big")
        found.append((stream[at], bytes(stream[at + 1 : at + 3]), bytes(stream[at + 5 : at + 5 + size])))
        at += 5 + size
    return found


def check_tls13(to_callee, to_caller, secrets):
    """Both directions are TLS 1.3 after the first records, and nothing in `secrets` is readable."""
    for stream in (to_callee, to_caller):
        records = tls_records(stream)
        assert records, "nothing was seen"
        handshakes = [body for kind, _, body in records if kind == 22]
        assert len(handshakes) == 1, "one hello in each direction; everything after it is encrypted"
        assert all(kind in (20, 22, 23) for kind, _, _ in records), "a record that is not of TLS 1.3"
        for secret in secrets:
            assert secret not in stream, "plaintext was seen"
    # supported_versions (43) of the server's hello: the version that was chosen
    assert b"\x00\x2b\x00\x02\x03\x04" in tls_records(to_caller)[0][2]
