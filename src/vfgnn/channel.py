"""The only way out of a party, and the only way in.

A program calls `enter` with the messages it declares for the coming phase; from then on each link accepts
exactly those, in that order, and `enter` refuses to go on while any of them is outstanding. Everything else raises
`ProtocolError` before a byte is sent, or before a byte that came is used.

What moves the bytes is a `Transport`: memory or TLS connections, both in `transport/`. Parties never see which.
"""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from threading import RLock
from typing import Protocol

import torch

from vfgnn.errors import ProtocolError
from vfgnn.message_log import MessageLog
from vfgnn.messages import Declared, Kind
from vfgnn.records import Traffic
from vfgnn.view_file import ViewRecorder


class Transport(Protocol):
    """Moves declared messages of one party; knows nothing of their meaning."""

    def put(self, message: Declared, payload: torch.Tensor) -> None:
        """Hand over a payload, which the sender does not change afterwards; returns before the receiver uses it."""

    def get(self, sender: str, *, patient: bool = False) -> tuple[Declared, torch.Tensor]:
        """Wait for the next message from `sender`; `patient`: for as long as it is there."""

    def log_key(self, sender: str, receiver: str) -> bytes:
        """For the digests of this link in the message logs of its two ends: the same at both, drawn by the sender."""

    def interrupt(self, error: BaseException) -> None:
        """Whichever thread waits for a message hears this instead."""


class Channel:
    """One party's end of all its links."""

    def __init__(
        self, party: str, transport: Transport, *, log: MessageLog | None = None, view: ViewRecorder | None = None
    ) -> None:
        self.party = party
        self.traffic = Traffic()
        self.revealed: Counter[str] = Counter()  # values that were opened from shares, by kind
        self._transport, self.log, self._view, self._start = transport, log, view, ""
        self._phase = "before setup"
        self._step: int | None = None
        self._expected: dict[tuple[str, str], deque[Declared]] = {}
        self._whole, self._noting = self, RLock()  # one log and one count of traffic for all threads of a party
        self._stopped: BaseException | None = None
        self.apart = frozenset[str]()  # peers that only a channel beside this one exchanges anything with

    def begin(self, start: str) -> None:
        """The parties have met: `start` names what follows, in the message log."""
        self._start = start

    def beside(self, peers: Iterable[str]) -> "Channel":
        """This party's links with `peers`, for a thread of their own."""
        made = Channel(self.party, self._transport)
        made._whole, self.apart = self, frozenset(peers)
        return made

    def rejoin(self) -> None:
        """The thread has ended: its links are this party's own again."""
        self._whole.apart = frozenset()

    def stop(self, error: BaseException) -> None:
        """Nothing is sent or received from now on; whoever tries hears why."""
        with self._whole._noting:
            self._stopped = error

    def interrupt(self, error: BaseException) -> None:
        """No thread of this party waits for a message any longer."""
        self._transport.interrupt(error)

    def turn_page(self, log: Callable[[], MessageLog]) -> None:
        """Go on with the log that `log` opens; nothing is noted before it is there."""
        with self._noting:
            self.log = log()

    def enter(self, phase: str, messages: Iterable[Declared], *, step: int | None = None) -> None:
        """Begin a phase: what `messages` declares for this party is what may, and must, happen in it."""
        self.finish()
        self._phase, self._step = phase, step
        self._expected = defaultdict(deque)
        for message in messages:
            if self.party in (message.sender, message.receiver):
                self._expected[message.sender, message.receiver].append(message)

    def finish(self) -> None:
        """Refuse to leave a phase in which a declared message is outstanding."""
        outstanding = [str(message) for link in self._expected.values() for message in link]
        if outstanding:
            raise self._refusal("the phase ended too early", outstanding[0], "nothing more")

    def send(self, receiver: str, kind: Kind, payload: torch.Tensor) -> None:
        """Send the message that the schedule names next on this link.

        Reveals: the payload, to `receiver`.
        """
        declared = self._next(self.party, receiver)
        given = Declared(kind, self.party, receiver, payload.dtype, tuple(payload.shape))
        self._compare(declared, given, payload)
        self._expected[self.party, receiver].popleft()
        self._note(given, payload)
        self._transport.put(given, payload)

    def receive(self, sender: str, kind: Kind, *, patient: bool = False) -> torch.Tensor:
        """Wait for the message that the schedule names next on this link; `patient`: it may come in days."""
        declared = self._next(sender, self.party)
        if declared.kind != kind:
            raise self._refusal("this party asked for another message", str(declared), str(kind))
        began = time.perf_counter()
        given, payload = self._transport.get(sender, patient=patient)
        waited = time.perf_counter() - began
        self._compare(declared, given, payload)
        self._expected[sender, self.party].popleft()
        self._note(given, payload, waited_s=waited)
        return payload

    def count_reveals(self, kind: Kind, values: int) -> None:
        """For the record: so many values are about to be opened from shares, to whomever the program says."""
        self.revealed[kind] += values

    def _note(self, message: Declared, payload: torch.Tensor, *, waited_s: float = 0.0) -> None:
        """Before what leaves has left, or what came is used."""
        whole = self._whole
        with whole._noting:
            if self._stopped is not None:
                raise self._stopped
            if whole.log is not None:
                key = self._transport.log_key(message.sender, message.receiver)
                whole.log.add(whole._start, message, payload, key, phase=self._phase, step=self._step)
            if whole._view is not None:
                whole._view.add(whole._start, message, payload, phase=self._phase, step=self._step)
            ends = {"sender": message.sender, "receiver": message.receiver}
            whole.traffic.count(phase=self._phase, **ends, size=message.bytes, waited_s=waited_s)

    def _next(self, sender: str, receiver: str) -> Declared:
        link = self._expected.get((sender, receiver))
        if not link:
            raise self._refusal("a message outside the schedule", "nothing more", f"{sender}->{receiver}")
        return link[0]

    def _compare(self, declared: Declared, given: Declared, payload: torch.Tensor) -> None:
        if given != declared:
            raise self._refusal("a message that is not the declared one", str(declared), str(given))
        if payload.is_floating_point() and not _finite(payload):
            raise self._refusal("a message with NaN or infinite values", "finite values", str(given))

    def _refusal(self, what: str, expected: str, got: str) -> ProtocolError:
        when = self._phase if self._step is None else f"{self._phase} of step {self._step}"
        return ProtocolError(what, expected=expected, got=got, where=f"party {self.party}, {when}")


def _finite(payload: torch.Tensor) -> bool:
    # A finite sum proves finite values in one pass; only a sum that overflowed needs the slower look.
    return bool(torch.isfinite(payload.sum())) or bool(torch.isfinite(payload).all())
