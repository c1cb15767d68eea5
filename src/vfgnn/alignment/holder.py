"""A holder's part in finding the common nodes: its own ids go in, the rows of the common ones come out.

What leaves: tokens.py and psi.py say it for their method, order.py for what both have in common.
"""

import pyarrow as pa
import torch

from vfgnn import randomness
from vfgnn.alignment import order, psi, tokens
from vfgnn.alignment.order import Aligned
from vfgnn.alignment.program import ALIGNMENT_KEY, ID_COUNT, PSI, AlignmentPlan, Counts
from vfgnn.alignment.tokens import OwnTokens
from vfgnn.channel import Channel


class AligningHolder:
    """Finds the common ids among its own."""

    def __init__(self, channel: Channel, plan: AlignmentPlan, ids: pa.Array, key: bytes | None) -> None:
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
