"""SecureGNN's hidden layers and output layer on shares: forward, backward and the steps of the weights.

z_{k+1} = p(z_k W_k + b_k) with the Taylor polynomial p of the activation; the last layer gives logits. Every holder has
a share of all weights and of all rows, and all of them compute this together, with the dealer's material (mpc/shared).
Nothing is revealed here: what is opened is masked. What the shares that come out are for, the callers say.

Fraction bits: values and weights 20, gradients 26; a product has the sum of both. What is opened right after a product
keeps its bits: a truncation would cost a round and add nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch

from vfgnn.mpc import polynomial
from vfgnn.mpc.beaver import MatrixProduct, Product, matrix_products, products
from vfgnn.mpc.fixed_point import FixedPoint
from vfgnn.mpc.polynomial import FRACTION_BITS, SIGMOID, Polynomial
from vfgnn.mpc.shared import Arithmetic, Operation
from vfgnn.mpc.truncation import Truncation, truncate
from vfgnn.randomness import Stream

VALUES = FixedPoint(FRACTION_BITS, 2.0**10)
LOGITS = FixedPoint(2 * FRACTION_BITS, 2.0**20)
LOGITS_GRADIENT = FixedPoint(26, 2.0**10)  # 1 / (training rows) is small: six more bits than a value has
INPUT_GRADIENT = FixedPoint(LOGITS_GRADIENT.fraction_bits + FRACTION_BITS, 2.0**10)
STEP_BITS = 38  # of the public factors of a step: with 20 of a weight 58 of 62 are used, so a step is below 16
RATE_BITS = FRACTION_BITS + STEP_BITS - INPUT_GRADIENT.fraction_bits


@dataclass(frozen=True)
class Momentum:
    """SGD with momentum and coupled weight decay; Adam is not linear, so nobody could apply it to shares."""

    rate: float
    momentum: float
    decay: float


@dataclass(repr=False)
class SharedParameter:
    """One holder's share of a weight matrix or a bias, and of its last step."""

    value: torch.Tensor
    moved: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.moved = torch.zeros_like(self.value)

    def scaled(self, gradient: torch.Tensor, by: Momentum) -> torch.Tensor:
        """Momentum * last step + rate * (gradient + decay * value), with 58 fraction bits. Linear: share by share."""
        kept, decayed = round(by.momentum * 2.0**STEP_BITS), round(by.rate * by.decay * 2.0**STEP_BITS)
        return self.moved * kept + self.value * decayed + gradient * round(by.rate * 2.0**RATE_BITS)

    def move(self, step: torch.Tensor) -> None:
        """Take the step."""
        self.moved, self.value = step, self.value - step


