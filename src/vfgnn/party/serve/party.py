"""`vfgnn serve`: a party of a finished run that stays connected and takes part in a pass whenever one is wanted.

Runs at every party, without an operator. The label holder asks for a pass when its desk has a question that the last
one did not answer (label_holder.py); everyone else waits for its word. What a pass shows is in party/trained.py.
Whoever loses a peer, or hears that one was started anew, meets the others again, however long that takes.
"""

import gc
import math
import time
from typing import NoReturn

import torch

from vfgnn import logs
from vfgnn.channel import Channel
from vfgnn.common_programs import Follower, calling
from vfgnn.errors import ChannelClosed, ConfigError, PeerRestarted, VfgnnError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.message_log import MessageLog
from vfgnn.party.programs import of_model
from vfgnn.party.session import NetworkSession, disk_patience
from vfgnn.party.train import seal
from vfgnn.party.trained import SERVING, TrainedParty, new_folder
from vfgnn.program import carry_out
from vfgnn.transport.network import Network

PURPOSE = "serve"
AGAIN_S, MOST_S = 1.0, 30.0  # before the parties meet again after something failed; twice as long each time


class ServingParty:
    """One party, from a trained model on its disk until its operator stops it."""

    def __init__(self, file: FederationFile, party: PartyFile, *, log_json: bool = False) -> None:
        self.file, self.party = file, party
        torch.set_num_threads(party.threads or torch.get_num_threads())
        self.agreement = file.agreement
        self.model = TrainedParty(file, party)
        try:
            self.model.load()  # what cannot be read is refused before the service begins
            self.model.endpoint(PURPOSE)
        except BaseException:
            self.model.close()
            raise
        folder = new_folder(party.run_folder, SERVING)
        logs.configure(party.name, file=folder / "log.jsonl", as_json=log_json)
        self._log = MessageLog(folder / "messages.jsonl")
        self._began = False
        self._pause = AGAIN_S

    def serve(self) -> None:
        """Until stopped. An error before the parties have met for the first time is raised, a later one is told."""
        # Connections and passes leave cycles behind. Python looks for old ones when they are many beside all that there
        # is, and that is mostly torch; without it, it looks soon.
        gc.collect()
        gc.freeze()
        gc.collect()
        try:
            while True:
                pause = self._until_interrupted()
                gc.collect()
                time.sleep(pause)
        finally:
            try:
                seal(self._log, self.party)
            finally:
                self.model.close()

    def _until_interrupted(self) -> float:
        """Stay connected for as long as that goes well; how long to wait before the parties meet again."""
        try:
            self._stay_connected()
        except VfgnnError as error:
            if not self._began and not isinstance(error, ChannelClosed):
                raise
            logs.event("out of service", reason=error.what)
            self._failed(error)
            if isinstance(error, PeerRestarted):
                return 0.0
            pause, self._pause = self._pause, min(2 * self._pause, MOST_S)
            return pause

    def _stay_connected(self) -> NoReturn:
        """Meet the others, then one pass after the other."""
        endpoint = self.model.endpoint(PURPOSE, standing=True)
        session = NetworkSession(endpoint, of_model(self.file, self.party.name), log=self._log)
        session.resize([calling(self.agreement.parties, self.agreement.label_holder)])
        self._meeting(session.network)
        with session.met(wait_s=math.inf) as start, disk_patience(self.file):
            self.model.meet(start)
            self._began = True
            logs.event("all have met", run=start.run)
            self._met()
            number = 0
            while True:
                number += 1  # each pass has a name of its own, and so masks of its own
                self._take_part(session, run=f"{start.start}/{number}")

    def _take_part(self, session: NetworkSession, *, run: str) -> None:
        """In the next pass. Reveals: what `TrainedParty.ask` does."""
        new_nodes = self._call(session.channel)
        began = time.monotonic()
        self.model.ask(session, self.model.load(), run=run, new_nodes=new_nodes)
        self._tell_pass(new_nodes, began)

    def _call(self, channel: Channel, *, new_nodes: bool = False) -> bool:
        """Ask for the next pass, or wait until one is asked for; whether nodes are aligned anew."""
        program = calling(self.agreement.parties, self.agreement.label_holder)
        follower = Follower(channel, program, new_nodes=new_nodes)
        carry_out(program, follower)
        return follower.new_nodes

    def _tell_pass(self, new_nodes: bool, began: float) -> None:
        self._pause = AGAIN_S
        logs.event("pass", new_nodes=new_nodes, seconds=round(time.monotonic() - began, 3))

    # what else the label holder does

    def _meeting(self, network: Network) -> None:
        """The parties are about to meet."""

    def _met(self) -> None:
        """They have; what was known before is not told any more until a pass has gone well."""

    def _failed(self, error: VfgnnError) -> None:
        """They have to meet again."""

    def extends(self) -> bool:
        """Whether nodes can be added to this model at all."""
        try:
            self.model.refuse_new_nodes()
        except ConfigError:
            return False
        return True
