"""What an epoch costs against the number of nodes, and whether batches learn as well as everything at once."""

import json

import pytest
import torch

from tests.e2e.test_cli import vfgnn
from vfgnn.bench.scale import CLASSES, COLUMNS, EDGES_PER_NODE, HOLDERS, ScalePoint, _growth, bench_scale, made_up
from vfgnn.errors import ConfigError
from vfgnn.lab.simulate import simulate


def point(nodes, seconds):
    return ScalePoint(
        nodes=nodes,
        edges=10 * nodes,
        train_rows=nodes // 10,
        batches=1,
        epoch_s=seconds,
        cpu_s=seconds,
        begin_s=0.0,
        bytes_per_epoch=0,
        bytes_setup=0,
        peak_bytes={"A": 1},
        predicted_bytes={"A": 1},
    )


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_growth_is_the_exponent(power):
    sizes = (1000, 10_000, 100_000)
    growth = _growth([point(size, 1.0) for size in sizes], [size**power for size in sizes])
    assert growth.over_all == pytest.approx(power)
    assert growth.at_the_end == pytest.approx(power)


def test_the_made_up_graph_has_each_edge_at_one_holder():
    holdings, labels = made_up(1000)
    assert len(holdings) == HOLDERS
    assert all(holding.x.shape == (1000, COLUMNS) for holding in holdings)
    assert sum(holding.edge_index.shape[1] for holding in holdings) == 2 * EDGES_PER_NODE * 1000
    assert len(torch.cat([labels.train, labels.val, labels.test]).unique()) == 1000
    assert labels.classes == CLASSES


@pytest.mark.parametrize("sizes", [[1000], [10, 1000]])
def test_sizes_that_tell_nothing_are_refused(sizes):
    with pytest.raises(ConfigError, match="growth"):
        bench_scale(sizes)


@pytest.mark.slow
def test_bench_scale(tmp_path):
    files = "--json", str(tmp_path / "scale.json"), "--figure", str(tmp_path / "scale.png")
    done = vfgnn("bench", "scale", "--nodes", "300,3000", "--set", "batch_rows=100", *files)
    assert done.returncode == 0, done.stderr
    assert "exponents" in done.stdout
    result = json.loads((tmp_path / "scale.json").read_text())
    small, large = result["points"]
    assert (small["batches"], large["batches"]) == (1, 3)
    assert set(large["peak_bytes"]) == {"server", "dealer", "A", "B", "C"}
    # Everything but the two seeds for each pair and the row roles is n words or rows; the batches add nothing.
    assert large["bytes_per_epoch"] == pytest.approx(10 * small["bytes_per_epoch"], rel=0.1)
    assert (tmp_path / "scale.png").stat().st_size > 0


@pytest.mark.slow
def test_batches_are_as_accurate_as_everything_at_once():
    """CiteSeer, 120 training rows in 3 batches, mean of 3 seeds; deviations between seeds are about .01.

    Three steps in an epoch instead of one, so each a third as long: .03 is the preset's rate for one batch.
    """

    def reached(**changes):
        runs = [simulate("citeseer", seed=seed, epochs=60, compare=False, **changes) for seed in range(3)]
        return sum(run.federated.test_accuracy for run in runs) / 3

    assert abs(reached(batch_rows=40, learning_rate=0.01) - reached(learning_rate=0.03)) < 0.02
