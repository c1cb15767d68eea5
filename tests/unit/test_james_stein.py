"""The readings of James-Stein that tools/james_stein.py compares are post-processing of the product's own noise."""

import pytest
import torch
from tools import james_stein

from vfgnn.privacy import mechanisms
from vfgnn.privacy.own_mechanism import check_mechanism
from vfgnn.settings import Privacy

PRIVACY = Privacy(row_epsilon=8.0, delta=1e-4)


@pytest.mark.parametrize("reading", james_stein.READINGS.values())
def test_every_reading_is_a_mechanism_that_the_product_takes(reading):
    assert check_mechanism(reading, PRIVACY, dim=64, releases=1).cost.noise_multiplier is not None


def test_as_printed_is_what_the_product_has():
    rows = torch.randn(20, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    per_row = james_stein.PerRow(PRIVACY, 64).shrunk(rows, 0.25)
    assert torch.allclose(per_row, mechanisms.shrink(rows, "james_stein", std=0.5, clip_norm=1.0))
    positive = james_stein.PositivePart(PRIVACY, 64).shrunk(rows, 0.9)
    printed = mechanisms.shrink(rows, "james_stein_positive", std=0.9**0.5, clip_norm=1.0)
    assert torch.allclose(positive, printed, atol=0.01)
