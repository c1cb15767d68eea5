"""A party of a finished run, asked again: one pass over all nodes with the weights that training ended with.

Each party loads the state that its run ended with. The holders publish the rows of all nodes, so that nobody sees which
ones were asked for; z_L goes to the label holder. Rows that were noised are sent again as they were
(split/holder.py). Under `vfgnn predict` a pass comes once, under `vfgnn serve` whenever the label holder asks.

Of a sealed model the label holder has every prediction that training opened: nothing is sent for those.

New nodes: ids that came after training are aligned with the others' and predicted with the same weights. Holders append
them to their tables; what was there stays where it was (split/new_nodes.py). Of a sealed model those that are asked for
are opened, each once: the label holder keeps what it learns, and every other holder that it was opened (released.py).
A pass that was interrupted when all holders had their shares of what it tells is told first, as it was, by the next.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import torch

from vfgnn.channel import Channel
from vfgnn.checkpoint import Checkpoints, RoleState, copied
from vfgnn.errors import CheckpointRefused, ConfigError, ProtocolError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.party import aligning
from vfgnn.party.accounts import Accounts
from vfgnn.party.folder import RunState, hold, read_about
from vfgnn.party.nodes import Nodes
from vfgnn.party.programs import end_step, keepers, of_alignment, of_pass, prediction
from vfgnn.party.released import AskedById, OpenedById, Released
from vfgnn.party.roles import AnyRole, contribution_of, make_role
from vfgnn.party.session import Session
from vfgnn.privacy.ledger import Ledger
from vfgnn.program import Watch, carry_out
from vfgnn.sealed.state import SealedState
from vfgnn.split.new_nodes import places_of, refuse_gone, refuse_unfit
from vfgnn.split.state import SplitState
from vfgnn.transport.endpoint import Endpoint
from vfgnn.transport.wire import Start
from vfgnn.writing import make_folder

PREDICTIONS, SERVING = "predictions", "serving"  # folders of a run folder, and in them one for each
OK, NOT_SHARED, UNKNOWN = "ok", "not at all holders", "unknown"


@dataclass(frozen=True, repr=False)
class Predictions:
    """What the label holder learns of one pass."""

    common: pa.Array  # ids, in the common order
    own: pa.Array  # all that its own table has
    classes: tuple[str, ...]
    probability: torch.Tensor  # float64 [common, classes]; 0 and 1 where nothing but classes is known
    classes_only: bool = False  # sealed: what was opened has no probabilities
    unasked: frozenset[str] = frozenset()  # sealed: common ids that nobody has asked for yet, so nothing was opened

    def __repr__(self) -> str:
        return f"Predictions(nodes={len(self.common)}, classes={len(self.classes)})"

    def table(self, ids: pa.Array | None) -> pa.Table:
        """Of some ids, or of all common ones: id, status, class, and a probability for each class if there are any."""
        ids = self.common if ids is None else ids
        found = pc.index_in(ids, value_set=self.common)
        here = pc.is_in(ids, value_set=self.own)
        status = pc.if_else(pc.is_valid(found), OK, pc.if_else(here, NOT_SHARED, UNKNOWN))
        columns = {"id": ids, "status": status, "class": self.likeliest.take(found)}
        for number, name in enumerate(() if self.classes_only else self.classes):
            columns[f"probability of {name}"] = pa.array(self.probability[:, number].numpy()).take(found)
        return pa.table(columns)

    @property
    def likeliest(self) -> pa.Array:
        """The class of each common id."""
        return pa.array(self.classes).take(pa.array(self.probability.argmax(dim=1).numpy()))


@dataclass(frozen=True, repr=False)
class Pass:
    """What a pass is about, and its name."""

    run: str
    new_nodes: bool
    ids: Collection[str] | None = None  # at the label holder: that it asks for
    goes_on: bool = False  # sealed: it was interrupted, and nothing is left of it but to tell


class TrainedParty:
    """One party's part of a finished run."""

    def __init__(self, file: FederationFile, party: PartyFile) -> None:
        self.file, self.party = file, party
        agreement, folder = file.agreement, party.run_folder / "checkpoints"
        self._end = end_step(agreement)
        self._ledger: Ledger | None = None
        self._accounts: Accounts | None = None
        self._held = hold(party.run_folder, party.name)  # first: a run that writes its checkpoints is left alone
        try:
            self._kept = Checkpoints(folder, party=party.name, federation=agreement.digest, scheduled=[self._end])
            _refuse_unfinished(party, self._kept, self._end)
            self._state = self._kept.load(self._end)
            noised = party.data is not None and not agreement.settings.privacy.off
            self._released = Released(party.run_folder, self._kept.run)
            self._opened = OpenedById(party.run_folder, self._kept.run)
            self._asked, self._interrupted = AskedById(party.run_folder, self._kept.run), False
            self._accounts = Accounts.of(file, party)
            self._ledger = Ledger(party.privacy_ledger, trained=True) if noised else None
        except BaseException:
            self.close()
            raise

    def refuse_new_nodes(self) -> None:
        """Where settings alone say that nodes cannot be added to this model."""
        if self.file.alignment is None:
            raise ConfigError("new nodes need ids", expected="tables: [alignment] in the federation file")
        refuse_unfit(self.file.agreement)

    def endpoint(self, purpose: str, *, standing: bool = False) -> Endpoint:
        """To meet the others with the same model, and to find out whether all have their shares of a pass."""
        return Endpoint(
            self.file,
            self.party,
            run=self._kept.run,
            steps=(self._end,) if self._asked.last is None else (self._end, self._end + 1),
            keepers=keepers(self.file.agreement),
            purpose=purpose,
            standing=standing,
        )

    def meet(self, start: Start) -> None:
        """Refuse others that have met over another model than this one; stand where all stand."""
        if start.run != self._kept.run or start.step not in (self._end, self._end + 1):
            raise ProtocolError("a peer has another model", expected=f"run {self._kept.run}", got=f"run {start.run}")
        self._interrupted = start.step > self._end
        if not self._interrupted:
            self._asked.clear()  # the label holder has heard it, or nobody told it

    def load(self) -> Nodes:
        """This party's data as it is today, over the nodes of training."""
        return Nodes.load(self.file, self.party, self._kept)

    def ask(
        self, session: Session, trained: Nodes, *, run: str, new_nodes: bool, ids: Collection[str] | None = None
    ) -> Predictions | None:
        """One pass; `run` names it, and every mask and every line of the ledger with it.

        `ids`: sealed, at the label holder: the new ones that it asks for; None: all of them.
        Reveals: rows of all nodes to the server, z_L of all nodes to the label holder; with `new_nodes` also what
        aligning reveals, and h0 of all nodes to the holders with edges. Sealed: nothing; with `new_nodes` also what
        aligning reveals, which nodes are asked for to the holders, and their classes to the label holder.
        """
        channel, now = session.channel, trained
        if new_nodes:
            session.resize(of_alignment(self.file))
            if self.file.agreement.collaborative:
                aligning.refuse_changed(self.party.run_folder, trained.data, trained.rows)
            now = trained.aligned_anew(self.file, channel)
        session.resize(of_pass(self.file, now.nodes, self.party.name, new_nodes=new_nodes))
        if new_nodes and self._interrupted:
            self._carry_out(channel, trained, now, Pass(f"{run}/again", new_nodes, goes_on=True))
            self._interrupted = False
        made = self._carry_out(channel, trained, now, Pass(run, new_nodes, ids))
        result = made.result  # the label holder's
        return None if result is None or result.logits is None else self._predictions(result.logits, now)

    def _carry_out(self, channel: Channel, trained: Nodes, now: Nodes, own: Pass) -> AnyRole:
        """This party's role, when it has been through the program."""
        agreement = self.file.agreement_over(now.nodes)
        asked = self._asked.last if own.goes_on else None
        brought = self._more(now, own, asked.start if asked is not None else own.run)
        made = make_role(agreement, channel, contribution_of(self.party, agreement, now.data, run=own.run, **brought))
        state = self._state_over(made, now, trained) if own.new_nodes else self._state_of(made)
        if asked is not None and isinstance(state, SealedState):
            state = replace(state, asked=asked.among(now.ids))
        watch = Watch(begins=lambda part: self._keep_asked(part, made, now, own))
        try:
            made.load(state)
            program = prediction(agreement, self.party.name, new_nodes=own.new_nodes)
            carry_out(program, made, begin=int(own.goes_on), watch=watch)
        finally:
            made.close()
            if own.new_nodes and (self._ledger is not None or agreement.sealed):
                self._keep_released(made, now, trained)
        return made

    def _keep_asked(self, part: int, made: AnyRole, now: Nodes, own: Pass) -> None:
        """Sealed: what is told next is on the disk before it is told, and gone when another pass begins."""
        state = made.state()
        if not isinstance(state, SealedState) or own.goes_on:
            return
        if state.asked is None:
            self._asked.clear()  # the label holder has heard it: it would not have begun this pass otherwise
        else:
            ids = now.ids
            self._asked.put([ids[row] for row in state.asked.rows.tolist()], state.asked.made, own.run)

    def _more(self, now: Nodes, own: Pass, start: str) -> dict[str, object]:
        """What a holder's role has beyond its data: what it counts in, and what is asked for."""
        if self._accounts is None or now.data.holding is None:
            return {}
        known = now.ids

        def mark(rows: torch.Tensor) -> None:
            self._opened.add([known[row] for row in rows.tolist()], torch.empty((len(rows), 0), dtype=torch.int64))

        account = self._accounts.account(run=self._kept.run or "", start=start, mark=mark)
        rows = None if own.ids is None else [row for row, one in enumerate(known) if one in own.ids]
        wanted = None if rows is None else torch.tensor(rows, dtype=torch.int64)
        return {"ledger": self._ledger, "account": account, "wanted": wanted}

    def _keep_released(self, made: AnyRole, now: Nodes, trained: Nodes) -> None:
        """So that another pass sends the same noise of new nodes again, and pays nothing; and opens nothing again."""
        state, ids, known = made.state(), now.ids, set(trained.ids)
        opened = state.opened if isinstance(state, SealedState) else None
        if opened is not None and ids:
            later = torch.tensor([ids[row] not in known for row in opened.rows.tolist()], dtype=torch.bool)
            self._opened.add([ids[row] for row in opened.rows[later].tolist()], opened.values[later])
        released = state.released if isinstance(state, SplitState) else None
        if released is not None and ids:
            new = [(place, ids[row]) for place, row in enumerate(released.rows.tolist()) if ids[row] not in known]
            self._released.add([one for _, one in new], released.noised[[place for place, _ in new]])

    def _state_of(self, made: AnyRole) -> RoleState:
        """What training ended with; a copy, because a role goes on with it."""
        return made.state_type.from_tensors(copied(self._state))

    def _state_over(self, made: AnyRole, now: Nodes, trained: Nodes) -> RoleState:
        """The same over the nodes of now, with what was released of new ones in earlier passes."""
        places = torch.arange(0)
        if now.data.holding is not None:  # only holders have anything that counts nodes
            places = places_of(trained.rows, now.rows)
            refuse_gone(made.agreement, places)
        state = self._state_of(made).over(places, made.agreement)
        if isinstance(state, SealedState):
            return state.with_copies(self._opened.of(now.ids))
        return state.with_releases(self._released.of(now.ids)) if isinstance(state, SplitState) else state

    def _predictions(self, logits: torch.Tensor, now: Nodes) -> Predictions:
        """Ids and classes as the label holder's tables name them; aligned tensors have numbers only."""
        agreement, tables = self.file.agreement, now.data.tables
        only = agreement.sealed and agreement.settings.sealed.opens == "classes"
        probability = logits.double().cpu() if only else logits.double().cpu().softmax(dim=1)
        if tables is None or tables.labels is None:
            ids = pa.array([str(row) for row in range(len(logits))])
            return Predictions(ids, ids, tuple(str(c) for c in range(logits.shape[1])), probability, only)
        own = tables.nodes.ids
        common = own.take(pa.array(now.rows.numpy()))
        known = ~probability.isnan().any(dim=1)
        told, unasked = (common.filter(pa.array(mask.numpy())) for mask in (known, ~known))
        classes = tuple(tables.labels.classes)
        return Predictions(told, own, classes, probability[known], only, frozenset(unasked.to_pylist()))

    def close(self) -> None:
        """Nothing more will be asked, or charged."""
        os.close(self._held)
        if self._accounts is not None:
            self._accounts.close()
        if self._ledger is not None:
            self._ledger.close()


def new_folder(run_folder: Path, kind: str) -> Path:
    """For the records of what comes after a run: `kind` is PREDICTIONS or SERVING."""
    folder = run_folder / kind / datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    make_folder(folder.parent)
    return make_folder(folder)


def _refuse_unfinished(party: PartyFile, kept: Checkpoints, end: int) -> None:
    state = read_about(party.run_folder).get("state")
    if end not in kept.steps or state != RunState.FINISHED:
        raise CheckpointRefused(
            f"{party.name} has no trained model",
            expected="the run folder of a finished run of this federation",
            got="no finished run" if state is None else f"a run that is {state}",
            where=str(party.run_folder),
            hint="finish `vfgnn run` at all parties first",
        )
