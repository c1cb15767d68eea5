"""One party of a real federation, in a process of its own: `vfgnn run federation.toml party.toml`.

Sees what its role sees (split/), and leaves records in its own run folder. A role's modules are imported when the
role is known (roles.py).
"""

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from vfgnn import logs
from vfgnn.agreement import DEALER, Agreement
from vfgnn.checkpoint import Checkpoints
from vfgnn.common_programs import Follower, leaving
from vfgnn.errors import ChannelClosed, CheckpointRefused, DiskError, PeerFailed, PeerRestarted, VfgnnError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.logs import Event
from vfgnn.message_log import MessageLog
from vfgnn.party import aligning, programs
from vfgnn.party.accounts import Accounts
from vfgnn.party.folder import RunFolder, hold
from vfgnn.party.own_code import load_module
from vfgnn.party.own_data import OwnData, load_data
from vfgnn.party.own_model import note_alone
from vfgnn.party.roles import AnyRole, contribution_of, make_role, role_type
from vfgnn.party.sealed_notes import note_bytes, note_opened
from vfgnn.party.session import NetworkSession, Session, disk_patience, refuse_unusable_key
from vfgnn.program import Watch, carry_out
from vfgnn.records import Outcome, Traffic
from vfgnn.transport import certificates, tls
from vfgnn.transport.endpoint import Endpoint
from vfgnn.transport.goodbye import brief
from vfgnn.transport.memory import InMemoryNetwork
from vfgnn.transport.wire import Start
from vfgnn.view_file import ViewRecorder

if TYPE_CHECKING:
    from vfgnn.privacy.copies import MessageCopies
    from vfgnn.privacy.ledger import Ledger
    from vfgnn.privacy.openings import Account
    from vfgnn.privacy.own_mechanism import OwnRows
    from vfgnn.privacy.statement import Statement


def run_party(file: FederationFile, party: PartyFile, *, log_json: bool = False, fresh: bool = False) -> Outcome | None:
    """From an empty process to the end of the run; the outcome is known to the label holder only.

    Goes on where an earlier process of the same run was killed; `fresh` puts that run aside.
    """
    with open_run(file, party, log_json=log_json, fresh=fresh) as run:
        while not run.over:
            with run.going_back(), run.attempt() as (start, role):
                if start.step < run.end:
                    carry_out(programs.training(role.agreement, party.name), role, begin=start.step, watch=run.watch)
                    note_opened(role, run.folder)
                run.leave(role)
    return run.outcome


@contextmanager
def open_run(file: FederationFile, party: PartyFile, *, log_json: bool, fresh: bool) -> Iterator["OwnRun"]:
    """A party's own folder, log, checkpoints and ledger, and at the end its records."""
    held, opened = hold(party.run_folder, party.name), ExitStack()
    try:
        agreement = file.agreement
        torch.set_num_threads(party.threads or torch.get_num_threads())
        refuse_unusable_key(file, party)
        data = load_data(file, party)
        role_type(agreement, party.name)  # loaded while nobody waits for this party yet
        folder = RunFolder(party.run_folder, party.name, fresh=fresh)
        logs.configure(party.name, file=folder.log, as_json=log_json)
        if party.insecure_seed is not None:
            logs.event("insecure_seed is set: nothing is secret in this run")
        kept = Checkpoints(
            folder.checkpoints,
            party=party.name,
            federation=agreement.digest,
            scheduled=programs.checkpoint_steps(agreement, file.checkpoint_every, party.name),
        )
        ledger = None if party.data is None or agreement.settings.privacy.off else _open_ledger(party)
        accounts = opened.enter_context(closing(Accounts.of(file, party)))
        log, view = MessageLog(folder.messages), _open_view(file, party, folder) if party.record_view else None
        run = OwnRun(file, party, data, folder, kept, log, view, ledger, accounts, programs.end_step(agreement))
        try:
            yield run
        except BaseException as error:
            reason = str(error) if isinstance(error, VfgnnError) else brief(error)
            if isinstance(error, PeerFailed):
                folder.note("peer_failed", True)
            with told_if_lost():
                run.close_view()
                folder.end(run.traffic, revealed=run.revealed, outcome=None, error=reason)
            logs.event(Event.RUN_FAILED, reason=brief(error))
            raise
        with disk_patience(file):
            run.write_down()
            note_alone(party, agreement, run.data, folder)
    finally:
        opened.close()
        os.close(held)


