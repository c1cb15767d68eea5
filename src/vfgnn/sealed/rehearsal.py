"""The sealed protocol without words: who sends what, and what the dealer deals, from public sizes alone.

The same algorithm as at the holders, over tensors that have a shape and nothing in it. What it asks for is written
down, phase by phase. So a step that is added to the algorithm is declared, dealt and planned without another line.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import torch

from vfgnn.messages import WORD, Kind
from vfgnn.mpc.beaver import GramProduct, Product
from vfgnn.mpc.bits import packed_bytes
from vfgnn.mpc.blinding import Blinded, Blinding, FixedProduct
from vfgnn.mpc.comparison import argmax_operations
from vfgnn.mpc.lookup import Lookup
from vfgnn.mpc.scaling import Scaled, Scaling
from vfgnn.mpc.shared import Operation, Payload, Shape
from vfgnn.mpc.truncation import Truncation
from vfgnn.rows import RowSet
from vfgnn.sealed.computation import Blocks
from vfgnn.sealed.prediction import SealedPrediction, TrainedInputs
from vfgnn.sealed.sizes import ASKING, FINISHING, SealedSizes
from vfgnn.sealed.state import TrainingState
from vfgnn.sealed.training import HolderInputs, SealedTraining


@dataclass(frozen=True)
class Hop:
    """One product with the union graph."""

    width: int


@dataclass(frozen=True)
class ToColumns:
    """X_k^T u, for every k."""

    width: int


@dataclass(frozen=True)
class ToNodes:
    """Sum over k of X_k W_k."""

    width: int


@dataclass(frozen=True)
class Told:
    """Something that is opened to the label holder."""

    kind: Kind
    payload: Payload


Item = Operation | Hop | ToColumns | ToNodes | Told
"""What is sent for one step of the algorithm."""


def nothing(*shape: int) -> torch.Tensor:
    """Words of this shape, without content."""
    return torch.empty(shape, dtype=WORD, device="meta")


class Rehearsal:
    """Writes down what it is asked for."""

    def __init__(self, sizes: SealedSizes) -> None:
        self._sizes = sizes
        self._factors = 0
        self._rounds: list[tuple[Item, ...]] = []

    def taken(self) -> "Part":
        """What has been written down since it was last asked."""
        rounds, self._rounds = tuple(self._rounds), []
        return Part(rounds)

    def _round(self, *items: Item) -> None:
        self._rounds.append(items)

    def from_leader(self, words: torch.Tensor | None, shape: Shape) -> torch.Tensor:
        """Nothing is sent."""
        return nothing(*shape)

    def plus_public(self, share: torch.Tensor, words: torch.Tensor | int) -> torch.Tensor:
        """Nothing is sent."""
        return share

    def hop(self, share: torch.Tensor, *, self_loops: bool) -> torch.Tensor:
        """Of the union graph."""
        self._round(Hop(share.shape[1]))
        return share

    def to_columns(self, by_owner: Blocks) -> dict[str, torch.Tensor]:
        """X_k^T u."""
        (width,) = {share.shape[1] for share in by_owner.values()}
        self._round(ToColumns(width))
        return {owner: nothing(self._sizes.columns[owner], width) for owner in by_owner}

    def to_nodes(self, blocks: Blocks) -> torch.Tensor:
        """Sum over k of X_k W_k."""
        (width,) = {block.shape[1] for block in blocks.values()}
        self._round(ToNodes(width))
        return nothing(self._sizes.nodes, width)

    def truncate(self, *shares: torch.Tensor, bits: int) -> list[torch.Tensor]:
        """In one round."""
        self._round(*(Truncation(tuple(share.shape), bits) for share in shares))
        return list(shares)

    def multiply(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Element by element."""
        self._round(Product(tuple(x.shape)))
        return x

    def blind(self, *shares: torch.Tensor) -> list[Blinded]:
        """Under labels of their own."""
        labels = [factor_label(self._factors + i) for i in range(len(shares))]
        self._factors += len(shares)
        self._round(*(Blinding(label, tuple(share.shape)) for label, share in zip(labels, shares, strict=True)))
        return [Blinded(label, share, share) for label, share in zip(labels, shares, strict=True)]

    def multiply_fixed(self, matrix: Blinded, share: torch.Tensor) -> torch.Tensor:
        """A blinded matrix times a share."""
        rows, inner = matrix.eps.shape
        self._round(FixedProduct(matrix.label, rows, inner, share.shape[1]))
        return nothing(rows, share.shape[1])

    def scale(self, *work: tuple[torch.Tensor, Sequence[Blinded]], bits: int) -> list[Scaled]:
        """In one round."""
        self._round(*(Scaling(tuple(share.shape), bits, tuple(s.label for s in factors)) for share, factors in work))
        return [Scaled(share, [share] * len(factors)) for share, factors in work]

    def look_up(self, share: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        """By a one-time table."""
        self._round(Lookup(tuple(share.shape), tuple(table.tolist())))
        return share

    def gram(self, share: torch.Tensor) -> torch.Tensor:
        """X X^T."""
        self._round(GramProduct(share.shape[0], share.shape[1]))
        return nothing(share.shape[0], share.shape[0])

    def classes(self, scores: torch.Tensor) -> torch.Tensor:
        """By one-time tables."""
        for operation in argmax_operations(scores.shape[0], scores.shape[1]):
            self._round(operation)
        return scores

    def tell(self, share: torch.Tensor, kind: Kind) -> None:
        """To the label holder, in a round after all have told that they are ready."""
        self._round()
        self._round(Told(kind, Payload(tuple(share.shape))))

    def tell_classes(self, bits: torch.Tensor, kind: Kind) -> None:
        """To the label holder, packed; likewise."""
        self._round()
        self._round(Told(kind, Payload((packed_bytes(bits.numel()),), torch.uint8)))


def factor_label(number: int) -> str:
    """Of the factors in the order in which they are blinded: the same at every holder, and at the dealer."""
    return f"factor {number}"


@dataclass(frozen=True)
class Part:
    """Items in the order in which they come. What the holders send for those of one round, they send at once."""

    rounds: tuple[tuple[Item, ...], ...] = ()

    def __iter__(self) -> Iterator[Item]:
        """All of them."""
        return chain.from_iterable(self.rounds)


@dataclass(frozen=True)
class Script:
    """All items of a program. Of a training that goes on from a later step, those before have none."""

    prepare: Part = Part()
    steps: tuple[Part, ...] = ()
    parts: tuple[Part, ...] = ()  # of what comes after the steps

    @property
    def rounds(self) -> int:
        """How often its holders wait for each other."""
        return sum(len(part.rounds) for part in (self.prepare, *self.steps, *self.parts))

    @property
    def finish(self) -> Part:
        """All of what comes after the steps."""
        return Part(tuple(chain.from_iterable(part.rounds for part in self.parts)))


@lru_cache(maxsize=32)
def script(sizes: SealedSizes, begin: int = 0) -> Script:
    """Of a training of these sizes that begins with this step, or part."""
    before, training = _begun(sizes, TrainingState())
    for number in range(begin):
        _go_on(training, sizes, number)
    computation = before
    if begin:
        computation, training = _begun(sizes, training.state())
    prepare, found = computation.taken(), [Part()] * begin
    for number in range(begin, sizes.units + FINISHING):
        _go_on(training, sizes, number)
        found.append(computation.taken())
    return Script(prepare, tuple(found[: sizes.units]), tuple(found[sizes.units :]))


def _begun(sizes: SealedSizes, known: TrainingState) -> tuple[Rehearsal, SealedTraining]:
    """Up to where its steps begin."""
    computation = Rehearsal(sizes)
    train, val = (RowSet(torch.arange(count)) for count in (sizes.train, sizes.val))  # made up: only counts matter
    columns = nothing(sizes.nodes, sizes.agreement.columns)
    own = HolderInputs(nothing(sizes.nodes), columns, train, val, known=known)
    training = SealedTraining(computation, sizes, own)
    training.prepare()
    return computation, training


def _go_on(training: SealedTraining, sizes: SealedSizes, number: int) -> None:
    if number < sizes.units:
        training.step(number)
    else:
        training.finish(number - sizes.units)


@lru_cache(maxsize=8)
def prediction_script(sizes: SealedSizes, asked: int, begin: int = 0) -> Script:
    """Of a prediction of so many rows with a trained model; `sizes` has how many rows trained."""
    computation = Rehearsal(sizes)
    if not asked:
        return Script(parts=(Part(),) * ASKING)
    blocks = {owner: nothing(count, sizes.width * sizes.blocks) for owner, count in sizes.columns.items()}
    rows, made = RowSet(torch.arange(asked)), nothing(asked, sizes.agreement.classes) if begin else None
    own = TrainedInputs(nothing(sizes.nodes), blocks, nothing(1, sizes.width), rows, made=made)
    prediction = SealedPrediction(computation, sizes, own)
    prediction.prepare()
    prepare, parts = computation.taken(), [Part()] * begin
    for part in range(begin, ASKING):
        prediction.finish(part)
        parts.append(computation.taken())
    return Script(prepare, parts=tuple(parts))
