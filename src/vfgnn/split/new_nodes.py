"""A party's trained state over nodes that were not there in training (GraphSAGE's inductive promise).

Weights do not depend on how many nodes there are. What does is this holder's part of the shared weights, which is kept
as Q_i [nodes, d]: it is 0 at new nodes. Runs at each party, on its own state; nothing leaves.
"""

from collections.abc import Sequence

import torch

from vfgnn.agreement import Agreement
from vfgnn.checkpoint import State
from vfgnn.errors import CheckpointRefused, ConfigError

BY_NODE = ("joint/momentum/q", "joint/momentum/n")
REFRESHES = ("joint/refreshes", "refreshes")  # a holder's and the dealer's
OUTDATED = ("features/h0", "best/")  # of the nodes that there were


def over_more_nodes(state: State, places: torch.Tensor, agreement: Agreement) -> State:
    """The same state where trained node i stands at `places[i]` of the federation's nodes of now."""
    moved = {name: tensor for name, tensor in state.items() if not name.startswith(OUTDATED)}
    for name in BY_NODE:
        if name in moved and len(moved[name]):
            moved[name] = _scattered(moved[name], places, agreement.nodes)
    for name in REFRESHES:
        if name in moved:
            # Masks are drawn anew with each start, so any number will do; after the last but one nobody works ahead.
            moved[name] = torch.tensor(max(0, agreement.settings.trained_joint_epochs - 1))
    if "best_release/rows" in moved:
        moved |= _released(places[moved["best_release/rows"]], moved["best_release/noised"])
    return moved


def with_releases(state: State, releases: Sequence[torch.Tensor | None]) -> State:
    """The same with the rows that were noised in an earlier pass, by node; those of training come first."""
    rows, noised = state.get("best_release/rows"), state.get("best_release/noised")
    if rows is None or noised is None:
        return state
    known = set(rows.tolist())
    later = [row for row, release in enumerate(releases) if release is not None and row not in known]
    if not later:
        return state
    added = torch.stack([release for row in later if (release := releases[row]) is not None])
    return state | {
        "best_release/rows": torch.cat([rows, torch.tensor(later)]),
        "best_release/noised": torch.cat([noised, added]),
    }


def _released(places: torch.Tensor, noised: torch.Tensor) -> State:
    there = places >= 0
    return {"best_release/rows": places[there], "best_release/noised": noised[there]}


def _scattered(by_node: torch.Tensor, places: torch.Tensor, nodes: int) -> torch.Tensor:
    spread = torch.zeros(nodes, *by_node.shape[1:], dtype=by_node.dtype)
    spread[places] = by_node
    return spread


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