@contextmanager
def told_if_lost() -> Iterator[None]:
    """For what is written because something else has failed: that is what is raised, whatever the disk does."""
    try:
        yield
    except DiskError as error:
        logs.event("not written", reason=error.what, where=error.where)


@dataclass(repr=False)
class OwnRun:
    """A party's own side of a run: it goes back with the others when one of them was started anew."""

    file: FederationFile
    party: PartyFile
    data: OwnData
    folder: RunFolder
    kept: Checkpoints
    log: MessageLog
    view: ViewRecorder | None
    ledger: "Ledger | None"
    accounts: Accounts
    end: int  # the number of the final state
    nodes: int | None = None  # where they are found out at the start
    traffic: Traffic = field(default_factory=Traffic)
    revealed: Counter[str] = field(default_factory=Counter)
    last_step: int | None = None
    over: bool = False
    outcome: Outcome | None = None
    watch: Watch = field(default_factory=Watch)
    _restarted: bool = False
    _session: NetworkSession | None = None
    _copies: "MessageCopies | None" = None

    def __post_init__(self) -> None:
        # By an earlier process, which was then killed; not where a peer told that it failed before the end.
        self._ended = self.end in self.kept.steps and not self.folder.is_known_unfinished

    @contextmanager
    def going_back(self) -> Iterator[None]:
        """A peer that is started anew ends an attempt, also while the parties meet, but not the run."""
        try:
            yield
        except PeerRestarted as restarted:
            logs.event(Event.GOING_BACK, reason=restarted.what)
            self._restarted = True
        except ChannelClosed:
            if not self._ended or self.end not in self.kept.steps:  # it has gone back with the others since
                raise
            self._already_over()

    @contextmanager
    def attempt(self) -> Iterator[tuple[Start, AnyRole]]:
        """Meet the others, stand where all stand, and say goodbye at the end."""
        # A dealer has its final state long before the others may have theirs.
        late = self._restarted or (self._ended and self.party.name != DEALER)
        patience = self.file.patience
        wait_s, key = (patience.away_s, "away_s") if late else (patience.start_s, "start_s")
        endpoint, may_follow = self._endpoint(), programs.of_run(self.file, self.party.name)
        session = self._session = NetworkSession(endpoint, may_follow, log=self.log, view=self.view)
        session.channel.traffic, session.channel.revealed = self.traffic, self.revealed
        if self.file.alignment is not None:
            session.resize(programs.of_alignment(self.file))  # until the number of nodes is known
        # Twice: written before the others hear of a failure, and also where the parties never met again.
        with (
            self._kept_on_failure(),
            session.met(wait_s=wait_s, key=key) as start,
            self._kept_on_failure(),
            disk_patience(self.file),
        ):
            role = self._role(start, session)
            try:
                yield start, role
            finally:
                role.close()
            self.over, self.outcome = True, None if role.result is None else role.result.outcome

    def _endpoint(self) -> Endpoint:
        agreement = self.file.agreement
        return Endpoint(
            self.file,
            self.party,
            run=self.kept.run,
            steps=tuple(self.kept.steps),
            keepers=programs.keepers(agreement),
            unwritten=1 if agreement.sealed else None,  # sealed, what is not on a disk is never gone on from
        )

    @contextmanager
    def _kept_on_failure(self) -> Iterator[None]:
        """Stopped in order, or left alone: the beginning of this step is what the others have too."""
        try:
            yield
        except PeerRestarted:
            raise
        except BaseException:
            with told_if_lost():
                self.kept.write()
            raise

    def leave(self, role: AnyRole) -> None:
        """Put the final state on disk, then leave with the others."""
        self._take_place()
        self._keep(role, self.end)
        program = leaving(role.agreement.parties, role.agreement.label_holder)
        carry_out(program, Follower(role.channel, program))

    def _already_over(self) -> None:
        """This party was killed after its final state was on disk, and the others have gone: nothing is missing."""
        logs.event("the run had ended before this party was killed")
        self._find_nodes(None, self.kept.run)
        nowhere = Session(self.party.name, InMemoryNetwork().transport(self.party.name))
        role = self._make(self.file.agreement_over(self.nodes), nowhere, self.kept.run or "")
        role.load(role.state_type.from_tensors(self.kept.load(self.end)))
        role.close()
        self.folder.begin(self.kept.run or "", self.end, self.file, first=int(self.file.agreement.sealed))
        self.over, self.outcome = True, None if role.result is None else role.result.outcome

    def _role(self, start: Start, session: Session) -> AnyRole:
        """This party's role, standing at the step that the label holder named."""
        keeps = self.party.name in programs.keepers(self.file.agreement)
        resumes = (start.run == self.kept.run and start.step in self.kept.steps) or bool(start.step and not keeps)
        if not resumes and (start.step or start.run == self.kept.run):
            steps = ", ".join(map(str, self.kept.steps))
            raise CheckpointRefused(
                "the label holder names a step that this party does not have",
                expected=f"one of {steps} of run {self.kept.run}, or a new run from step 0",
                got=f"step {start.step} of run {start.run}",
            )
        self.kept.go_back(start.run, start.step)
        self.folder.begin(start.run, start.step, self.file, first=int(self.file.agreement.sealed))
        begins = Event.RUN_GOES_ON if resumes else Event.RUN_BEGINS
        logs.event(begins, run=start.run, start=start.start, step=start.step, protocol=start.protocol)
        self._find_nodes(None if resumes else session, start.run)
        session.resize(programs.of_training(self.file, self.nodes, self.party.name))
        agreement = self.file.agreement_over(self.nodes)
        if self.ledger is not None and agreement.settings.privacy.noises_rows:
            self._copies = _open_copies(self.folder.noised, start.run)
        account = self.accounts.account(run=start.run, start=start.start, mark=lambda _: self.kept.forget_earlier())
        role = self._make(agreement, session, start.start, account)
        if resumes and keeps:
            role.load(role.state_type.from_tensors(self.kept.load(start.step)))
        elif self.ledger is not None:  # before anything that is noised leaves: what the run may come to
            for line in self._stated(agreement, None).lines():
                logs.event("privacy", means=line)
        self.watch = Watch(begins=lambda number: self._keep(role, number), done=self._tell)
        return role

    def _take_place(self) -> None:
        """A new run puts the one before aside when every peer has used what this party sent: nobody refuses it now."""
        if not self.folder.is_new or self._session is None:
            return
        channel = self._session.channel
        self._session.network.settle(channel.apart)
        channel.turn_page(self._log_in_place)

    def _log_in_place(self) -> MessageLog:
        self.log.close()
        self.folder.take_place()
        self.kept.folder = self.folder.checkpoints
        self.log = MessageLog(self.folder.messages)
        return self.log

    def _make(self, agreement: Agreement, session: Session, run: str, account: "Account | None" = None) -> AnyRole:
        metrics = self.folder.add_metrics
        more = {"ledger": self.ledger, "copies": self._copies, "account": account, "on_epoch": metrics}
        own = contribution_of(self.party, agreement, self.data, run=run, **more)
        return make_role(agreement, session.channel, own)

    def _find_nodes(self, session: Session | None, run: str | None) -> None:
        """Where holders bring tables: with the others when a run begins (`session`), later as they were then."""
        if self.file.alignment is None:
            return
        if session is None:
            self.nodes, rows = aligning.kept(self.folder.path, run, self.data)
        else:
            self.nodes, rows = aligning.align(self.file, session.channel, self.data)
            share = {} if self.data.tables is None else {"common": aligning.told_share(self.data, self.nodes)}
            logs.event("nodes aligned", nodes=self.nodes, **share)
            aligning.refuse_few(self.party, self.data, self.nodes)
            aligning.keep(self.folder.path, run or "", self.nodes, rows, self.data)
        self.data = aligning.over(self.file, self.data, rows)

    def _keep(self, role: AnyRole, number: int) -> None:
        """The beginning of step `number` in memory, and on disk where it is due."""
        if number not in self.kept.scheduled and role.agreement.sealed:
            return  # what is on no disk is never gone on from
        self.kept.remember(number, role.state().to_tensors())
        if number in self.kept.scheduled:
            if self.party.name == self.file.label_holder and self._session is not None:
                # So that nobody is ever further behind than one checkpoint.
                self._session.network.settle(self._session.channel.apart)
            self.kept.write(number)
            if self._copies is not None:
                self._copies.forget(before=min(self.kept.steps))

    def _tell(self, number: int) -> None:
        self._take_place()
        sealed, epochs = self.file.agreement.sealed, programs.trained_steps(self.file.agreement)
        if sealed and number >= epochs:
            return  # a part of what comes after the steps
        self.last_step = number
        sent, received = self.traffic.totals(self.party.name)
        known = self.folder.last_metrics
        # The steps of sealed have no metrics.
        metrics = {} if known is None or sealed else {"loss": known.loss, "val_accuracy": known.val_accuracy}
        used = round(time.process_time(), 3)
        logs.event(Event.EPOCH, epoch=number, of=epochs, sent=sent, received=received, cpu_s=used, **metrics)

    def write_down(self) -> None:
        """The records of a run that came to its end."""
        agreement = self.file.agreement_over(self.nodes)
        self.folder.note("nodes", agreement.nodes)
        _note_leak(agreement, self.party.name, self.data, self.folder, self.last_step)
        note_bytes(agreement, self.party.name, self.folder, self.traffic)
        if self.ledger is not None:
            self.folder.note("privacy", self._stated(agreement, self.ledger).to_json())
        seal(self.log, self.party)
        self.close_view()
        if self.ledger is not None:
            _remove_copies(self.folder.noised)
            self.ledger.close()
        self.folder.end(self.traffic, revealed=self.revealed, outcome=self.outcome, error=None)
        found = {} if self.outcome is None else {"test_accuracy": round(self.outcome.test_accuracy, 4)}
        logs.event(Event.RUN_ENDED, **found)

    def close_view(self) -> None:
        """Where this party records it: no more messages will come."""
        if self.view is not None:
            self.view.close()

    def _stated(self, agreement: Agreement, ledger: "Ledger | None") -> "Statement":
        """What the privacy settings mean: before the run, or with what the ledger says."""
        from vfgnn.privacy.input_perturbation import pairs_of
        from vfgnn.privacy.statement import statement

        party, data = self.party, self.data
        edges = None if data.holding is None else len(pairs_of(data.holding.edge_index))
        spent = None if ledger is None else ledger.releases
        rows = None if party.mechanism is None else _own_rows(agreement, party.mechanism)
        return statement(agreement, spent=spent, edges=edges, labels=party.name == agreement.label_holder, rows=rows)


