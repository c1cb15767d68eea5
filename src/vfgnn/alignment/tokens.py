"""Alignment of any number of holders by keyed tokens, with the help of a server that does not collude with any holder.

1. The label holder draws a key and gives it to the other holders, never to the server.      32 bytes to each
2. Each holder: token = first 16 bytes of HMAC-SHA256(key, id); sorted, to the server.       8 + 16 bytes per id
3. The server intersects the lists and tells each holder where in its own the common tokens are.
                                                                                             8 + 8 bytes per common id
4. The common order is that of the sorted tokens (order.py compares it).

Three rounds. The server sees how many ids each holder has and which of their tokens are the same, not the ids: without
the key it cannot test a guess. Server and one holder together can. Each holder learns how many ids are common to all,
and which of its own these are.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from vfgnn.agreement import SERVER
from vfgnn.alignment.program import (
    COMMON_COUNT,
    COMMON_POSITIONS,
    TOKEN_BYTES,
    TOKENS_SENT,
    AlignmentPlan,
    possible,
)
from vfgnn.channel import Channel
from vfgnn.errors import ConfigError, DataError, ProtocolError

Tokens = npt.NDArray[np.bytes_]
"""[count] of 16 bytes each, which numpy sorts and compares as unsigned bytes from the left."""
Numbers = npt.NDArray[np.int64]


def checked(ids: pa.Array, *, party: str, max_ids: int) -> pa.Array:
    """The ids as UTF-8 bytes, if they can be a holder's ids: text, unique, at least one, not more than allowed."""
    ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    if not (pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)):
        raise DataError("ids must be text", expected="strings", got=str(ids.type), where=party)
    if ids.null_count:
        raise DataError("ids are missing", expected="one in each row", got=f"{ids.null_count} empty", where=party)
    if not len(ids):
        raise DataError("no ids at all", expected="one id for each node", got="an empty list", where=party)
    if len(ids) > max_ids:
        raise ConfigError(
            "more ids than the federation allows",
            expected=f"at most {max_ids}",
            got=str(len(ids)),
            where=party,
            hint="raise max_ids at all parties",
        )
    repeats = len(ids) - pc.count_distinct(ids).as_py()
    if repeats:
        raise DataError("ids must be unique", expected="each id once", got=f"{repeats} repeated row(s)", where=party)
    return ids.cast(pa.large_binary())


@dataclass(frozen=True, repr=False)
class OwnTokens:
    """A holder's tokens in sorted order, and the row of its id list that each was made of."""

    tokens: Tokens
    rows: Numbers

    @staticmethod
    def of(ids: pa.Array, key: bytes) -> "OwnTokens":
        """Two seconds for a million ids: the one loop over ids, as HMAC has no vectorised form."""
        digests = b"".join(map(hmac.digest, repeat(key), ids.to_pylist(), repeat("sha256")))
        table = np.frombuffer(digests, np.uint8).reshape(len(ids), -1)[:, :TOKEN_BYTES]
        tokens = _from_bytes(np.ascontiguousarray(table))
        rows = np.argsort(tokens)
        return OwnTokens(tokens[rows], rows)

    def positions(self, tokens: Tokens, sender: str) -> Numbers:
        """Where other tokens are among these; all must be, in the same order."""
        found = np.minimum(np.searchsorted(self.tokens, tokens), len(self.tokens) - 1)
        foreign = int((self.tokens[found] != tokens).sum())
        if foreign:
            raise ProtocolError(
                "common tokens that are not this holder's", expected="none", got=str(foreign), where=f"from {sender}"
            )
        return found

    def rows_at(self, positions: Numbers, sender: str) -> torch.Tensor:
        """The rows of the common ids in the common order, if the positions can be those of a part of this list."""
        inside = not len(positions) or (positions[0] >= 0 and positions[-1] < len(self.tokens))
        if not inside or not bool((positions[1:] > positions[:-1]).all()):
            raise ProtocolError(
                "positions that cannot be",
                expected=f"each larger than the one before, from 0 to {len(self.tokens) - 1}",
                where=f"from {sender}",
            )
        return torch.from_numpy(self.rows[positions])

    def __repr__(self) -> str:
        return f"OwnTokens(count={len(self.tokens)})"


def hand_in(channel: Channel, own: OwnTokens) -> int:
    """A holder's step 2: how many ids are common. Reveals: the tokens to the server."""
    channel.send(SERVER, TOKENS_SENT, to_tensor(own.tokens))
    return possible(int(channel.receive(SERVER, COMMON_COUNT)), len(own.tokens), SERVER, least=0)


def hear_rows(channel: Channel, own: OwnTokens) -> torch.Tensor:
    """A holder's step 3: rows of the common ids."""
    return own.rows_at(channel.receive(SERVER, COMMON_POSITIONS).numpy(), SERVER)


def collect(channel: Channel, plan: AlignmentPlan) -> dict[str, Tokens]:
    """The server's step 2: every holder's tokens."""
    return {holder: _sorted(channel.receive(holder, TOKENS_SENT), holder) for holder in plan.holders}


def tell_count(channel: Channel, plan: AlignmentPlan, common: int) -> None:
    """Reveals: to each holder, the number of common ids."""
    for holder in plan.holders:
        channel.send(holder, COMMON_COUNT, torch.tensor([common]))


def tell_positions(channel: Channel, plan: AlignmentPlan, lists: Mapping[str, Tokens], common: Tokens) -> None:
    """The server's step 3. Reveals: to each holder, which of its own ids are common."""
    for holder in plan.holders:
        channel.send(holder, COMMON_POSITIONS, torch.from_numpy(np.searchsorted(lists[holder], common)))


def intersection(lists: Mapping[str, Tokens]) -> Tokens:
    """What sorted lists without repeats have in common, sorted."""
    shortest, *others = sorted(lists.values(), key=len)
    return reduce(_among, others, shortest)


def _among(tokens: Tokens, others: Tokens) -> Tokens:
    at = np.minimum(np.searchsorted(others, tokens), len(others) - 1)
    kept: Tokens = tokens[others[at] == tokens]
    return kept


def to_tensor(tokens: Tokens) -> torch.Tensor:
    """As a message: uint8 [count, 16]."""
    return torch.from_numpy(tokens.view(np.uint8).reshape(-1, TOKEN_BYTES))


def from_tensor(payload: torch.Tensor) -> Tokens:
    """And back."""
    return _from_bytes(payload.numpy())


def _from_bytes(table: npt.NDArray[np.uint8]) -> Tokens:
    return table.view(f"S{TOKEN_BYTES}").reshape(-1)


def _sorted(payload: torch.Tensor, holder: str) -> Tokens:
    tokens = from_tensor(payload)
    if not bool((tokens[1:] > tokens[:-1]).all()):
        raise ProtocolError("tokens out of order", expected="sorted, without repeats", where=f"from {holder}")
    return tokens