class SharedNetwork:
    """One holder's side of all layers. `widths`: of the combined rows, of each hidden layer, and the classes."""

    def __init__(
        self,
        widths: Sequence[int],
        *,
        holders: int,
        seed: bytes,
        step: Momentum,
        activation: Polynomial = SIGMOID,
        scales: Sequence[float] | None = None,
    ) -> None:
        self._step, self._activation = step, activation
        # Each holder draws its share of the initial weights by itself: their sum is what nobody knows.
        stream = Stream(seed, "initial shares")
        self.weights: list[SharedParameter] = []
        self.biases: list[SharedParameter] = []
        for k, (inputs, outputs) in enumerate(pairwise(widths)):
            bound, wider = (inputs * holders) ** -0.5, 1.0 if scales is None else scales[k]
            for kind, shape, by in ((self.weights, (inputs, outputs), wider), (self.biases, (outputs,), 1.0)):
                drawn = stream.uniform(*shape, bound=bound * by)
                kind.append(SharedParameter(VALUES.encode(drawn, "initial weights")))
        self._inputs: list[torch.Tensor] = []
        self._derivatives: list[torch.Tensor] = []
        self._kept: Sequence[torch.Tensor] = ()

    def forward(self, arithmetic: Arithmetic, z: torch.Tensor, kept: Sequence[torch.Tensor]) -> torch.Tensor:
        """A share of the logits [rows, classes], 40 fraction bits, from a share of the combined rows [rows, d].

        `kept`: dropout's public factors 0 or 1 / (1 - p), a whole number, for the inputs of each layer.
        """
        self._inputs, self._derivatives, self._kept = [], [], kept
        a = self._linear(arithmetic, 0, z)
        for k in range(1, len(self.weights)):
            (a,) = truncate(arithmetic, a, bits=FRACTION_BITS)
            evaluated = polynomial.evaluate(arithmetic, self._activation, a)
            self._derivatives.append(evaluated.derivative)
            a = self._linear(arithmetic, k, evaluated.value)
        return a

    def _linear(self, arithmetic: Arithmetic, k: int, z: torch.Tensor) -> torch.Tensor:
        """A share of z W_k + b_k, 40 fraction bits."""
        z = z * self._kept[k]
        self._inputs.append(z)
        (product,) = matrix_products(arithmetic, (z, self.weights[k].value))
        return product.add_(self.biases[k].value << FRACTION_BITS)

    def backward(self, arithmetic: Arithmetic, gradient: torch.Tensor) -> torch.Tensor:
        """From a share of dL/dlogits of the first rows to one of dL/d(combined rows), 46 fraction bits; then a step."""
        rows = len(gradient)
        to_weights: list[torch.Tensor] = []
        to_biases: list[torch.Tensor] = []
        for k in reversed(range(len(self.weights))):
            z, weight = self._inputs[k][:rows], self.weights[k].value
            to_weight, to_input = matrix_products(
                arithmetic, (z.t().contiguous(), gradient), (gradient, weight.t().contiguous())
            )
            to_weights.append(to_weight)
            to_biases.append(gradient.sum(dim=0) << FRACTION_BITS)
            to_input *= self._kept[k][:rows]
            if k > 0:
                (to_value,) = truncate(arithmetic, to_input, bits=FRACTION_BITS)
                (product,) = products(arithmetic, (to_value, self._derivatives[k - 1][:rows]))
                (gradient,) = truncate(arithmetic, product, bits=FRACTION_BITS)
        self._move(arithmetic, to_weights[::-1], to_biases[::-1])
        return to_input

    def _move(self, arithmetic: Arithmetic, to_weights: list[torch.Tensor], to_biases: list[torch.Tensor]) -> None:
        """One step of all weights, in one round."""
        parameters, gradients = [*self.weights, *self.biases], [*to_weights, *to_biases]
        scaled = [own.scaled(gradient, self._step) for own, gradient in zip(parameters, gradients, strict=True)]
        steps = truncate(arithmetic, *scaled, bits=STEP_BITS)
        for own, step in zip(parameters, steps, strict=True):
            own.move(step)

    def values(self) -> list[torch.Tensor]:
        """This holder's shares of all weights and biases; a step makes new tensors of them."""
        return [own.value for own in (*self.weights, *self.biases)]

    def restore(self, values: Sequence[torch.Tensor]) -> None:
        """Go back to earlier ones; no step follows."""
        for own, value in zip((*self.weights, *self.biases), values, strict=True):
            own.value = value


def forward_operations(widths: Sequence[int], rows: int) -> Iterator[Operation]:
    """What `forward` needs of the dealer, in order."""
    for k, (inputs, outputs) in enumerate(pairwise(widths)):
        if k > 0:
            yield Truncation((rows, inputs), FRACTION_BITS)
            yield from polynomial.operations((rows, inputs))
        yield MatrixProduct(rows, inputs, outputs)


def backward_operations(widths: Sequence[int], rows: int) -> Iterator[Operation]:
    """What `backward` needs of the dealer, in order."""
    pairs = list(pairwise(widths))
    for k, (inputs, outputs) in reversed(list(enumerate(pairs))):
        yield MatrixProduct(inputs, rows, outputs)
        yield MatrixProduct(rows, outputs, inputs)
        if k > 0:
            yield Truncation((rows, inputs), FRACTION_BITS)
            yield Product((rows, inputs))
            yield Truncation((rows, inputs), FRACTION_BITS)
    for inputs, outputs in pairs:
        yield Truncation((inputs, outputs), STEP_BITS)
    for _, outputs in pairs:
        yield Truncation((outputs,), STEP_BITS)
