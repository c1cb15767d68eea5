"""The baseline SecureGNN in one process, or as one of several: `python -m vfgnn.lab.secure_gnn FEDERATION PARTY`.

It uses the files that `vfgnn run` uses; the server that they list is not started and nobody looks for it. For
measurements, not for use: no checkpoints, no message log.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from pydantic import ValidationError

from vfgnn import logs
from vfgnn.agreement import Agreement
from vfgnn.data.holdings import Holding, Labels
from vfgnn.files import FederationFile, PartyFile, load_federation, load_party
from vfgnn.lab.scenario import agreement_of
from vfgnn.lab.simulate import assemble
from vfgnn.party.child import end_with_parent
from vfgnn.party.folder import RunFolder
from vfgnn.party.own_data import load_data
from vfgnn.party.roles import contribution_of, make_role
from vfgnn.party.session import NetworkSession
from vfgnn.program import Follower, carry_out, leaving
from vfgnn.records import EpochMetrics, Outcome
from vfgnn.secure_gnn.program import ServerlessAgreement, training
from vfgnn.settings import Settings, explain
from vfgnn.transport.endpoint import Endpoint
from vfgnn.transport.memory import InMemoryNetwork

COMMAND = (sys.executable, "-m", "vfgnn.lab.secure_gnn")
OnEpoch = Callable[[EpochMetrics], None]


def serverless(agreement: Agreement, **more: object) -> ServerlessAgreement:
    """The same federation without its server; `more` is what only SecureGNN has."""
    try:
        return ServerlessAgreement.model_validate({**agreement.model_dump(), **more})
    except ValidationError as error:
        raise explain(error, "SecureGNN", ServerlessAgreement) from None


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
    agreement = serverless(agreement_of(holdings, labels, settings), layer_rate=layer_rate)
    parties = assemble(
        agreement,
        holdings,
        labels,
        training(agreement),
        seed=seed,
        protocol="secure_gnn",
        on_epoch=on_epoch,
        network=network,
    )
    return parties.train()


def run_secure_party(file: FederationFile, party: PartyFile) -> None:
    """One party in a process of its own, from connecting to the end."""
    torch.set_num_threads(party.threads or torch.get_num_threads())
    agreement, data = serverless(file.agreement), load_data(file, party)
    goodbye = leaving(agreement.parties, agreement.label_holder)
    folder = RunFolder(party.run_folder, party.name, fresh=True)
    logs.configure(party.name, file=folder.log, as_json=False)
    session = NetworkSession(Endpoint(file, party), [training(agreement), goodbye])
    channel = session.channel
    try:
        with session.met(wait_s=file.patience.start_s) as start:
            folder.begin(start.run, 0, file)
            agreement = serverless(file.agreement)
            own = contribution_of(party, agreement, data, run=start.start, on_epoch=folder.add_metrics)
            role = make_role(agreement, channel, own, protocol="secure_gnn")
            logs.event("run begins", run=start.run, step=0)
            carry_out(training(agreement), role)
            carry_out(goodbye, Follower(channel, goodbye))
    except BaseException as error:
        folder.end(channel.traffic, revealed=channel.revealed, outcome=None, error=str(error))
        raise
    outcome = None if role.result is None else role.result.outcome
    folder.end(channel.traffic, revealed=channel.revealed, outcome=outcome, error=None)
    logs.event("run ended")


if __name__ == "__main__":
    end_with_parent()  # started by `LocalProcesses`, never by hand
    run_secure_party(load_federation(Path(sys.argv[1])), load_party(Path(sys.argv[2])))
