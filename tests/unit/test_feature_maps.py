"""A holder's own maps of its columns: whole numbers stay so, ties stay together, new rows are mapped like old ones."""

import json

import numpy as np
import pytest
import torch

from vfgnn.data.feature_maps import FeatureMap, bounds_of, fit_map
from vfgnn.data.holdings import Holding
from vfgnn.errors import ConfigError, DataError

NO_EDGES = torch.zeros(2, 0, dtype=torch.int64)


def holding(x, edges=NO_EDGES, local=0):
    return Holding(x=torch.as_tensor(x), edge_index=edges, local=local)


def test_bins_are_one_hot_and_about_equally_full():
    x = np.random.default_rng(0).standard_normal((1200, 1))
    mapped = fit_map(holding(x), bins=12).apply(holding(x))
    assert mapped.dtype == torch.int64 and mapped.shape == (1200, 12)
    assert set(mapped.sum(dim=1).tolist()) == {1}
    assert all(99 <= count <= 101 for count in mapped.sum(dim=0).tolist())  # 100, and a quantile is a value itself


def test_the_order_of_the_values_is_all_that_counts():
    x = np.random.default_rng(0).standard_normal((300, 2))
    mapped = [fit_map(holding(v)).apply(holding(v)) for v in (x, np.exp(x), 5 * x - 3)]
    assert torch.equal(mapped[0], mapped[1]) and torch.equal(mapped[0], mapped[2])


def test_ties_share_a_bin_and_no_bin_is_empty():
    values = np.array([0.0] * 90 + [1.0] * 5 + [2.0] * 5)
    mapped = fit_map(holding(values[:, None]), bins=12).apply(holding(values[:, None]))
    assert (mapped.sum(dim=0) > 0).all()
    assert len({tuple(row) for row in mapped[:90].tolist()}) == 1
    assert bounds_of(np.array([0.0] * 99 + [7.0]), 12) == (7.0,)


def test_two_values_become_one_column_and_a_constant_none():
    x = np.array([[1.0, 5.0], [4.0, 5.0], [4.0, 5.0]])
    fitted = fit_map(holding(x))
    assert fitted.apply(holding(x)).tolist() == [[0], [1], [1]]
    assert "1.0" not in repr(fitted) and "4.0" not in repr(fitted)


def test_the_degree_counts_different_neighbours():
    edges = torch.tensor([[0, 1, 0, 2, 3, 3], [1, 0, 2, 0, 3, 0]])  # 0-1 and 0-2 twice, a loop, 3-0 once
    x = np.zeros((5, 1))
    fitted = fit_map(holding(x, edges), degree=True)
    mapped = fitted.apply(holding(x, edges))
    assert mapped.argmax(dim=1).tolist() == [2, 1, 1, 1, 0]
    assert fit_map(holding(x), degree=True).apply(holding(x)).shape == (5, 0)  # no edges: a constant


def test_binary_is_1_above_0_whatever_the_other_rows_are():
    x = torch.tensor([[0.0, 0.2, 0.0], [3.5, 0.0, 0.0], [1e-9, 0.7, 0.0]], dtype=torch.float64)
    fitted = fit_map(holding(x), name="binary")
    assert fitted.whole and fitted.apply(holding(x)).tolist() == [[0, 1, 0], [1, 0, 0], [1, 1, 0]]
    assert fit_map(holding(x[:1]), name="binary").apply(holding(x)).tolist() == fitted.apply(holding(x)).tolist()
    assert FeatureMap.from_json(json.loads(json.dumps(fitted.to_json()))) == fitted


def test_none_leaves_the_columns_as_they_are():
    words = torch.tensor([[0, 1, 0], [1, 1, 0]])
    assert torch.equal(fit_map(holding(words), name="none").apply(holding(words)), words)
    real = torch.tensor([[0.5], [1.0]])
    assert fit_map(holding(real), name="none").apply(holding(real)).dtype == torch.float64
    floats = words.float()  # whole numbers all the same
    assert fit_map(holding(floats), name="none").apply(holding(floats)).dtype == torch.int64
    with pytest.raises(DataError, match="not whole numbers"):
        fit_map(holding(floats), name="none").apply(holding(floats + 0.5))


def test_a_kept_map_gives_new_rows_what_the_old_ones_had():
    draw = np.random.default_rng(3)
    x, edges = draw.standard_normal((50, 3)), torch.from_numpy(draw.integers(0, 50, (2, 120)))
    for scaled in (False, True):
        fitted = fit_map(holding(x, edges), degree=True, scaled=scaled)
        kept = FeatureMap.from_json(json.loads(json.dumps(fitted.to_json())))
        new = holding(np.concatenate([x, [[9.0, -9.0, 0.0]]]), edges)
        mapped = kept.apply(new)
        assert kept == fitted and torch.equal(mapped[:50], fitted.apply(holding(x, edges)))
        assert mapped.shape == (51, fitted.apply(holding(x, edges)).shape[1])


def test_own_neighbours_outside_the_common_nodes_have_no_part_in_the_fit():
    x = np.random.default_rng(0).standard_normal((40, 1))
    more = np.concatenate([x, x + 100])
    assert fit_map(holding(x)) == fit_map(holding(more, local=40))


def test_scaled_columns_have_mean_0_and_deviation_1():
    x = np.random.default_rng(0).standard_normal((100, 2))
    mapped = fit_map(holding(x), scaled=True).apply(holding(x))
    # Sums of 100 numbers of size 1.
    assert torch.allclose(mapped.mean(dim=0), torch.zeros(24, dtype=torch.float64), atol=1e-13)
    assert torch.allclose(mapped.std(dim=0, correction=0), torch.ones(24, dtype=torch.float64), atol=1e-13)


def test_bad_input_is_refused_by_name():
    with pytest.raises(ConfigError, match="too few bins"):
        fit_map(holding(np.zeros((3, 1))), bins=1)
    fitted = fit_map(holding(np.random.default_rng(0).random((9, 2))))
    with pytest.raises(DataError, match="not fitted to"):
        fitted.apply(holding(np.zeros((3, 1))))
