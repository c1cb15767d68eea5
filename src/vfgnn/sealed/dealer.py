"""The dealer in the sealed protocol: hands out seeds, corrections, and its part of the chain of permutations.

Sees: sizes, how many rows train, validate or are asked for, its own random numbers, factors of permutations and padded
sums, both uniform. It reads no link between holders. Together with any one holder it could undo every mask.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Condition

import torch

from vfgnn import randomness
from vfgnn.agreement import Agreement
from vfgnn.channel import Channel
from vfgnn.checkpoint import NoState
from vfgnn.contribution import Contribution
from vfgnn.mpc.correlations import Direction, Masks
from vfgnn.mpc.dealing import Dealt
from vfgnn.mpc.graph_dealer import GraphDealer
from vfgnn.mpc.material import Corrections
from vfgnn.mpc.shared import Operation
from vfgnn.sealed.offline import OfflineWork
from vfgnn.sealed.program import (
    ASKED_COUNTS,
    COLUMNS_CORRECTION,
    CORRECTION,
    GRAPH_KINDS,
    MATERIAL_SEED,
    NODES_CORRECTION,
    ROW_COUNTS,
    Begun,
    SealedMoment,
    dealing_order,
    graph_shape,
    largest,
)
from vfgnn.sealed.rehearsal import Hop, Item, ToColumns, ToNodes


@dataclass(frozen=True, repr=False)
class HolderMasks:
    """What follows from the seeds that the dealer has in common with each holder."""

    products: Dealt
    corrections: Corrections


class DealerOffline(OfflineWork):
    """Deals, and hands on what is bounced."""

    def __init__(
        self, agreement: Agreement, channel: Channel, known: SealedMoment, *, masks: HolderMasks, graphs: GraphDealer
    ) -> None:
        super().__init__(agreement, channel, known)
        self._products, self._corrections, self._graphs = masks.products, masks.corrections, graphs
        self._columns = {owner.name for owner in agreement.feature_holders}
        self._begun = self._hops = self._multiplied = 0
        self._changed, self._failure = Condition(), list[BaseException]()
        self._steps = -1  # that have been dealt for

    def deal_step(self, moment: SealedMoment) -> None:
        """For one step, and tell that it is done."""
        super().deal_step(moment)
        with self._changed:
            self._steps = moment.number or 0
            self._changed.notify_all()

    def wait_for(self, step: int) -> None:
        """Until it has been dealt for."""
        with self._changed:
            self._changed.wait_for(lambda: self._steps >= step or self._failure)
        if self._failure:
            raise self._failure[0]

    def deal(self, items: Iterable[Item]) -> None:
        """Reveals: nothing; what is dealt is uniform to its receiver."""
        for item in dealing_order(self.agreement, items):
            if isinstance(item, Begun):
                self._graphs.begin(self.channel, self._begun, item.width)
                self._begun += 1
            elif isinstance(item, Hop):
                self._graphs.complete(self.channel, self._hops)
                self._hops += 1
            elif isinstance(item, ToColumns):
                self._deal_products("backward", item.width)
            elif isinstance(item, ToNodes):
                self._deal_products("forward", item.width)
            elif isinstance(item, Operation):
                for correction in self._corrections.compute([item]):
                    self.channel.send(self.agreement.holder_names[-1], CORRECTION, correction)

    def _deal_products(self, direction: Direction, width: int) -> None:
        self._multiplied += 1
        kind = COLUMNS_CORRECTION if direction == "backward" else NODES_CORRECTION
        for name in self.agreement.holder_names:
            if self._columns - {name}:
                self.channel.send(name, kind, self._products.correction(name, direction, self._multiplied, width))

    def fail(self, error: BaseException) -> None:
        """The steps hear it when they wait."""
        with self._changed:
            self._failure.append(error)
            self._changed.notify_all()


class SealedDealer:
    """Hands out seeds; then all its work is ahead of the holders."""

    result = None  # it learns nothing
    state_type = NoState

    def __init__(self, agreement: Agreement, channel: Channel, own: Contribution) -> None:
        self.agreement, self.channel = agreement, channel
        names, columns = agreement.holder_names, {k.name: k.features for k in agreement.feature_holders}
        self._seeds = {name: randomness.derive_key(own.seed, "sealed", own.run, name) for name in names}
        masks = {name: Masks(seed, run=own.run, holder=name) for name, seed in self._seeds.items()}
        products = Dealt(masks, columns, agreement.nodes, agreement.classes - 1)
        self._masks = HolderMasks(products, Corrections(self._seeds, run=own.run))
        self._graphs = GraphDealer(channel, graph_shape(agreement), self._seeds, run=own.run, kinds=GRAPH_KINDS)
        self._moment = largest(agreement)
        self.offline: DealerOffline | None = None

    @property
    def known(self) -> SealedMoment:
        """How many rows train and validate, or are asked for; never which."""
        return self._moment

    def set_up(self, moment: SealedMoment) -> None:
        """Hear how many rows there are, and where this start goes on; seeds; factors of permutations.

        Reveals: to each holder, randomness that only it and the dealer can expand.
        """
        train, val, begin = self.channel.receive(self.agreement.label_holder, ROW_COUNTS).tolist()
        self._moment = SealedMoment(train, val, begin=begin)
        self._begin()

    def ask(self, moment: SealedMoment) -> None:
        """Hear how many rows are asked for."""
        asked, train, begin = self.channel.receive(self.agreement.label_holder, ASKED_COUNTS).tolist()
        self._moment = SealedMoment(train, 0, asked=asked, begin=begin)

    def set_up_anew(self, moment: SealedMoment) -> None:
        """As in training, if anything is asked for."""
        if moment.asked:
            self._begin()

    def _begin(self) -> None:
        for name, seed in self._seeds.items():
            self.channel.send(name, MATERIAL_SEED, torch.tensor(list(seed), dtype=torch.uint8))
        self._graphs.exchange()
        links = self.channel.beside(self.agreement.holder_names)
        self.offline = DealerOffline(self.agreement, links, self._moment, masks=self._masks, graphs=self._graphs)

    def step(self, moment: SealedMoment) -> None:
        """Nothing is sent; whoever watches hears of a step when it has been dealt for."""
        if self.offline is not None:
            self.offline.wait_for(moment.number or 0)

    def state(self) -> NoState:
        """Nothing."""
        return NoState()

    def load(self, state: NoState) -> None:
        """Nothing to take up."""

    def close(self) -> None:
        """What runs ahead ends with the program."""
