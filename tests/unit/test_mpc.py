import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vfgnn.errors import CorrelationReused, DataError
from vfgnn.mpc.correlations import Counters, Masks
from vfgnn.mpc.fixed_point import FixedPoint, update_bits, weight_bits
from vfgnn.mpc.kernels import DenseMatrix
from vfgnn.mpc.sharing import ZeroSharing, reconstruct, split
from vfgnn.randomness import Stream, insecure_seed

words = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(words, min_size=1, max_size=8), st.integers(2, 5), st.integers(0, 99))
def test_shares_sum_to_the_secret(values, parties, seed):
    secret = torch.tensor(values)
    shares = split(secret, parties, Stream(insecure_seed(seed), "split"))
    assert len(shares) == parties
    assert torch.equal(reconstruct(shares), secret)


@given(st.floats(-1000, 1000), st.integers(0, 50))
def test_encoding_rounds_to_half_a_unit(value, bits):
    encoding = FixedPoint(bits, 1024.0)
    back = encoding.decode(encoding.encode(torch.tensor([value], dtype=torch.float64), "x"))
    # Half a unit in the last place, and float64's own rounding of v 2^f.
    assert abs(float(back) - value) <= 2.0 ** -(bits + 1) + abs(value) * 2.0**-52


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1025.0, -1e300])
def test_what_cannot_be_encoded_is_refused_without_being_shown(value):
    with pytest.raises(DataError) as caught:
        FixedPoint(12, 1024.0).encode(torch.tensor([0.0, value]), "the features of A")
    assert "1 value(s)" in str(caught.value)
    assert "1025" not in str(caught.value)


def test_a_bound_that_does_not_fit():
    with pytest.raises(DataError, match="bound"):
        FixedPoint(50, 2.0**12)


def test_bits_meet_at_h0():
    for f in (0, 12):
        assert f + weight_bits(f) == 50
        assert f + update_bits(f) == weight_bits(f)


def test_empty_matrices_are_encoded():
    assert FixedPoint(12, 1.0).encode(torch.zeros(3, 0), "x").shape == (3, 0)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_sharings_of_zero_sum_to_zero(count):
    names = [f"h{i}" for i in range(count)]
    seed = {(a, b): insecure_seed(10 * i + j) for i, a in enumerate(names) for j, b in enumerate(names) if i < j}
    parts = []
    for me in names:
        own = {other: seed[tuple(sorted((me, other)))] for other in names if other != me}
        parts.append(ZeroSharing(me, names, own).hide(torch.zeros(5, 3, dtype=torch.int64), 7))
    assert not reconstruct(parts).any()
    assert all(part.any() for part in parts)


def test_a_number_is_used_once():
    counters = Counters()
    counters.take("forward", 0)
    counters.take("backward", 0)
    counters.take("forward", 5)
    for number in (0, 4, 5):
        with pytest.raises(CorrelationReused):
            counters.take("forward", number)
    counters.take("forward", 6)


def test_every_start_has_masks_of_its_own():
    """Why no number has to survive a restart: a start's name is part of every mask."""
    first, again = (Masks(insecure_seed(1), run=start, holder="A") for start in ("one", "another"))
    masks = [start.operand("B", "forward", 0, (50, 2)) for start in (first, again)]
    masks += [start.result("B", "forward", 0, (50, 2)) for start in (first, again)]
    masks += [start.features(50, 2) for start in (first, again)]
    drawn = torch.stack(masks)
    assert len(drawn.unique()) == drawn.numel()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("rows", "columns"), [(7, 5), (1, 1), (8, 4), (19, 9), (3, 0)])
def test_dense_products_wrap_around(rows, columns, threads):
    a = Stream(insecure_seed(1), "a").words(rows, columns)
    b, g = Stream(insecure_seed(1), "b").words(columns, 4), Stream(insecure_seed(1), "g").words(rows, 4)
    matrix = DenseMatrix(a, threads=threads)
    exact = [[sum(int(x) * int(y) for x, y in zip(row, column, strict=True)) for column in b.t()] for row in a]
    wrapped = [[(value + 2**63) % 2**64 - 2**63 for value in row] for row in exact]
    assert matrix.times(b).tolist() == wrapped
    assert torch.equal(matrix.transpose_times(g), a.t() @ g)
