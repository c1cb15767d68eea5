"""A party of a finished run, asked again: one pass over all nodes with the weights that training ended with.

Each party loads the state that its run ended with. The holders publish the rows of all nodes, so that nobody sees which
ones were asked for; z_L goes to the label holder. Rows that were noised are sent again as they were
(split/holder.py). Under `vfgnn predict` a pass comes once, under `vfgnn serve` whenever the label holder asks.

New nodes: ids that came after training are aligned with the others' and predicted with the same weights. Holders append
them to their tables; what was there stays where it was (split/new_nodes.py).
"""

import os
from dataclasses import dataclass
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
from vfgnn.party.folder import RunState, hold, read_about
from vfgnn.party.own_data import OwnData, load_data
from vfgnn.party.programs import end_step, of_alignment, of_pass, prediction
from vfgnn.party.released import Released
from vfgnn.party.roles import AnyRole, contribution_of, make_role
from vfgnn.party.session import Session
from vfgnn.privacy.ledger import Ledger
from vfgnn.program import carry_out
from vfgnn.split.new_nodes import (
    in_trained_order,
    places_of,
    refuse_gone,
    refuse_unfit,
)
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
    probability: torch.Tensor  # float64 [common, classes]

    def __repr__(self) -> str:
        return f"Predictions(nodes={len(self.common)}, classes={len(self.classes)})"

    def table(self, ids: pa.Array | None) -> pa.Table:
        """Of some ids, or of all common ones: id, status, class, and a probability for each class."""
        ids = self.common if ids is None else ids
        found = pc.index_in(ids, value_set=self.common)
        here = pc.is_in(ids, value_set=self.own)
        status = pc.if_else(pc.is_valid(found), OK, pc.if_else(here, NOT_SHARED, UNKNOWN))
        columns = {"id": ids, "status": status, "class": self.likeliest.take(found)}
        for number, name in enumerate(self.classes):
            columns[f"probability of {name}"] = pa.array(self.probability[:, number].numpy()).take(found)
        return pa.table(columns)

    @property
    def likeliest(self) -> pa.Array:
        """The class of each common id."""
        return pa.array(self.classes).take(pa.array(self.probability.argmax(dim=1).numpy()))


