"""A party's trained state over nodes that were not there in training (GraphSAGE's inductive promise).

Weights do not depend on how many nodes there are. What does is this holder's part of the shared weights, which is kept
as Q_i [nodes, d]: it is 0 at new nodes. Runs at each party, on its own state; nothing leaves.
"""

import torch

from vfgnn.checkpoint import State
from vfgnn.config import Federation
from vfgnn.errors import CheckpointRefused, ConfigError

BY_NODE = ("features/layer/momentum/q", "features/layer/momentum/n")
REFRESHES = ("features/layer/refreshes", "refreshes")  # a holder's and the dealer's
OUTDATED = ("features/h0", "best/")  # of the nodes that there were


def over_more_nodes(state: State, places: torch.Tensor, nodes: int) -> State:
    """The same state where trained node i stands at `places[i]` of `nodes`."""
    moved = {name: tensor for name, tensor in state.items() if not name.startswith(OUTDATED)}
    for name in BY_NODE:
        if name in moved and len(moved[name]):
            moved[name] = _scattered(moved[name], places, nodes)
    for name in REFRESHES:
        if name in moved:
            moved[name] = torch.tensor(0)  # masks are counted from the start of each connection
    if "best_release/rows" in moved:
        moved["best_release/rows"] = places[moved["best_release/rows"]]
    return moved


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


def refuse_unfit(federation: Federation, places: torch.Tensor) -> None:
    """What cannot be extended is refused before anything is computed."""
    if federation.settings.privacy.edge_epsilon is not None:
        raise ConfigError(
            "new nodes cannot be predicted where edges are noised",
            expected="edge_epsilon off",
            hint="edges are noised once, over the nodes that there are: train again",
        )
    gone = int((places < 0).sum())
    if gone and federation.collaborative:
        raise CheckpointRefused(
            "trained nodes are no longer common to all holders",
            expected="all of them, and new ones",
            got=f"{gone} of {len(places)} missing",
            hint="the shared weights are made of the trained nodes' features: restore their rows, or train again",
        )
