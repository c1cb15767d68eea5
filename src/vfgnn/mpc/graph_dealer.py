"""The dealer's side of the private sparse product: masks and pads, and its two of the three permutations.

Runs at the dealer. It sees declared sizes, its own random numbers, Sigma_2 of each owner (uniform) and one bounce for
each owner, partner and hop (uniform, because it lacks r2). What leaves: two bounces, uniform to the partner.
Steps and letters: `sparse.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from vfgnn.channel import Channel
from vfgnn.mpc.correlations import Counters, take_up
from vfgnn.mpc.graph_masks import GraphMasks, Size
from vfgnn.mpc.graph_shape import GraphKinds, GraphShape
from vfgnn.mpc.permutation import checked_table
from vfgnn.mpc.scan import place_differences, place_sums


@dataclass(frozen=True, repr=False)
class DealerTables:
    """Of one owner."""

    places_1: torch.Tensor  # [n]: P'_1, of which only n rows are not zero
    gather_2: torch.Tensor  # [N]: Sigma_2
    places_3: torch.Tensor  # [N]: P'_3


class GraphDealer:
    """The dealer's side of all hops of a run; `seeds` are the holders'."""

    def __init__(
        self, channel: Channel, shape: GraphShape, seeds: Mapping[str, bytes], *, run: str, kinds: GraphKinds
    ) -> None:
        self._channel, self._shape, self._kinds = channel, shape, kinds
        self._masks = {holder: GraphMasks(seeds[holder], run=run, holder=holder) for holder in shape.holders}
        self._tables: dict[str, DealerTables] = {}
        self._counters = Counters()
        self._under_way = dict[int, int]()  # hops that have begun, with their widths

    def exchange(self) -> None:
        """Receive Sigma_2 of each owner. Reveals: nothing; nothing leaves."""
        for owner in self._shape.owners:
            slots, masks = self._shape.slots(owner), self._masks[owner]
            places_1 = masks.permutation(1, slots)[: self._shape.nodes].clone()
            gather_2 = checked_table(self._channel.receive(owner, self._kinds.gather_2), slots, owner)
            self._tables[owner] = DealerTables(places_1, gather_2, masks.permutation(3, slots))

    def begin(self, channel: Channel, counter: int, width: int) -> None:
        """Step 4 of one hop, for all owners and partners. Reveals: nothing; the bounce is uniform to the partner."""
        self._counters.take("sparse", counter)
        self._under_way[counter] = width
        shape, kinds = self._shape, self._kinds
        a = {j: self._masks[j].mask(counter, (shape.nodes, width)) for j in shape.holders if shape.owners_beside(j)}
        for owner, partner in shape.pairs:
            r1 = self._masks[owner].pad(1, partner, counter, self._size(owner, width))
            channel.send(partner, kinds.bounce_1, place_differences(a[partner], self._tables[owner].places_1, r1))

    def complete(self, channel: Channel, counter: int) -> None:
        """Step 6 of a hop that has begun. Reveals: nothing; the bounce is uniform to the partner."""
        width = take_up(self._under_way, counter)
        shape, kinds = self._shape, self._kinds
        for owner, partner in shape.pairs:
            bounced, tables = channel.receive(partner, kinds.bounce_2), self._tables[owner]
            r3 = self._masks[owner].pad(3, partner, counter, self._size(owner, width))
            channel.send(partner, kinds.bounce_3, place_sums(bounced, tables.gather_2, tables.places_3, r3))

    def _size(self, owner: str, width: int) -> Size:
        return self._shape.slots(owner), width
