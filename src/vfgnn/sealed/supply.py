"""What the dealer has dealt to one holder: made in the thread that runs ahead, used up by the steps.

Both go through the same items in the same order, so the steps never wait for what comes after what they need. How much
may lie here is bounded in bytes. Runs at each holder; nothing is revealed (offline.py).
"""

from collections import deque
from collections.abc import Iterable
from functools import partial
from threading import Condition
from typing import Generic, TypeVar

import torch

from vfgnn import logs
from vfgnn.agreement import DEALER, Agreement
from vfgnn.channel import Channel
from vfgnn.mpc.products import Prepared, PrivateProducts
from vfgnn.mpc.shared import Operation
from vfgnn.mpc.sparse import PreparedHop, PrivateGraphs
from vfgnn.sealed.offline import OfflineWork
from vfgnn.sealed.program import (
    COLUMNS_CORRECTION,
    CORRECTION,
    NODES_CORRECTION,
    Begun,
    SealedMoment,
    dealing_order,
)
from vfgnn.sealed.rehearsal import Hop, Item, ToColumns, ToNodes

MOST_BYTES = 2**28  # that lie here unused; one item more where nothing else does
T = TypeVar("T")


class Stock(Generic[T]):
    """Things of one kind, in the order in which they are used."""

    def __init__(self, supply: "Supply") -> None:
        self._supply = supply
        self._things: deque[tuple[T, int]] = deque()

    def put(self, thing: T, size: int) -> None:
        """Wait for room, then lay it down."""
        self._supply.make_room(size)
        with self._supply.changed:
            self._things.append((thing, size))
            self._supply.changed.notify_all()

    def take(self) -> T:
        """The next one, as soon as it is there; the operator hears that the dealer is waited for."""
        supply = self._supply
        with supply.changed:
            ready = partial(supply.changed.wait_for, lambda: self._things or supply.failure)
            logs.tell_waiting(ready, lambda: {"peers": DEALER, "of": "what it deals ahead"})
            if not self._things and supply.failure is not None:
                raise supply.failure
            thing, size = self._things.popleft()
            supply.held -= size
            supply.changed.notify_all()
            return thing


class Supply:
    """Between the two threads of a holder."""

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        self.changed, self.held = Condition(), 0
        self.failure: BaseException | None = None
        self._most = most_bytes
        self.corrections = Stock[torch.Tensor](self)
        self.products = Stock[Prepared](self)
        self.hops = Stock[PreparedHop](self)

    def make_room(self, size: int) -> None:
        """Wait until `size` more bytes fit, or nothing else lies here."""
        with self.changed:
            self.changed.wait_for(lambda: not self.held or self.held + size <= self._most or self.failure)
            if self.failure is not None:
                raise self.failure
            self.held += size

    def fail(self, error: BaseException) -> None:
        """Neither thread waits for the other any longer."""
        with self.changed:
            self.failure = self.failure or error
            self.changed.notify_all()

    def next_correction(self) -> torch.Tensor:
        """Of the coming operation."""
        return self.corrections.take()

    def next_product(self) -> Prepared:
        """What the coming product with features needs ahead."""
        return self.products.take()

    def next_hop(self) -> PreparedHop:
        """The offline part of the coming hop."""
        return self.hops.take()


class HolderOffline(OfflineWork):
    """Receives, and answers the dealer's bounces."""

    def __init__(
        self,
        agreement: Agreement,
        channel: Channel,
        known: SealedMoment,
        supply: Supply,
        *,
        graphs: PrivateGraphs,
        products: PrivateProducts,
    ) -> None:
        super().__init__(agreement, channel, known)
        self._supply, self._graphs, self._products = supply, graphs, products
        self._begun = self._completed = self._multiplied = 0
        self._corrected = channel.party == agreement.holder_names[-1]

    def deal(self, items: Iterable[Item]) -> None:
        """Everything for these items. Reveals: nothing; what goes back to the dealer is padded."""
        for item in dealing_order(self.agreement, items):
            if isinstance(item, Begun):
                self._graphs.begin(self.channel, self._begun, item.width)
                self._begun += 1
            elif isinstance(item, Hop):
                hop = self._graphs.complete(self.channel, self._completed)
                self._completed += 1
                self._supply.hops.put(hop, hop.bytes)
            elif isinstance(item, (ToColumns, ToNodes)):
                self._multiply(item)
            elif isinstance(item, Operation) and self._corrected:
                for _ in item.correction:
                    correction = self.channel.receive(DEALER, CORRECTION)
                    self._supply.corrections.put(correction, correction.nbytes)

    def _multiply(self, item: ToColumns | ToNodes) -> None:
        back = isinstance(item, ToColumns)
        self._multiplied += 1
        made = self._products.prepared(
            self.channel,
            "backward" if back else "forward",
            self._multiplied,
            COLUMNS_CORRECTION if back else NODES_CORRECTION,
            dim=item.width,
        )
        self._supply.products.put(made, made.bytes)

    def fail(self, error: BaseException) -> None:
        """The steps hear it when they ask for more."""
        self._supply.fail(error)
