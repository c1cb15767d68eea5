"""SecureGNN's label holder: the only one that sees logits.

Sees the logits of the rows that are trained, evaluated and predicted; z_L it never sees. What leaves, beyond what a
holder sends: what dropout keeps to the other holders, how many rows train and validate to the dealer.
"""

import torch

from vfgnn.agreement import DEALER
from vfgnn.channel import Channel
from vfgnn.model.cg3_labels import OutputLayer
from vfgnn.model.contribution import HolderContribution
from vfgnn.secure_gnn.holder import SecureHolder
from vfgnn.secure_gnn.network import LOGITS, LOGITS_GRADIENT
from vfgnn.secure_gnn.program import DROPOUT_SEED, ROW_COUNTS, ServerlessAgreement
from vfgnn.split.label_holder import LabelHolder
from vfgnn.split.steps import Moment


class OpenedLogits(OutputLayer):
    """In the place of the output layer: the logits have come already."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """The logits, as they were opened."""
        return z


class SecureLabelHolder(SecureHolder, LabelHolder):
    """The label holder: the only one that sees logits."""

    def __init__(self, agreement: ServerlessAgreement, channel: Channel, own: HolderContribution) -> None:
        super().__init__(agreement, channel, own)
        self._logits: torch.Tensor | None = None
        self._logits_gradient: torch.Tensor | None = None

    def _make_output(self) -> OutputLayer:
        return OpenedLogits()

    def _agree(self) -> None:
        """Reveals: to the other holders, what dropout keeps; to the dealer, how many rows train and validate."""
        agreement = self.agreement
        if agreement.settings.publish == "needed":
            counts = torch.tensor([len(self._labels.train), len(self._labels.val)])
            self.channel.send(DEALER, ROW_COUNTS, counts)
        for name in agreement.row_readers:
            self.channel.send(name, DROPOUT_SEED, torch.tensor(list(self._dropout), dtype=torch.uint8))

    def _hand_in(self, logits_share: torch.Tensor) -> list[torch.Tensor]:
        """Nothing leaves: the others' shares come here."""
        opened = super()._hand_in(logits_share)
        self._logits = LOGITS.decode(opened[0]).to(self.agreement.settings.dtype)
        return opened

    def _opened(self) -> torch.Tensor:
        if self._logits is None:
            raise RuntimeError("no logits have come yet")
        return self._logits

    def _hidden(self) -> torch.Tensor:
        """Logits of the training rows."""
        return self._opened()[: self._trained]

    def _hidden_evaluated(self) -> torch.Tensor:
        """Logits of the rows that are evaluated or predicted."""
        return self._opened()[self._trained :]

    def _return_gradient(self, gradient: torch.Tensor) -> None:
        """Nothing leaves yet: it is shared from seeds."""
        self._logits_gradient = gradient

    def _shared_gradient(self, moment: Moment) -> torch.Tensor:
        """Reveals: nothing; the others' shares are uniform, and this one stays."""
        if self._logits_gradient is None:
            raise RuntimeError("the loss comes first")
        share = self._seeds.share(LOGITS_GRADIENT.encode(self._logits_gradient, "the gradient of the logits"))
        self._seeds.next()
        return share
