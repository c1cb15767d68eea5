"""The server (CG2): combines published rows, runs the hidden layers.

Sees: published rows, which of them train and validate (`publish = "needed"`), dL/dz_L, the label holder's decisions.
What leaves: z_L to the label holder, to each holder the gradient of its own rows. It holds no data and no labels, and
never relays a message between holders.
"""

import torch

from vfgnn import randomness
from vfgnn.agreement import Agreement
from vfgnn.channel import Channel
from vfgnn.checkpoint import copied
from vfgnn.contribution import Contribution
from vfgnn.model.cg2_server import ReleaseAverage, ServerNetwork
from vfgnn.model.optimisers import LocalOptimiser, rows_with_gradient
from vfgnn.split.decision import Listener
from vfgnn.split.program import (
    HIDDEN,
    HIDDEN_EVALUATED,
    HIDDEN_GRADIENT,
    LOCAL_EMBEDDINGS,
    LOCAL_GRADIENT,
    ROW_ROLES,
)
from vfgnn.split.state import ServerSnapshot, ServerState
from vfgnn.split.steps import Moment, Rows


class Server(Listener):
    """The semi-honest party in the middle."""

    result = None  # it learns no prediction
    state_type = ServerState

    def __init__(self, agreement: Agreement, channel: Channel, own: Contribution) -> None:
        self.agreement, self.channel = agreement, channel
        self.rows = Rows.all(agreement.nodes)
        self._device = own.device
        self._dropout = randomness.generator(own.seed, "dropout")
        with randomness.initialising(own.seed):
            network = ServerNetwork(agreement.settings, len(agreement.publishers), own.combine)
        self.network = network.to(self._device)
        self._optimiser = LocalOptimiser(self.network.parameters(), agreement.settings)
        self._best: ServerSnapshot | None = None
        self._average = self._make_average()
        self._received: torch.Tensor | None = None
        self._kept: list[torch.Tensor] = []

    def _make_average(self) -> ReleaseAverage | None:
        settings = self.agreement.settings
        memory = settings.privacy.average_releases
        shape = (len(self.agreement.publishers), self.agreement.nodes, settings.dim)
        return ReleaseAverage(memory, shape, settings.dtype, self._device) if memory else None

    @property
    def known(self) -> Moment:
        """All rows, until the label holder has announced which ones train and validate."""
        return Moment(self.rows)

    def set_up(self, moment: Moment) -> None:
        """Hear which rows train and which validate."""
        if self.agreement.settings.publish == "needed":
            self.rows = Rows.from_roles(self.channel.receive(self.agreement.label_holder, ROW_ROLES))

    def forward(self, moment: Moment) -> None:
        """CG2 with dropout for the training rows, without it for the validation rows.

        Reveals: z_L of these rows to the label holder.
        """
        step, train_count = moment.step, moment.rows.train_count
        rows = self._receive_rows()  # [holders, rows, d]
        if self._average is not None:
            rows = self._average.add(moment.rows.published(step).numbers, rows)
        if not step.last:
            self._received = rows[:, :train_count]
            self._kept = self.network.draw_dropout(train_count, self._dropout)
            with torch.no_grad():
                z = self.network(self._received, self._kept)
            self.channel.send(self.agreement.label_holder, HIDDEN, z)
        if step.evaluates:
            self._send_evaluated(rows[:, rows.shape[1] - moment.rows.val_count :])

    def _receive_rows(self) -> torch.Tensor:
        holders = self.agreement.publishers
        return torch.stack([self.channel.receive(holder, LOCAL_EMBEDDINGS).to(self._device) for holder in holders])

    def _send_evaluated(self, rows: torch.Tensor) -> None:
        with torch.no_grad():
            z = self.network(rows, [])
        self.channel.send(self.agreement.label_holder, HIDDEN_EVALUATED, z)

    def backward(self, moment: Moment) -> None:
        """From dL/dz_L to its own weights and to the holders' rows.

        Reveals: to each holder, the gradient of its own rows.
        """
        gradient = self.channel.receive(self.agreement.label_holder, HIDDEN_GRADIENT).to(self._device)
        if self._received is None:
            return
        # With `publish = "all"` few rows have a gradient: only these are worth remembering, so they are computed again.
        rows = rows_with_gradient(gradient)
        received = self._received[:, rows].requires_grad_()
        z = self.network(received, [kept[rows.cpu()] for kept in self._kept])
        self._optimiser.descend(z, gradient[rows])
        reached = torch.zeros_like(received) if received.grad is None else received.grad
        for i, holder in enumerate(self.agreement.publishers):
            own = torch.zeros_like(self._received[i])
            own[rows] = reached[i]
            self.channel.send(holder, LOCAL_GRADIENT, own)
        self._received = None

    def keep_best(self) -> None:
        """Remember the hidden layers of now."""
        average = {} if self._average is None else self._average.state()
        self._best = ServerSnapshot(copied(self.network.state_dict()), average)

    def restore_best(self, moment: Moment) -> None:
        """Go back to them."""
        if self._best is None:
            return
        self.network.load_state_dict(self._best.network)
        if self._average is not None:
            self._average.load(self._best.average)

    def predict(self, moment: Moment) -> None:
        """CG2 for all nodes.

        Reveals: z_L of all nodes to the label holder.
        """
        rows = self._receive_rows()
        self._send_evaluated(rows if self._average is None else self._average.where_known(rows))

    def state(self) -> ServerState:
        """Weights, optimiser, the best epoch's weights, and the state of dropout."""
        return ServerState(
            network=copied(self.network.state_dict()),
            optimiser=self._optimiser.state(),
            average={} if self._average is None else self._average.state(),
            dropout=self._dropout.get_state(),
            best=self._best,
        )

    def load(self, state: ServerState) -> None:
        """Go on from it."""
        self.network.load_state_dict(state.network)
        self._optimiser.load(state.optimiser)
        self._best = state.best
        if self._average is not None:
            self._average.load(state.average)
        self._dropout.set_state(state.dropout)

    def close(self) -> None:
        """Nothing runs in the background."""
