"""What the inner products that a sealed training opens say about a pair of nodes, to first order.

The label holder has its own edges and features, and can compute the inner products that they alone would give. The true
ones differ. The derivatives by the weight of an edge that is not there say whether that edge would explain some of the
difference: how much of it, and how well the direction fits. These are two more columns of the learned attack.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vfgnn.audit.views import NotInView, View
from vfgnn.model.propagated_ridge import make_targets
from vfgnn.model.propagation import Floats, Integers
from vfgnn.sealed.ridge_path import Steps


@dataclass(frozen=True, repr=False)
class Explained:
    """The label holder's data, and the inner products of its Krylov space."""

    x: Tensor  # [nodes, p]
    train: Tensor  # row numbers
    b: Tensor  # [training rows, classes]: centred one-hot labels
    products: Tensor  # [t + 1, t + 1]
    image: float  # <b, K b>
    bound: float  # B
    hops: int
    teleport: float
    others: bool  # whether others have columns: the own ones are then taken longer, so that <b, K b> is right

    @staticmethod
    def of(view: View) -> "Explained":
        """Of a training with the smooth kernel and rows that all count the same."""
        settings, told, labels = view.agreement.settings, view.told.products, view.own_labels
        if len(told) != 2 or settings.sealed.kernel != "smooth" or settings.class_weights != "none":
            raise NotInView("inner products of the smooth kernel, with rows that all count the same")
        b = make_targets(labels.y.numpy(), labels.train.sort().values.numpy(), labels.classes).b
        return Explained(
            x=view.own_holding.x.double(),
            train=labels.train.sort().values,
            b=torch.from_numpy(b),
            products=told[1].double(),
            image=float(told[0][0, 1]),
            bound=Steps.of(told[0], settings.sealed.kernel).bound,
            hops=settings.sealed.depth,
            teleport=settings.sealed.teleport,
            others=view.agreement.columns > view.own_holding.x.shape[1],
        )

    def columns(self, edges: Integers, pairs: Tensor) -> Floats:
        """For the learned attack: how much an edge between each pair would explain [pairs, 1]."""
        weights = torch.zeros(pairs.shape[1], dtype=torch.float64, requires_grad=True)
        own = torch.from_numpy(edges)
        own = torch.unique(torch.cat([own, own.flip(0)], dim=1), dim=1)
        ends = torch.cat([own[:, own[0] != own[1]], pairs, pairs.flip(0)], dim=1)
        there = torch.ones(ends.shape[1] - 2 * len(weights), dtype=torch.float64)
        products = self._once(self.products_of(ends, torch.cat([there, weights, weights])))
        missing = self._once(self.products) - products.detach()
        by_weight = torch.stack([torch.autograd.grad(one, weights, retain_graph=True)[0] for one in products])
        aligned = missing @ by_weight
        length = torch.linalg.vector_norm(by_weight, dim=0).clamp_min(torch.finfo(torch.float64).tiny)
        return torch.stack([aligned, aligned / length], dim=1).numpy()

    def _once(self, products: Tensor) -> Tensor:
        """Each product once, relative to the lengths of its vectors."""
        scale = self.products.diagonal().clamp_min(torch.finfo(torch.float64).tiny).sqrt()
        row, column = torch.triu_indices(*products.shape)
        told: Tensor = (products / torch.outer(scale, scale))[row, column]
        return told

    def products_of(self, ends: Tensor, weights: Tensor) -> Tensor:
        """What these directed edges [2, edges] would give."""
        degree = torch.ones(len(self.x), dtype=torch.float64).index_add(0, ends[1], weights)
        scale = ((1 - self.teleport) / degree).sqrt()[:, None]

        def smooth(z: Tensor) -> Tensor:
            held = self.teleport * z
            for _ in range(self.hops):
                sent = scale * z
                z = scale * sent.index_add(0, ends[1], weights[:, None] * sent[ends[0]]) + held
            return z

        def times(p: Tensor) -> Tensor:
            placed = torch.zeros(len(self.x), p.shape[1], dtype=torch.float64)
            placed = placed.index_copy(0, self.train, p - p.mean(dim=0))
            image = smooth(self.x @ (self.x.t() @ smooth(placed)))[self.train]
            return image - image.mean(dim=0)

        first = times(self.b)
        factor = self.image / float((self.b * first).sum().detach()) if self.others else 1.0
        vectors, product = [self.b], factor * first
        for _ in range(len(self.products) - 2):
            step = product / self.bound
            following = 4 * step - 2 * vectors[-1] - vectors[-2] if len(vectors) > 1 else 2 * step - vectors[-1]
            vectors.append(following)
            product = factor * times(vectors[-1])
        flat = torch.stack([*(one.reshape(-1) for one in vectors), 4 / self.bound * product.reshape(-1)])
        return flat @ flat.t()
