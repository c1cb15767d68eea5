"""CG1, features (paper 3.2): initial embeddings h0, individually or collaboratively.

Runs at every holder. Individually, h0_i = X_i W_i and nothing leaves. Collaboratively, h0 = X W is computed by all
holders together (joint_layer.py of the protocol) and the holders with edges see it.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn

from vfgnn.checkpoint import RoleState
from vfgnn.data.holdings import FeatureMatrix, Holding
from vfgnn.model.optimisers import SharedMomentum
from vfgnn.settings import FeatureScaling


class InitialEmbedding(Protocol):
    """Both ways look the same to a holder."""

    def prepare(self, *, trained: bool, share: float = 1.0, closes: bool = True) -> None:
        """Make h0 ready for a step, or for a batch with `share` of the step's training rows.

        `trained`: the joint weights will move in this step, after the batch that `closes` it.
        """

    def rows(self, nodes: torch.Tensor | None) -> torch.Tensor:
        """h0 of certain nodes (None: of all) [nodes, d], with a gradient; only where h0 is revealed."""

    def learn(self) -> None:
        """After the backward pass: move the weights that no local optimiser moves."""

    def snapshot(self) -> "EmbeddingSnapshot | None":
        """What is not a parameter of a module and makes h0 what it is now."""

    def restore(self, snapshot: "EmbeddingSnapshot | None") -> None:
        """Come back to it."""

    @property
    def h0(self) -> torch.Tensor | None:
        """Where it is kept from step to step."""

    def go_on(self, h0: torch.Tensor | None) -> None:
        """From an earlier process's; comes before anything else."""


@dataclass(frozen=True, repr=False)
class EmbeddingSnapshot(RoleState):
    """The h0 of one epoch, and this holder's part of the shared weights (its share of W_0 never changes)."""

    h0: torch.Tensor
    q: torch.Tensor
    a: float


def scaled_rows(x: torch.Tensor, scaling: FeatureScaling) -> torch.Tensor:
    """Features as the model takes them; `row`: each row divided by the sum of its sizes, which its holder knows alone.

    A row of zeros stays as it is.
    """
    if scaling == "none":
        return x
    x = x if x.is_floating_point() else x.double()
    sums = x.abs().sum(dim=1, keepdim=True)
    return x / torch.where(sums > 0, sums, 1)


def structural_features(holding: Holding) -> torch.Tensor:
    """What a holder without columns can say of a node by itself: that it is there, and how many edges it has."""
    degree = torch.bincount(holding.edge_index[1], minlength=holding.size).double()
    return torch.stack([torch.ones_like(degree), degree.log1p()], dim=1)


class IndividualEmbedding(nn.Module):
    """h0_i = X_i W_i, all of it at holder i, trained by its own optimiser."""

    def __init__(
        self,
        holding: Holding,
        dim: int,
        dtype: torch.dtype,
        device: torch.device,
        *,
        sparse: bool | None = None,
        by_rows: bool = False,
    ) -> None:
        super().__init__()
        self._by_rows = by_rows  # batches: only the rows that are asked for are multiplied
        self._h0: torch.Tensor | None = None
        x = holding.x if holding.x.shape[1] else structural_features(holding)
        self._x = FeatureMatrix(x, sparse=sparse).to(dtype, device)
        self.weight = nn.Parameter(torch.empty(self._x.columns, dim, dtype=dtype))
        nn.init.xavier_uniform_(self.weight)

    def embed(self) -> torch.Tensor:
        """X_i W_i with the weights of now."""
        return self._x.times(self.weight)

    def prepare(self, *, trained: bool, share: float = 1.0, closes: bool = True) -> None:
        """X_i W_i of all nodes, once for all that is asked for."""
        self._h0 = None if self._by_rows else self.embed()

    def rows(self, nodes: torch.Tensor | None) -> torch.Tensor:
        """Some rows of X_i W_i."""
        if self._h0 is not None:
            return self._h0 if nodes is None else self._h0[nodes]
        return (self._x if nodes is None else self._x.rows(nodes)).times(self.weight)

    def learn(self) -> None:
        """Nothing: the local optimiser has W_i."""

    @property
    def h0(self) -> torch.Tensor | None:
        """Nothing is kept: X_i W_i is computed anew in each step."""
        return None

    def go_on(self, h0: torch.Tensor | None) -> None:
        """Nothing is kept."""

    def snapshot(self) -> None:
        """Nothing beyond the module's own weights."""

    def restore(self, snapshot: EmbeddingSnapshot | None) -> None:
        """Nothing beyond the module's own weights."""


