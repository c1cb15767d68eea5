"""What the dealer deals: masks that turn a product of two private matrices into messages that tell nothing.

For each holder k with features a constant mask U_k; for each product and each other holder j a mask V of j's matrix and
a mask Z of k's result, each used once, and the correction U_k V - Z (or U_k^T V - Z) for j. Dealer and holder expand
the masks from a 32-byte seed that only these two have, so only corrections have to be sent.

The dealer sees sizes and its own random numbers. A holder sees its own masks; a correction is uniform to it, because it
lacks the Z of the holder with the features.
"""

from typing import Literal

import torch

from vfgnn.errors import CorrelationReused
from vfgnn.randomness import Stream

Direction = Literal["forward", "backward"]  # X_k B, or X_k^T B


class Counters:
    """Which products have been masked in this start of a run: each number once.

    Not on disk: every start has a name of its own, and so masks of its own, whatever an earlier one has used.
    """

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def take(self, direction: Direction | Literal["sparse"], counter: int) -> None:
        """Claim a number, or refuse one that was claimed before."""
        if counter <= self._used.get(direction, -1):
            raise CorrelationReused(
                "a mask would be used twice",
                expected=f"a {direction} product after number {self._used[direction]}",
                got=f"number {counter}",
                hint="start the run again: every start draws fresh masks",
            )
        self._used[direction] = counter


def take_up(under_way: dict[int, int], counter: int) -> int:
    """What is known of a hop that has begun; each is gone on with once."""
    if counter not in under_way:
        raise CorrelationReused(
            "a mask would be used twice", expected="a hop that has begun", got=f"hop number {counter}"
        )
    return under_way.pop(counter)


class Masks:
    """One holder's side of what it has in common with the dealer."""

    def __init__(self, seed: bytes, *, run: str, holder: str) -> None:
        self._seed, self._run, self._holder = seed, run, holder

    def features(self, nodes: int, columns: int) -> torch.Tensor:
        """U of this holder's features [nodes, columns]."""
        return self._stream("U").words(nodes, columns)

    def operand(self, owner: str, direction: Direction, counter: int, shape: tuple[int, int]) -> torch.Tensor:
        """V: hides this holder's matrix from `owner`."""
        return self._stream("V", owner, direction, counter).words(*shape)

    def result(self, other: str, direction: Direction, counter: int, shape: tuple[int, int]) -> torch.Tensor:
        """Z: this holder's share, as the owner of the features, of the dealer's product with `other`."""
        return self._stream("Z", other, direction, counter).words(*shape)

    def _stream(self, *names: str | int) -> Stream:
        return Stream(self._seed, self._run, "dealer", self._holder, *names)

    def __repr__(self) -> str:
        return f"Masks(holder={self._holder!r})"
