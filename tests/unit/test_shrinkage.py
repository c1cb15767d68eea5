"""Q6, why James-Stein reads worse than Gaussian: the figures against the mechanism itself and against what is known."""

import pytest
import torch

from vfgnn.experiments.privacy import PRINTED
from vfgnn.experiments.shrinkage import shrinkage
from vfgnn.privacy import mechanisms

DELTA, DIM, ROWS = 1e-4, 64, 100_000


@pytest.fixture(params=[4.0, 16.0, 64.0])
def released(request):
    """Unit rows, all the same, noised and shrunk by the product's own code."""
    found = shrinkage(request.param, DIM, DELTA)
    noise = torch.randn(ROWS, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * found.std
    noised = torch.eye(DIM, dtype=torch.float64)[0] + noise
    return found, noised, mechanisms.shrink(noised, "james_stein", std=found.std, clip_norm=1.0)


def test_the_figures_are_those_of_the_mechanism(released):
    """Sampling: 1e5 rows of d values; a mean of squares of d values deviates by sqrt(2 / (d 1e5)), below 0.1 %; the
    factor's own deviation of up to 1 a row is 0.3 % of a mean and, relative to the smallest mean (.03), 10 %."""
    found, noised, shrunk = released
    x = torch.eye(DIM, dtype=torch.float64)[0]
    assert float((noised - x).square().sum(1).mean()) == pytest.approx(found.error_gaussian, rel=0.01)
    assert float((shrunk - x).square().sum(1).mean()) == pytest.approx(found.error_james_stein, rel=0.03)
    assert float(((shrunk * noised).sum(1) < 0).double().mean()) == pytest.approx(found.turned, abs=0.01)
    ratio = float(shrunk[:, 0].mean()) ** 2 / float(shrunk[:, 1:].square().mean()) * found.std**2
    assert ratio == pytest.approx(found.kept, rel=0.25, abs=0.01)


def test_nearer_and_yet_less_to_read():
    found = [shrinkage(epsilon, DIM, DELTA) for epsilon in PRINTED]
    assert all(one.error_james_stein < one.error_gaussian for one in found)
    assert all(one.kept < 1 for one in found)
    assert [one.kept for one in found] == sorted(one.kept for one in found)
