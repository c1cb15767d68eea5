"""One party of a real federation, in a process of its own: `vfgnn run federation.toml party.toml`.

Sees what its role sees (parties/), and leaves records in its own run folder. A role's modules are imported when the
role is known: a server's process never loads what could read features, a dealer's nothing of the model.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from vfgnn import logs, randomness
from vfgnn.channel import Channel, InMemoryNetwork
from vfgnn.checkpoint import Checkpoints
from vfgnn.config import DEALER, SERVER, Federation
from vfgnn.errors import ChannelClosed, CheckpointRefused, ConfigError, PeerRestarted, VfgnnError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.message_log import MessageLog
from vfgnn.parties import loop, schedule
from vfgnn.parties.schedule import Step
from vfgnn.records import EpochMetrics, Outcome, Traffic
from vfgnn.run import aligning
from vfgnn.run.device import choose_device
from vfgnn.run.folder import RunFolder, hold
from vfgnn.run.module import Own, load_module
from vfgnn.run.own_data import OwnData, load_data
from vfgnn.transport import certificates, tls
from vfgnn.transport.connection import Capacity, brief
from vfgnn.transport.endpoint import Endpoint
from vfgnn.transport.network import Network
from vfgnn.transport.wire import Start

if TYPE_CHECKING:
    from vfgnn.privacy.ledger import Ledger
    from vfgnn.privacy.own_mechanism import OwnRows
    from vfgnn.privacy.statement import Statement

OnEpoch = Callable[[EpochMetrics], None]


def run_party(file: FederationFile, party: PartyFile, *, log_json: bool = False, fresh: bool = False) -> Outcome | None:
    """From an empty process to the end of the run; the outcome is known to the label holder only.

    Goes on where an earlier process of the same run was killed; `fresh` puts that run aside.
    """
    held = hold(party.run_folder, party.name)
    try:
        return _run(file, party, log_json=log_json, fresh=fresh)
    finally:
        os.close(held)


def _run(file: FederationFile, party: PartyFile, *, log_json: bool, fresh: bool) -> Outcome | None:
    federation = file.federation("before the run")
    torch.set_num_threads(party.threads or torch.get_num_threads())
    Endpoint(file, party)  # refuses a key or certificate that cannot be used before anything is written
    data = load_data(file, party)
    folder = RunFolder(party.run_folder, party.name, fresh=fresh)
    logs.configure(party.name, file=folder.log, as_json=log_json)
    if party.insecure_seed is not None:
        logs.event("insecure_seed is set: nothing is secret in this run")
    kept = Checkpoints(
        folder.checkpoints,
        party=party.name,
        federation=federation.digest,
        scheduled=schedule.checkpoint_steps(federation, file.checkpoint_every),
    )
    ledger = None if party.data is None or federation.settings.privacy.off else _open_ledger(party)
    running = RunningParty(file, party, data, folder, kept, MessageLog(folder.messages), ledger)
    try:
        outcome = running.train()
    except BaseException as error:
        reason = str(error) if isinstance(error, VfgnnError) else brief(error)
        folder.end(running.traffic, outcome=None, error=reason)
        logs.event("run failed", reason=brief(error))
        raise
    federation, data = file.federation("after the run", running.nodes), running.data
    folder.note("nodes", federation.nodes)
    _note_leak(federation, party.name, data, folder, running.last_step)
    if ledger is not None:
        folder.note("privacy", _stated(federation, party, data, ledger).to_json())
    seal(running.log, party)
    if ledger is not None:
        ledger.close()
    folder.end(running.traffic, outcome=outcome, error=None)
    logs.event("run ended", **{} if outcome is None else {"test_accuracy": round(outcome.test_accuracy, 4)})
    return outcome


@dataclass
class RunningParty:
    """A party that trains until the run is over, and goes back with the others when one of them was started anew."""

    file: FederationFile
    party: PartyFile
    data: OwnData
    folder: RunFolder
    kept: Checkpoints
    log: MessageLog
    ledger: "Ledger | None" = None
    nodes: int | None = None  # where they are found out at the start
    traffic: Traffic = field(default_factory=Traffic)
    last_step: int | None = None

    def train(self) -> Outcome | None:
        """All attempts, until one comes to the end."""
        patience = self.file.patience
        ended = schedule.end_step(self.file.federation("end")) in self.kept.steps
        wait_s, key = (patience.away_s, "away_s") if ended else (patience.start_s, "start_s")
        while True:
            try:
                return self._attempt(wait_s, key)
            except PeerRestarted as restarted:
                logs.event("going back to a common step", reason=restarted.what)
                wait_s, key = patience.away_s, "away_s"
            except ChannelClosed:
                if not ended:
                    raise
                return self._already_over()

    def _already_over(self) -> Outcome | None:
        """This party was killed after its final state was on disk, and the others have gone: nothing is missing."""
        logs.event("the run had ended before this party was killed")
        self._find_nodes(None, self.kept.run)
        federation = self.file.federation("over", self.nodes)
        nowhere = InMemoryNetwork().channel(self.party.name)
        made = make_party(federation, self.party, nowhere, self.data, self.folder.add_metrics, self.ledger)
        made.load(self.kept.load(schedule.end_step(federation)))
        made.close()
        self.folder.begin(self.kept.run or "", schedule.end_step(federation), self.file)
        outcome: Outcome | None = getattr(made, "outcome", None)
        return outcome

    def _attempt(self, wait_s: float, key: str) -> Outcome | None:
        endpoint = Endpoint(self.file, self.party, run=self.kept.run, steps=tuple(self.kept.steps))
        sizes = capacities(self.file, self.party.name)
        network = Network(endpoint, sizes, on_event=logs.event)
        try:
            start = network.open(wait_s=wait_s, key=key)
            outcome = self._train_from(start, network)
            network.close()
        except BaseException as error:
            # Stopped in order, or left alone: the beginning of this step is what the others have too.
            try:
                if not isinstance(error, PeerRestarted):
                    self.kept.write()
            finally:
                network.close(error)
            raise
        return outcome

    def _train_from(self, start: Start, network: Network) -> Outcome | None:
        resumes = start.run == self.kept.run and start.step in self.kept.steps
        if not resumes and (start.step or start.run == self.kept.run):
            raise CheckpointRefused(
                "the label holder names a step that this party does not have",
                expected=f"one of {self.kept.steps} of run {self.kept.run}, or a new run from step 0",
                got=f"step {start.step} of run {start.run}",
            )
        self.kept.go_back(start.run, start.step)
        self.folder.begin(start.run, start.step, self.file)
        begins = "run goes on" if resumes else "run begins"
        logs.event(begins, run=start.run, step=start.step, protocol=start.protocol)
        channel = Channel(self.party.name, network, log=self.log, start=start.start)
        channel.traffic = self.traffic
        self._find_nodes(None if resumes else channel, start.run)
        federation = self.file.federation(start.start, self.nodes)
        made = make_party(federation, self.party, channel, self.data, self.folder.add_metrics, self.ledger)
        if resumes:
            made.load(self.kept.load(start.step))
        elif self.ledger is not None:  # before anything that is noised leaves: what the run may come to
            for line in _stated(federation, self.party, self.data, None).lines():
                logs.event("privacy", means=line)
        watch = loop.Watch(
            begins=lambda number: self._keep(made, number, network), done=lambda step: self._tell(made, step)
        )
        loop.train(made, begin=start.step, watch=watch)
        outcome: Outcome | None = getattr(made, "outcome", None)  # the label holder's
        return outcome

    def _find_nodes(self, channel: Channel | None, run: str | None) -> None:
        """Where holders bring tables: with the others when a run begins (`channel`), later as they were then."""
        if self.file.alignment is None:
            return
        if channel is None:
            self.nodes, rows = aligning.kept(self.folder.path, run, self.data)
        else:
            self.nodes, rows = aligning.align(self.file, self.party.name, channel, self.data)
            aligning.keep(self.folder.path, run or "", self.nodes, rows, self.data)
            logs.event("nodes aligned", nodes=self.nodes)
        self.data = aligning.over(self.file, self.data, rows)

    def _keep(self, made: loop.Party, number: int, network: Network) -> None:
        self.kept.remember(number, made.state())
        if number in self.kept.scheduled:
            if self.party.name == self.file.label_holder:
                network.settle()  # so that nobody is ever further behind than one checkpoint
            self.kept.write(number)

    def _tell(self, made: loop.Party, step: Step) -> None:
        self.last_step = step.number
        sent, received = self.traffic.totals(self.party.name)
        known = self.folder.last_metrics
        metrics = {} if known is None else {"loss": known.loss, "val_accuracy": known.val_accuracy}
        epochs = schedule.trained_epochs(self.file.federation("told"))
        used = round(time.process_time(), 3)
        logs.event("epoch", epoch=step.number, of=epochs, sent=sent, received=received, cpu_s=used, **metrics)


def make_party(
    federation: Federation,
    party: PartyFile,
    channel: Channel,
    data: OwnData,
    on_epoch: OnEpoch,
    ledger: "Ledger | None" = None,
) -> loop.Party:
    """The role that the party's name gives it."""
    seed, device = _seed(party), choose_device(party.device)
    if party.name == SERVER:
        from vfgnn.parties.server import Server

        own_combine = _own_code(party, "combine") if federation.settings.combine == "own" else None
        return Server(federation, channel, seed=seed, own_combine=own_combine, device=device)
    if party.name == DEALER:
        from vfgnn.parties.dealer import Dealer

        return Dealer(federation, channel, seed=seed)
    if data.holding is None:
        raise ConfigError("a holder without data", expected="[data] holding = ... in party.toml")
    own = _own_code(party, "gnn") if federation.settings.gnn == "own" else None
    mechanism = None if party.mechanism is None else load_module(party.mechanism)
    if data.labels is None:
        from vfgnn.parties.holder import Holder

        return Holder(
            federation,
            channel,
            data.holding,
            seed=seed,
            own_module=own,
            own_mechanism=mechanism,
            device=device,
            ledger=ledger,
        )
    from vfgnn.parties.label_holder import LabelHolder

    return LabelHolder(
        federation,
        channel,
        data.holding,
        data.labels,
        seed=seed,
        own_module=own,
        own_mechanism=mechanism,
        device=device,
        on_epoch=on_epoch,
        ledger=ledger,
    )


