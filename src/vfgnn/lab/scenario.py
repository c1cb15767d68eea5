"""One graph, split over holders as if they had never shared it, and the models to compare their federation with.

For experiments, the demo and benchmarks: whoever makes a scenario has all the data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch_geometric.data import Data

from vfgnn import randomness
from vfgnn.agreement import Agreement, HolderShape, make_agreement
from vfgnn.contribution import Own
from vfgnn.data.holdings import Holding, Labels
from vfgnn.data.partition import EdgeSplit, holder_names
from vfgnn.errors import ConfigError
from vfgnn.lab import federation as notebook
from vfgnn.model.central import CentralTraining
from vfgnn.model.leak_meter import LeakMeter, meter
from vfgnn.model.ridge_training import train_ridge
from vfgnn.party.device import choose_device
from vfgnn.party.own_code import OwnCode, chosen, load_module
from vfgnn.privacy.input_perturbation import pairs_of
from vfgnn.privacy.ledger import Release
from vfgnn.privacy.publishing import RowNoise, own_row_mechanism
from vfgnn.privacy.statement import Statement, statement
from vfgnn.records import EpochMetrics, Outcome, Traffic
from vfgnn.sealed.own_edges import entries_of, proposed_bound
from vfgnn.sealed.record import SealedRecord, record_of
from vfgnn.sealed.sizes import SealedSizes
from vfgnn.settings import Preset, Settings
from vfgnn.split.program import training

Hear = Callable[[str], Callable[[EpochMetrics], None]]


def agreement_of(
    holdings: Sequence[Holding], labels: Labels, settings: Settings, names: Sequence[str] | None = None
) -> Agreement:
    """The public side of a split graph; the first holder has the labels."""
    names = names or holder_names(len(holdings))
    shapes = [
        HolderShape(
            name=name,
            features=holding.x.shape[1],
            edges=holding.edge_index.shape[1] > 0,
            integer=bool((holding.x == holding.x.round()).all()),
            entry_bound=_declared(holding) if settings.protocol == "sealed" else 0,
        )
        for name, holding in zip(names, holdings, strict=True)
    ]
    return make_agreement(
        nodes=holdings[0].nodes, classes=labels.classes, holders=shapes, label_holder=names[0], settings=settings
    )


def _declared(holding: Holding) -> int:
    """What the holder would declare: its directed entries, rounded up."""
    return proposed_bound(entries_of(holding.edge_index, holding.nodes, quota=holding.nodes).shape[1])


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
    privacy: Statement | None = None  # the label holder's, with what was spent
    exposed_publishers: tuple[str, ...] = ()  # whose rows the label holder can rebuild from z_L
    sealed: SealedRecord | None = None  # what a sealed training has opened and sent

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
            "scores": self.federated.scores,
            "isolated": [outcome.test_accuracy for outcome in self.isolated.values()],
            "isolated_scores": [outcome.scores for outcome in self.isolated.values()],
            "joint_scores": None if self.joint is None else self.joint.scores,
            "joint": None if self.joint is None else self.joint.test_accuracy,
            "epochs": self.federated.history[-1].epoch,
            "seconds_per_epoch": self.seconds_per_epoch,
            "bytes_per_epoch": self.bytes_per_epoch,
            "revealed_dimensions": self.revealed_dimensions,
            "exposed_publishers": list(self.exposed_publishers),
            "leak_meter": {meter.holder: meter.share for meter in self.leak_meters},
            **({} if self.sealed is None else self.sealed.to_json()),
            "privacy": None if self.privacy is None else self.privacy.to_json(),
            "settings": self.settings.model_dump(mode="json"),
            "history": [asdict(metrics) for metrics in self.federated.history],
        }


@dataclass(frozen=True)
class Scenario:
    """A split graph and how it is to be trained."""

    dataset: str
    preset: Preset
    seed: int
    changed: Mapping[str, object]  # settings that differ from the preset's
    settings: Settings
    code: OwnCode
    device: torch.device
    names: tuple[str, ...]
    whole: Holding
    labels: Labels
    holdings: tuple[Holding, ...]

    @staticmethod
    def of(
        data: Data | str | notebook.Federation,
        *,
        preset: str = "best",
        seed: int = 0,
        holders: int | None = None,
        gnn: Own | str | None = None,
        combine: Own | str | None = None,
        mechanism: Own | str | None = None,
        proportions: Sequence[float] | None = None,
        edge_proportions: Sequence[float] | None = None,
        edge_split: EdgeSplit = "undirected",
        device: str = "cpu",
        data_dir: Path | None = None,
        **overrides: object,
    ) -> "Scenario":
        """Load (if `data` is a name), check and split (if it is not a federation already); `overrides` are settings."""
        where, presets, changed = choose_device(device), Preset(preset), dict(overrides)
        (how_gnn, own_gnn), (how_combine, own_combine) = chosen(gnn), chosen(combine)
        changed |= {key: how for key, how in (("gnn", how_gnn), ("combine", how_combine)) if how is not None}
        if not isinstance(data, notebook.Federation):
            presets.settings(overrides=changed)  # a wrong key is told before a graph is loaded
            data = notebook.Federation.split(
                data,
                holders=2 if holders is None else holders,
                seed=seed,
                proportions=proportions,
                edge_proportions=edge_proportions,
                edge_split=edge_split,
                data_dir=data_dir,
            )
        elif (holders, proportions, edge_proportions, edge_split) != (None, None, None, "undirected"):
            raise ConfigError("a federation is split already", expected="no holders, proportions or edge_split")
        settings = presets.settings(dataset=data.title, overrides=changed)
        own_mechanism = load_module(mechanism) if isinstance(mechanism, str) else mechanism
        code = OwnCode(own_gnn, own_combine, own_mechanism)
        names, holdings = data.names, data.holdings
        return Scenario(
            data.title, presets, seed, changed, settings, code, where, names, data.whole, data.labels, holdings
        )

    def sealed(self) -> "Scenario":
        """The same data for the sealed protocol. Noise is the paper's protocol's alone."""
        changed = {key: value for key, value in self.changed.items() if key != "privacy"} | {"protocol": "sealed"}
        return replace(self, changed=changed, settings=self.preset.settings(dataset=self.dataset, overrides=changed))

    @staticmethod
    def hearing(on_epoch: Callable[[str, EpochMetrics], None] | None) -> Hear:
        """For each model, a function that hears of its epochs."""
        return lambda model: lambda metrics: on_epoch(model, metrics) if on_epoch is not None else None

    def compare(self, hear: Hear) -> tuple[dict[str, Outcome], Outcome]:
        """Each holder alone, and everything pooled: the same model in the clear."""
        if self.settings.protocol == "sealed":
            # Without columns there is nothing that a holder could learn alone.
            alone = [(who, held) for who, held in zip(self.names, self.holdings, strict=True) if held.x.shape[1]]
            isolated = {f"{who} alone": train_ridge([held], self.labels, self.settings) for who, held in alone}
            return isolated, train_ridge(self.holdings, self.labels, self.settings)
        isolated = {
            f"{who} alone": self._central("isolated", holding, hear(f"{who} alone"))
            for who, holding in zip(self.names, self.holdings, strict=True)
        }
        return isolated, self._central("pooled", self.whole, hear("joint"))

    def _central(self, tuned_as: str, holding: Holding, hear: Callable[[EpochMetrics], None]) -> Outcome:
        settings = self.preset.settings(dataset=self.dataset, model=tuned_as, overrides=self.changed)
        training = CentralTraining(
            holding,
            self.labels,
            settings,
            seed=randomness.insecure_seed(self.seed),
            own=self.code.gnn,
            own_combine=self.code.combine,
            device=self.device,
        )
        return training.train(hear)

    def result(
        self,
        outcome: Outcome,
        agreement: Agreement,
        traffic: Traffic,
        *,
        isolated: dict[str, Outcome],
        joint: Outcome | None,
        seconds: float,
        logits: torch.Tensor,
        spent: Sequence[Release] | None = None,
    ) -> SimulationResult:
        """A finished federation beside the others."""
        epochs = max(1, outcome.history[-1].epoch)
        return SimulationResult(
            dataset=self.dataset,
            preset=self.preset.name,
            holders=len(self.holdings),
            seed=self.seed,
            federated=outcome,
            isolated=isolated,
            joint=joint,
            logits=logits,
            seconds_per_epoch=seconds / epochs,
            bytes_per_epoch=0 if agreement.sealed else traffic.bytes_in(*training(agreement).repeated) // epochs,
            revealed_dimensions=agreement.revealed_dimensions(outcome.history[-1].epoch),
            leak_meters=self._leak_meters(agreement, outcome),
            settings=self.settings,
            privacy=None if self.settings.privacy.off else self.stated(spent),
            exposed_publishers=agreement.exposed_publishers,
            sealed=self._sealed_record(agreement, traffic),
        )

    def _sealed_record(self, agreement: Agreement, traffic: Traffic) -> SealedRecord | None:
        if not agreement.sealed:
            return None
        return record_of(SealedSizes(agreement, len(self.labels.train), len(self.labels.val)), traffic)

    def stated(self, spent: Sequence[Release] | None = None) -> Statement:
        """What the privacy settings mean for the label holder: before the run, or with what its ledger says."""
        agreement = agreement_of(self.holdings, self.labels, self.settings, self.names)
        edges = len(pairs_of(self.holdings[0].edge_index))
        return statement(agreement, spent=spent, edges=edges, rows=self._own_rows())

    def _own_rows(self) -> RowNoise | None:
        settings, own = self.settings, self.code.mechanism
        return None if own is None else own_row_mechanism(own, settings.privacy, settings.epochs, settings.dim)

    def _leak_meters(self, agreement: Agreement, outcome: Outcome) -> tuple[LeakMeter, ...]:
        """What each holder would read off its own meter at the end of this run."""
        steps = outcome.history[-1].epoch
        pairs = zip(agreement.holder_names, self.holdings, strict=True)
        read = [meter(agreement, name, holding.x, steps=steps) for name, holding in pairs]
        return tuple(one for one in read if one is not None)
