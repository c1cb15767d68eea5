"""The dealer in the sealed protocol: hands out seeds, corrections, and its part of the chain of permutations.

Sees: sizes, how many rows train, validate or are asked for, its own random numbers, factors of permutations and padded
sums, both uniform. It reads no link between holders. Together with any one holder it could undo every mask.
"""

from collections.abc import Iterable

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
from vfgnn.sealed.program import (
    ASKED_COUNTS,
    COLUMNS_CORRECTION,
    CORRECTION,
    GRAPH_KINDS,
    MATERIAL_SEED,
    NODES_CORRECTION,
    ROW_COUNTS,
    SealedMoment,
    graph_shape,
    largest,
    script_of,
    step_items,
)
from vfgnn.sealed.rehearsal import Hop, Item, ToColumns, ToNodes


class SealedDealer:
    """Deals for every phase before the holders enter it."""

    result = None  # it learns nothing
    state_type = NoState

    def __init__(self, agreement: Agreement, channel: Channel, own: Contribution) -> None:
        self.agreement, self.channel = agreement, channel
        names, columns = agreement.holder_names, {k.name: k.features for k in agreement.feature_holders}
        self._seeds = {name: randomness.derive_key(own.seed, "sealed", own.run, name) for name in names}
        masks = {name: Masks(seed, run=own.run, holder=name) for name, seed in self._seeds.items()}
        self._products = Dealt(masks, columns, agreement.nodes, agreement.classes - 1)
        self._corrections = Corrections(self._seeds, run=own.run)
        self._graphs = GraphDealer(channel, graph_shape(agreement), self._seeds, run=own.run, kinds=GRAPH_KINDS)
        self._columns = columns
        self._hops = self._multiplied = 0
        self._moment = largest(agreement)

    @property
    def known(self) -> SealedMoment:
        """How many rows train and validate, or are asked for; never which."""
        return self._moment

    def set_up(self, moment: SealedMoment) -> None:
        """Hear how many rows there are; seeds; factors of permutations.

        Reveals: to each holder, randomness that only it and the dealer can expand.
        """
        train, val = self.channel.receive(self.agreement.label_holder, ROW_COUNTS).tolist()
        self._moment = SealedMoment(train, val)
        self._begin()

    def ask(self, moment: SealedMoment) -> None:
        """Hear how many rows are asked for."""
        asked, train = self.channel.receive(self.agreement.label_holder, ASKED_COUNTS).tolist()
        self._moment = SealedMoment(train, 0, asked=asked)

    def set_up_anew(self, moment: SealedMoment) -> None:
        """As in training, if anything is asked for."""
        if moment.asked:
            self._begin()

    def _begin(self) -> None:
        for name, seed in self._seeds.items():
            self.channel.send(name, MATERIAL_SEED, torch.tensor(list(seed), dtype=torch.uint8))
        self._graphs.exchange()

    def deal_prepare(self, moment: SealedMoment) -> None:
        """Reveals: nothing, in any phase; what is dealt is uniform to its receiver."""
        self._deal(script_of(self.agreement, self.known).prepare)

    def deal_step(self, moment: SealedMoment) -> None:
        """For one step."""
        self._deal(step_items(self.agreement, moment))

    def deal_finish(self, moment: SealedMoment) -> None:
        """For the predictions."""
        self._deal(script_of(self.agreement, self.known).finish)

    def _deal(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Hop):
                self._graphs.deal(self._hops, item.width)
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
            if set(self._columns) - {name}:
                self.channel.send(name, kind, self._products.correction(name, direction, self._multiplied, width))

    def state(self) -> NoState:
        """Nothing."""
        return NoState()

    def load(self, state: NoState) -> None:
        """Nothing to take up."""

    def close(self) -> None:
        """Nothing runs in the background."""
