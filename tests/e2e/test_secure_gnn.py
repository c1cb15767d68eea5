"""SecureGNN with every party a process of its own, over TLS; nobody plays the server."""

import pytest
import torch

from tests.protocol.test_secure_gnn import settings, small
from vfgnn.lab.local_files import write_federation
from vfgnn.lab.processes import LocalProcesses
from vfgnn.lab.secure_gnn import train_secure_gnn
from vfgnn.party.baseline import COMMAND


@pytest.mark.slow
def test_processes_train_what_one_process_trains(tmp_path):
    holdings, labels = small()
    chosen = settings(epochs=20, dropout=0.0, joint_layer="secure")
    expected = train_secure_gnn(holdings, labels, chosen, seed=0)

    local = write_federation(tmp_path, holdings, labels, chosen, insecure_seed=0)
    with LocalProcesses(local, names=["dealer", "A", "B"], command=COMMAND) as running:
        running.wait()

    losses = [torch.tensor([m.loss for m in outcome.history[:-1]]) for outcome in (local.outcome, expected)]
    torch.testing.assert_close(*losses, atol=2e-3, rtol=2e-3)  # truncation rounds at random
    assert not local.run_folder("server").exists()
    assert local.traffic.bytes_in("refresh", "forward", "backward") > 0
