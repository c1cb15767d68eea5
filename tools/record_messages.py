"""Every message of a few small federations: kinds, shapes and digests, link by link, to compare two states of the code.

    python tools/record_messages.py before.json
    python tools/record_messages.py after.json --compare before.json

All parties run in one process with seeds that everybody knows and a run name that never changes, so that two records of
the same code on the same machine are equal. Digests depend on the machine's floating point: compare on one machine.
"""

import argparse
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import torch
from torch_geometric.data import Data

from vfgnn.data.held_out import labels_without, without
from vfgnn.data.partition import partition
from vfgnn.lab.federation import split_labels
from vfgnn.lab.secure_gnn import train_secure_gnn
from vfgnn.lab.simulate import build, predict_new_nodes
from vfgnn.messages import Declared
from vfgnn.settings import Settings
from vfgnn.transport.memory import InMemoryNetwork

NODES, FEATURES, CLASSES, EDGES = 60, 12, 3, 110
Links = dict[str, list[list[object]]]
"""By `sender->receiver`, in order: kind, dtype, shape, digest."""


def graph() -> Data:
    """Made up, with labels that can be learnt from it."""
    draw = torch.Generator().manual_seed(0)
    y = torch.randint(CLASSES, (NODES,), generator=draw)
    x = (torch.rand(NODES, FEATURES, generator=draw) < 0.3).float()
    x[torch.arange(NODES), y] += 1.0
    ends = torch.randint(NODES, (2, EDGES), generator=draw)
    ends = ends[:, ends[0] != ends[1]]
    part = torch.arange(NODES) % 4
    return Data(
        x=x,
        edge_index=torch.unique(torch.cat([ends, ends.flip(0)], dim=1), dim=1),
        y=y,
        train_mask=part < 2,
        val_mask=part == 2,
        test_mask=part == 3,
    )


class RecordingNetwork(InMemoryNetwork):
    """Moves messages in memory, and writes down what they were."""

    def __init__(self) -> None:
        super().__init__()
        self.links: Links = defaultdict(list)

    def put(self, message: Declared, payload: torch.Tensor) -> None:
        """As in memory."""
        dtype = str(message.dtype).removeprefix("torch.")
        words = payload.detach().cpu().contiguous().numpy().tobytes()  # a message log's digest has a key, and differs
        line: list[object] = [str(message.kind), dtype, list(message.shape), hashlib.sha256(words).hexdigest()]
        self.links[f"{message.sender}->{message.receiver}"].append(line)
        super().put(message, payload)


def settings(**changes: object) -> Settings:
    """A few epochs of everything."""
    values: dict[str, object] = {"dim": 8, "epochs": 4, "layers": 2, "accept_h0_leak": True, **changes}
    return Settings.model_validate(values)


def trained(holders: int, **changes: object) -> Links:
    """VFGNN, from setup to the predictions."""
    data, network = graph(), RecordingNetwork()
    holdings = partition(data.x, data.edge_index, holders=holders, seed=0)
    build(holdings, split_labels(data), settings(**changes), seed=0, network=network).train()
    return network.links


def secure_gnn() -> Links:
    """The baseline without a server."""
    data, network = graph(), RecordingNetwork()
    holdings = partition(data.x, data.edge_index, holders=2, seed=0)
    train_secure_gnn(holdings, split_labels(data), settings(combine="mean"), seed=0, network=network)
    return network.links


def new_nodes() -> Links:
    """A trained federation predicts nodes that were not there in training: this prediction only."""
    data, network = graph(), RecordingNetwork()
    holdings = partition(data.x, data.edge_index, holders=3, seed=0)
    labels, known = split_labels(data), torch.ones(NODES, dtype=torch.bool)
    known[labels.test[::3]] = False
    before = [without(holding, known) for holding in holdings]
    federation = build(before, labels_without(labels, known), settings(), seed=0)
    federation.train()
    predict_new_nodes(federation, holdings, labels, known.nonzero()[:, 0], network=network)
    return network.links


SCENARIOS: dict[str, Callable[[], Links]] = {
    "2 holders": lambda: trained(2, evaluate_every=2),
    "3 holders": lambda: trained(3, combine="confidence", gnn="appnp", hidden_layers=0),
    "individual": lambda: trained(2, initial_embedding="individual", publish="all"),
    "frozen joint layer": lambda: trained(2, joint_layer_epochs=2, patience=1, combine="concat"),
    "batches": lambda: trained(2, batch_rows=8, evaluate_every=2),
    "row noise": lambda: trained(
        2, privacy={"row_epsilon": 8.0, "gradient_epsilon": 8.0, "edge_epsilon": 8.0, "publish_noised_edges": True}
    ),
    "SecureGNN": secure_gnn,
    "new nodes": new_nodes,
}


def main() -> None:
    """Record, write, and compare if asked to."""
    parser = argparse.ArgumentParser(description="Record every message of a few small federations.")
    parser.add_argument("out", type=Path, help="where the record goes")
    parser.add_argument("--compare", type=Path, help="an earlier record that must be equal")
    args = parser.parse_args()
    torch.set_num_threads(1)
    record = {name: dict(sorted(run().items())) for name, run in SCENARIOS.items()}
    args.out.write_text(json.dumps(record, indent=1) + "\n")
    for name, links in record.items():
        print(f"{name}: {sum(map(len, links.values()))} messages on {len(links)} links")
    if args.compare is not None:
        earlier = json.loads(args.compare.read_text())
        different = [name for name in {**earlier, **record} if earlier.get(name) != record.get(name)]
        print(f"different: {', '.join(different)}" if different else "equal")
        sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
