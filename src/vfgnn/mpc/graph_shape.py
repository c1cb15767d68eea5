"""The public sizes of the private sparse product, and the messages that follow from them (protocol in `sparse.py`).

All parties compute the same lists. Each list is in the order in which every link sees its messages. Nothing private
goes in: the number of entries is the one that a holder declares.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vfgnn.agreement import DEALER
from vfgnn.errors import ConfigError
from vfgnn.messages import SEED, WORD, Declared, Kind
from vfgnn.mpc.permutation import INDEX, MOST_ROWS


@dataclass(frozen=True)
class GraphShape:
    """Nodes, and the bound M_i on its directed entries that each holder declares, in the holders' common order."""

    nodes: int
    entries: Mapping[str, int]  # of every holder; 0: it has no edges and is no owner

    def __post_init__(self) -> None:
        if self.nodes < 1 or len(self.entries) < 2:
            got = f"{self.nodes} node(s) and {len(self.entries)} holder(s)"
            raise ConfigError("too small for a private graph", expected="1 node and 2 holders at least", got=got)
        for holder, declared in self.entries.items():
            if not 0 <= declared <= MOST_ROWS - self.nodes:
                raise ConfigError(
                    "a declared number of directed entries that cannot be used",
                    expected=f"0 to {MOST_ROWS - self.nodes} for {self.nodes} nodes",
                    got=str(declared),
                    where=f"holder {holder}",
                )

    @property
    def holders(self) -> tuple[str, ...]:
        """In their common order."""
        return tuple(self.entries)

    @property
    def owners(self) -> tuple[str, ...]:
        """Holders that may have edges."""
        return tuple(holder for holder, declared in self.entries.items() if declared)

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each owner with each other holder: its partner."""
        return ((owner, partner) for owner in self.owners for partner in self.holders if partner != owner)

    def slots(self, owner: str) -> int:
        """N_i = n + M_i: one slot for each declared entry, and one for each node."""
        return self.nodes + self.entries[owner]

    def owners_beside(self, holder: str) -> list[str]:
        """Those whose partner this holder is."""
        return [owner for owner in self.owners if owner != holder]


@dataclass(frozen=True)
class GraphKinds:
    """Under which names the messages travel."""

    order_seed: Kind  # setup, owner to partner: of P'_2
    pad_seed: Kind  # setup, owner to partner: of r2
    gather_1: Kind  # setup, owner to partner: Sigma_1
    gather_2: Kind  # setup, owner to dealer: Sigma_2
    gather_3: Kind  # setup, owner to partner: Sigma_3
    bounce_1: Kind  # offline, dealer to partner
    bounce_2: Kind  # offline, partner to dealer
    bounce_3: Kind  # offline, dealer to partner
    masked: Kind  # online, holder to owner


def setup_messages(shape: GraphShape, kinds: GraphKinds) -> list[Declared]:
    """Once for each start of a run."""
    messages = []
    for owner in shape.owners:
        slots, nodes = (INDEX, (shape.slots(owner),)), (INDEX, (shape.nodes,))
        messages.append(Declared(kinds.gather_2, owner, DEALER, *slots))
        for partner in shape.holders:
            if partner != owner:
                messages += [
                    Declared(kinds.order_seed, owner, partner, *SEED),
                    Declared(kinds.pad_seed, owner, partner, *SEED),
                    Declared(kinds.gather_1, owner, partner, *slots),
                    Declared(kinds.gather_3, owner, partner, *nodes),
                ]
    return messages


def begin_messages(shape: GraphShape, kinds: GraphKinds, width: int) -> list[Declared]:
    """Of one hop, ahead of it: to the partners and back."""
    sizes = {owner: (WORD, (shape.slots(owner), width)) for owner in shape.owners}
    first = [Declared(kinds.bounce_1, DEALER, partner, *sizes[owner]) for owner, partner in shape.pairs]
    return first + [Declared(kinds.bounce_2, partner, DEALER, *sizes[owner]) for owner, partner in shape.pairs]


def complete_messages(shape: GraphShape, kinds: GraphKinds, width: int) -> list[Declared]:
    """Of one hop that has begun: to the partners once more."""
    sizes = {owner: (WORD, (shape.slots(owner), width)) for owner in shape.owners}
    return [Declared(kinds.bounce_3, DEALER, partner, *sizes[owner]) for owner, partner in shape.pairs]


def offline_messages(shape: GraphShape, kinds: GraphKinds, width: int) -> list[Declared]:
    """Of one hop, ahead of it, where no other one is under way."""
    return begin_messages(shape, kinds, width) + complete_messages(shape, kinds, width)


def online_messages(shape: GraphShape, kinds: GraphKinds, width: int) -> list[Declared]:
    """Of one hop: one round."""
    size = (WORD, (shape.nodes, width))
    return [Declared(kinds.masked, partner, owner, *size) for owner, partner in shape.pairs]
