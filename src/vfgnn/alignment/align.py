"""Which nodes the holders share, and in which common order: what each party does, before anything else is sent.

Runs at all parties. A holder gets the rows of its own table in the common order; everyone else gets their number.
What leaves: tokens.py and psi.py say it for their method, order.py for what both have in common.
"""

import pyarrow as pa
import torch

from vfgnn import randomness
from vfgnn.agreement import SERVER
from vfgnn.alignment import order, psi, tokens
from vfgnn.alignment.order import Aligned
from vfgnn.alignment.program import ALIGNMENT_KEY, ID_COUNT, PSI, Counts, Plan, aligning
from vfgnn.alignment.tokens import OwnTokens
from vfgnn.channel import Channel
from vfgnn.program import carry_out


def align(channel: Channel, plan: Plan, ids: pa.Array | None = None, *, key: bytes | None = None) -> Aligned:
    """One party's part, from the opening to the common order; `ids` at holders, a `key` at the label holder in tests.

    Reveals: how many ids a holder has, and which are common (tokens.py and psi.py: to whom).
    """
    role: AligningHolder | AligningServer | AligningBystander
    if ids is not None:
        role = AligningHolder(channel, plan, ids, key)
    elif channel.party == SERVER and plan.method != PSI:
        role = AligningServer(channel, plan)
    else:
        role = AligningBystander(channel, plan)
    carry_out(aligning(plan), role)
    return role.aligned


class AligningHolder:
    """Finds the common ids among its own."""

    def __init__(self, channel: Channel, plan: Plan, ids: pa.Array, key: bytes | None) -> None:
        self.channel, self._plan = channel, plan
        self._texts = tokens.checked(ids, party=channel.party, max_ids=plan.max_ids)
        self._key = key
        self._own: OwnTokens | None = None
        self.known = Counts()
        self.aligned = Aligned(0)

    def open(self, moment: Counts) -> None:
        """Agree on the key, tell how many ids there are. Reveals: the key to the other holders; the number."""
        channel, plan, me = self.channel, self._plan, self.channel.party
        self._key = key = self._agree_on_key()
        for matcher in plan.matchers(me):
            channel.send(matcher, ID_COUNT, torch.tensor([len(self._texts)]))
        self._own = OwnTokens.of(self._texts, key)
        counts = {me: len(self._texts)}
        if plan.method == PSI:
            counts |= {other: int(channel.receive(other, ID_COUNT)) for other in plan.matchers(me)}
        self.known = Counts(counts)

    def _agree_on_key(self) -> bytes:
        """Only the label holder chooses it. Reveals: the key to the other holders."""
        channel, leader = self.channel, self._plan.label_holder
        if channel.party != leader:
            return channel.receive(leader, ALIGNMENT_KEY).numpy().tobytes()
        key = self._key or randomness.new_seed()
        for holder in self._plan.other_holders:
            channel.send(holder, ALIGNMENT_KEY, torch.frombuffer(bytearray(key), dtype=torch.uint8))
        return key

    def exchange_tokens(self, moment: Counts) -> None:
        """Reveals: the tokens to the server."""
        self.known = Counts(moment.ids, tokens.hand_in(self.channel, self._mine))

    def learn_positions(self, moment: Counts) -> None:
        """Where the common ids are among its own."""
        self._found(tokens.hear_rows(self.channel, self._mine))

    def intersect(self, moment: Counts) -> None:
        """Reveals: to the other holder, which ids are common."""
        self._found(psi.match(self.channel, self._plan, self._mine, self._texts, moment.ids))

    def settle(self, moment: Counts) -> None:
        """Compare the order with the others'. Reveals: order.settle's."""
        order.settle(self.channel, self._plan, self.aligned)

    @property
    def _mine(self) -> OwnTokens:
        if self._own is None:
            raise RuntimeError("open() comes first")
        return self._own

    def _found(self, rows: torch.Tensor) -> None:
        self.aligned = Aligned(len(rows), rows, order.digest(self._texts, rows, self._key or b""))


class AligningServer:
    """Matches the tokens of all holders."""

    def __init__(self, channel: Channel, plan: Plan) -> None:
        self.channel, self._plan = channel, plan
        self.known = Counts()
        self._lists: dict[str, tokens.Tokens] = {}
        self._common: tokens.Tokens | None = None
        self.aligned = Aligned(0)

    def open(self, moment: Counts) -> None:
        """Hear how many ids each holder has."""
        self.known = Counts({holder: int(self.channel.receive(holder, ID_COUNT)) for holder in self._plan.holders})

    def exchange_tokens(self, moment: Counts) -> None:
        """Reveals: to each holder, how many ids are common."""
        self._lists = tokens.collect(self.channel, self._plan)
        self._common = tokens.intersection(self._lists)
        self.known = Counts(moment.ids, len(self._common))
        tokens.tell_count(self.channel, self._plan, len(self._common))

    def learn_positions(self, moment: Counts) -> None:
        """Reveals: to each holder, which of its own ids are common."""
        if self._common is not None:
            tokens.tell_positions(self.channel, self._plan, self._lists, self._common)

    def settle(self, moment: Counts) -> None:
        """Hear that all holders have the same order."""
        self.aligned = Aligned(order.hear_count(self.channel, self._plan, expected=moment.common))


class AligningBystander:
    """Has no part in finding the nodes, and hears how many there are."""

    known = Counts()

    def __init__(self, channel: Channel, plan: Plan) -> None:
        self.channel, self._plan = channel, plan
        self.aligned = Aligned(0)

    def settle(self, moment: Counts) -> None:
        """Hear it."""
        self.aligned = Aligned(order.hear_count(self.channel, self._plan))
