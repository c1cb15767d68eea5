"""Nodes that come after training: a graph without some of its nodes, for experiments with new ones."""

import torch

from vfgnn.data.holdings import Holding, Labels


def without(holding: Holding, kept: torch.Tensor) -> Holding:
    """A holder's data over the nodes of the mask `kept` alone, in their order; edges to others are left out."""
    number = torch.cumsum(kept, dim=0) - 1
    inside = kept[holding.edge_index].all(dim=0)
    return Holding(x=holding.x[kept], edge_index=number[holding.edge_index[:, inside]])


def labels_without(labels: Labels, kept: torch.Tensor) -> Labels:
    """The labels of the same nodes."""
    number = torch.cumsum(kept, dim=0) - 1
    train, val, test = (number[rows[kept[rows]]] for rows in (labels.train, labels.val, labels.test))
    return Labels(y=labels.y[kept], train=train, val=val, test=test, classes=labels.classes)
