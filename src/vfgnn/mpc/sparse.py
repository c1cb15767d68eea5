"""Products of private graphs with a matrix that all holders share: shares of A U or A U + U, A = sum_i A_i.

Holder i owns the binary, symmetric A_i and declares a bound M_i on its directed entries. Over N_i = n + M_i slots
(slots.py) A_i + I = diff P3 sum P2 sum P1 diff; each permutation is split, P_k = Sigma_k P'_k with P'_k uniform.
Setup: 1. i -> dealer: Sigma_2. 2. i -> each j: seeds of P'_2 and r2. 3. i -> j: Sigma_1, and the n rows of Sigma_3.
Offline, for each owner i and partner j:          (P'_1, P'_3, r1, r3: seed of i and dealer; a_j: of j and dealer)
  4. dealer -> j: m1 = P'_1 diff a_j + r1    5. j -> dealer: m2 = P'_2 sum Sigma_1 m1 + r2
  6. dealer -> j: m3 = P'_3 sum Sigma_2 m2 + r3, and j takes diff Sigma_3 m3 - a_j
  7. i does 4 to 6 on the pads alone, without a_j, and takes minus that. The two add up to A_i a_j.
Online: 8. j -> each i: U_j - a_j. 9. i adds A_i (U_i + sum_j (U_j - a_j)).
Rounds: 1 online; 3 messages for each pair offline. Words: n w online; 3 N_i w for each pair and hop.
Uniform: to the dealer, which lacks r2 and P'_2; to j, which lacks r1, r3, P'_1 and P'_3; to i, which receives step 8
only and lacks a_j. Any I - 1 holders lack the seeds of the last one and the dealer. Permutations stay for a run: from
hop to hop and from partner to partner (P'_2, Sigma_1, Sigma_3 are the same for all) only the pads and a_j are fresh.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import torch

from vfgnn import randomness
from vfgnn.agreement import DEALER
from vfgnn.channel import Channel
from vfgnn.errors import CorrelationReused, DataError, ProtocolError
from vfgnn.mpc.correlations import Counters, take_up
from vfgnn.mpc.graph_masks import GraphMasks
from vfgnn.mpc.graph_shape import GraphKinds, GraphShape
from vfgnn.mpc.permutation import checked_table, left_factor
from vfgnn.mpc.scan import gather_differences, place_sums
from vfgnn.mpc.slots import check_edges, slots_of


@dataclass(frozen=True, repr=False)
class PreparedHop:
    """What a holder keeps of the offline part of one hop, until it is used."""

    counter: int
    mask: torch.Tensor | None  # a_j [n, w]; None where nobody else owns edges
    share: torch.Tensor  # [n, w], of the sum of all A_i a_j
    digest: bytes  # of this holder's edges

    @property
    def bytes(self) -> int:
        """That it takes in memory."""
        return self.share.nbytes + (0 if self.mask is None else self.mask.nbytes)


@dataclass(frozen=True, repr=False)
class PartnerTables:
    """What a partner has of an owner's permutations."""

    gather_1: torch.Tensor  # [N]: Sigma_1
    places_2: torch.Tensor  # [N]: P'_2
    gather_3: torch.Tensor  # [n]: Sigma_3, of which only n rows are wanted
    masks: GraphMasks  # r2

    def bounce(self, m1: torch.Tensor, r2: torch.Tensor) -> torch.Tensor:
        """Step 5, in r2's memory."""
        return place_sums(m1, self.gather_1, self.places_2, r2)

    def finish(self, m3: torch.Tensor) -> torch.Tensor:
        """Step 6: diff Sigma_3 m3 [n, w]."""
        return gather_differences(m3, self.gather_3)


@dataclass(frozen=True, repr=False)
class OwnerTables:
    """All of an owner's tables but P'_1, which it needs for Sigma_1 only."""

    partner: PartnerTables
    gather_2: torch.Tensor  # [N]: Sigma_2
    places_3: torch.Tensor  # [N]: P'_3


