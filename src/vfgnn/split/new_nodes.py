"""Which nodes are new, and where those of training stand now; how a state is taken over to them is the state's own.

Runs at each party; nothing leaves.
"""

import torch

from vfgnn.agreement import Agreement
from vfgnn.errors import CheckpointRefused, ConfigError


def places_of(trained: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """Where the trained rows of a holder's table stand among the common rows of now; -1: no longer common."""
    size = int(torch.cat([trained, now]).max()) + 1 if len(trained) + len(now) else 0
    place = torch.full((size,), -1)
    place[now] = torch.arange(len(now))
    return place[trained]


def in_trained_order(trained: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """The common rows of now, those of training first and in its order.

    All holders come to the same order, because all know both; and where nothing is new, to the same predictions.
    """
    return torch.cat([trained[places_of(trained, now) >= 0], now[places_of(now, trained) < 0]])


def refuse_unfit(agreement: Agreement) -> None:
    """Settings with which no node can be added are refused at all parties, before anything is sent."""
    privacy = agreement.settings.privacy
    if privacy.edge_epsilon is not None:
        raise ConfigError(
            "new nodes cannot be predicted where edges are noised",
            expected="edge_epsilon off",
            hint="edges are noised once, over the nodes that there are: train again",
        )
    if privacy.average_releases:
        raise ConfigError(
            "new nodes cannot be predicted where the server averages releases",
            expected="average_releases = 0",
            hint="the server counts its averages by node, and is not told which nodes are new: train again",
        )


def refuse_gone(agreement: Agreement, places: torch.Tensor) -> None:
    """At a holder, before anything is computed."""
    gone = int((places < 0).sum())
    if gone and agreement.collaborative:
        raise CheckpointRefused(
            "trained nodes are no longer common to all holders",
            expected="all of them, and new ones",
            got=f"{gone} of {len(places)} missing",
            hint="the shared weights are made of the trained nodes' features: restore their rows, or train again",
        )
