"""One party of the baseline SecureGNN: `python -m vfgnn.party.baseline FEDERATION PARTY`.

It uses the files that `vfgnn run` uses; the server that they list is not started and nobody looks for it. For
measurements, not for use: no checkpoints, no message log.
"""

import sys
from pathlib import Path

import torch

from vfgnn import logs
from vfgnn.common_programs import Follower, leaving
from vfgnn.files import FederationFile, PartyFile, load_federation, load_party
from vfgnn.logs import Event
from vfgnn.party.child import end_with_parent
from vfgnn.party.folder import RunFolder
from vfgnn.party.own_data import load_data
from vfgnn.party.roles import contribution_of, make_role
from vfgnn.party.session import NetworkSession
from vfgnn.program import carry_out
from vfgnn.secure_gnn.program import serverless, training
from vfgnn.transport.endpoint import Endpoint
from vfgnn.writing import keep_private

COMMAND = (sys.executable, "-m", "vfgnn.party.baseline")


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
            if folder.is_new:
                folder.take_place()
            own = contribution_of(party, agreement, data, run=start.start, on_epoch=folder.add_metrics)
            role = make_role(agreement, channel, own, protocol="secure_gnn")
            logs.event(Event.RUN_BEGINS, run=start.run, step=0)
            try:
                carry_out(training(agreement), role)
                carry_out(goodbye, Follower(channel, goodbye))
            finally:
                role.close()
    except BaseException as error:
        folder.end(channel.traffic, revealed=channel.revealed, outcome=None, error=str(error))
        raise
    outcome = None if role.result is None else role.result.outcome
    folder.end(channel.traffic, revealed=channel.revealed, outcome=outcome, error=None)
    logs.event(Event.RUN_ENDED)


if __name__ == "__main__":
    keep_private()
    end_with_parent()  # started by `LocalProcesses`, never by hand
    run_secure_party(load_federation(Path(sys.argv[1])), load_party(Path(sys.argv[2])))
