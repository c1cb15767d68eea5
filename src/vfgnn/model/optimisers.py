"""How weights move: Adam for weights that one party holds alone, momentum SGD for the shared ones.

Adam is not linear in the gradient, so nobody could apply it to additive shares. Momentum SGD is (docs/protocol.md, 4).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from vfgnn.agreement import Agreement
from vfgnn.checkpoint import RoleState, State, scattered
from vfgnn.settings import Settings


def rows_with_gradient(gradient: torch.Tensor) -> torch.Tensor:
    """The rows of a gradient that are not all zero; only these have to be followed backwards."""
    return gradient.abs().sum(dim=1).nonzero()[:, 0]


class LocalOptimiser:
    """Adam with the paper's L2 term, for the weights that one party holds alone (it may hold none: a mean, say)."""

    def __init__(self, parameters: Iterable[nn.Parameter], settings: Settings) -> None:
        own = list(parameters)
        rate, decay = settings.learning_rate, settings.weight_decay
        self._adam = torch.optim.Adam(own, lr=rate, weight_decay=decay, foreach=True) if own else None

    def descend(self, output: torch.Tensor, gradient: torch.Tensor | None = None) -> None:
        """Back from `output` (a loss, or rows with their `gradient`) to every leaf, then one step of these weights."""
        if self._adam is not None:
            self._adam.zero_grad()
        torch.autograd.backward(output, gradient)
        if self._adam is not None:
            self._adam.step()

    def state(self) -> State:
        """A copy of Adam's moments, by weight."""
        if self._adam is None:
            return {}
        moments = self._adam.state_dict()["state"]
        return {f"{i}/{name}": value.clone() for i, kept in moments.items() for name, value in kept.items()}

    def load(self, state: State) -> None:
        """Go on with them."""
        if self._adam is None:
            return
        moments: dict[int, State] = {}
        for name, value in state.items():
            number, _, key = name.partition("/")
            moments.setdefault(int(number), {})[key] = value.clone()
        groups = self._adam.state_dict()["param_groups"]
        self._adam.load_state_dict({"state": moments, "param_groups": groups})


@dataclass(frozen=True, repr=False)
class MomentumState(RoleState):
    """What `SharedMomentum` goes on from."""

    q: torch.Tensor
    n: torch.Tensor
    a: float
    b: float

    def over(self, places: torch.Tensor, agreement: Agreement) -> "MomentumState":
        """0 at new nodes: X'^T Q' is then X^T Q."""
        if not len(self.q):
            return self
        nodes = agreement.nodes
        return replace(self, q=scattered(self.q, places, nodes), n=scattered(self.n, places, nodes))


@dataclass(repr=False)
class SharedMomentum:
    """A holder's part of W_t = a_t W_0 - X^T Q_t, with Q = sum_i Q_i: nothing is truncated, nothing adds up.

    SGD with momentum, Nesterov and coupled weight decay is linear: the shared weights' step is a step of each holder's
    own Q_i, in float64, and of the public scalars a and b. The velocity of W is X^T N + b W_0.
    Lives at one holder; Q_i and N_i never leave it unmasked.
    """

    q: torch.Tensor  # [nodes, d]: Q_i
    settings: Settings
    n: torch.Tensor = field(init=False)  # N_i
    a: float = 1.0
    b: float = 0.0

    def __post_init__(self) -> None:
        self.n = torch.zeros_like(self.q)

    def state(self) -> MomentumState:
        """All four. Q_i and N_i are large, and no step changes them in place: there is nothing to copy."""
        return MomentumState(self.q.cpu(), self.n.cpu(), self.a, self.b)

    def load(self, state: MomentumState) -> None:
        """Go on from them."""
        self.q, self.n = state.q.to(self.q.device), state.n.to(self.q.device)
        self.a, self.b = state.a, state.b

    def restore(self, q: torch.Tensor, a: float) -> None:
        """Back to the W of an earlier step; no step follows."""
        self.q, self.a = q, a

    def step(self, g: torch.Tensor) -> None:
        """One step along G_i = dL/dh0 at this holder; Q_i and N_i become new tensors (see `state`)."""
        rate, momentum = self.settings.joint_learning_rate, self.settings.joint_momentum
        decay, nesterov = self.settings.joint_weight_decay, self.settings.joint_nesterov
        if decay:
            g = g.double() - decay * self.q
        self.n = self.n.mul(momentum).add_(g)
        decayed = decay * self.a
        self.b = momentum * self.b + decayed
        if nesterov:
            self.q = self.q.add(g, alpha=rate).add_(self.n, alpha=rate * momentum)
            self.a -= rate * (decayed + momentum * self.b)
        else:
            self.q = self.q.add(self.n, alpha=rate)
            self.a -= rate * self.b
