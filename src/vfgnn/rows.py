"""Some rows of a matrix over all nodes, in their order, or all of them: then nothing has to be picked."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, repr=False)
class RowSet:
    """Never absent: whoever needs all rows says so."""

    numbers: torch.Tensor
    everything: bool = False  # `numbers` are 0, 1, 2, ... to the last one

    @staticmethod
    def all(nodes: int) -> "RowSet":
        """Of all nodes."""
        return RowSet(torch.arange(nodes), everything=True)

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"RowSet({len(self)} rows)"  # which rows train is not for logs

    def then(self, other: "RowSet") -> "RowSet":
        """These, then the others."""
        return RowSet(torch.cat([self.numbers, other.numbers]))

    def pick(self, matrix: torch.Tensor) -> torch.Tensor:
        """These rows of a matrix over all nodes."""
        return matrix[: len(self)] if self.everything else matrix[self.numbers]

    @property
    def index(self) -> torch.Tensor | None:
        """For the model's graphs, where None saves the work of picking: all nodes."""
        return None if self.everything else self.numbers

    def same_as(self, other: "RowSet") -> bool:
        """Whether both stand for the same rows in the same order."""
        return self.everything == other.everything and self.numbers.equal(other.numbers)
