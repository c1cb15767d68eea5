"""h0 as a holder sees it in the reveals of the joint layer: the sum of all holders' shares, and nothing else."""

import torch
from torch import Tensor

from vfgnn.audit.views import NotInView, View
from vfgnn.split.joint_layer import H0
from vfgnn.split.program import H0_SHARE


def revealed(view: View) -> list[Tensor]:
    """H_0 = X W_0, then X P of the refreshes that were kept [nodes, d] each; all of them are linear in X."""
    holders = view.agreement.holder_names
    others = [name for name in holders if name != view.party]
    readers = [name for name in others if name in view.agreement.publishers]
    if not readers:
        raise NotInView(f"the share of h0 of {view.party}: it sends it to nobody")
    shares = [view.sent(H0_SHARE, readers[0]), *(view.received(H0_SHARE, name) for name in others)]
    return [H0.decode(torch.stack(each).sum(dim=0)) for each in zip(*shares, strict=True)]


def h0_seen(view: View) -> list[Tensor]:
    """h0 at the start and after each refresh that was kept: H_0 - X P, where joint weights do not decay."""
    first, *products = revealed(view)
    return [first, *(first - product for product in products)]
