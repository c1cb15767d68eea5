"""The sealed protocol without words: who sends what, and what the dealer deals, from public sizes alone.

The same algorithm as at the holders, over tensors that have a shape and nothing in it. What it asks for is written
down, phase by phase. So a step that is added to the algorithm is declared, dealt and planned without another line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

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
from vfgnn.sealed.sizes import SealedSizes
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
        self.items: list[Item] = []
        self.rounds = 0

    def taken(self) -> tuple[Item, ...]:
        """What has been written down since it was last asked."""
        items, self.items = tuple(self.items), []
        return items

    def from_leader(self, words: torch.Tensor | None, shape: Shape) -> torch.Tensor:
        """Nothing is sent."""
        return nothing(*shape)

    def plus_public(self, share: torch.Tensor, words: torch.Tensor | int) -> torch.Tensor:
        """Nothing is sent."""
        return share

    def hop(self, share: torch.Tensor, *, self_loops: bool) -> torch.Tensor:
        """Of the union graph."""
        self.rounds += 1
        self.items.append(Hop(share.shape[1]))
        return share

    def to_columns(self, by_owner: Blocks) -> dict[str, torch.Tensor]:
        """X_k^T u."""
        self.rounds += 1
        (width,) = {share.shape[1] for share in by_owner.values()}
        self.items.append(ToColumns(width))
        return {owner: nothing(self._sizes.columns[owner], width) for owner in by_owner}

    def to_nodes(self, blocks: Blocks) -> torch.Tensor:
        """Sum over k of X_k W_k."""
        self.rounds += 1
        (width,) = {block.shape[1] for block in blocks.values()}
        self.items.append(ToNodes(width))
        return nothing(self._sizes.nodes, width)

    def truncate(self, *shares: torch.Tensor, bits: int) -> list[torch.Tensor]:
        """In one round."""
        self.rounds += 1
        self.items += [Truncation(tuple(share.shape), bits) for share in shares]
        return list(shares)

    def multiply(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Element by element."""
        self.rounds += 1
        self.items.append(Product(tuple(x.shape)))
        return x

    def blind(self, *shares: torch.Tensor) -> list[Blinded]:
        """Under labels of their own."""
        self.rounds += 1
        made = []
        for share in shares:
            label = factor_label(self._factors)
            self._factors += 1
            self.items.append(Blinding(label, tuple(share.shape)))
            made.append(Blinded(label, share, share))
        return made

    def multiply_fixed(self, matrix: Blinded, share: torch.Tensor) -> torch.Tensor:
        """A blinded matrix times a share."""
        self.rounds += 1
        rows, inner = matrix.eps.shape
        self.items.append(FixedProduct(matrix.label, rows, inner, share.shape[1]))
        return nothing(rows, share.shape[1])

    def scale(self, *work: tuple[torch.Tensor, Sequence[Blinded]], bits: int) -> list[Scaled]:
        """In one round."""
        self.rounds += 1
        self.items += [Scaling(tuple(share.shape), bits, tuple(s.label for s in factors)) for share, factors in work]
        return [Scaled(share, [share] * len(factors)) for share, factors in work]

    def look_up(self, share: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        """By a one-time table."""
        self.rounds += 1
        self.items.append(Lookup(tuple(share.shape), tuple(table.tolist())))
        return share

    def gram(self, share: torch.Tensor) -> torch.Tensor:
        """X X^T."""
        self.rounds += 1
        self.items.append(GramProduct(share.shape[0], share.shape[1]))
        return nothing(share.shape[0], share.shape[0])

    def classes(self, scores: torch.Tensor, *, cut: int) -> torch.Tensor:
        """By one-time tables."""
        operations = argmax_operations(scores.shape[0], scores.shape[1], cut=cut)
        self.items += operations
        self.rounds += len(operations)
        return scores

    def tell(self, share: torch.Tensor, kind: Kind) -> None:
        """To the label holder."""
        self.rounds += 1
        self.items.append(Told(kind, Payload(tuple(share.shape))))

    def tell_classes(self, bits: torch.Tensor, kind: Kind) -> None:
        """To the label holder, packed."""
        self.rounds += 1
        self.items.append(Told(kind, Payload((packed_bytes(bits.numel()),), torch.uint8)))


def factor_label(number: int) -> str:
    """Of the factors in the order in which they are blinded: the same at every holder, and at the dealer."""
    return f"factor {number}"


@dataclass(frozen=True)
class Script:
    """All items of a program, in the order in which they come; and how often its holders wait for each other."""

    prepare: tuple[Item, ...]
    steps: tuple[tuple[Item, ...], ...]
    finish: tuple[Item, ...]
    rounds: int


@lru_cache(maxsize=8)
def script(sizes: SealedSizes) -> Script:
    """Of a training of these sizes."""
    computation = Rehearsal(sizes)
    train, val = (RowSet(torch.arange(count)) for count in (sizes.train, sizes.val))  # made up: only counts matter
    columns = nothing(sizes.nodes, sizes.agreement.columns)
    training = SealedTraining(computation, sizes, HolderInputs(nothing(sizes.nodes), columns, train, val))
    training.prepare()
    prepare, steps = computation.taken(), []
    for number in range(sizes.units):
        training.step(number)
        steps.append(computation.taken())
    training.finish()
    return Script(prepare, tuple(steps), computation.taken(), computation.rounds)


@lru_cache(maxsize=8)
def prediction_script(sizes: SealedSizes, asked: int) -> Script:
    """Of a prediction of so many rows with a trained model; `sizes` has how many rows trained."""
    computation = Rehearsal(sizes)
    if not asked:
        return Script((), (), (), 0)
    blocks = {owner: nothing(count, sizes.width * sizes.blocks) for owner, count in sizes.columns.items()}
    rows = RowSet(torch.arange(asked))
    own = TrainedInputs(nothing(sizes.nodes), blocks, nothing(1, sizes.width), rows)
    prediction = SealedPrediction(computation, sizes, own)
    prediction.prepare()
    prepare = computation.taken()
    prediction.finish()
    return Script(prepare, (), computation.taken(), computation.rounds)
