"""What `vfgnn bench sealed` says is what both trainings were: declared bytes, and seconds on one clock."""

from dataclasses import asdict
from types import SimpleNamespace

import pytest
import torch

from tests.conftest import random_graph
from tests.protocol.test_sealed_costs import declared
from vfgnn.bench import sealed
from vfgnn.errors import ConfigError
from vfgnn.lab.scenario import Scenario, agreement_of

WRITTEN = {
    *(
        "dataset",
        "holders",
        "seconds",
        "offline_s",
        "online_s",
        "bytes_setup",
        "bytes_offline",
        "bytes_online",
        "rounds",
    ),
    *("steps", "split_seconds", "split_bytes", "split_epochs", "pooled_seconds", "test_accuracy"),
}
QUICK = {"dim": 8, "layers": 2, "epochs": 3, "patience": None, "accept_h0_leak": True}


@pytest.fixture
def scenarios(monkeypatch):
    """Of a random graph of 40 nodes instead of a data set; what was made of it, by protocol."""
    made = {}

    def of(dataset, *, protocol, **given):
        made[protocol] = Scenario.of(random_graph(), protocol=protocol, **given, **QUICK)
        return made[protocol]

    monkeypatch.setattr(sealed, "Scenario", SimpleNamespace(of=of))
    return made


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_both_trainings_are_counted_whole(scenarios, processes):
    stages = []
    found = sealed.bench_sealed("random", holders=2, processes=processes, on_stage=stages.append)
    scenario = scenarios["sealed"]
    agreement = agreement_of(scenario.holdings, scenario.labels, scenario.settings)
    expected = declared(agreement, len(scenario.labels.train), len(scenario.labels.val))
    assert found.bytes == sum(size for (phase, *_), size in expected.items() if phase != "end")  # goodbyes
    assert found.bytes_setup == sum(size for (phase, *_), size in expected.items() if phase == "setup")
    assert set(asdict(found)) >= WRITTEN
    assert found.offline_s + found.online_s == pytest.approx(found.seconds) and found.offline_s > 0
    assert (found.steps, found.split_epochs) == (4, 3) and found.split_bytes > 0
    assert set(found.peak_bytes) == ({"A", "B", "dealer"} if processes else set())
    assert stages[0] == "sealed: the parties meet" and any(stage.startswith("split: ") for stage in stages)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_gpu_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="no CUDA device here"):
        sealed.bench_sealed("citeseer", holders=2, device="cuda")


def test_processes_are_not_said_to_compute_on_a_gpu():
    with pytest.raises(ConfigError, match="processes compute on the CPU"):
        sealed.bench_sealed("cora", holders=2, processes=True, device="cuda")
