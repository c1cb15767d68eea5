"""Code as a user would write it, in a module that other processes can import."""

import torch
from torch import nn

import vfgnn
from vfgnn.privacy import exact


class WeightedMax(nn.Module):
    """The largest value of any holder, each holder's rows scaled by a learnt weight."""

    def __init__(self, holders, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(holders, 1, dim))

    def forward(self, rows):
        return (self.weight * rows).amax(dim=0)


class DiscreteLaplace(vfgnn.RowMechanism):
    """Whole multiples of 2^-20: pure epsilon for each release."""

    grid = 2.0**20

    @property
    def cost(self):
        return vfgnn.Cost(epsilon=self.privacy.row_epsilon)

    def noise(self, rows, stream):
        scale = self.sensitivity * self.dim**0.5 * self.grid / self.privacy.row_epsilon
        first, second = (self.geometric(rows.shape, scale, stream) for _ in range(2))
        return ((rows * self.grid).trunc() + first - second) / self.grid

    def geometric(self, shape, scale, stream):
        drawn = exact.geometric(stream, shape.numel(), rate=lambda mp: 1 / mp.mpf(scale), most=2**52)
        return drawn.reshape(shape)
