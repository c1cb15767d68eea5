"""What computing on shares stands on: values opened among the holders, and the dealer's material for each operation.

Holders have additive shares in Z_2^64. What is linear they compute alone; for the rest they open values under masks
from the dealer (`beaver.py`, `truncation.py`). Each operation needs uniform masks, and shares of something that follows
from them. Every holder expands its shares of both from its own seed, except that the last holder's share of the second
part is the dealer's correction: one message per operation, to one holder.

The dealer sees sizes and its own random numbers. A holder sees its own shares, which are uniform; a correction is
uniform to its receiver, because it lacks the other holders' shares. An opened value is uniform to everyone, and so is
what each holder sends of it, because its share of the mask comes from its own seed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch

from vfgnn.errors import ProtocolError
from vfgnn.mpc.kernels import DenseMatrix
from vfgnn.mpc.sharing import reconstruct
from vfgnn.randomness import Stream

Shape = tuple[int, ...]


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A b in the ring. Local: with one of them public and the other a share, the result is a share."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"no product of {list(a.shape)} and {list(b.shape)}")  # the kernels would not notice
    return DenseMatrix(a, threads=torch.get_num_threads()).times(b)


def shift_right(words: torch.Tensor, bits: int) -> torch.Tensor:
    """The unsigned words shifted; torch's own shift of int64 copies the sign."""
    return (words >> bits) & ((1 << (64 - bits)) - 1)


@dataclass(frozen=True)
class MatrixProduct:
    """[rows, inner] times [inner, columns]: masks A and B, and C = A B."""

    name: ClassVar[str] = "matrix product"
    rows: int
    inner: int
    columns: int

    @property
    def opened(self) -> tuple[Shape, ...]:
        """What the holders open, each under a mask of its shape."""
        return (self.rows, self.inner), (self.inner, self.columns)

    @property
    def correction(self) -> Shape:
        """What the dealer sends to the last holder."""
        return (self.rows, self.columns)

    def dealt(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """What is shared along with the masks."""
        return matmul(a, b)


@dataclass(frozen=True)
class Product:
    """Element by element: masks A and B, and C = A * B."""

    name: ClassVar[str] = "product"
    shape: Shape

    @property
    def opened(self) -> tuple[Shape, ...]:
        """What the holders open, each under a mask of its shape."""
        return self.shape, self.shape

    @property
    def correction(self) -> Shape:
        """What the dealer sends to the last holder."""
        return self.shape

    def dealt(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """What is shared along with the masks."""
        return a * b


@dataclass(frozen=True)
class Truncation:
    """Division by 2^bits: a mask r, and r >> bits and the highest bit of r, both of the unsigned word."""

    name: ClassVar[str] = "truncation"
    shape: Shape
    bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 62:
            raise ValueError(f"words are truncated by 1 to 62 bits, not {self.bits}")

    @property
    def opened(self) -> tuple[Shape, ...]:
        """What the holders open, each under a mask of its shape."""
        return (self.shape,)

    @property
    def correction(self) -> Shape:
        """What the dealer sends to the last holder."""
        return (2, *self.shape)

    def dealt(self, r: torch.Tensor) -> torch.Tensor:
        """What is shared along with the mask."""
        return torch.stack([shift_right(r, self.bits), shift_right(r, 63)])


Operation = MatrixProduct | Product | Truncation


@dataclass(frozen=True, repr=False)
class Triple:
    """One holder's shares of A, B and C, for one product."""

    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor


@dataclass(frozen=True, repr=False)
class TruncationPair:
    """One holder's shares of r, r >> bits and the highest bit of r, for one truncation."""

    r: torch.Tensor
    shifted: torch.Tensor
    highest: torch.Tensor


class Opening(Protocol):
    """How the holders make a value known to all of them."""

    def open(self, *shares: torch.Tensor) -> list[torch.Tensor]:
        """The sums of all holders' shares, in one round for all of them.

        Reveals: the sums, to all holders. Whoever calls this has masked them.
        """


class Material(Protocol):
    """One holder's shares of what the dealer deals; each call returns what was never returned before."""

    def matrix_triple(self, m: int, k: int, n: int) -> Triple:
        """For [m, k] times [k, n]."""

    def product_triple(self, shape: Shape) -> Triple:
        """For a product element by element."""

    def truncation_pair(self, shape: Shape, bits: int) -> TruncationPair:
        """For a truncation by `bits`."""


@dataclass(frozen=True)
class Arithmetic:
    """One holder's means to compute on shares."""

    opening: Opening
    material: Material
    leads: bool  # exactly one of the holders adds public terms: from all of them they would count I times

    def plus_public(self, share: torch.Tensor, public: torch.Tensor | int) -> torch.Tensor:
        """A share of the secret plus something that all know."""
        return share + public if self.leads else share


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

    def matrix_triple(self, m: int, k: int, n: int) -> Triple:
        """For [m, k] times [k, n]."""
        return Triple(*self._take(MatrixProduct(m, k, n)))

    def product_triple(self, shape: Shape) -> Triple:
        """For a product element by element."""
        return Triple(*self._take(Product(shape)))

    def truncation_pair(self, shape: Shape, bits: int) -> TruncationPair:
        """For a truncation by `bits`."""
        r, dealt = self._take(Truncation(shape, bits))
        return TruncationPair(r, dealt[0], dealt[1])

    def _take(self, operation: Operation) -> list[torch.Tensor]:
        """The shares of the next operation; its number is spent before they are used, and never comes again."""
        number, wait = self._number, self._next_correction
        self._number += 1
        shapes = operation.opened if wait else (*operation.opened, operation.correction)
        shares = _expand(shapes, self._seed, self._run, self._holder, operation, number)
        return [*shares, _checked(wait(), operation)] if wait else shares


class Corrections:
    """The dealer's side. `seeds` are the holders' in their common order: the last one receives the corrections."""

    def __init__(self, seeds: Mapping[str, bytes], *, run: str) -> None:
        self._seeds, self._run = seeds, run
        self._number = 0

    def compute(self, operations: Sequence[Operation]) -> list[torch.Tensor]:
        """Of the next operations, in the order in which all holders carry them out; numbers go on from call to call."""
        return [self._next(operation) for operation in operations]

    def _next(self, operation: Operation) -> torch.Tensor:
        shapes = (*operation.opened, operation.correction)
        shares = [
            _expand(shapes, seed, self._run, holder, operation, self._number) for holder, seed in self._seeds.items()
        ]
        self._number += 1
        *masks, completed = zip(*shares, strict=True)
        return operation.dealt(*map(reconstruct, masks)).sub_(reconstruct(completed[:-1]))


def _expand(
    shapes: Sequence[Shape], seed: bytes, run: str, holder: str, operation: Operation, number: int
) -> list[torch.Tensor]:
    """What one holder and the dealer draw from the seed that only these two have; no two operations draw the same."""
    stream = Stream(seed, run, "dealer", holder, operation.name, number)
    return [stream.words(*shape) for shape in shapes]


def _checked(correction: torch.Tensor, operation: Operation) -> torch.Tensor:
    if tuple(correction.shape) != operation.correction:
        raise ProtocolError(
            "a correction of another operation",
            expected=f"{list(operation.correction)} words for a {operation.name}",
            got=f"{list(correction.shape)}",
            hint="dealer and holders must list the same operations in the same order",
        )
    return correction
