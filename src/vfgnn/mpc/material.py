"""The dealer's material for operations on shares: uniform masks, and shares of what follows from them.

Every holder expands its shares of both from its own seed, except that the last holder's shares of what follows are the
dealer's corrections: messages to one holder, none to the others.

The dealer sees sizes and its own random numbers. A holder sees its own shares, which are uniform; a correction is
uniform to its receiver, because it lacks the other holders' shares.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch

from vfgnn.errors import ProtocolError
from vfgnn.mpc.shared import DealtShares, Operation, Payload
from vfgnn.mpc.sharing import join, without
from vfgnn.randomness import Stream


class DealtMaterial:
    """A holder's side. `next_correction` waits for the dealer's next correction: given to the last holder only."""

    def __init__(
        self,
        seed: bytes,
        *,
        run: str,
        holder: str,
        next_correction: Callable[[], torch.Tensor] | None = None,
    ) -> None:
        self._seed, self._run, self._holder = seed, run, holder
        self._next_correction = next_correction
        self._number = 0

    def take(self, operation: Operation) -> DealtShares:
        """The shares of the next operation; its number is spent before they are used, and never comes again."""
        number, wait = self._number, self._next_correction
        self._number += 1
        payloads = operation.opened if wait else (*operation.opened, *operation.correction)
        shares = _expand(payloads, self._seed, self._run, self._holder, operation, number)
        corrections = [_checked(wait(), payload, operation) for payload in operation.correction] if wait else []
        count = len(operation.opened)
        return DealtShares(tuple(shares[:count]), (*shares[count:], *corrections))


class Corrections:
    """The dealer's side. `seeds` are the holders' in their common order: the last one receives the corrections."""

    def __init__(self, seeds: Mapping[str, bytes], *, run: str) -> None:
        self._seeds, self._run = seeds, run
        self._number = 0
        self._kept: dict[str, torch.Tensor] = {}

    def compute(self, operations: Iterable[Operation]) -> list[torch.Tensor]:
        """Of the next operations, in the order in which all holders carry them out; numbers go on from call to call."""
        return [correction for operation in operations for correction in self._next(operation)]

    def _next(self, operation: Operation) -> list[torch.Tensor]:
        masks, completed = self._expanded(operation)
        self._number += 1
        if operation.keeps is not None:
            self._keep(operation.keeps, masks[0])
        dealt = operation.dealt(masks, [self._of(label) for label in operation.uses])
        return [without(whole, [others]) for whole, others in zip(dealt, completed, strict=True)]

    def _expanded(self, operation: Operation) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """The masks, and what all but the last holder's shares of the parts add up to: never all shares in memory."""
        last = list(self._seeds)[-1]
        payloads, count = (*operation.opened, *operation.correction), len(operation.opened)
        joined: list[torch.Tensor] = []
        for holder, seed in self._seeds.items():
            wanted = payloads[:count] if holder == last else payloads
            own = _expand(wanted, seed, self._run, holder, operation, self._number)
            both = [join(*pair) for pair in zip(joined, own, strict=False)]
            joined = [*both, *joined[len(own) :], *own[len(joined) :]]
        return joined[:count], joined[count:]

    def _keep(self, label: str, mask: torch.Tensor) -> None:
        if label in self._kept:
            raise ProtocolError(
                f"two secrets are blinded as '{label}'", expected="a label of its own for each", where="the dealer"
            )
        self._kept[label] = mask

    def _of(self, label: str) -> torch.Tensor:
        if label not in self._kept:
            raise ProtocolError(f"nothing was blinded as '{label}'", expected="blind() comes first", where="the dealer")
        return self._kept[label]


def _expand(
    payloads: Sequence[Payload], seed: bytes, run: str, holder: str, operation: Operation, number: int
) -> list[torch.Tensor]:
    """What one holder and the dealer draw from the seed that only these two have; no two operations draw the same."""
    stream = Stream(seed, run, "dealer", holder, operation.name, number)
    return [stream.integers(*payload.shape, dtype=payload.dtype) for payload in payloads]


def _checked(correction: torch.Tensor, payload: Payload, operation: Operation) -> torch.Tensor:
    if (tuple(correction.shape), correction.dtype) != (payload.shape, payload.dtype):
        raise ProtocolError(
            "a correction of another operation",
            expected=f"{list(payload.shape)} of {payload.dtype} for a {operation.name}",
            got=f"{list(correction.shape)} of {correction.dtype}",
            hint="dealer and holders must list the same operations in the same order",
        )
    return correction
