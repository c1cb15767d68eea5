"""A federation trained in this process, with every party's view of it and the whole truth.

Whoever runs this has everybody's data: it is for test federations. Nothing leaves the process.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from torch import Tensor

from vfgnn.agreement import Agreement
from vfgnn.audit.case import Attacked, Case
from vfgnn.audit.views import Opened, Truth, View
from vfgnn.data.feature_maps import mapped
from vfgnn.data.holdings import Holding, Labels
from vfgnn.lab.scenario import Scenario, agreement_of
from vfgnn.lab.simulate import SimulatedFederation, build
from vfgnn.messages import Declared, Kind
from vfgnn.model.ridge_training import pooled_scores
from vfgnn.records import Outcome
from vfgnn.sealed.label_holder import SealedLabelHolder
from vfgnn.settings import Settings
from vfgnn.transport.memory import InMemoryNetwork
from vfgnn.view_file import first_of


class Recorder(InMemoryNetwork):
    """The network of a simulation, which keeps what crosses it."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[Kind, str, str], list[Tensor]] = defaultdict(list)

    def put(self, message: Declared, payload: Tensor) -> None:
        """As in memory."""
        link = self.kept[message.kind, message.sender, message.receiver]
        del link[first_of(message.kind) :]
        link.append(payload.detach().clone())
        super().put(message, payload)


@dataclass(frozen=True, repr=False)
class SimulatedRun:
    """A finished test federation."""

    agreement: Agreement
    views: dict[str, View]  # by party
    truth: Truth
    outcome: Outcome


def train_and_record(holdings: Sequence[Holding], labels: Labels, settings: Settings, *, seed: int) -> SimulatedRun:
    """Train a federation in this process and keep everybody's view. The first holder has the labels."""
    network = Recorder()
    federation = build(holdings, labels, settings, seed=seed, network=network)
    outcome = federation.train()
    agreement = federation.agreement
    held = dict(zip(agreement.holder_names, holdings, strict=True))
    views = {}
    for party in federation.parties:
        own = {link: messages for link, messages in network.kept.items() if party in link[1:]}
        leads = party == agreement.label_holder
        opened = _opened(federation) if leads else None
        views[party] = View(party, agreement, own, held.get(party), labels if leads else None, opened)
    pooled = pooled_scores(holdings, settings) if agreement.sealed else None
    return SimulatedRun(agreement, views, Truth(held, labels, dict(network.kept), pooled), outcome)


def _opened(federation: SimulatedFederation) -> Opened | None:
    """To the label holder of a sealed run."""
    leader, logits = federation.label_holder, federation.result.logits
    if not isinstance(leader, SealedLabelHolder) or logits is None:
        return None
    return Opened(logits, tuple(leader.products))


@dataclass(frozen=True)
class Simulation:
    """How test federations are made: everybody's view is there, and everybody's data is the truth."""

    holders: int = 3
    preset: str = "best"
    seed: int = 0
    data_dir: Path | None = None
    changed: Mapping[str, object] = field(default_factory=dict)  # settings of all of them

    def case(self, dataset: str, changes: Mapping[str, object]) -> Case:
        """One with these settings too. It is trained when its views are needed."""
        scenario = Scenario.of(
            dataset,
            holders=self.holders,
            preset=self.preset,
            seed=self.seed,
            data_dir=self.data_dir,
            **_merged(self.changed, changes),  # type: ignore[arg-type]
        )
        settings, labels = scenario.settings, scenario.labels
        sealed = settings.protocol == "sealed"
        scored = ", scores opened" if sealed and settings.sealed.opens == "scores" else ""
        shaped = [mapped(one, settings.sealed) for one in scenario.holdings] if sealed else scenario.holdings
        agreement = agreement_of(shaped, labels, settings, scenario.names)

        def make() -> Attacked:
            run = train_and_record(scenario.holdings, labels, settings, seed=self.seed)
            return Attacked(run.views, run.truth, run.outcome.test_accuracy)

        return Case(
            title=f"{dataset}, {self.holders} holders, preset {self.preset}, seed {self.seed}{scored}",
            protocol=settings.protocol,
            agreement=agreement,
            parties=agreement.parties,
            digest=sha256(f"{dataset} {self.seed} {agreement.model_dump_json()}".encode()).hexdigest(),
            make=make,
            dataset=dataset,
        )


def _merged(first: Mapping[str, object], second: Mapping[str, object]) -> dict[str, object]:
    """The second settings count; of tables key by key."""
    merged = {**first, **second}
    for key in first.keys() & second.keys():
        one, other = first[key], second[key]
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            merged[key] = {**one, **other}
    return merged
