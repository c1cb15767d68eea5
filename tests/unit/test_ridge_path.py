"""What the label holder makes of inner products, and which ones it refuses."""

import pytest
import torch

from vfgnn.errors import Overflow
from vfgnn.model.krylov import grow_basis
from vfgnn.model.propagated_kernels import SPREAD
from vfgnn.sealed import ridge_path
from vfgnn.sealed.formats import FACTOR
from vfgnn.sealed.ridge_path import Steps, path_words, refuse_impossible


def basis(steps=4, scale=1.0):
    """Of a random kernel."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(30, 8, generator=draw).double().numpy() * scale
    b = torch.randn(30, 2, generator=draw).double().numpy()
    return grow_basis(lambda p: x @ (x.T @ p), b, steps=steps, spread=SPREAD["smooth"])


def told(found):
    """The inner products that the label holder learns: the last vector is (4 / B) K p."""
    last = torch.ones(len(found.gram), dtype=torch.float64)
    last[-1] = 4 / found.bound
    return torch.from_numpy(found.gram) * last * last[:, None]


def first_of(found):
    """Inner products of p_0 and q_0, by the recurrence."""
    g = found.gram
    norm, image = g[0, 0], found.bound / 2 * (g[0, 1] + g[0, 0])
    square = (found.bound / 2) ** 2 * (g[1, 1] + 2 * g[0, 1] + g[0, 0])
    return torch.tensor([[norm, image], [image, square]])


def test_steps_are_those_of_the_spread_basis():
    found = basis()
    first = first_of(found)
    steps = Steps.of(first, "smooth")
    bound = ridge_path.MARGIN["smooth"] * float(first[1, 1] / first[0, 1])
    assert abs(steps.bound - bound) < 1e-4 * bound  # a word of 2 / B: 2^-21 beside about 1 / 16
    assert steps.quotient == float(first[0, 1] / first[0, 0])
    assert steps.words.tolist() == [steps.first, 2 * steps.first]
    assert "Steps(" not in repr(steps) or str(steps.first) not in repr(steps)


@pytest.mark.parametrize(
    ("products", "said"),
    [
        ([[1.0, -0.5], [-0.5, 2.0]], "Rayleigh quotient"),  # negative
        ([[1.0, 1e-4], [1e-4, 2.0]], "Rayleigh quotient"),
        ([[1.0, 9000.0], [9000.0, 1e9]], "Rayleigh quotient"),
        ([[1.0, 100.0], [100.0, 1e7]], "Rayleigh quotient"),  # the second one
        ([[0.0, 0.0], [0.0, 0.0]], "Rayleigh quotient"),  # labels of one class
        ([[1.0, 5.0], [5.0, 2.0]], "left the ring"),  # Cauchy and Schwarz
        ([[-1.0, 0.1], [0.1, 2.0]], "left the ring"),
    ],
)
def test_absurd_first_products_are_refused(products, said):
    with pytest.raises(Overflow, match=said):
        Steps.of(torch.tensor(products).double(), "smooth")


def test_a_wrapped_sum_is_refused_wherever_it_is():
    found = basis()
    steps = Steps(found.bound / SPREAD["smooth"], round(2 / found.bound * 2**FACTOR))
    good = told(found)
    path_words(good, steps, (0.1, 1.0))
    for i in range(5):
        for j in range(i + 1):
            wrapped = good.clone()
            wrapped[i, j] = wrapped[j, i] = good[i, j] - 2.0**28  # 2^64 in words of 36 bits
            with pytest.raises(Overflow, match="left the ring"):
                path_words(wrapped, steps, (0.1, 1.0))


def test_a_solution_that_no_word_holds_is_refused(monkeypatch):
    found = basis()
    steps = Steps(found.bound / SPREAD["smooth"], round(2 / found.bound * 2**FACTOR))
    monkeypatch.setattr("vfgnn.sealed.ridge_path.MOST", 1e-6)
    with pytest.raises(Overflow, match="solution of a ridge"):
        path_words(told(found), steps, (0.1,))


def test_rounding_is_not_refused():
    """Of vectors that are almost parallel, and of small ones."""
    for scale in (2.0**-4, 1.0):
        one = torch.tensor([1.0, 1.0, 1.0, 1.0]).double() * scale
        flat = torch.stack([one, one * (1 + 1e-6)])
        noise = torch.tensor([[0.0, 1.0], [1.0, -1.0]]).double() * 2.0**-20
        refuse_impossible(flat @ flat.T + noise)