class TrainedParty:
    """One party's part of a finished run."""

    def __init__(self, file: FederationFile, party: PartyFile) -> None:
        self.file, self.party = file, party
        agreement, folder = file.agreement, party.run_folder / "checkpoints"
        self._end = end_step(agreement)
        self._ledger: Ledger | None = None
        self._held = hold(party.run_folder, party.name)  # first: a run that writes its checkpoints is left alone
        try:
            self._kept = Checkpoints(folder, party=party.name, federation=agreement.digest, scheduled=[self._end])
            _refuse_unfinished(party, self._kept, self._end)
            self._state = self._kept.load(self._end)
            noised = party.data is not None and not agreement.settings.privacy.off
            self._released = Released(party.run_folder, self._kept.run)
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
        """To meet the others with the same model."""
        steps = (self._end,)
        return Endpoint(self.file, self.party, run=self._kept.run, steps=steps, purpose=purpose, standing=standing)

    def refuse_other(self, start: Start) -> None:
        """Where the parties have met over another model than this one."""
        if (start.run, start.step) != (self._kept.run, self._end):
            raise ProtocolError("a peer has another model", expected=f"run {self._kept.run}", got=f"run {start.run}")

    def load(self) -> "Nodes":
        """This party's data as it is today, over the nodes of training."""
        return Nodes.load(self.file, self.party, self._kept)

    def ask(self, session: Session, trained: "Nodes", *, run: str, new_nodes: bool) -> Predictions | None:
        """One pass; `run` names it, and every mask and every line of the ledger with it.

        Reveals: rows of all nodes to the server, z_L of all nodes to the label holder; with `new_nodes` also what
        aligning reveals, and h0 of all nodes to the holders with edges.
        """
        channel, now = session.channel, trained
        if new_nodes:
            session.resize(of_alignment(self.file))
            if self.file.agreement.collaborative:
                aligning.refuse_changed(self.party.run_folder, trained.data, trained.rows)
            now = trained.aligned_anew(self.file, channel)
        session.resize(of_pass(self.file, now.nodes, self.party.name, new_nodes=new_nodes))
        agreement = self.file.agreement_over(now.nodes)
        own = contribution_of(self.party, agreement, now.data, run=run, ledger=self._ledger)
        made = make_role(agreement, channel, own)
        try:
            made.load(self._state_over(made, now, trained) if new_nodes else self._state_of(made))
            carry_out(prediction(agreement, self.party.name, new_nodes=new_nodes), made)
        finally:
            made.close()
            if self._ledger is not None and new_nodes:
                self._keep_released(made, now, trained)
        result = made.result  # the label holder's
        return None if result is None or result.logits is None else self._predictions(result.logits, now)

    def _keep_released(self, made: AnyRole, now: "Nodes", trained: "Nodes") -> None:
        """So that another pass sends the same noise of new nodes again, and pays nothing."""
        state, ids, known = made.state(), now.ids, set(trained.ids)
        released = state.released if isinstance(state, SplitState) else None
        if released is not None and ids:
            new = [(place, ids[row]) for place, row in enumerate(released.rows.tolist()) if ids[row] not in known]
            self._released.add([one for _, one in new], released.noised[[place for place, _ in new]])

    def _state_of(self, made: AnyRole) -> RoleState:
        """What training ended with; a copy, because a role goes on with it."""
        return made.state_type.from_tensors(copied(self._state))

    def _state_over(self, made: AnyRole, now: "Nodes", trained: "Nodes") -> RoleState:
        """The same over the nodes of now, with what was released of new ones in earlier passes."""
        places = torch.arange(0)
        if now.data.holding is not None:  # only holders have anything that counts nodes
            places = places_of(trained.rows, now.rows)
            refuse_gone(made.agreement, places)
        state = self._state_of(made).over(places, made.agreement)
        return state.with_releases(self._released.of(now.ids)) if isinstance(state, SplitState) else state

    def _predictions(self, logits: torch.Tensor, now: "Nodes") -> Predictions:
        """Ids and classes as the label holder's tables name them; aligned tensors have numbers only."""
        probability, tables = logits.double().cpu().softmax(dim=1), now.data.tables
        if tables is None or tables.labels is None:
            ids = pa.array([str(row) for row in range(len(logits))])
            return Predictions(ids, ids, tuple(str(c) for c in range(logits.shape[1])), probability)
        own = tables.nodes.ids
        return Predictions(own.take(pa.array(now.rows.numpy())), own, tuple(tables.labels.classes), probability)

    def close(self) -> None:
        """Nothing more will be asked, or charged."""
        os.close(self._held)
        if self._ledger is not None:
            self._ledger.close()


@dataclass(frozen=True, repr=False)
class Nodes:
    """The nodes of a pass, and this party's data over them."""

    data: OwnData
    nodes: int | None  # None: as the federation file says
    rows: torch.Tensor  # of this holder's node table, in the common order

    @property
    def ids(self) -> list[str]:
        """Of the common nodes, as this holder's table writes them; none where there is no table."""
        tables = self.data.tables
        return [] if tables is None else tables.nodes.ids.take(pa.array(self.rows.numpy())).to_pylist()

    @staticmethod
    def load(file: FederationFile, party: PartyFile, kept: Checkpoints) -> "Nodes":
        """As they were in training, standardised as then."""
        if file.alignment is None:
            return Nodes(load_data(file, party), None, torch.arange(0))
        data = load_data(file, party, fitted=aligning.fitted(party.run_folder))
        nodes, rows = aligning.kept(party.run_folder, kept.run, data)
        return Nodes(aligning.over(file, data, rows, trained=True), nodes, rows)

    def aligned_anew(self, file: FederationFile, channel: Channel) -> "Nodes":
        """With the ids that all holders have now. Reveals: what an alignment reveals (alignment/)."""
        nodes, rows = aligning.align(file, channel, self.data)
        rows = in_trained_order(self.rows, rows)
        return Nodes(aligning.over(file, self.data, rows, trained=True), nodes, rows)


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
