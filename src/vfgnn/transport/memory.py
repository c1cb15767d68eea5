"""All parties in one process: the transport of simulations, experiments and tests.

Each party runs in its own thread, and they share nothing but copies of messages.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping

import torch

from vfgnn.channel import Channel
from vfgnn.errors import ChannelClosed
from vfgnn.messages import Declared
from vfgnn.randomness import derive_key, new_seed
from vfgnn.transport.wire import PROTOCOLS, Start

SIMULATION = "simulation"
"""The name of every run in memory: masks and noise follow from seeds that everybody knows anyway."""


class InMemoryNetwork:
    """The queues between all parties."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queues: dict[tuple[str, str], deque[tuple[Declared, torch.Tensor]]] = defaultdict(deque)
        self._failure: BaseException | None = None
        self._secret = new_seed()  # of the digests in message logs

    def channel(self, party: str) -> Channel:
        """The end of all links that belongs to `party`."""
        return Channel(party, self.transport(party))

    def transport(self, party: str) -> "InMemoryTransport":
        """What a session of `party` goes over."""
        return InMemoryTransport(self, party)

    def run(self, parties: Mapping[str, Callable[[], object]], *, cores: Mapping[str, int] | None = None) -> None:
        """Run every party to its end; the first error of any party ends all and is raised here.

        `cores`: how many each party's kernels may use; one if not given.
        """
        threads = [
            threading.Thread(target=self._run_one, args=(work, (cores or {}).get(name, 1)), name=name)
            for name, work in parties.items()
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(timeout=0.2)  # a plain join would not let Ctrl-C through
        except KeyboardInterrupt as interrupt:
            self.fail(interrupt)
            raise
        if self._failure is not None:
            raise self._failure

    def _run_one(self, work: Callable[[], object], cores: int) -> None:
        torch.set_num_threads(cores)  # of this thread only
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (it is raised again in `run`)
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Whoever waits for a message hears of it; the first error is raised in `run`."""
        with self._changed:
            if self._failure is None:
                self._failure = error
            self._changed.notify_all()

    def put(self, message: Declared, payload: torch.Tensor) -> None:
        """Queue a copy: what the sender does to its tensor later stays with the sender."""
        copy = payload.detach().to("cpu", copy=True)
        with self._changed:
            self._queues[message.sender, message.receiver].append((message, copy))
            self._changed.notify_all()

    def get(self, sender: str, receiver: str) -> tuple[Declared, torch.Tensor]:
        """Wait until the link has a message."""
        with self._changed:
            link = self._queues[sender, receiver]  # inside the lock: two threads must not each make a queue for it
            self._changed.wait_for(lambda: link or self._failure)
            if self._failure is not None:
                raise ChannelClosed(f"{sender} ended before its message came", where=f"party {receiver}")
            return link.popleft()

    def log_key(self, sender: str, receiver: str) -> bytes:
        """The same at both ends."""
        return derive_key(self._secret, "log key", sender, receiver)


class InMemoryTransport:
    """One party's view of the network."""

    def __init__(self, network: InMemoryNetwork, party: str) -> None:
        self._network, self._party = network, party

    def open(self, *, wait_s: float, key: str) -> Start:
        """Everybody is there already."""
        return Start(run=SIMULATION, start=SIMULATION, step=0, protocol=PROTOCOLS[-1])

    def close(self, error: BaseException | None = None) -> None:
        """Nothing is open; `InMemoryNetwork.run` tells the others of an error."""

    def put(self, message: Declared, payload: torch.Tensor) -> None:
        """Queue a copy."""
        self._network.put(message, payload)

    def get(self, sender: str, *, patient: bool = False) -> tuple[Declared, torch.Tensor]:
        """Wait for the next message from `sender`."""
        return self._network.get(sender, self._party)

    def log_key(self, sender: str, receiver: str) -> bytes:
        """For the digests of a link, in the message logs of its two ends."""
        return self._network.log_key(sender, receiver)

    def interrupt(self, error: BaseException) -> None:
        """In one process all parties end together."""
        self._network.fail(error)
