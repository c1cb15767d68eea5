"""Additive secret sharing in Z_2^64: a secret is the sum of its shares, and any I - 1 of them are uniform.

Bits are shared by XOR, 8 in each byte: whatever has the type uint8 is joined by XOR, and all other types by addition.
`split` and `reconstruct` are local. `reveal` is the only call that makes a secret known to anybody, and it is counted.
"""

from collections.abc import Mapping, Sequence

import torch

from vfgnn import randomness
from vfgnn.channel import Channel
from vfgnn.messages import Kind
from vfgnn.randomness import Stream

BITS = torch.uint8
"""The type of what is joined by XOR."""


def split(secret_ring: torch.Tensor, parties: int, stream: Stream) -> list[torch.Tensor]:
    """Shares of a secret: all but the last are words of the stream."""
    masks = [stream.words(*secret_ring.shape) for _ in range(parties - 1)]
    last = secret_ring.clone()
    for mask in masks:
        last -= mask
    return [*masks, last]


def reconstruct(shares: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sum; of bits, the XOR."""
    total = shares[0].clone()
    for share in shares[1:]:
        total = join(total, share)
    return total


def without(whole: torch.Tensor, shares: Sequence[torch.Tensor]) -> torch.Tensor:
    """What is missing when these shares are taken away; in the memory of `whole`."""
    for share in shares:
        whole = join(whole, share) if share.dtype == BITS else whole.sub_(share)
    return whole


def join(total: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """Both together, in the memory of `total`."""
    return total.bitwise_xor_(share) if share.dtype == BITS else total.add_(share)


def reveal(
    channel: Channel, *shares: torch.Tensor, holders: Sequence[str], to: Sequence[str], name: Kind
) -> list[torch.Tensor]:
    """Open values of which every one of `holders` has a share: the sums at the parties in `to`, nothing at the others.

    One round for any number of values, as many words to each receiver as they have. Reveals: the sums, to `to`.
    """
    me = channel.party
    channel.count_reveals(name, len(shares))
    for share in shares:
        for receiver in to:
            if receiver != me:
                channel.send(receiver, name, share)
    if me not in to:
        return []
    others = [holder for holder in holders if holder != me]
    sums = []
    for share in shares:
        total = share
        for other in others:  # what has come is ours to change, the share is not
            total = join(channel.receive(other, name).to(share.device), total)
        sums.append(total)
    return sums


class ZeroSharing:
    """A holder's part of fresh sharings of zero, from a seed that it has in common with each other holder.

    For i < j, i adds and j subtracts the same words (both XOR the same bits), so all parts sum to 0, and each is
    uniform to everyone who lacks one of its seeds. With two holders there is nothing to hide from a third, and the
    parts are left out: a share that is revealed to its only counterpart is what is revealed minus the counterpart's
    own share.
    """

    def __init__(self, me: str, names: Sequence[str], seeds: Mapping[str, bytes]) -> None:
        place = {name: i for i, name in enumerate(names)}
        self._adds = {name: place[me] < place[name] for name in seeds} if len(names) > 2 else {}
        self._seeds = seeds

    def hide(self, share: torch.Tensor, counter: int) -> torch.Tensor:
        """`share` plus this holder's part of the sharing of zero number `counter`."""
        for name, adds in self._adds.items():
            stream = Stream(self._seeds[name], "zero", counter)
            part = stream.integers(*share.shape, dtype=share.dtype).to(share.device)
            share = reconstruct([share, part]) if adds else without(share.clone(), [part])
        return share


def exchange_pair_seeds(
    channel: Channel, names: Sequence[str], *, seed: bytes, run: str, kind: Kind
) -> dict[str, bytes]:
    """One fresh seed for each pair of holders, if there are three or more; the earlier one draws it from its own.

    Reveals: to the later one, the seed that the two have in common.
    """
    me, seeds = channel.party, dict[str, bytes]()
    if len(names) < 3:
        return seeds
    for other in names[names.index(me) + 1 :]:
        seeds[other] = randomness.derive_key(seed, "pair", run, other)
        channel.send(other, kind, torch.tensor(list(seeds[other]), dtype=torch.uint8))
    for other in names[: names.index(me)]:
        seeds[other] = bytes(channel.receive(other, kind).tolist())
    return seeds
