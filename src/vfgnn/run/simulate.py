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
from vfgnn.config import DEALER, SERVER, Federation, Settings
from vfgnn.data.holdings import Holding, Labels
from vfgnn.data.partition import EdgeSplit
from vfgnn.errors import ConfigError
from vfgnn.model.cg1_edges import OwnModule
from vfgnn.model.cg2_server import OwnCombine
from vfgnn.parties import loop
from vfgnn.parties.dealer import Dealer
from vfgnn.parties.holder import Holder
from vfgnn.parties.label_holder import LabelHolder
from vfgnn.parties.new_nodes import over_more_nodes
from vfgnn.parties.server import Server
from vfgnn.privacy.own_mechanism import OwnMechanism
from vfgnn.records import EpochMetrics, Outcome, Traffic
from vfgnn.run import federation as notebook
from vfgnn.run.module import OwnCode
from vfgnn.run.scenario import Scenario, SimulationResult, federation_of

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


def build(
    holdings: Sequence[Holding],
    labels: Labels,
    settings: Settings,
    *,
    seed: int,
    code: OwnCode | None = None,
    device: torch.device | None = None,
    on_epoch: Callable[[EpochMetrics], None] | None = None,
    network: InMemoryNetwork | None = None,
    names: Sequence[str] | None = None,
) -> SimulatedFederation:
    """Make the parties; the first holder has the labels. `seed` is public here, so nothing is secret."""
    federation = federation_of(holdings, labels, settings, names)
    names = federation.holder_names
    network, code = network or InMemoryNetwork(), code or OwnCode()

    def seed_of(party: str) -> bytes:
        return randomness.derive_key(randomness.insecure_seed(seed), "party", party)

    label_holder = LabelHolder(
        federation,
        network.channel(names[0]),
        holdings[0],
        labels,
        seed=seed_of(names[0]),
        own_module=code.gnn,
        own_mechanism=code.mechanism,
        device=device,
        on_epoch=on_epoch,
    )
    others = [
        Holder(
            federation,
            network.channel(name),
            holding,
            seed=seed_of(name),
            own_module=code.gnn,
            own_mechanism=code.mechanism,
            device=device,
        )
        for name, holding in zip(names[1:], holdings[1:], strict=True)
    ]
    server = Server(federation, network.channel(SERVER), seed=seed_of(SERVER), own_combine=code.combine, device=device)
    dealer = Dealer(federation, network.channel(DEALER), seed=seed_of(DEALER)) if federation.dealt else None
    return SimulatedFederation(federation, (label_holder, *others), label_holder, server, dealer, network)


def predict_new_nodes(
    trained: SimulatedFederation,
    holdings: Sequence[Holding],
    labels: Labels,
    places: torch.Tensor,
    *,
    network: InMemoryNetwork | None = None,
) -> torch.Tensor:
    """Logits of all nodes of `holdings`; those that `trained` was trained on stand at `places`, the others are new."""
    names = trained.federation.holder_names
    now = build(holdings, labels, trained.federation.settings, seed=0, names=names, network=network)
    states = {name: party.state() for name, party in trained.parties.items()}
    for name, party in now.parties.items():
        party.load(over_more_nodes(states[name], places, now.federation))
    now.run({name: partial(loop.predict, party, new_nodes=True) for name, party in now.parties.items()})
    for party in now.parties.values():
        party.close()
    if now.label_holder.logits is None:
        raise ConfigError("the label holder has no logits")
    return now.label_holder.logits


def simulate(
    data: Data | str | notebook.Federation,
    *,
    holders: int | None = None,
    preset: str = "best",
    seed: int = 0,
    gnn: OwnModule | str | None = None,
    combine: OwnCombine | str | None = None,
    mechanism: OwnMechanism | str | None = None,
    proportions: Sequence[float] | None = None,
    edge_proportions: Sequence[float] | None = None,
    edge_split: EdgeSplit = "undirected",
    compare: bool = True,
    device: str = "cpu",
    data_dir: Path | None = None,
    on_epoch: Callable[[str, EpochMetrics], None] | None = None,
    on_scenario: Callable[[Scenario], None] | None = None,
    **overrides: object,
) -> SimulationResult:
    """Split a graph over holders, train the federation in this process, and compare.

    `data` is a PyG `Data` with masks or the name of a benchmark, for 2 `holders` unless you say otherwise, or a
    `Federation` of holders' own graphs. `gnn` and `combine` are ours by name, or your own: a class or its import path;
    `mechanism` is your own noise on rows in the place of the Gaussian one (docs/python.md). `overrides` are settings by
    name (`epochs=50`, `privacy={"edge_epsilon": 8}`). `on_epoch` hears of every epoch of every model, `on_scenario` of
    what is about to be trained.
    """
    scenario = Scenario.of(
        data,
        holders=holders,
        preset=preset,
        seed=seed,
        gnn=gnn,
        combine=combine,
        mechanism=mechanism,
        proportions=proportions,
        edge_proportions=edge_proportions,
        edge_split=edge_split,
        device=device,
        data_dir=data_dir,
        overrides={**IN_ONE_PROCESS, **overrides},
    )
    if on_scenario is not None:
        on_scenario(scenario)
    hear = scenario.hearing(on_epoch)
    federation = build(
        scenario.holdings,
        scenario.labels,
        scenario.settings,
        seed=seed,
        code=scenario.code,
        device=scenario.device,
        on_epoch=hear("federated"),
        names=scenario.names,
    )
    began = time.perf_counter()
    outcome = federation.train()
    seconds = time.perf_counter() - began
    isolated, joint = scenario.compare(hear) if compare else ({}, None)
    logits = federation.label_holder.logits
    return scenario.result(
        outcome,
        federation.federation,
        federation.traffic,
        isolated=isolated,
        joint=joint,
        seconds=seconds,
        logits=torch.empty(0) if logits is None else logits.cpu(),
        spent=federation.label_holder.publisher.ledger.releases,
    )
