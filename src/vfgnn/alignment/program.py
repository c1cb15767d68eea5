"""Alignment as a table: which messages it has, in which phase, from whom to whom, and how large.

    opening      the key among the holders; how many ids each holder has, to whoever matches them
    tokens       method "tokens": every holder's tokens to the server; how many are common, back
    positions    method "tokens": where in its own list each holder finds them
    psi          method "psi": request, setup and response, each as long as the PSI_SIZE before it said; then how many
                 ids are common, and their tokens
    order        digests of the common order to the label holder; then, if all are equal, the number of nodes to all

Each party follows it with the counts that concern it. Nothing private goes in or comes out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import torch

from vfgnn.agreement import SERVER
from vfgnn.errors import ConfigError, ProtocolError
from vfgnn.messages import SEED, WORD, Declared, Kind
from vfgnn.program import Phase, Program

ALIGNMENT_KEY = Kind("alignment_key", "the key under which ids become tokens; the server never gets it")
ID_COUNT = Kind("id_count", "how many ids the sender has")
TOKENS_SENT = Kind("tokens", "how many ids the sender has, and which of its tokens others have too; no id")
COMMON_COUNT = Kind("common_count", "how many ids all holders have")
COMMON_POSITIONS = Kind("common_positions", "which of its own ids are common")
PSI_SIZE = Kind("psi_size", "how many bytes the coming PSI message has")
PSI_REQUEST = Kind("psi_request", "nothing: the sender's ids, encrypted under a key of its own")
PSI_SETUP = Kind("psi_setup", "nothing: the sender's ids, encrypted under a key of its own, in sorted order")
PSI_RESPONSE = Kind("psi_response", "which of its own ids are common: its request, encrypted once more")
COMMON_TOKENS = Kind("common_tokens", "which of its own ids are common")
ORDER_DIGEST = Kind("order_digest", "whether the sender has the common ids in the same order")
NODE_COUNT = Kind("node_count", "how many nodes there are, and that the order is the same at all holders")

TOKENS, PSI = "tokens", "psi"
TOKEN_BYTES = 16
DIGEST = (torch.uint8, (32,))
COUNT = (WORD, (1,))
PIECES = 16  # of one holder's ids: small enough that the last one hardly delays the end
SMALLEST_PIECE = 1024  # ids; below, a piece is not worth its message
ELEMENT_BYTES, FRAME_BYTES = 35, 16  # a curve point as protobuf writes it; the rest of a PSI message, at most


@dataclass(frozen=True)
class AlignmentPlan:
    """Who aligns, by which method: public and the same at all parties."""

    method: str
    holders: tuple[str, ...]
    label_holder: str
    others: tuple[str, ...]  # everyone but the label holder
    max_ids: int  # no holder may have more

    def __post_init__(self) -> None:
        if self.method not in (TOKENS, PSI):
            raise ConfigError("unknown way to align the nodes", expected=f"'{TOKENS}' or '{PSI}'", got=self.method)
        if len(self.holders) < 2 or (self.method == PSI and len(self.holders) > 2):
            raise ConfigError(
                f"alignment by {self.method} is for another number of holders",
                expected="2" if self.method == PSI else "2 or more",
                got=str(len(self.holders)),
                hint=f"'{TOKENS}' takes any number of holders from 2 on",
            )
        if self.label_holder not in self.holders or self.label_holder in self.others:
            raise ConfigError("the label holder must be a holder, and not one of the others", got=self.label_holder)
        if not set(self.other_holders) <= set(self.others):
            raise ConfigError("the other holders must be among the others", expected=", ".join(self.other_holders))
        if self.method == TOKENS and SERVER not in self.others:
            raise ConfigError(f"alignment by {TOKENS} needs the server", expected=f"'{SERVER}' among the others")
        if self.max_ids < 1:
            raise ConfigError("max_ids must be at least 1", got=str(self.max_ids))

    @property
    def other_holders(self) -> tuple[str, ...]:
        """All holders but the label holder."""
        return tuple(name for name in self.holders if name != self.label_holder)

    def matchers(self, holder: str) -> tuple[str, ...]:
        """Who needs to know how many ids `holder` has."""
        return (SERVER,) if self.method == TOKENS else tuple(name for name in self.holders if name != holder)


@dataclass(frozen=True)
class Counts:
    """What a party knows of sizes: how many ids the holders have, as far as it was told, and how many are common."""

    ids: Mapping[str, int] = field(default_factory=dict)
    common: int = 0
    number: int | None = None
    opens: bool = True
    closes: bool = True


def aligning(plan: AlignmentPlan) -> Program[Counts]:
    """From ids to a common order."""
    by_tokens: tuple[Phase[Counts], ...] = (
        Phase("alignment tokens", "exchange_tokens", lambda counts: tokens(plan, counts.ids)),
        Phase("alignment positions", "learn_positions", lambda counts: positions(plan, counts.common)),
    )
    by_psi: tuple[Phase[Counts], ...] = tuple(
        Phase("alignment psi", "intersect", partial(_asked_by, plan, asks), partial(_asks, plan, asks), announced=True)
        for asks in plan.holders
    )
    table: tuple[Phase[Counts], ...] = (
        Phase("alignment opening", "open", lambda _: opening(plan)),
        *(by_tokens if plan.method == TOKENS else by_psi),
        Phase("alignment order", "settle", lambda _: order(plan)),
    )
    most = Counts(dict.fromkeys(plan.holders, plan.max_ids), plan.max_ids)
    return Program("alignment", (plan.label_holder, *plan.others), plan.label_holder, table, most)


def opening(plan: AlignmentPlan) -> list[Declared]:
    """The key, and counts of a fixed shape on which the later shapes depend."""
    keys = [Declared(ALIGNMENT_KEY, plan.label_holder, holder, *SEED) for holder in plan.other_holders]
    counts = [
        Declared(ID_COUNT, holder, matcher, *COUNT) for holder in plan.holders for matcher in plan.matchers(holder)
    ]
    return keys + counts


def tokens(plan: AlignmentPlan, counts: Mapping[str, int]) -> list[Declared]:
    """As many tokens as their holders said; a holder knows its own count, the server all."""
    lists = [
        Declared(TOKENS_SENT, holder, SERVER, torch.uint8, (possible(count, plan.max_ids, holder), TOKEN_BYTES))
        for holder, count in counts.items()
    ]
    return lists + [Declared(COMMON_COUNT, SERVER, holder, *COUNT) for holder in plan.holders]


def positions(plan: AlignmentPlan, common: int) -> list[Declared]:
    """One position for each common id."""
    return [Declared(COMMON_POSITIONS, SERVER, holder, WORD, (common,)) for holder in plan.holders]


def asker(plan: AlignmentPlan, counts: Mapping[str, int]) -> str:
    """The holder with fewer ids asks: the other encrypts its own ids once and those of the asker once more."""
    for holder, count in counts.items():
        possible(count, plan.max_ids, holder)
    return min((plan.label_holder, *plan.other_holders), key=lambda holder: counts[holder])


def piece_counts(ids: int) -> list[int]:
    """How many ids each piece has: while one end works on a piece, the other end works on the one before."""
    pieces = min(PIECES, -(-ids // SMALLEST_PIECE))
    share, more = divmod(ids, pieces)
    return [share + 1] * more + [share] * (pieces - more)


def psi_size(sender: str, receiver: str) -> list[Declared]:
    """Goes before each PSI message."""
    return [Declared(PSI_SIZE, sender, receiver, *COUNT)]


def psi_message(kind: Kind, sender: str, receiver: str, *, size: int, ids: int) -> list[Declared]:
    """A serialised message over `ids` ids, as long as its sender said."""
    most = most_bytes(ids)
    if not 0 < size <= most:
        raise ProtocolError(
            "a PSI message of no possible size",
            expected=f"1 to {most} bytes for {ids} ids",
            got=str(size),
            where=sender,
        )
    return [Declared(kind, sender, receiver, torch.uint8, (size,))]


def most_bytes(ids: int) -> int:
    """Upper bound of a PSI message over that many ids."""
    return ELEMENT_BYTES * ids + FRAME_BYTES


def common_count(sender: str, receiver: str) -> list[Declared]:
    """How many ids the asker has found to be common."""
    return [Declared(COMMON_COUNT, sender, receiver, *COUNT)]


def common_tokens(sender: str, receiver: str, common: int) -> list[Declared]:
    """One token for each of them."""
    return [Declared(COMMON_TOKENS, sender, receiver, torch.uint8, (common, TOKEN_BYTES))]


def order(plan: AlignmentPlan) -> list[Declared]:
    """All digests come in before the number of nodes goes out."""
    leader = plan.label_holder
    digests = [Declared(ORDER_DIGEST, holder, leader, *DIGEST) for holder in plan.other_holders]
    return digests + [Declared(NODE_COUNT, leader, party, *COUNT) for party in plan.others]


def possible(count: int, most: int, sender: str, *, least: int = 1) -> int:
    """The count, or an error that names who said it."""
    if not least <= count <= most:
        raise ProtocolError("a count that cannot be", expected=f"{least} to {most}", got=str(count), where=sender)
    return count


def _asks(plan: AlignmentPlan, holder: str, counts: Counts) -> bool:
    """Whether this holder asks; who knows no counts has no part in it."""
    return bool(counts.ids) and asker(plan, counts.ids) == holder


def _asked_by(plan: AlignmentPlan, asks: str, _: Counts) -> list[Declared]:
    """All of PSI, with as many ids as there may be: one phase, so that nobody waits for the other to be ready."""
    (answers,) = plan.matchers(asks)
    pieces = piece_counts(plan.max_ids)
    exchanged = [(PSI_REQUEST, asks, answers, ids) for ids in pieces]
    exchanged += [(PSI_SETUP, answers, asks, plan.max_ids)]
    exchanged += [(PSI_RESPONSE, answers, asks, ids) for ids in pieces]
    messages = common_count(asks, answers) + common_tokens(asks, answers, plan.max_ids)
    for kind, sender, receiver, ids in exchanged:
        messages += psi_size(sender, receiver)
        messages += psi_message(kind, sender, receiver, size=most_bytes(ids), ids=ids)
    return messages
