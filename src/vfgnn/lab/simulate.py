"""A whole federation in one process: the same parties, programs and messages, over memory.

For experiments, tests and a first look. Nothing is secret here: one process has everything.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from vfgnn.agreement import SERVER, Agreement
from vfgnn.common_programs import Follower, NoSizes, leaving
from vfgnn.contribution import Contribution
from vfgnn.data.feature_maps import mapped
from vfgnn.data.holdings import Holding, Labels
from vfgnn.data.partition import EdgeSplit
from vfgnn.errors import ConfigError
from vfgnn.lab import federation as notebook
from vfgnn.lab.scenario import Scenario, SimulationResult, agreement_of
from vfgnn.model.cg1_edges import OwnModule
from vfgnn.model.cg2_server import OwnCombine
from vfgnn.model.contribution import HolderContribution
from vfgnn.party.own_code import OwnCode
from vfgnn.party.roles import AnyRole, Protocol, known_seed, make_role
from vfgnn.party.session import Session
from vfgnn.privacy.ledger import Release
from vfgnn.privacy.own_mechanism import OwnMechanism
from vfgnn.program import NOBODY, Program, Watch, carry_out
from vfgnn.records import EpochMetrics, Outcome, Result, Traffic
from vfgnn.sealed.program import training as sealed_training
from vfgnn.settings import Settings
from vfgnn.split.holder import Holder
from vfgnn.split.program import prediction, training
from vfgnn.transport.memory import SIMULATION, InMemoryNetwork

IN_ONE_PROCESS: dict[str, object] = {"joint_layer": "insecure_clear"}
"""What simulations and experiments change in a preset: one process has everything, so masks would protect nothing, and
without them the same words come out faster. `joint_layer=secure` runs the whole protocol all the same."""


@dataclass(frozen=True)
class SimulatedFederation:
    """The parties of one simulation, ready to run."""

    agreement: Agreement
    parties: dict[str, AnyRole]
    sessions: dict[str, Session]
    network: InMemoryNetwork
    program: Program[Any]

    @property
    def label_holder(self) -> AnyRole:
        """The party that leads, and alone has a result."""
        return self.parties[self.agreement.label_holder]

    def train(self) -> Outcome:
        """Let every party follow the program to its end."""
        self.carry_out(self.program, leaving(self.program.parties, self.program.leader))
        return self.result.outcome

    @property
    def result(self) -> Result:
        """What the label holder has learnt."""
        found = self.label_holder.result
        if found is None:
            raise ConfigError("the label holder has no result")
        return found

    @property
    def holders(self) -> tuple[AnyRole, ...]:
        """In their common order."""
        return tuple(self.parties[name] for name in self.agreement.holder_names)

    def carry_out(
        self,
        program: Program[Any],
        goodbye: Program[NoSizes] | None = None,
        *,
        begin: int = 0,
        watches: Mapping[str, Watch] | None = None,
    ) -> None:
        """All parties at once: the holders share the cores among them, the server works while they wait.

        `begin`: the step whose state all have loaded; `watches`: who hears of a party's steps.
        """
        cores, holders = torch.get_num_threads(), self.agreement.holder_names
        share = {name: max(1, cores // len(holders)) for name in holders}
        heard = watches or {}
        work = {
            name: partial(self._follow, name, program, goodbye, begin, heard.get(name, NOBODY)) for name in self.parties
        }
        self.network.run(work, cores={SERVER: cores, **share})

    def _follow(
        self, name: str, program: Program[Any], goodbye: Program[NoSizes] | None, begin: int, watch: Watch
    ) -> None:
        role, session = self.parties[name], self.sessions[name]
        try:
            with session.met():
                carry_out(program, role, begin=begin, watch=watch)
                if goodbye is not None:
                    carry_out(goodbye, Follower(session.channel, goodbye))
        finally:
            role.close()

    @property
    def traffic(self) -> Traffic:
        """What crossed all links together, counted by its senders."""
        total = Traffic()
        for name, party in self.parties.items():
            total.links.update(party.channel.traffic.sent_by(name))
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
    """The protocol of the settings; the first holder has the labels. `seed` is public here, so nothing is secret."""
    if settings.protocol == "sealed":
        if code is not None and (code.gnn or code.combine or code.mechanism):
            raise ConfigError(
                "code of your own has no place in the sealed protocol",
                expected="protocol = split for a gnn, combine or mechanism of your own",
            )
        holdings = [mapped(holding, settings.sealed) for holding in holdings]
    agreement = agreement_of(holdings, labels, settings, names)
    return assemble(
        agreement,
        holdings,
        labels,
        sealed_training(agreement) if agreement.sealed else training(agreement),
        seed=seed,
        protocol=settings.protocol,
        code=code,
        device=device,
        on_epoch=on_epoch,
        network=network,
    )


def assemble(
    agreement: Agreement,
    holdings: Sequence[Holding],
    labels: Labels,
    program: Program[Any],
    *,
    seed: int,
    protocol: Protocol = "split",
    code: OwnCode | None = None,
    device: torch.device | None = None,
    on_epoch: Callable[[EpochMetrics], None] | None = None,
    network: InMemoryNetwork | None = None,
) -> SimulatedFederation:
    """Make the parties of a program, each with a session over memory."""
    network, code = network or InMemoryNetwork(), code or OwnCode()
    held = dict(zip(agreement.holder_names, holdings, strict=True))
    sessions = {name: Session(name, network.transport(name)) for name in program.parties}
    parties: dict[str, AnyRole] = {}
    for name, session in sessions.items():
        drawn, place, leads = known_seed(seed, name), device or torch.device("cpu"), name == program.leader
        own = Contribution(run=SIMULATION, seed=drawn, device=place, combine=code.combine)
        if name in held:
            own = HolderContribution(
                run=SIMULATION,
                seed=drawn,
                device=place,
                holding=held[name],
                labels=labels if leads else None,
                gnn=code.gnn,
                mechanism=code.mechanism,
                on_epoch=on_epoch if leads else None,
            )
        parties[name] = make_role(agreement, session.channel, own, protocol=protocol)
    return SimulatedFederation(agreement, parties, sessions, network, program)


def predict_new_nodes(
    trained: SimulatedFederation,
    holdings: Sequence[Holding],
    labels: Labels,
    places: torch.Tensor,
    *,
    network: InMemoryNetwork | None = None,
) -> torch.Tensor:
    """Logits of all nodes of `holdings`; those that `trained` was trained on stand at `places`, the others are new."""
    names = trained.agreement.holder_names
    now = build(holdings, labels, trained.agreement.settings, seed=0, names=names, network=network)
    states = {name: party.state() for name, party in trained.parties.items()}
    for name, party in now.parties.items():
        party.load(states[name].over(places, now.agreement))
    now.carry_out(prediction(now.agreement, new_nodes=True))
    if now.result.logits is None:
        raise ConfigError("the label holder has no logits")
    return now.result.logits


def ledger_of(holder: object) -> Sequence[Release] | None:
    """What a holder has spent in this process."""
    return holder.publisher.ledger.releases if isinstance(holder, Holder) else None


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
        **{**IN_ONE_PROCESS, **overrides},
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
    logits = federation.result.logits
    return scenario.result(
        outcome,
        federation.agreement,
        federation.traffic,
        isolated=isolated,
        joint=joint,
        seconds=seconds,
        logits=torch.empty(0) if logits is None else logits.cpu(),
        spent=ledger_of(federation.label_holder),
    )
