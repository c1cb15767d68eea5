"""The common order, compared before anybody trains on it.

1. Each holder: digest = HMAC-SHA256 under the alignment key over its common ids in their order; to the label holder.
2. The label holder compares all with its own. Only if they are equal, and there is a node, all hear how many there are.

One round, 32 bytes from each holder and 8 to each party. A row that one holder has dropped or put in another place
would train every model on wrong neighbours without anybody's notice; here it ends the run by name.
"""

import hmac
from dataclasses import dataclass, field

import pyarrow as pa
import torch

from vfgnn.alignment.program import NODE_COUNT, ORDER_DIGEST, AlignmentPlan, possible
from vfgnn.channel import Channel
from vfgnn.errors import DataError, ProtocolError


@dataclass(frozen=True, repr=False)
class Aligned:
    """The common nodes; a holder also knows where it has them."""

    nodes: int
    rows: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    """[nodes] at a holder: positions in its own id list, in the common order."""
    digest: bytes = b""  # at a holder: 32 bytes, the same at all of them

    def __repr__(self) -> str:
        return f"Aligned(nodes={self.nodes})"


def digest(ids: pa.Array, rows: torch.Tensor, key: bytes) -> bytes:
    """Of the ids at `rows`, each after its length, so that no two lists read the same."""
    common: list[bytes] = ids.take(pa.array(rows.numpy())).to_pylist()
    return hmac.digest(key, b"".join(len(one).to_bytes(8, "little") + one for one in common), "sha256")


def settle(channel: Channel, plan: AlignmentPlan, aligned: Aligned) -> None:
    """A holder's side: return if all have the same order.

    Reveals: a digest of the order to the label holder; the number of common nodes to everyone.
    """
    nodes = aligned.nodes
    if channel.party == plan.label_holder:
        _compare(channel, plan, aligned.digest)
        _announce(channel, plan, nodes)
    else:
        payload = torch.frombuffer(bytearray(aligned.digest), dtype=torch.uint8)
        channel.send(plan.label_holder, ORDER_DIGEST, payload)
        hear_count(channel, plan, expected=nodes)


def _announce(channel: Channel, plan: AlignmentPlan, nodes: int) -> None:
    """Reveals: the number of common nodes to everyone."""
    if not nodes:
        raise DataError(
            "the holders have no node in common",
            expected="ids that all of them have",
            got="none",
            hint="check that all use the same kind of id, written the same way, and name the right key column",
        )
    for party in plan.others:
        channel.send(party, NODE_COUNT, torch.tensor([nodes]))


def hear_count(channel: Channel, plan: AlignmentPlan, *, expected: int | None = None) -> int:
    """Everyone but the label holder: wait for the number of nodes; `expected` where this party knows it."""
    nodes = int(channel.receive(plan.label_holder, NODE_COUNT))
    least, most = (1, plan.max_ids) if expected is None else (expected, expected)
    return possible(nodes, most, plan.label_holder, least=least)


def _compare(channel: Channel, plan: AlignmentPlan, own: bytes) -> None:
    digests = {holder: channel.receive(holder, ORDER_DIGEST).numpy().tobytes() for holder in plan.other_holders}
    differing = [holder for holder, one in digests.items() if not hmac.compare_digest(one, own)]
    if differing:
        raise ProtocolError(
            "the holders' common nodes are not in the same order",
            expected="the same ids in the same order at all holders",
            got=f"a missing or misplaced row at {', '.join(differing)}, or at {plan.label_holder} itself",
        )
