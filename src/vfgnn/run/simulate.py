"""A whole federation in one process: the same parties, schedule and messages, over the in-memory channel.

For experiments, tests and a first look. Nothing is secret here: one process has everything.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch_geometric.data import Data

from vfgnn import randomness
from vfgnn.channel import InMemoryNetwork
from vfgnn.config import DEALER, SERVER, Federation, HolderShape, Preset, Settings, make_federation
from vfgnn.data import datasets
from vfgnn.data.holdings import Holding, Labels
from vfgnn.data.partition import EdgeSplit, holder_names, partition
from vfgnn.errors import ConfigError, DataError
from vfgnn.model.central import CentralTraining
from vfgnn.model.cg1_edges import OwnModule
from vfgnn.model.leak_meter import LeakMeter, meter
from vfgnn.parties import loop
from vfgnn.parties.dealer import Dealer
from vfgnn.parties.holder import Holder
from vfgnn.parties.label_holder import LabelHolder
from vfgnn.parties.server import Server
from vfgnn.records import EpochMetrics, Outcome, Traffic

IN_ONE_PROCESS: dict[str, object] = {"joint_layer": "insecure_clear"}
"""What simulations and experiments change in a preset: one process has everything, so masks would protect nothing, and
without them the same words come out faster. `joint_layer=secure` runs the whole protocol all the same."""


@dataclass(frozen=True)
class SimulatedFederation:
    """The parties of one simulation, ready to run."""

    federation: Federation
    holders: tuple[Holder, ...]
    label_holder: LabelHolder
    server: Server
    dealer: Dealer | None
    network: InMemoryNetwork

    @property
    def parties(self) -> dict[str, loop.Party]:
        """All parties by name."""
        middle: dict[str, loop.Party] = {SERVER: self.server}
        if self.dealer is not None:
            middle[DEALER] = self.dealer
        return {**middle, **{holder.channel.party: holder for holder in self.holders}}

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
        HolderShape(
            name=name,
            features=holding.x.shape[1],
            edges=holding.edge_index.shape[1] > 0,
            integer=bool((holding.x == holding.x.round()).all()),
        )
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
    dealer = Dealer(federation, network.channel(DEALER), seed=seed_of(DEALER)) if federation.dealt else None
    return SimulatedFederation(federation, (label_holder, *others), label_holder, server, dealer, network)


@dataclass(frozen=True)
class SimulationResult:
    """A federation beside what its holders would get alone and what pooling everything would give."""

    dataset: str
    preset: str
    holders: int
    seed: int
    federated: Outcome
    isolated: dict[str, Outcome]
    joint: Outcome | None
    logits: torch.Tensor
    seconds_per_epoch: float
    bytes_per_epoch: int
    revealed_dimensions: int
    leak_meters: tuple[LeakMeter, ...]
    settings: Settings

    @property
    def test_accuracy(self) -> float:
        """Of the epoch that validation chose."""
        return self.federated.test_accuracy

    @property
    def val_accuracy(self) -> float:
        """The best one."""
        return self.federated.val_accuracy

    def to_json(self) -> dict[str, object]:
        """What `vfgnn simulate --json` writes."""
        return {
            "dataset": self.dataset,
            "preset": self.preset,
            "holders": self.holders,
            "seed": self.seed,
            "test_accuracy": self.federated.test_accuracy,
            "val_accuracy": self.federated.val_accuracy,
            "best_epoch": self.federated.best_epoch,
            "isolated": [outcome.test_accuracy for outcome in self.isolated.values()],
            "joint": None if self.joint is None else self.joint.test_accuracy,
            "epochs": self.federated.history[-1].epoch,
            "seconds_per_epoch": self.seconds_per_epoch,
            "bytes_per_epoch": self.bytes_per_epoch,
            "revealed_dimensions": self.revealed_dimensions,
            "leak_meter": {meter.holder: meter.share for meter in self.leak_meters},
            "settings": self.settings.model_dump(mode="json"),
            "history": [asdict(metrics) for metrics in self.federated.history],
        }


def choose_device(name: str) -> torch.device:
    """`cpu` or `cuda`, if it is there."""
    if name not in ("cpu", "cuda"):
        raise ConfigError("unknown device", expected="cpu or cuda", got=name)
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("no CUDA device here", expected="a CUDA device and a CUDA build of torch", hint="use cpu")
    return torch.device(name)


def simulate(
    data: Data | str,
    *,
    holders: int = 2,
    preset: str = "best",
    seed: int = 0,
    gnn: OwnModule | str | None = None,
    proportions: Sequence[float] | None = None,
    edge_proportions: Sequence[float] | None = None,
    edge_split: EdgeSplit = "undirected",
    compare: bool = True,
    device: str = "cpu",
    data_dir: Path | None = None,
    on_epoch: Callable[[str, EpochMetrics], None] | None = None,
    **overrides: object,
) -> SimulationResult:
    """Split a graph over holders, train the federation in this process, and compare.

    `data` is a PyG `Data` with masks, or the name of a benchmark; `gnn` one of ours by name, or your own;
    `overrides` are settings by name (`combine="mean"`, `epochs=50`). `on_epoch` hears of every epoch of every model.
    """
    name = data if isinstance(data, str) else "your data"
    where = choose_device(device)
    presets = Preset(preset)
    own = gnn if callable(gnn) else None
    changed = {**IN_ONE_PROCESS, **overrides}
    if gnn is not None:
        changed["gnn"] = "own" if callable(gnn) else gnn
    settings = presets.settings(dataset=name, overrides=changed)
    graph = datasets.load(data, data_dir) if isinstance(data, str) else data
    labels = split_labels(graph)
    whole = Holding(x=graph.x, edge_index=graph.edge_index)
    holdings = partition(
        whole.x,
        whole.edge_index,
        holders=holders,
        seed=seed,
        proportions=proportions,
        edge_proportions=edge_proportions,
        edge_split=edge_split,
    )

    def hear(model: str) -> Callable[[EpochMetrics], None]:
        return lambda metrics: on_epoch(model, metrics) if on_epoch is not None else None

    federation = build(holdings, labels, settings, seed=seed, own=own, device=where, on_epoch=hear("federated"))
    began = time.perf_counter()
    outcome = federation.train()
    seconds = time.perf_counter() - began

    def central(model: str, tuned_as: str, holding: Holding) -> Outcome:
        own_settings = presets.settings(dataset=name, model=tuned_as, overrides=changed)
        root = randomness.insecure_seed(seed)
        training = CentralTraining(holding, labels, own_settings, seed=root, own=own, device=where)
        return training.train(hear(model))

    isolated, joint = {}, None
    if compare:
        names = federation.federation.holder_names
        isolated = {
            f"{who} alone": central(f"{who} alone", "isolated", holding)
            for who, holding in zip(names, holdings, strict=True)
        }
        joint = central("joint", "pooled", whole)
    epochs = max(1, outcome.history[-1].epoch)
    logits = federation.label_holder.logits
    return SimulationResult(
        dataset=name,
        preset=preset,
        holders=holders,
        seed=seed,
        federated=outcome,
        isolated=isolated,
        joint=joint,
        logits=torch.empty(0) if logits is None else logits.cpu(),
        seconds_per_epoch=seconds / epochs,
        bytes_per_epoch=federation.traffic.bytes_in("forward", "backward") // epochs,
        revealed_dimensions=federation.federation.revealed_dimensions(outcome.history[-1].epoch),
        leak_meters=_leak_meters(federation.federation, holdings, outcome),
        settings=settings,
    )


def _leak_meters(federation: Federation, holdings: Sequence[Holding], outcome: Outcome) -> tuple[LeakMeter, ...]:
    """What each holder would read off its own meter at the end of this run."""
    steps = outcome.history[-1].epoch
    pairs = zip(federation.holder_names, holdings, strict=True)
    read = [meter(federation, name, holding.x, steps=steps) for name, holding in pairs]
    return tuple(one for one in read if one is not None)
