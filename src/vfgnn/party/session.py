"""One party's part in a command: it meets the others, follows programs over one channel, and says goodbye.

The same for run, predict, serve and the baseline; memory and TLS are two transports of it. What a program reveals to
whom is in the program.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Thread
from typing import Any, Protocol

from vfgnn import logs
from vfgnn.agreement import DEALER
from vfgnn.channel import Channel, Transport
from vfgnn.files import FederationFile, PartyFile
from vfgnn.message_log import MessageLog
from vfgnn.program import LinkUse, Program, links
from vfgnn.transport.capacity import Capacity, LinkBudget
from vfgnn.transport.endpoint import Endpoint
from vfgnn.transport.network import Network
from vfgnn.transport.wire import Start
from vfgnn.view_file import ViewRecorder
from vfgnn.writing import patient

DISK_SHARE = 0.5  # of message_s: before the others stop waiting for a message, this party has left in order
AnyProgram = Program[Any]  # whatever its moments are


class MeetingTransport(Transport, Protocol):
    """A transport whose ends have to meet first."""

    def open(self, *, wait_s: float, key: str) -> Start:
        """Meet all peers within `wait_s`, which the federation file calls `key`; where all stand."""

    def close(self, error: BaseException | None = None) -> None:
        """Say goodbye, or why this party failed."""


class Session:
    """A channel over a transport, from meeting to goodbye."""

    def __init__(
        self, me: str, transport: MeetingTransport, *, log: MessageLog | None = None, view: ViewRecorder | None = None
    ) -> None:
        self._transport = transport
        self.channel = Channel(me, transport, log=log, view=view)

    def resize(self, programs: Iterable[AnyProgram]) -> None:
        """From now on these programs are followed, and no message of another one is read; memory has room for all."""

    @contextmanager
    def met(self, *, wait_s: float = 0.0, key: str = "start_s") -> Iterator[Start]:
        """Inside, all parties are there; an error inside is told to them."""
        try:
            with self._telling(wait_s):
                start = self._transport.open(wait_s=wait_s, key=key)
            self.channel.begin(start.start)
            yield start
            self._transport.close()
        except BaseException as error:
            self._transport.close(error)
            raise

    def _telling(self, wait_s: float) -> AbstractContextManager[object]:
        """Inside, the operator hears for whom this party waits."""
        return nullcontext()


class NetworkSession(Session):
    """Over TLS, to the parties that the federation file lists. `programs`: all that may ever be followed."""

    def __init__(
        self,
        endpoint: Endpoint,
        programs: Iterable[AnyProgram],
        *,
        log: MessageLog | None = None,
        view: ViewRecorder | None = None,
    ) -> None:
        self.network = Network(endpoint, capacities(endpoint.me, programs), on_event=logs.event)
        super().__init__(endpoint.me, self.network, log=log, view=view)
        self._leader = endpoint.file.label_holder

    @contextmanager
    def _telling(self, wait_s: float) -> Iterator[None]:
        """Soon, and then less and less often."""
        met = Event()

        def missing() -> dict[str, object]:
            away = self.network.away
            told = {"heard": "; ".join(f"{who}: {what}" for who, what in away.items())} if away else {}
            peers = " and ".join(away) or f"{self._leader}, which waits for the others"
            return {"peers": peers, "of_s": wait_s, **told}

        thread = Thread(target=logs.tell_waiting, args=(met.wait, missing), name="waiting", daemon=True)
        thread.start()
        try:
            yield
        finally:
            met.set()
            thread.join()

    def resize(self, programs: Iterable[AnyProgram]) -> None:
        """Each link has room for these programs alone, over the number of nodes that they were made for."""
        self.network.resize(capacities(self.channel.party, programs))


def capacities(me: str, programs: Iterable[AnyProgram]) -> dict[str, Capacity]:
    """The peers this party has anything to do with, and how much may be under way either way: two steps' messages.

    From the dealer one step's: its corrections are of the size of h0, and it is ahead of those who use them anyway.
    """
    used = links(*programs)
    peers = {receiver if sender == me else sender: None for sender, receiver in used if me in (sender, receiver)}
    return {peer: Capacity(_budget(used, me, peer), _budget(used, peer, me)) for peer in peers}


def _budget(used: Mapping[tuple[str, str], LinkUse], sender: str, receiver: str) -> LinkBudget:
    use, steps = used.get((sender, receiver), LinkUse()), 1 if DEALER in (sender, receiver) else 2
    return LinkBudget(steps * use.messages, steps * use.bytes, use.kinds)


def disk_patience(file: FederationFile) -> AbstractContextManager[None]:
    """Inside, what this party cannot write is tried again for as long as the others wait for it in any case."""
    return patient(DISK_SHARE * file.patience.message_s, logs.event)


def refuse_unusable_key(file: FederationFile, party: PartyFile) -> None:
    """Refuse a key or certificate that cannot be used, before anything is written."""
    Endpoint(file, party)
