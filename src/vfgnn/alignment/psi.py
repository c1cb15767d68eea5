"""Alignment of two holders by private set intersection: nobody else sees anything of their ids, encrypted or not.

1. The label holder draws a key and gives it to the other holder; each says how many ids it has.  32 + 16 bytes
2. The holder with fewer ids asks: its ids, encrypted under a key of its own.                     35 bytes per id
3. The other answers: its ids, encrypted under its own key, sorted,                               35 bytes per id
   and the asker's ids, encrypted once more.                                                      35 bytes per asked id
4. The asker takes its own encryption off the answer, finds the common ids, and tells the other by keyed tokens.
                                                                                                  16 bytes per common id
Three rounds. The ids go in by a secret order, so a place in a message means nothing. Both learn how many ids the other
has and which are common; both must follow the protocol.

Requests go in pieces: the other encrypts its ids while the asker makes the requests, and the asker reads the answer to
one piece while the other works on the next, so that both are busy. Each uses as many threads as torch has.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import pyarrow as pa
import torch

from vfgnn import randomness
from vfgnn.alignment import program
from vfgnn.alignment.openmined import OpenMined
from vfgnn.alignment.program import (
    COMMON_COUNT,
    COMMON_TOKENS,
    PSI_REQUEST,
    PSI_RESPONSE,
    PSI_SETUP,
    PSI_SIZE,
    AlignmentPlan,
)
from vfgnn.alignment.tokens import Numbers, OwnTokens, from_tensor, to_tensor
from vfgnn.channel import Channel
from vfgnn.messages import Kind


def match(
    channel: Channel, plan: AlignmentPlan, own: OwnTokens, ids: pa.Array, counts: Mapping[str, int]
) -> torch.Tensor:
    """A holder's side, from step 2 on: rows of the common ids.

    Reveals: to the other holder, which ids are common.
    """
    me = channel.party
    (other,) = plan.matchers(me)
    if program.asker(plan, counts) == me:
        positions = _positions(own, _ask(channel, other, ids, counts))
        _tell(channel, other, own, positions)
    else:
        _answer(channel, other, ids, counts)
        positions = _hear(channel, other, own)
    return own.rows_at(positions, other)


def _ask(channel: Channel, other: str, ids: pa.Array, counts: Mapping[str, int]) -> Numbers:
    """Rows of the common ids, in no order.

    Reveals: nothing but how many ids there are.
    """
    end, pieces = OpenMined(other), _shuffled(len(ids))
    with _workers() as pool:
        for piece, request in zip(pieces, pool.map(end.request, _texts(ids, pieces)), strict=True):
            _send(channel, other, PSI_REQUEST, request, ids=len(piece))
        setup = end.read_setup(_receive(channel, other, PSI_SETUP, ids=counts[other]), counts[other])
        responses = (_receive(channel, other, PSI_RESPONSE, ids=len(piece)) for piece in pieces)
        found = pool.map(partial(end.common, setup), responses, map(len, pieces))
        return np.concatenate([piece[at] for piece, at in zip(pieces, found, strict=True)])


def _answer(channel: Channel, other: str, ids: pa.Array, counts: Mapping[str, int]) -> None:
    """Reveals: to the asker, which of its ids are common."""
    end, asked = OpenMined(other), program.piece_counts(counts[other])
    with _workers() as pool:
        setup = end.setup(pool.map(end.encrypted, _texts(ids, _shuffled(len(ids)))))
        _send(channel, other, PSI_SETUP, setup, ids=len(ids))
        requests = (_receive(channel, other, PSI_REQUEST, ids=count) for count in asked)
        for count, response in zip(asked, pool.map(end.response, requests, asked), strict=True):
            _send(channel, other, PSI_RESPONSE, response, ids=count)


def _tell(channel: Channel, other: str, own: OwnTokens, positions: Numbers) -> None:
    """Reveals: to the other holder, which of its ids are common."""
    me, common = channel.party, len(positions)
    channel.enter("alignment common", program.common_count(me, other))
    channel.send(other, COMMON_COUNT, torch.tensor([common]))
    channel.enter("alignment common", program.common_tokens(me, other, common))
    channel.send(other, COMMON_TOKENS, to_tensor(own.tokens[positions]))


def _hear(channel: Channel, other: str, own: OwnTokens) -> Numbers:
    me = channel.party
    channel.enter("alignment common", program.common_count(other, me))
    common = program.possible(int(channel.receive(other, COMMON_COUNT)), len(own.tokens), other, least=0)
    channel.enter("alignment common", program.common_tokens(other, me, common))
    return own.positions(from_tensor(channel.receive(other, COMMON_TOKENS)), other)


def _positions(own: OwnTokens, rows: Numbers) -> Numbers:
    """Where the tokens of these rows are, sorted."""
    common = np.zeros(len(own.rows), dtype=bool)
    common[rows] = True
    return np.flatnonzero(common[own.rows])


def _shuffled(count: int) -> list[Numbers]:
    """All rows in a secret order, cut into pieces."""
    order = torch.argsort(randomness.Stream(randomness.new_seed(), "psi order").words(count))
    return [piece.numpy() for piece in torch.split(order, program.piece_counts(count))]


def _texts(ids: pa.Array, pieces: list[Numbers]) -> Iterator[list[bytes]]:
    return (ids.take(pa.array(piece)).to_pylist() for piece in pieces)


@contextmanager
def _workers() -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(torch.get_num_threads())
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)  # after an error, nobody waits for work that nobody will use


def _send(channel: Channel, receiver: str, kind: Kind, message: bytes, *, ids: int) -> None:
    """Reveals: an encrypted message to `receiver`, which can compare what it holds but not read it."""
    me, size, phase = channel.party, len(message), f"alignment {kind}"
    channel.enter(phase, program.psi_size(me, receiver))
    channel.send(receiver, PSI_SIZE, torch.tensor([size]))
    channel.enter(phase, program.psi_message(kind, me, receiver, size=size, ids=ids))
    channel.send(receiver, kind, torch.frombuffer(bytearray(message), dtype=torch.uint8))


def _receive(channel: Channel, sender: str, kind: Kind, *, ids: int) -> bytes:
    me, phase = channel.party, f"alignment {kind}"
    channel.enter(phase, program.psi_size(sender, me))
    size = int(channel.receive(sender, PSI_SIZE))
    channel.enter(phase, program.psi_message(kind, sender, me, size=size, ids=ids))
    return channel.receive(sender, kind).numpy().tobytes()
