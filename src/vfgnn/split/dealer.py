"""The dealer: hands out the masks of the joint layer. It holds no data and receives nothing but `keep` and `stop`.

Sees: sizes and its own random numbers. What leaves: to each holder one seed, and one correction per product. Together
with any one holder it could undo every mask, so it must be neither a holder nor in league with one.
"""

from concurrent.futures import Future, ThreadPoolExecutor

import torch

from vfgnn import randomness
from vfgnn.agreement import Agreement
from vfgnn.channel import Channel
from vfgnn.contribution import Contribution
from vfgnn.mpc.correlations import Direction, Masks
from vfgnn.mpc.dealing import Dealt
from vfgnn.split.decision import Listener
from vfgnn.split.program import CORRECTION_BACKWARD, CORRECTION_FORWARD, DEALER_SEED
from vfgnn.split.state import DealerState
from vfgnn.split.steps import Moment, Rows

Corrections = dict[tuple[str, Direction], torch.Tensor]


class Dealer(Listener):
    """Computes the next refresh's corrections while the holders work on this one's."""

    result = None  # it learns nothing
    state_type = DealerState

    def __init__(self, agreement: Agreement, channel: Channel, own: Contribution) -> None:
        self.agreement, self.channel = agreement, channel
        self.rows = Rows.all(agreement.nodes)
        names, columns = agreement.holder_names, {k.name: k.features for k in agreement.feature_holders}
        self._seeds = {name: randomness.derive_key(own.seed, "dealer", own.run, name) for name in names}
        masks = {name: Masks(seed, run=own.run, holder=name) for name, seed in self._seeds.items()}
        self._dealt = Dealt(masks, columns, agreement.nodes, agreement.settings.dim)
        self._refreshes = 0
        self._worker = ThreadPoolExecutor(1)
        self._next: Future[Corrections] | None = None

    @property
    def known(self) -> Moment:
        """That there are nodes; it never hears which rows train."""
        return Moment(self.rows)

    def set_up(self, moment: Moment) -> None:
        """Seeds, and the corrections of the first product.

        Reveals: to each holder, masks that only it and the dealer can expand.
        """
        for name, seed in self._seeds.items():
            self.channel.send(name, DEALER_SEED, torch.tensor(list(seed), dtype=torch.uint8))
        for name in self._receivers(self.agreement.holder_names):
            self.channel.send(name, CORRECTION_FORWARD, self._dealt.correction(name, "forward", 0))
        self._compute_ahead()

    def embed_anew(self, moment: Moment) -> None:
        """Seeds and corrections, as for a run of one refresh. Reveals: what `set_up` and `refresh` do."""
        self.set_up(moment)
        self.refresh(moment)

    def refresh(self, moment: Moment) -> None:
        """The corrections of this step's refresh, computed ahead.

        Reveals: nothing; a correction is uniform to its receiver.
        """
        if self._next is None:
            return
        self._refreshes += 1
        corrections = self._next.result()
        self._compute_ahead()
        for name in self._receivers(self.agreement.publishers):
            self.channel.send(name, CORRECTION_BACKWARD, corrections[name, "backward"])
            self.channel.send(name, CORRECTION_FORWARD, corrections[name, "forward"])

    def _compute_ahead(self) -> None:
        """One refresh ahead, and never one that the schedule does not have."""
        more = self._refreshes < self.agreement.settings.trained_joint_epochs
        self._next = self._worker.submit(self._compute, self._refreshes + 1) if more else None

    def wait(self) -> None:
        """Until everything that can be computed ahead is there."""
        if self._next is not None:
            self._next.result()

    def _compute(self, counter: int) -> Corrections:
        directions: tuple[Direction, ...] = ("backward", "forward")
        return {
            (name, direction): self._dealt.correction(name, direction, counter)
            for direction in directions
            for name in self._receivers(self.agreement.publishers)
        }

    def _receivers(self, names: tuple[str, ...]) -> list[str]:
        """Those who multiply with somebody else's features."""
        owners = {holder.name for holder in self.agreement.feature_holders}
        return [name for name in names if owners - {name}]

    def state(self) -> DealerState:
        """How many refreshes it has dealt for."""
        return DealerState(self._refreshes)

    def load(self, state: DealerState) -> None:
        """Go on from it."""
        self._refreshes = state.refreshes

    def close(self) -> None:
        """End the background thread."""
        self._worker.shutdown(wait=False, cancel_futures=True)