def _open_ledger(party: PartyFile) -> "Ledger":
    """This holder's own, over all its runs."""
    from vfgnn.privacy.ledger import Ledger

    return Ledger(party.privacy_ledger)


def _stated(federation: Federation, party: PartyFile, data: OwnData, ledger: "Ledger | None") -> "Statement":
    from vfgnn.privacy.input_perturbation import pairs_of
    from vfgnn.privacy.statement import statement

    edges = None if data.holding is None else len(pairs_of(data.holding.edge_index))
    spent = None if ledger is None else ledger.releases
    rows = None if party.mechanism is None else _own_rows(federation, party.mechanism)
    return statement(federation, spent=spent, edges=edges, labels=party.name == federation.label_holder, rows=rows)


def _own_rows(federation: Federation, mechanism: str) -> "OwnRows":
    from vfgnn.privacy.publishing import own_row_mechanism

    settings = federation.settings
    return own_row_mechanism(load_module(mechanism), settings.privacy, settings.epochs, settings.dim)


def seal(log: MessageLog, party: PartyFile) -> None:
    """Sign a message log with this party's key: nothing more will be written to it."""
    log.seal(lambda content: certificates.sign(content, party.key, tls.passphrase_of(party), party.certificate))
    log.close()


def _note_leak(federation: Federation, name: str, data: OwnData, folder: RunFolder, steps: int | None) -> None:
    """What the reveals of this run gave away of this holder's features, by its own reckoning."""
    if data.holding is None or not federation.collaborative:
        return
    from vfgnn.model.leak_meter import meter

    read = meter(federation, name, data.holding.x, steps=steps)
    if read is not None:
        folder.note("leak_meter", {"revealed": read.revealed_dimensions, "rank": read.rank, "share": read.share})


def capacities(file: FederationFile, me: str) -> dict[str, Capacity]:
    """The peers this party has anything to do with, and how much may wait for either side: two steps' messages.

    From the dealer one step's: its corrections are of the size of h0, and it is ahead of those who use them anyway.
    """
    found: dict[str, Capacity] = {}
    everything = [*schedule.links(file.federation("sizes")).items(), *aligning.links(file).items()]
    for (sender, receiver), (messages, largest) in everything:
        if me in (sender, receiver):
            peer = receiver if sender == me else sender
            known = found.get(peer, Capacity(0, 0))
            window = messages if DEALER in (sender, receiver) else 2 * messages
            found[peer] = Capacity(max(known.window, window), max(known.max_bytes, largest))
    return found


def _seed(party: PartyFile) -> bytes:
    if party.insecure_seed is None:
        return randomness.new_seed()
    return randomness.derive_key(randomness.insecure_seed(party.insecure_seed), "party", party.name)


def _own_code(party: PartyFile, setting: str) -> Own:
    """The user's own class, named in its own party file; a public file never makes anybody run code."""
    if party.module is None:
        raise ConfigError(f'{setting} = "own" needs a module', expected="module = 'package.module:Class' in party.toml")
    return load_module(party.module)
