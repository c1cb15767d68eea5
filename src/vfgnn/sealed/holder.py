"""A holder in the sealed protocol.

Holds its columns, its edges, and a share of everything that is computed. Sees: which rows train and validate, and
uniform words. What leaves: masked values and permutations' factors, uniform to their receivers, and shares of what is
opened to the label holder, each under a fresh sharing of zero.
"""

from dataclasses import replace

import torch

from vfgnn import logs
from vfgnn.agreement import DEALER, Agreement
from vfgnn.channel import Channel
from vfgnn.errors import CheckpointRefused, PolicyRefused
from vfgnn.model.contribution import HolderContribution
from vfgnn.mpc.fixed_point import FixedPoint
from vfgnn.mpc.slots import check_edges
from vfgnn.rows import RowSet
from vfgnn.sealed.exchange import OwnMatrices, exchange
from vfgnn.sealed.formats import LONG, feature_bits
from vfgnn.sealed.joint_computation import JointComputation, Means
from vfgnn.sealed.own_edges import entries_of, refuse_unusable
from vfgnn.sealed.prediction import SealedPrediction, TrainedInputs
from vfgnn.sealed.program import ASKED_ROWS, ROW_ROLES, SealedMoment, finishing_part, largest
from vfgnn.sealed.record import Opened, asked_of, opened_by
from vfgnn.sealed.sizes import ASKING, FINISHING, SealedSizes
from vfgnn.sealed.state import AskedState, OpenedRows, SealedState, TrainingState
from vfgnn.sealed.supply import HolderOffline
from vfgnn.sealed.training import HolderInputs, Leader, SealedTraining

TRAIN, VAL = 1, 2  # codes in ROW_ROLES; 0 is every other row


