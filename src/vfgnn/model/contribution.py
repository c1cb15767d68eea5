"""What a holder brings to its role, beyond what every party does. Runs at holders only; nothing of it is ever sent."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from vfgnn.contribution import Contribution, Own
from vfgnn.data.holdings import Holding, Labels
from vfgnn.errors import ConfigError
from vfgnn.privacy.copies import MessageCopies
from vfgnn.privacy.ledger import Ledger
from vfgnn.privacy.openings import Account
from vfgnn.records import EpochMetrics


@dataclass(frozen=True, repr=False, kw_only=True)
class HolderContribution(Contribution):
    """A holder's."""

    holding: Holding
    labels: Labels | None = None  # the label holder's
    gnn: Own | None = None  # its own, for `gnn = "own"`
    mechanism: Own | None = None  # its own noise on its rows
    ledger: Ledger | None = None  # None: one in memory
    copies: MessageCopies | None = None  # of noised messages, for steps that are done again; None: none are kept
    account: Account | None = None  # sealed: of what is opened; None: nothing is counted, in a simulation
    wanted: torch.Tensor | None = None  # sealed, label holder: new rows that it asks for; None: all of them
    on_epoch: Callable[[EpochMetrics], None] | None = None  # the label holder's metrics, as they come

    @property
    def known_labels(self) -> Labels:
        """What the label holder cannot be without."""
        if self.labels is None:
            raise ConfigError("a label holder without labels", expected="[data] labels = ... in party.toml")
        return self.labels
