"""The baseline SecureGNN in one process, or as one of several: `python -m vfgnn.run.secure_gnn FEDERATION PARTY`.

It uses the files that `vfgnn run` uses; the server that they list is not started and nobody looks for it. For
measurements, not for use: no checkpoints, no message log.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from pydantic import ValidationError

from vfgnn import logs, randomness
from vfgnn.baselines.secure_gnn import schedule
from vfgnn.baselines.secure_gnn.dealer import MaterialDealer
from vfgnn.baselines.secure_gnn.schedule import ServerlessFederation
from vfgnn.channel import Channel, InMemoryNetwork
from vfgnn.config import DEALER, Federation, Settings, explain
from vfgnn.data.holdings import Holding, Labels
from vfgnn.errors import ConfigError
from vfgnn.files import FederationFile, PartyFile, load_federation, load_party
from vfgnn.parties import loop
from vfgnn.records import EpochMetrics, Outcome, Traffic
from vfgnn.run.child import end_with_parent
from vfgnn.run.folder import RunFolder
from vfgnn.run.own_data import OwnData, load_data
from vfgnn.run.scenario import federation_of
from vfgnn.transport.connection import Capacity
from vfgnn.transport.endpoint import Endpoint
from vfgnn.transport.network import Network

COMMAND = (sys.executable, "-m", "vfgnn.run.secure_gnn")
OnEpoch = Callable[[EpochMetrics], None]


def serverless(federation: Federation, **more: object) -> ServerlessFederation:
    """The same federation without its server; `more` is what only SecureGNN has."""
    try:
        return ServerlessFederation.model_validate({**federation.model_dump(), **more})
    except ValidationError as error:
        raise explain(error, "SecureGNN", ServerlessFederation) from None


def train_secure_gnn(
    holdings: Sequence[Holding],
    labels: Labels,
    settings: Settings,
    *,
    seed: int,
    layer_rate: float = 0.3,
    on_epoch: OnEpoch | None = None,
    network: InMemoryNetwork | None = None,
) -> Outcome:
    """All parties in this process; `seed` is public here, so nothing is secret."""
    federation = serverless(federation_of(holdings, labels, settings), layer_rate=layer_rate)
    network = network or InMemoryNetwork()
    data = {
        name: OwnData(holding=holding, labels=labels if name == federation.label_holder else None)
        for name, holding in zip(federation.holder_names, holdings, strict=True)
    }
    made = {
        name: make_party(
            federation,
            network.channel(name),
            data.get(name),
            seed=randomness.derive_key(randomness.insecure_seed(seed), "party", name),
            on_epoch=on_epoch,
        )
        for name in (federation.label_holder, *federation.others)
    }
    network.run(
        {name: partial(loop.train, party, messages=schedule.messages_of(federation)) for name, party in made.items()}
    )
    outcome: Outcome = made[federation.label_holder].outcome  # type: ignore[attr-defined]
    return outcome


def make_party(
    federation: ServerlessFederation, channel: Channel, data: OwnData | None, *, seed: bytes, on_epoch: OnEpoch | None
) -> loop.Party:
    """The role that the party's name gives it."""
    if channel.party == DEALER:
        return MaterialDealer(federation, channel, seed=seed)
    from vfgnn.baselines.secure_gnn.holder import SecureHolder, SecureLabelHolder

    if data is None or data.holding is None:
        raise ConfigError("a holder without data", expected="[data] holding = ... in party.toml")
    if data.labels is None:
        return SecureHolder(federation, channel, data.holding, seed=seed)
    return SecureLabelHolder(federation, channel, data.holding, data.labels, seed=seed, on_epoch=on_epoch)


def run_secure_party(file: FederationFile, party: PartyFile) -> None:
    """One party in a process of its own, from connecting to the end."""
    torch.set_num_threads(party.threads or torch.get_num_threads())
    federation, data = serverless(file.federation("sizes")), load_data(file, party)
    folder = RunFolder(party.run_folder, party.name, fresh=True)
    logs.configure(party.name, file=folder.log, as_json=False)
    network = Network(Endpoint(file, party), _capacities(federation, party.name), on_event=logs.event)
    traffic = Traffic()
    try:
        start = network.open(wait_s=file.patience.start_s)
        folder.begin(start.run, 0, file)
        channel = Channel(party.name, network, start=start.start)
        traffic = channel.traffic
        seed = randomness.new_seed()
        if party.insecure_seed is not None:
            seed = randomness.derive_key(randomness.insecure_seed(party.insecure_seed), "party", party.name)
        federation = serverless(file.federation(start.start))
        made = make_party(federation, channel, data, seed=seed, on_epoch=folder.add_metrics)
        logs.event("run begins", run=start.run, step=0)
        loop.train(made, messages=schedule.messages_of(federation))
        network.close()
    except BaseException as error:
        network.close(error)
        folder.end(traffic, outcome=None, error=str(error))
        raise
    folder.end(traffic, outcome=getattr(made, "outcome", None), error=None)
    logs.event("run ended")


def _capacities(federation: ServerlessFederation, me: str) -> dict[str, Capacity]:
    """The peers of a party, and how much may wait for either side: two steps' messages."""
    found: dict[str, Capacity] = {}
    for (sender, receiver), (messages, largest) in schedule.largest(federation).items():
        if me in (sender, receiver):
            peer = receiver if sender == me else sender
            known = found.get(peer, Capacity(0, 0))
            found[peer] = Capacity(max(known.window, 2 * messages), max(known.max_bytes, largest))
    return found


if __name__ == "__main__":
    end_with_parent()  # started by `LocalProcesses`, never by hand
    run_secure_party(load_federation(Path(sys.argv[1])), load_party(Path(sys.argv[2])))