def _open_view(file: FederationFile, party: PartyFile, folder: RunFolder) -> ViewRecorder:
    """Where contents of messages are kept; how much that may come to is told beforehand."""
    most = programs.most_recorded(file, party.name)
    logs.event("this party's view is recorded", at_most_bytes=most, where=str(folder.path))
    return ViewRecorder(folder.path)


def _open_ledger(party: PartyFile) -> "Ledger":
    """This holder's own, over all its runs."""
    from vfgnn.privacy.ledger import Ledger

    return Ledger(party.privacy_ledger)


def _open_copies(folder: Path, run: str) -> "MessageCopies":
    """Of this run's noised messages."""
    from vfgnn.privacy.copies import MessageCopies

    return MessageCopies(folder, run)


def _remove_copies(folder: Path) -> None:
    from vfgnn.privacy.copies import remove_copies

    remove_copies(folder)


def _own_rows(agreement: Agreement, mechanism: str) -> "OwnRows":
    from vfgnn.privacy.publishing import own_row_mechanism

    settings = agreement.settings
    return own_row_mechanism(load_module(mechanism), settings.privacy, settings.epochs, settings.dim)


def seal(log: MessageLog, party: PartyFile) -> None:
    """Sign a message log with this party's key: nothing more will be written to it."""
    log.seal(lambda content: certificates.sign(content, party.key, tls.passphrase_of(party), party.certificate))
    log.close()


def _note_leak(agreement: Agreement, name: str, data: OwnData, folder: RunFolder, steps: int | None) -> None:
    """What the reveals of this run gave away of this holder's features, by its own reckoning."""
    if data.holding is None or not agreement.collaborative:
        return
    from vfgnn.model.leak_meter import meter

    read = meter(agreement, name, data.holding.x, steps=steps)
    if read is not None:
        folder.note("leak_meter", {"revealed": read.revealed_dimensions, "rank": read.rank, "share": read.share})
