import pytest
import torch

from vfgnn.model.optimisers import LocalOptimiser, SharedMomentum
from vfgnn.settings import Settings


@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.9, False), (0.9, True)])
@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_shares_move_as_torch_moves_the_whole(momentum, decay, nesterov):
    """W_t = a W_0 - X^T sum Q_i follows torch.optim.SGD for 50 steps.

    Both sides: 50 steps of sums of 30 products of size < 10 in float64: 50 * 30 * 10 * 1.1e-16 = 2e-12.
    """
    settings = Settings(
        joint_learning_rate=0.05, joint_momentum=momentum, joint_weight_decay=decay, joint_nesterov=nesterov
    )
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(30, 7, dtype=torch.float64, generator=draw)
    first = torch.randn(7, 4, dtype=torch.float64, generator=draw)
    whole = torch.nn.Parameter(first.clone())
    sgd = torch.optim.SGD([whole], lr=0.05, momentum=momentum, weight_decay=decay, nesterov=nesterov)
    holders = [SharedMomentum(torch.zeros(30, 4, dtype=torch.float64), settings) for _ in range(3)]
    for _ in range(50):
        gradients = [torch.randn(30, 4, dtype=torch.float64, generator=draw) for _ in holders]
        whole.grad = x.t() @ sum(gradients)
        sgd.step()
        for holder, gradient in zip(holders, gradients, strict=True):
            holder.step(gradient)
    assert len({holder.a for holder in holders}) == 1
    ours = holders[0].a * first - x.t() @ sum(holder.q for holder in holders)
    assert float((ours - whole.detach()).abs().max()) < 2e-12


def test_descending_is_adam():
    first = torch.ones(3, dtype=torch.float64)
    ours, theirs = (torch.nn.Parameter(first.clone()) for _ in range(2))
    optimiser = LocalOptimiser([ours], Settings(learning_rate=0.1, weight_decay=0.01))
    adam = torch.optim.Adam([theirs], lr=0.1, weight_decay=0.01)
    for _ in range(5):
        optimiser.descend(ours.square(), torch.arange(3.0, dtype=torch.float64))
        adam.zero_grad()
        (theirs.square() * torch.arange(3.0, dtype=torch.float64)).sum().backward()
        adam.step()
    assert torch.equal(ours, theirs)


def test_a_party_without_weights_still_passes_gradients_on():
    rows = torch.ones(3, requires_grad=True)
    LocalOptimiser([], Settings()).descend((2 * rows).sum())
    assert rows.grad.tolist() == [2, 2, 2]
