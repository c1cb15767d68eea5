"""What a holder lets be opened to the label holder: its ledger, its consent, and the limits of the federation file.

Runs at every holder of a sealed federation but the label holder. What is refused, and when a line is written:
privacy/openings.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch

from vfgnn.files import FederationFile, PartyFile
from vfgnn.privacy.openings import Account, OpeningLedger, Policy


@dataclass(frozen=True, repr=False)
class Accounts:
    """Of one party, over all its starts and passes; without a ledger where nothing is counted."""

    ledger: OpeningLedger | None
    policy: Policy
    label_holder: str

    @classmethod
    def of(cls, file: FederationFile, party: PartyFile) -> Self:
        """The ledger is this process's alone until it is closed."""
        counts = file.agreement.sealed and party.data is not None and party.name != file.label_holder
        limits = file.limits
        policy = Policy(
            party.name,
            max_trainings=limits.max_trainings,
            max_opened_rows=limits.max_opened_rows,
            allow_scores=party.allow_scores,
        )
        return cls(OpeningLedger(party.opened_ledger) if counts else None, policy, file.label_holder)

    def account(
        self, *, run: str, start: str, mark: Callable[[torch.Tensor], None] = lambda rows: None
    ) -> Account | None:
        """For one start of a run, or one pass."""
        if self.ledger is None:
            return None
        return Account(self.ledger, self.policy, run, start, self.label_holder, mark)

    def close(self) -> None:
        """Nothing more will be written."""
        if self.ledger is not None:
            self.ledger.close()