class CollaborativeEmbedding:
    """h0 = X W with W shared by all holders; its rows are leaves of this holder's autograd graph.

    G_i = dL/dh0 is summed over an epoch's batches, each counting with its share of the rows: the gradient of the mean
    loss, whatever the size of a batch. A batch costs what its own nodes cost, never what all nodes would.
    """

    def __init__(self, momentum: SharedMomentum, dtype: torch.dtype) -> None:
        self._momentum, self._dtype = momentum, dtype
        self._trained, self._share, self._closes = False, 1.0, True  # of the batch at hand
        self._h0: torch.Tensor | None = None
        self._leaf: tuple[torch.Tensor | None, torch.Tensor] | None = None  # nodes, and their rows of h0
        self._gradient: torch.Tensor | None = None  # G_i of the epoch so far

    def begin(self, first: torch.Tensor | None) -> None:
        """With H_0; a run that goes on has a later h0 already."""
        if self._h0 is None:
            self.keep(first)

    def keep(self, h0: torch.Tensor | None) -> None:
        """The h0 of now, where it is revealed to this holder."""
        self._h0 = None if h0 is None else h0.to(self._dtype)

    def prepare(self, *, trained: bool, share: float = 1.0, closes: bool = True) -> None:
        """Nothing is computed: h0 is there."""
        self._trained, self._share, self._closes = trained, share, closes

    def rows(self, nodes: torch.Tensor | None) -> torch.Tensor:
        """Rows of h0; the last ones that were asked for are those that learn."""
        if self._h0 is None:
            raise RuntimeError("h0 is not revealed here")
        leaf = (self._h0 if nodes is None else self._h0[nodes]).detach().requires_grad_(self._trained)
        self._leaf = nodes, leaf
        return leaf

    def learn(self) -> None:
        """Add to G_i; at the end of an epoch, one step of this holder's part of the shared weights along it."""
        if self._leaf is not None and self._leaf[1].grad is not None:
            self._add(self._leaf[0], self._leaf[1].grad)
        self._leaf = None
        if self._closes and self._gradient is not None:
            self._momentum.step(self._gradient)
            self._gradient = None

    def _add(self, nodes: torch.Tensor | None, gradient: torch.Tensor) -> None:
        if self._gradient is None and self._h0 is not None:
            self._gradient = torch.zeros_like(self._h0)
        if self._gradient is not None and nodes is None:
            self._gradient.add_(gradient, alpha=self._share)
        elif self._gradient is not None and nodes is not None:
            self._gradient.index_add_(0, nodes, gradient, alpha=self._share)

    def snapshot(self) -> EmbeddingSnapshot | None:
        """None where h0 is not revealed."""
        momentum = self._momentum
        return None if self._h0 is None else EmbeddingSnapshot(self._h0.detach(), momentum.q, momentum.a)

    def restore(self, snapshot: EmbeddingSnapshot | None) -> None:
        """Back to the h0 and the part of the shared weights of then."""
        if snapshot is not None:
            device = self._momentum.q.device
            self._h0 = snapshot.h0.to(device)
            self._momentum.restore(snapshot.q.to(device), snapshot.a)

    @property
    def h0(self) -> torch.Tensor | None:
        """Never changed in place."""
        return None if self._h0 is None else self._h0.detach()

    def go_on(self, h0: torch.Tensor | None) -> None:
        """From the one of an earlier process."""
        self._h0 = None if h0 is None else h0.to(self._momentum.q.device)
