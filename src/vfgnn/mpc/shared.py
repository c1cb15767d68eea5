"""What computing on shares stands on: values opened among the holders, and what an operation asks of the dealer.

Holders have additive shares in Z_2^64, and XOR shares of bits. What is linear they compute alone; for the rest they
open values under masks from the dealer. Each operation has its file: `beaver.py`, `truncation.py`, `scaling.py`, ...
An operation is a number of masks, and parts: what follows from the masks and is shared along with them. A program
declares its messages from the list of its operations, and the dealer computes them in the same order (`material.py`).

An opened value is uniform to everyone, and so is what each holder sends of it: its share of the mask is its own seed's.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch

from vfgnn.agreement import DEALER
from vfgnn.messages import WORD, Declared, Kind
from vfgnn.mpc.kernels import DenseMatrix

Shape = tuple[int, ...]


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A b in the ring. Local: with one of them public and the other a share, the result is a share."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"no product of {list(a.shape)} and {list(b.shape)}")  # the kernels would not notice
    return DenseMatrix(a, threads=torch.get_num_threads()).times(b)


def shift_right(words: torch.Tensor, bits: int) -> torch.Tensor:
    """The unsigned words shifted; torch's own shift of int64 copies the sign."""
    return (words >> bits) & ((1 << (64 - bits)) - 1) if bits else words


@dataclass(frozen=True)
class Payload:
    """Type and shape of what is sent. Words may be reduced: int32 holds what matters modulo 2^32 only.

    uint8 holds bits, 8 in each byte: their shares are joined by XOR, all others' by addition.
    """

    shape: Shape
    dtype: torch.dtype = WORD


class Operation(ABC):
    """What is opened, each under a mask of its own, and what the dealer sends to the last holder."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def opened(self) -> tuple[Payload, ...]:
        """What the holders open."""

    @property
    @abstractmethod
    def correction(self) -> tuple[Payload, ...]:
        """What follows from the masks: the last holder's shares come from the dealer."""

    @abstractmethod
    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """At the dealer: what follows from these masks, and from the kept masks that `uses` names."""

    @property
    def keeps(self) -> str | None:
        """The label under which the dealer remembers the mask, for later operations."""
        return None

    @property
    def uses(self) -> tuple[str, ...]:
        """Labels of kept masks."""
        return ()


@dataclass(frozen=True, repr=False)
class DealtShares:
    """One holder's shares of an operation's masks, and of the parts that follow from them."""

    masks: tuple[torch.Tensor, ...]
    parts: tuple[torch.Tensor, ...]


class Opening(Protocol):
    """How the holders make a value known to all of them."""

    def open(self, *shares: torch.Tensor) -> list[torch.Tensor]:
        """What all holders' shares join to, in one round for all of them.

        Reveals: the sums (of bits, the XOR), to all holders. Whoever calls this has masked them.
        """


class Material(Protocol):
    """One holder's shares of what the dealer deals."""

    def take(self, operation: Operation) -> DealtShares:
        """Those of the next operation; each call returns what was never returned before."""


@dataclass(frozen=True)
class Arithmetic:
    """One holder's means to compute on shares."""

    opening: Opening
    material: Material
    leads: bool  # exactly one of the holders adds public terms: from all of them they would count I times

    def plus_public(self, share: torch.Tensor, public: torch.Tensor | int) -> torch.Tensor:
        """A share of the secret plus something that all know."""
        return share + public if self.leads else share


def masked(share: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """A share of the secret minus the mask."""
    if share.shape != mask.shape:  # torch would stretch the mask over several values, and they could be compared
        raise ValueError(f"factors that do not fit: {list(share.shape)} where {list(mask.shape)} was expected")
    return share - mask


@dataclass(frozen=True)
class Names:
    """Who computes, who of them receives the corrections, and under which names messages travel."""

    holders: tuple[str, ...]
    correction: Kind
    opened: Kind

    @property
    def corrected(self) -> str:
        """The last holder in the common order."""
        return self.holders[-1]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Sender and receiver of what is opened."""
        return [(one, other) for one in self.holders for other in self.holders if one != other]


def messages(operations: Iterable[Operation], names: Names) -> list[Declared]:
    """Of each operation the dealer's corrections, and what is opened in it among all holders."""
    declared = []
    for operation in operations:
        for payload in operation.correction:
            declared.append(Declared(names.correction, DEALER, names.corrected, payload.dtype, payload.shape))
        for payload in operation.opened:
            declared += [Declared(names.opened, *pair, payload.dtype, payload.shape) for pair in names.pairs]
    return declared
