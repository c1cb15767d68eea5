"""One party of a real federation, in a process of its own: `vfgnn run federation.toml party.toml`.

Sees what its role sees (parties/), and leaves records in its own run folder. A role's modules are imported when the
role is known: a server's process never loads what could read features, a dealer's nothing of the model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from vfgnn import logs, randomness
from vfgnn.channel import Channel
from vfgnn.config import DEALER, SERVER, Federation
from vfgnn.errors import ConfigError, VfgnnError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.parties import loop, schedule
from vfgnn.parties.schedule import Step
from vfgnn.records import EpochMetrics, Outcome
from vfgnn.run.device import choose_device
from vfgnn.run.folder import RunFolder
from vfgnn.run.module import load_module
from vfgnn.transport.connection import Capacity, brief
from vfgnn.transport.endpoint import Endpoint
from vfgnn.transport.network import Network

if TYPE_CHECKING:
    from vfgnn.data.holdings import Holding, Labels
    from vfgnn.model.cg1_edges import OwnModule

OnEpoch = Callable[[EpochMetrics], None]


@dataclass(frozen=True)
class OwnData:
    """What a holder brings; a server and a dealer bring nothing."""

    holding: "Holding | None" = None
    labels: "Labels | None" = None


def run_party(file: FederationFile, party: PartyFile, *, log_json: bool = False) -> Outcome | None:
    """From an empty process to the end of the run; the outcome is known to the label holder only."""
    federation = file.federation("before the run")
    torch.set_num_threads(party.threads or torch.get_num_threads())
    endpoint = Endpoint(file, party)
    data = load_data(federation, party)
    folder = RunFolder(party.run_folder, party.name)
    logs.configure(party.name, file=folder.log, as_json=log_json)
    if party.insecure_seed is not None:
        logs.event("insecure_seed is set: nothing is secret in this run")
    network = Network(endpoint, capacities(federation, party.name), on_event=logs.event)
    channel = Channel(party.name, network)
    try:
        run = network.open()
        folder.begin(run, file)
        logs.event("run begins", run=run, federation=file.digest[:16])
        outcome = _train(file.federation(run), party, channel, data, folder)
        network.close()
    except BaseException as error:
        try:
            network.close(error)
        finally:  # a second Ctrl-C must not cost the records
            folder.end(
                channel.traffic, outcome=None, error=str(error) if isinstance(error, VfgnnError) else brief(error)
            )
            logs.event("run failed", reason=brief(error))
        raise
    folder.end(channel.traffic, outcome=outcome, error=None)
    logs.event("run ended", **{} if outcome is None else {"test_accuracy": round(outcome.test_accuracy, 4)})
    return outcome


def _train(
    federation: Federation, party: PartyFile, channel: Channel, data: OwnData, folder: RunFolder
) -> Outcome | None:
    last: list[EpochMetrics] = []

    def on_epoch(metrics: EpochMetrics) -> None:
        folder.add_metrics(metrics)
        last[:] = [metrics]

    def on_step(step: Step) -> None:
        known = {"loss": last[0].loss, "val_accuracy": last[0].val_accuracy} if last else {}
        sent, received = channel.traffic.totals(channel.party)
        logs.event("epoch", epoch=step.number, of=federation.settings.epochs, sent=sent, received=received, **known)

    made = make_party(federation, party, channel, data, on_epoch)
    loop.train(made, on_step)
    outcome: Outcome | None = getattr(made, "outcome", None)  # the label holder's
    return outcome


def make_party(
    federation: Federation, party: PartyFile, channel: Channel, data: OwnData, on_epoch: OnEpoch
) -> loop.Party:
    """The role that the party's name gives it."""
    seed, device = _seed(party), choose_device(party.device)
    if party.name == SERVER:
        from vfgnn.parties.server import Server

        return Server(federation, channel, seed=seed, device=device)
    if party.name == DEALER:
        from vfgnn.parties.dealer import Dealer

        return Dealer(federation, channel, seed=seed)
    if data.holding is None:
        raise ConfigError("a holder without data", expected="[data] holding = ... in party.toml")
    own = _own_module(party) if federation.settings.gnn == "own" else None
    if data.labels is None:
        from vfgnn.parties.holder import Holder

        return Holder(federation, channel, data.holding, seed=seed, own_module=own, device=device)
    from vfgnn.parties.label_holder import LabelHolder

    return LabelHolder(
        federation, channel, data.holding, data.labels, seed=seed, own_module=own, device=device, on_epoch=on_epoch
    )


def load_data(federation: Federation, party: PartyFile) -> OwnData:
    """A holder's own files, held against what the federation file declares of it."""
    if party.name in (SERVER, DEALER):
        if party.data is not None:
            raise ConfigError(f"the {party.name} has data", expected="no [data] in its party.toml: it may hold none")
        return OwnData()
    leads = party.name == federation.label_holder
    if party.data is None or (party.data.labels is None) == leads:
        wanted = "holding and labels" if leads else "holding, and no labels (another party has them)"
        raise ConfigError("other data than the role needs", expected=f"[data] with {wanted}", where="party.toml")
    from vfgnn.data import prepared

    holding = prepared.load_holding(party.data.holding)
    prepared.check_declared(federation, party.name, holding)
    if party.data.labels is None:
        return OwnData(holding)
    labels = prepared.load_labels(party.data.labels)
    prepared.check_declared_labels(federation, labels)
    return OwnData(holding, labels)


def capacities(federation: Federation, me: str) -> dict[str, Capacity]:
    """The peers this party has anything to do with, and how much may wait for either side: two steps' messages."""
    found: dict[str, Capacity] = {}
    for (sender, receiver), (messages, largest) in schedule.links(federation).items():
        if me in (sender, receiver):
            peer = receiver if sender == me else sender
            known = found.get(peer, Capacity(0, 0))
            found[peer] = Capacity(max(known.window, 2 * messages), max(known.max_bytes, largest))
    return found


def _seed(party: PartyFile) -> bytes:
    if party.insecure_seed is None:
        return randomness.new_seed()
    return randomness.derive_key(randomness.insecure_seed(party.insecure_seed), "party", party.name)


def _own_module(party: PartyFile) -> "OwnModule":
    """The user's own class, named in its own party file; a public file never makes anybody run code."""
    if party.module is None:
        raise ConfigError('gnn = "own" needs a module', expected="module = 'package.module:Class' in party.toml")
    return load_module(party.module)
