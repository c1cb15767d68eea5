"""Which nodes the holders share, and in which common order: what each party calls, before anything else is sent.

Runs at all parties. A holder gets the rows of its own table in the common order; everyone else gets their number.
What leaves: tokens.py and psi.py say it for their method, order.py for what both have in common.
"""

import pyarrow as pa
import torch

from vfgnn import randomness
from vfgnn.alignment import order, psi, schedule, tokens
from vfgnn.alignment.order import Aligned
from vfgnn.alignment.schedule import PSI, Plan
from vfgnn.alignment.tokens import OwnTokens
from vfgnn.channel import Channel
from vfgnn.messages import Kind


def align_holder(
    channel: Channel,
    *,
    method: str,
    holders: tuple[str, ...],
    label_holder: str,
    others: tuple[str, ...],
    ids: pa.Array,
    max_ids: int,
    key: bytes | None = None,
) -> Aligned:
    """Find the common ids among this holder's own; the label holder may be given a `key`, for tests.

    Reveals: how many ids this holder has, and which are common (tokens.py and psi.py: to whom).
    """
    plan = Plan(method, holders, label_holder, others, max_ids)
    texts = tokens.checked(ids, party=channel.party, max_ids=max_ids)
    channel.enter("alignment opening", schedule.opening(plan))
    key = _key(channel, plan, key)
    for matcher in plan.matchers(channel.party):
        channel.send(matcher, Kind.ID_COUNT, torch.tensor([len(texts)]))
    own = OwnTokens.of(texts, key)
    rows = psi.match(channel, plan, own, texts) if method == PSI else tokens.match(channel, plan, own)
    aligned = Aligned(rows, order.digest(texts, rows, key))
    order.settle(channel, plan, aligned)
    return aligned


def align_server(
    channel: Channel,
    *,
    method: str,
    holders: tuple[str, ...],
    label_holder: str,
    others: tuple[str, ...],
    max_ids: int,
) -> int:
    """The number of nodes. By tokens, the server matches them first; by psi, it only waits.

    Reveals: by tokens, to each holder which of its ids are common.
    """
    plan = Plan(method, holders, label_holder, others, max_ids)
    common = None if method == PSI else tokens.serve(channel, plan)
    return order.hear_count(channel, plan, expected=common)


def wait_for_count(
    channel: Channel,
    *,
    method: str,
    holders: tuple[str, ...],
    label_holder: str,
    others: tuple[str, ...],
    max_ids: int,
) -> int:
    """The number of nodes, for the dealer, who has no part in finding them."""
    return order.hear_count(channel, Plan(method, holders, label_holder, others, max_ids))


def _key(channel: Channel, plan: Plan, key: bytes | None) -> bytes:
    """The key of this alignment, which only the label holder chooses.

    Reveals: the key to the other holders.
    """
    if channel.party != plan.label_holder:
        return channel.receive(plan.label_holder, Kind.ALIGNMENT_KEY).numpy().tobytes()
    key = key or randomness.new_seed()
    for holder in plan.other_holders:
        channel.send(holder, Kind.ALIGNMENT_KEY, torch.frombuffer(bytearray(key), dtype=torch.uint8))
    return key