class SealedHolder:
    """One holder's part in a sealed training."""

    result = None  # it learns nothing
    state_type = SealedState
    leader: Leader | None = None

    def __init__(self, agreement: Agreement, channel: Channel, own: HolderContribution) -> None:
        refuse_unusable(own.holding)
        self.agreement, self.channel, self._own = agreement, channel, own
        me, quota = channel.party, agreement.degree_quota
        self._entries = entries_of(own.holding.edge_index, agreement.nodes, quota=quota)
        everything = entries_of(own.holding.edge_index, agreement.nodes, quota=agreement.nodes)
        if dropped := everything.shape[1] - self._entries.shape[1]:
            logs.event("edges dropped", directed_entries=dropped, quota_per_node=quota)
        shape = next(holder for holder in agreement.holders if holder.name == me)
        # Here, before anything is sent; `PrivateGraphs` looks again when seeds are there.
        check_edges(self._entries, nodes=agreement.nodes, declared=shape.entry_bound, holder=me)
        features = FixedPoint(feature_bits(integer=shape.integer), agreement.settings.feature_bound)
        self._x_ring = features.encode(own.holding.x, f"the features of {me}")
        self._moment = largest(agreement)
        self._means: Means | None = None
        self.offline: HolderOffline | None = None
        self._work: SealedTraining | SealedPrediction | None = None
        self._over = False
        self._left = self.state_type()
        self.rows = (RowSet.all(0), RowSet.all(0))  # train, val
        self._codes = torch.empty(0, dtype=torch.uint8)  # of all rows, as the label holder said them
        self._asked = RowSet.all(0)

    @property
    def known(self) -> SealedMoment:
        """All rows, until the label holder has announced which ones train and validate, or which it asks for."""
        return self._moment

    def set_up(self, moment: SealedMoment) -> None:
        """Hear which rows count; seeds; masked features; permutations.

        Reveals: nothing; features are masked, permutations split.
        """
        self._learn_rows()
        train, val = self.rows
        known = self._left.training or TrainingState()
        self._refuse_other_rows(known)
        self._moment = SealedMoment(len(train), len(val), begin=known.number)
        sizes = SealedSizes(self.agreement, len(train), len(val))
        self._expect(opened_by(sizes), goes_on=known.number > 0)
        own_part = HolderInputs(self._degrees, self._columns_long(sizes), train, val, self.leader, known)
        self._work = SealedTraining(self._begin(), sizes, own_part)

    def _refuse_other_rows(self, known: TrainingState) -> None:
        """A training that goes on is about the rows that it began with."""
        if known.number and known.rows is not None and not torch.equal(known.rows, self._codes):
            raise CheckpointRefused(
                "other rows train and validate than when this training began",
                expected="the same labels and splits at the label holder, until the training is over",
                where=f"party {self.channel.party}, setup",
                hint=f"restore them at {self.agreement.label_holder}, or begin a new run with --fresh at all parties",
            )

    def _begin(self) -> JointComputation:
        matrices = OwnMatrices(self._x_ring, self._entries)
        means = self._means = exchange(self.agreement, self.channel, self._own, matrices)
        links = self.channel.beside((DEALER,))
        self.offline = HolderOffline(self.agreement, links, self._moment, means.supply, means.graphs)
        return JointComputation(self.agreement, self.channel, means)

    def ask(self, moment: SealedMoment) -> None:
        """With a trained model: hear which rows are asked for."""
        self._learn_asked()
        asked, left = len(self._asked), self._left
        if left.asked is not None:
            self._refuse_other_asked(left.asked)
        elif left.opened is not None and (again := left.opened.among(self._asked.numbers)):
            raise PolicyRefused(
                f"{self.channel.party} refuses to open {again} row(s) of this model a second time",
                expected="rows that have not been opened: the label holder keeps what was",
                where="ask",
            )
        goes_on = left.asked is not None
        self._moment = SealedMoment(left.train_rows, 0, asked=asked, begin=int(goes_on))
        if asked:
            self._expect(asked_of(SealedSizes(self.agreement, left.train_rows, 0), asked), goes_on=goes_on)

    def _refuse_other_asked(self, before: AskedState) -> None:
        """What was not told to its end is told again as it was, and nothing else."""
        if not torch.equal(before.rows, self._asked.numbers):
            raise PolicyRefused(
                f"{self.channel.party} refuses to open other rows than those of the pass that was interrupted",
                expected=f"the same {len(before.rows)} row(s)",
                got=f"{len(self._asked)}",
                where="ask",
            )

    def _expect(self, opened: Opened, *, goes_on: bool) -> None:
        """Refuse what is beyond this holder's limits, before anything is computed for it."""
        account = self._own.account
        if account is not None:
            account.expect(opened.opening(account), self._asked.numbers, goes_on=goes_on)

    def set_up_anew(self, moment: SealedMoment) -> None:
        """As in training, if anything is asked for. Reveals: nothing."""
        left = self._left
        if not moment.asked or left.offset is None:
            return
        sizes = SealedSizes(self.agreement, left.train_rows, 0)
        hear = None if self.leader is None else self.leader.hear
        made = None if left.asked is None else left.asked.made
        own_part = TrainedInputs(self._degrees, left.weights, left.offset, self._asked, hear, made)
        self._work = SealedPrediction(self._begin(), sizes, own_part)

    @property
    def _degrees(self) -> torch.Tensor:
        return torch.bincount(self._entries[0], minlength=self.agreement.nodes)

    def _columns_long(self, sizes: SealedSizes) -> torch.Tensor:
        """Its columns among all holders', LONG, for the order of features."""
        if sizes.order == "labels":
            return torch.empty((sizes.nodes, 0), dtype=torch.int64)
        whole = torch.zeros((sizes.nodes, self.agreement.columns), dtype=torch.int64)
        first = 0
        for owner, count in sizes.columns.items():
            if owner == self.channel.party:
                whole[:, first : first + count] = self._x_ring << (LONG - sizes.feature_bits[owner])
            first += count
        return whole

    def _learn_rows(self) -> None:
        roles = self.channel.receive(self.agreement.label_holder, ROW_ROLES)
        self._keep_rows(roles)

    def _keep_rows(self, roles: torch.Tensor) -> None:
        self._codes = roles
        train, val = (RowSet((roles == code).nonzero()[:, 0]) for code in (TRAIN, VAL))
        self.rows = (train, val)

    def _learn_asked(self) -> None:
        asked = self.channel.receive(self.agreement.label_holder, ASKED_ROWS)
        self._asked = RowSet(asked.nonzero()[:, 0])

    def prepare(self, moment: SealedMoment) -> None:
        """Degrees. Reveals: nothing."""
        if moment.asked != 0:
            self._on_shares.prepare()

    def step(self, moment: SealedMoment) -> None:
        """Reveals, in the first step: the first quotient, to the label holder."""
        if isinstance(self._work, SealedTraining):
            self._work.step(moment.number or 0)

    def finish(self, moment: SealedMoment) -> None:
        """Reveals, to the label holder: inner products; classes of validation rows; classes or scores of all rows.

        With a trained model: classes or scores of the rows that it asked for.
        """
        part, work = finishing_part(self.agreement, moment) or 0, self._on_shares
        work.finish(part)
        if part + 1 == (FINISHING if moment.asked is None else ASKING):
            self._left, self._over = self._after(work), True
            self.close()

    def _after(self, work: SealedTraining | SealedPrediction) -> SealedState:
        """What is left of a training; or of a prediction, which changes nothing but which rows have been opened."""
        left = self._left
        if isinstance(work, SealedTraining):
            (train, _), nodes = self.rows, self.agreement.nodes
            opened = OpenedRows(torch.arange(nodes), self._told(nodes))
            model = replace(left, weights=work.weights, offset=work.offset, train_rows=len(train))
            return replace(model, opened=opened, training=None)
        later = None if left.opened is None else left.opened.plus(self._asked.numbers, self._told(len(self._asked)))
        return replace(left, opened=later, asked=None)

    def _told(self, rows: int) -> torch.Tensor:
        """What this party knows of rows that have just been opened: nothing."""
        return torch.empty((rows, 0), dtype=torch.int64)

    @property
    def _on_shares(self) -> SealedTraining | SealedPrediction:
        if self._work is None:
            raise RuntimeError("set_up() comes first")
        return self._work

    def state(self) -> SealedState:
        """Its shares of the model, or of what a training has computed so far."""
        work, left = None if self._over else self._work, self._left
        if isinstance(work, SealedTraining):
            return replace(left, training=replace(work.state(), rows=self._codes))
        if work is not None and work.made is not None:
            return replace(left, asked=AskedState(self._asked.numbers, work.made))
        return left

    def load(self, state: SealedState) -> None:
        """Take them up again."""
        self._left = state

    def close(self) -> None:
        """End what is computed ahead."""
        if self._means is not None:
            self._means.products.close()
