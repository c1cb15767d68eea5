"""The layers on shares against the same network in float64: products, activations, gradients and steps."""

import pytest
import torch

from tests.shares import dealt, run_parties
from vfgnn.mpc.polynomial import SIGMOID, TANH
from vfgnn.mpc.sharing import reconstruct
from vfgnn.randomness import insecure_seed
from vfgnn.secure_gnn.network import (
    INPUT_GRADIENT,
    LOGITS,
    LOGITS_GRADIENT,
    VALUES,
    Momentum,
    SharedNetwork,
    backward_operations,
    forward_operations,
)

STEP = Momentum(rate=0.125, momentum=0.9, decay=0.01)  # a rate that its 12 fraction bits hold exactly
ROWS, TRAINED = 30, 20


class TaylorNetwork:
    """In the clear, with torch's own gradients and optimiser."""

    def __init__(self, networks, activation):
        shares = [network.values() for network in networks]
        values = [VALUES.decode(reconstruct(each)) for each in zip(*shares, strict=True)]
        half = len(values) // 2
        self.weights = [value.clone().requires_grad_() for value in values[:half]]
        self.biases = [value.clone().requires_grad_() for value in values[half:]]
        self.activation = activation
        self.optimiser = torch.optim.SGD(
            [*self.weights, *self.biases], lr=STEP.rate, momentum=STEP.momentum, weight_decay=STEP.decay
        )

    def __call__(self, z, kept):
        p = self.activation
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            z = p.constant + p.slope * z + p.cubic * z**3 if k > 0 else z
            z = z * kept[k] @ weight + bias
        return z

    @property
    def values(self):
        return [value.detach() for value in (*self.weights, *self.biases)]


def made(parties, widths, activation):
    return [
        SharedNetwork(widths, holders=parties, seed=insecure_seed(40 + i), step=STEP, activation=activation)
        for i in range(parties)
    ]


def passes(widths, steps):
    for _ in range(steps):
        yield from forward_operations(widths, ROWS)
        yield from backward_operations(widths, TRAINED)


@pytest.mark.parametrize("activation", [SIGMOID, TANH], ids=["sigmoid", "tanh"])
@pytest.mark.parametrize("widths", [(8, 3), (8, 6, 3), (8, 6, 5, 3)], ids=str)
@pytest.mark.parametrize("parties", [2, 3])
def test_equals_the_plaintext_taylor_network(parties, widths, activation):
    steps, generator = 5, torch.Generator().manual_seed(1)
    networks = made(parties, widths, activation)
    twin = TaylorNetwork(networks, activation)
    rows = torch.randn(steps, ROWS, widths[0], generator=generator, dtype=torch.float64).clamp(-1, 1) / 2
    rows = VALUES.decode(VALUES.encode(rows, "rows"))
    gradients = torch.randn(steps, TRAINED, widths[-1], generator=generator, dtype=torch.float64) / TRAINED
    kept = [
        [2 * torch.randint(0, 2, (ROWS, width), generator=generator) for width in widths[:-1]] for _ in range(steps)
    ]

    found_logits, found_gradients = [], []
    for step in range(steps):
        z = rows[step].clone().requires_grad_()
        logits = twin(z, kept[step])
        twin.optimiser.zero_grad()
        logits[:TRAINED].backward(gradients[step])
        twin.optimiser.step()
        found_logits.append(logits.detach())
        found_gradients.append(z.grad[:TRAINED])

    materials = dealt(parties, list(passes(widths, steps)))

    def work(arithmetic, *shares):
        network = networks[materials.index(arithmetic.material)]
        results = []
        for step in range(steps):
            logits = network.forward(arithmetic, shares[2 * step], kept[step])
            results += [logits, network.backward(arithmetic, shares[2 * step + 1])]
        return results

    inputs = [
        encoded
        for step in range(steps)
        for encoded in (VALUES.encode(rows[step], "rows"), LOGITS_GRADIENT.encode(gradients[step], "gradient"))
    ]
    results, _ = run_parties(parties, work, materials, *inputs)
    opened = [reconstruct(each) for each in zip(*results, strict=True)]
    for step in range(steps):
        torch.testing.assert_close(LOGITS.decode(opened[2 * step]), found_logits[step], atol=1e-3, rtol=1e-3)
        torch.testing.assert_close(
            INPUT_GRADIENT.decode(opened[2 * step + 1]), found_gradients[step], atol=1e-5, rtol=1e-3
        )
    shares = [network.values() for network in networks]
    for each, expected in zip(zip(*shares, strict=True), twin.values, strict=True):
        torch.testing.assert_close(VALUES.decode(reconstruct(each)), expected, atol=1e-4, rtol=1e-3)
