"""A whole federation in one process: the same parties, schedule and messages, over the in-memory channel.

For experiments, tests and a first look. Nothing is secret here: one process has everything.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch_geometric.data import Data

from vfgnn import randomness
from vfgnn.channel import InMemoryNetwork
from vfgnn.config import SERVER, Federation, HolderShape, Preset, Settings, make_federation
from vfgnn.data import datasets
from vfgnn.data.holdings import Holding, Labels
from vfgnn.data.partition import EdgeSplit, holder_names, partition
from vfgnn.errors import ConfigError, DataError
from vfgnn.model.central import CentralTraining
from vfgnn.model.cg1_edges import OwnModule
from vfgnn.parties import loop
from vfgnn.parties.holder import Holder
from vfgnn.parties.label_holder import LabelHolder
from vfgnn.parties.server import Server
from vfgnn.records import EpochMetrics, Outcome, Traffic


@dataclass(frozen=True)
class SimulatedFederation:
    """The parties of one simulation, ready to run."""

    federation: Federation
    holders: tuple[Holder, ...]
    label_holder: LabelHolder
    server: Server
    network: InMemoryNetwork

    @property
    def parties(self) -> dict[str, loop.Party]:
        """All parties by name."""
        return {SERVER: self.server, **{holder.channel.party: holder for holder in self.holders}}

    def train(self) -> Outcome:
        """Run every party's loop to its end."""
        self.run({name: partial(loop.train, party) for name, party in self.parties.items()})
        if self.label_holder.outcome is None:
            raise ConfigError("the label holder has no outcome")
        return self.label_holder.outcome

    def run(self, work: Mapping[str, Callable[[], object]]) -> None:
        """Run all parties at once: the holders share the cores among them, the server works while they wait."""
        cores = torch.get_num_threads()
        share = {holder.channel.party: max(1, cores // len(self.holders)) for holder in self.holders}
        self.network.run(work, cores={SERVER: cores, **share})

    @property
    def traffic(self) -> Traffic:
        """What crossed all links together, counted by its senders."""
        total = Traffic()
        for name, party in self.parties.items():
            for (phase, sender, receiver), link in party.channel.traffic.links.items():
                if sender == name:
                    total.links[phase, sender, receiver] = link
        return total


def split_labels(data: Data) -> Labels:
    """The label holder's part of a PyG `Data`."""
    for name in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"):
        if data.get(name) is None:
            what = "labels missing" if name == "y" else f"{name} missing"
            raise DataError(what, expected=f"a PyG Data with {name}", hint="add it, or use a data set that has it")
    y = data.y.reshape(-1).long()
    rows = [data[f"{part}_mask"].nonzero()[:, 0] for part in ("train", "val", "test")]
    classes = int(y.max()) + 1 if len(y) else 0
    return Labels(y=y, train=rows[0], val=rows[1], test=rows[2], classes=max(classes, 2))


def build(
    holdings: Sequence[Holding],
    labels: Labels,
    settings: Settings,
    *,
    seed: int,
    own: OwnModule | None = None,
    device: torch.device | None = None,
    on_epoch: Callable[[EpochMetrics], None] | None = None,
) -> SimulatedFederation:
    """Make the parties; the first holder has the labels. `seed` is public here, so nothing is secret."""
    names = holder_names(len(holdings))
    shapes = [
        HolderShape(name=name, features=holding.x.shape[1], edges=holding.edge_index.shape[1] > 0)
        for name, holding in zip(names, holdings, strict=True)
    ]
    federation = make_federation(
        nodes=holdings[0].nodes, classes=labels.classes, holders=shapes, label_holder=names[0], settings=settings
    )
    network = InMemoryNetwork()

    def seed_of(party: str) -> bytes:
        return randomness.derive_key(randomness.insecure_seed(seed), "party", party)

    label_holder = LabelHolder(
        federation,
        network.channel(names[0]),
        holdings[0],
        labels,
        seed=seed_of(names[0]),
        own_module=own,
        device=device,
        on_epoch=on_epoch,
    )
    others = [
        Holder(federation, network.channel(name), holding, seed=seed_of(name), own_module=own, device=device)
        for name, holding in zip(names[1:], holdings[1:], strict=True)
    ]
    server = Server(federation, network.channel(SERVER), seed=seed_of(SERVER), device=device)
    return SimulatedFederation(federation, (label_holder, *others), label_holder, server, network)