class PrivateGraphs:
    """One holder's side of all hops under one name `run`, which nothing else may use: masks follow from it.

    Its edges cannot change: new ones need a new start of the run.
    """

    def __init__(
        self,
        channel: Channel,
        shape: GraphShape,
        edge_index: torch.Tensor | None,
        *,
        seed: bytes,
        dealer_seed: bytes,
        run: str,
        kinds: GraphKinds,
    ) -> None:
        """`seed` is this holder's own; `dealer_seed` is known to it and the dealer."""
        self._channel, self._shape, self._kinds = channel, shape, kinds
        self._seed, self._run, me = seed, run, channel.party
        self._masks = GraphMasks(dealer_seed, run=run, holder=me)
        self._edges = check_edges(edge_index, nodes=shape.nodes, declared=shape.entries[me], holder=me)
        self._digest = self._edges.digest
        self._matrix = self._edges.matrix(shape.entries[me]) if me in shape.owners else None
        self._own: OwnerTables | None = None
        self._pads: dict[str, GraphMasks] = {}  # r2 towards each partner
        self._tables: dict[str, PartnerTables] = {}  # of each other owner
        self._counters = Counters()
        self._under_way = dict[int, int]()  # hops that have begun, with their widths
        self._unused = set[int]()

    def exchange(self) -> None:
        """Steps 1 to 3: draw and split this holder's permutations, send the factors, receive those of other owners.

        Reveals: nothing; each factor is uniform to its receiver.
        """
        me, shape, channel, kinds = self._channel.party, self._shape, self._channel, self._kinds
        if me in shape.owners:
            self._send_factors()
        for owner in shape.owners_beside(me):
            order, pads = (bytes(channel.receive(owner, k).tolist()) for k in (kinds.order_seed, kinds.pad_seed))
            slots = shape.slots(owner)
            gather_1 = checked_table(channel.receive(owner, kinds.gather_1), slots, owner)
            gather_3 = checked_table(channel.receive(owner, kinds.gather_3), slots, owner)
            places_2 = GraphMasks(order, run=self._run, holder=owner).permutation(2, slots)
            masks = GraphMasks(pads, run=self._run, holder=owner)
            self._tables[owner] = PartnerTables(gather_1, places_2, gather_3, masks)

    def _send_factors(self) -> None:
        """Reveals: nothing; see `exchange`."""
        me, shape, channel, kinds = self._channel.party, self._shape, self._channel, self._kinds
        order = randomness.derive_key(self._seed, "graph order", self._run)
        own = self._own = self._split(GraphMasks(order, run=self._run, holder=me))
        channel.send(DEALER, kinds.gather_2, own.gather_2)
        for other in shape.holders:
            if other == me:
                continue
            pads = randomness.derive_key(self._seed, "graph pads", self._run, other)
            self._pads[other] = GraphMasks(pads, run=self._run, holder=me)
            channel.send(other, kinds.order_seed, torch.tensor(list(order), dtype=torch.uint8))
            channel.send(other, kinds.pad_seed, torch.tensor(list(pads), dtype=torch.uint8))
            channel.send(other, kinds.gather_1, own.partner.gather_1)
            channel.send(other, kinds.gather_3, own.partner.gather_3)

    def _split(self, order: GraphMasks) -> OwnerTables:
        """Draw P'_1 to P'_3 and compute what is left of the true permutations."""
        me = self._channel.party
        number, slots = self._shape.slots(me), slots_of(self._edges, self._shape.entries[me])
        places_2, places_3 = order.permutation(2, number), self._masks.permutation(3, number)
        gather_1 = left_factor(slots.starts, self._masks.permutation(1, number))
        gather_3 = places_3[slots.ends.long()]
        partner = PartnerTables(gather_1, places_2, gather_3, order)
        return OwnerTables(partner, left_factor(slots.reorder, places_2), places_3)

    def begin(self, channel: Channel, counter: int, width: int) -> None:
        """Steps 4 and 5 of hop number `counter`, for a matrix of `width` columns; its number is spent first.

        May run ahead in a thread of its own, over a `channel` of its own, and several hops before `complete`.
        Reveals: nothing; every bounce is uniform to the dealer.
        """
        self._counters.take("sparse", counter)
        self._under_way[counter] = width
        kinds = self._kinds
        for owner, tables in self._tables.items():
            m1 = channel.receive(DEALER, kinds.bounce_1)
            r2 = tables.masks.pad(2, channel.party, counter, (self._shape.slots(owner), width))
            channel.send(DEALER, kinds.bounce_2, tables.bounce(m1, r2))

    def complete(self, channel: Channel, counter: int) -> PreparedHop:
        """Steps 6 and 7 of a hop that has begun, in the same thread. Reveals: nothing; nothing leaves."""
        width = take_up(self._under_way, counter)
        kinds, size = self._kinds, (self._shape.nodes, width)
        share = torch.zeros(size, dtype=torch.int64) if self._own is None else self._on_pads(self._own, counter, width)
        mask = self._masks.mask(counter, size) if self._tables else None
        for tables in self._tables.values():
            share += tables.finish(channel.receive(DEALER, kinds.bounce_3))
        if mask is not None:
            share.sub_(mask, alpha=len(self._tables))
        self._unused.add(counter)
        return PreparedHop(counter, mask, share, self._digest)

    def _on_pads(self, own: OwnerTables, counter: int, width: int) -> torch.Tensor:
        """Step 7, once for the sums of all partners' pads: everything is linear in them."""
        size = (self._shape.slots(self._channel.party), width)
        r1 = _sum(self._masks.pad(1, partner, counter, size) for partner in self._pads)
        r2 = _sum(pads.pad(2, partner, counter, size) for partner, pads in self._pads.items())
        m2 = own.partner.bounce(r1, r2)
        r3 = _sum(self._masks.pad(3, partner, counter, size) for partner in self._pads)
        return own.partner.finish(place_sums(m2, own.gather_2, own.places_3, r3)).neg_()

    def times(self, share: torch.Tensor, prepared: PreparedHop, *, self_loops: bool) -> torch.Tensor:
        """Steps 8 and 9: a share of A U + U, or of A U without `self_loops`, from a share of U [n, w].

        Uses up `prepared`. Reveals: nothing; U_j - a_j is uniform to every owner.
        """
        self._claim(share, prepared)
        me, channel, kinds = self._channel.party, self._channel, self._kinds
        if prepared.mask is not None:
            masked = share - prepared.mask
            for owner in self._tables:
                channel.send(owner, kinds.masked, masked)
        result = prepared.share
        if self._matrix is not None:
            total = share.clone()
            for other in self._shape.holders:
                if other != me:
                    total += channel.receive(other, kinds.masked)
            result += self._matrix.times(total)
        return result.add_(share) if self_loops else result

    def _claim(self, share: torch.Tensor, prepared: PreparedHop) -> None:
        if prepared.digest != self._digest:
            raise ProtocolError(
                "a hop that was prepared for other edges", where=self._channel.party, hint="prepare it anew"
            )
        if share.shape != prepared.share.shape or share.dtype != torch.int64:
            raise ProtocolError(
                "a share that the hop was not prepared for",
                expected=f"int64 {list(prepared.share.shape)}",
                got=f"{share.dtype} {list(share.shape)}",
                where=self._channel.party,
            )
        if prepared.counter not in self._unused:
            raise CorrelationReused("a mask would be used twice", got=f"hop number {prepared.counter} again")
        self._unused.remove(prepared.counter)

    def require_unchanged(self, edge_index: torch.Tensor | None, *, nodes: int) -> None:
        """Refuse edges or a number of nodes other than those that the permutations were drawn for."""
        me = self._channel.party
        edges = check_edges(edge_index, nodes=nodes, declared=self._shape.entries[me], holder=me)
        if edges.digest != self._digest:
            raise DataError(
                "edges or nodes have changed since the permutations were drawn",
                where=f"edges of {me}",
                hint="start the run again: every start draws fresh permutations",
            )


def _sum(pads: Iterable[torch.Tensor]) -> torch.Tensor:
    """In the first one's memory; there are never two of them at a time beside it."""
    return reduce(torch.Tensor.add_, pads)
