"""One training for the question what new nodes cost: a tenth of the nodes, and all their edges, come after it.

They are drawn from the nodes that neither train nor validate, and accuracy is that on these nodes alone.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from vfgnn.data.held_out import labels_without, without
from vfgnn.data.holdings import Holding, Labels
from vfgnn.lab.simulate import build, predict_new_nodes
from vfgnn.records import Outcome
from vfgnn.settings import Settings

SHARE = 0.1


def train_held_out(
    holdings: Sequence[Holding], labels: Labels, settings: Settings, *, seed: int, inductive: bool
) -> Outcome:
    """`inductive`: trained without these nodes, which are then predicted over the whole graph; else with them."""
    new = drawn(labels, seed)
    kept = torch.ones(len(labels.y), dtype=torch.bool)
    kept[new] = not inductive
    federation = build([without(one, kept) for one in holdings], labels_without(labels, kept), settings, seed=seed)
    outcome = federation.train()
    logits = federation.result.logits
    if inductive or logits is None:
        logits = predict_new_nodes(federation, holdings, labels, kept.nonzero()[:, 0])
    reached = float((logits[new].argmax(dim=1) == labels.y[new]).double().mean())
    return replace(outcome, test_accuracy=reached)


def drawn(labels: Labels, seed: int) -> torch.Tensor:
    """The new nodes of a seed, sorted."""
    free = torch.ones(len(labels.y), dtype=torch.bool)
    free[labels.train] = free[labels.val] = False
    candidates = free.nonzero()[:, 0]
    order = torch.randperm(len(candidates), generator=torch.Generator().manual_seed(seed))
    return candidates[order[: round(SHARE * len(labels.y))]].sort().values
