import pytest
import torch

from tests.shares import run_dealt
from vfgnn.mpc.beaver import Product, products
from vfgnn.mpc.fixed_point import FixedPoint
from vfgnn.mpc.polynomial import FRACTION_BITS, SIGMOID, TANH, evaluate, operations
from vfgnn.mpc.sharing import reconstruct
from vfgnn.mpc.truncation import Truncation, truncate

WORDS = FixedPoint(FRACTION_BITS, 2.0**20)
CLEAR = {
    "tanh": (TANH, lambda x: x - x**3 / 3, lambda x: 1 - x**2),
    "sigmoid": (SIGMOID, lambda x: 1 / 2 + x / 4 - x**3 / 48, lambda x: 1 / 4 - x**2 / 16),
}


def evaluated(parties, polynomial, x):
    def work(arithmetic, x_share):
        result = evaluate(arithmetic, polynomial, x_share)
        return result.value, result.derivative

    shares, table = run_dealt(parties, work, operations(tuple(x.shape)), WORDS.encode(x, "x"))
    value, derivative = (WORDS.decode(reconstruct(each)) for each in zip(*shares, strict=True))
    return value, derivative, table


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("name", CLEAR)
def test_polynomial_and_derivative_equal_the_clear_ones(parties, name):
    polynomial, clear, derivative_of = CLEAR[name]
    x = WORDS.decode(WORDS.encode(torch.linspace(-2, 2, 4001, dtype=torch.float64), "x"))
    value, derivative, _ = evaluated(parties, polynomial, x)
    # At |x| = 2: u is off by 4 2^-17 + 2^-20 = 3.2e-5 at most; p by twice that + 2^-20; p' by three times that.
    assert float((value - clear(x)).abs().max()) < 7e-5
    assert float((derivative - derivative_of(x)).abs().max()) < 1e-4


@pytest.mark.parametrize("name", CLEAR)
def test_the_stated_errors_hold_up_to_the_stated_range(name):
    polynomial, clear, derivative_of = CLEAR[name]
    limit = (2**6 / abs(polynomial.cubic)) ** 0.5 - 0.01
    x = WORDS.decode(WORDS.encode(torch.linspace(-limit, limit, 4001, dtype=torch.float64), "x"))
    value, derivative, _ = evaluated(3, polynomial, x)
    error_of_u = x**2 * 2**-17 + 2**-20
    assert bool(((value - clear(x)).abs() <= x.abs() * error_of_u + 2**-20).all())
    assert bool(((derivative - derivative_of(x)).abs() <= 3 * error_of_u).all())


def test_near_zero_they_are_the_functions_themselves():
    x = torch.linspace(-0.25, 0.25, 101, dtype=torch.float64)
    # The next Taylor terms: 2/15 x^5 and x^5/480, below 1.4e-4 at 0.25.
    assert float((evaluated(2, TANH, x)[0] - x.tanh()).abs().max()) < 1.4e-4
    assert float((evaluated(2, SIGMOID, x)[0] - x.sigmoid()).abs().max()) < 1e-5


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_rounds_and_words(parties):
    _, _, table = evaluated(parties, TANH, torch.zeros(6, 5, dtype=torch.float64))
    assert table.rounds == 4
    assert table.words == 6 * 30
    assert table.payloads == [payload for operation in operations((6, 5)) for payload in operation.opened]
    corrections = [payload for operation in operations((6, 5)) for payload in operation.correction]
    assert sum(torch.Size(payload.shape).numel() for payload in corrections) == 6 * 30


@pytest.mark.parametrize("name", CLEAR)
def test_a_gradient_goes_back_through_it(name):
    polynomial, clear, _ = CLEAR[name]
    x = torch.linspace(-1.5, 1.5, 31, dtype=torch.float64, requires_grad=True)
    gradient = torch.linspace(2, -1, 31, dtype=torch.float64)
    clear(x).backward(gradient)
    wanted = [*operations((31,)), Product((31,)), Truncation((31,), FRACTION_BITS)]

    def work(arithmetic, x_share, gradient_share):
        derivative = evaluate(arithmetic, polynomial, x_share).derivative
        return truncate(arithmetic, *products(arithmetic, (gradient_share, derivative)), bits=FRACTION_BITS)[0]

    inputs = [WORDS.encode(each.detach(), "x") for each in (x, gradient)]
    shares, _ = run_dealt(3, work, wanted, *inputs)
    assert float((WORDS.decode(reconstruct(shares)) - x.grad).abs().max()) < 1.2e-4
