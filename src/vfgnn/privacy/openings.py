"""What a holder has let be opened to a label holder by the sealed protocol, over all runs on its data, and its limits.

A line of the ledger is a frozen `Opening`: a training, or a prediction of new nodes. It is on the disk before this
holder's first share of anything that is opened leaves. What is killed before that costs nothing. What is killed later
has its line, and goes on without another one: whatever it tells again is the share that this holder told, or would have
told, before (sealed/training.py). So a line counts a training, however often it was interrupted.
Limits are the federation's; consent to scores is each holder's own. What they do not allow is refused by name before
anything is opened. Runs at every holder but the label holder, which may ask for whatever the others allow.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import torch

from vfgnn.counted_chain import CountedChain, read_entries
from vfgnn.errors import LedgerRefused, PolicyRefused

WHAT = "ledger of openings"


@dataclass(frozen=True)
class Opening:
    """What one training, or one prediction, opens to the label holder, and to nobody else."""

    run: str
    start: str  # of the run, or the pass
    label_holder: str
    kind: Literal["training", "prediction"]
    what: Literal["classes", "scores"]
    rows: int  # all that follow
    validation_rows: int  # their classes, once for each ridge; the others are nodes, each once for the model
    columns: int  # of each row: 1 for a class
    scalars: int  # inner products of the basis over the training rows


class OpeningLedger:
    """A holder's own; without a path in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self.openings: list[Opening] = []
        self._chain: CountedChain | None = None
        if path is None:
            return
        chain = CountedChain(path, WHAT, LedgerRefused, lost="what was opened cannot be taken back")
        try:
            self.openings = read_openings(path) if path.is_file() else []
        except BaseException:
            chain.close()
            raise
        self._chain = chain

    def charge(self, opening: Opening) -> None:
        """Write it down; when this returns, it is on the disk, and a share may leave."""
        if self._chain is not None:
            self._chain.append(asdict(opening))
        self.openings.append(opening)

    def close(self) -> None:
        """Nothing more will be written."""
        if self._chain is not None:
            self._chain.close()


def read_openings(path: Path) -> list[Opening]:
    """The lines of a ledger, each checked against the one before."""
    return list(read_entries(path, WHAT, LedgerRefused, Opening))


@dataclass(frozen=True)
class Policy:
    """What may be opened."""

    holder: str  # whose it is
    max_trainings: int | None = None  # over all runs with one label holder; None: any number
    max_opened_rows: int | None = None
    allow_scores: bool = True


@dataclass(repr=False)
class Account:
    """A holder's, for one start of a run or one pass."""

    ledger: OpeningLedger
    policy: Policy
    run: str
    start: str
    label_holder: str
    mark: Callable[[torch.Tensor], None] = lambda rows: None  # write down that these rows of a model are opened now
    _coming: tuple[Opening, torch.Tensor] | None = field(default=None, init=False)
    _charged: bool = field(default=False, init=False)

    def expect(self, coming: Opening, rows: torch.Tensor, *, goes_on: bool = False) -> None:
        """Refuse what the policy does not allow; `rows`: of a trained model, that are asked for.

        `goes_on`: from what this holder computed before it was interrupted, so that nothing is opened anew.
        """
        policy, before = self.policy, [one for one in self.ledger.openings if one.label_holder == self.label_holder]
        if coming.what == "scores" and not policy.allow_scores:
            raise PolicyRefused(
                f"{policy.holder} does not allow scores to be opened",
                expected="sealed.opens = classes, or allow_scores = true in its party.toml",
                hint="scores of many rows tell edges (docs/sealed.md): open classes, or ask it for its consent",
            )
        self._coming = coming, rows
        self._charged = self._is_charged(before, coming, goes_on=goes_on)
        if self._charged:
            return
        trainings = sum(one.kind == "training" for one in before) + (coming.kind == "training")
        rows_opened = sum(one.rows for one in before) + coming.rows
        self._refuse_beyond("max_trainings", policy.max_trainings, trainings)
        self._refuse_beyond("max_opened_rows", policy.max_opened_rows, rows_opened)

    def _is_charged(self, before: list[Opening], coming: Opening, *, goes_on: bool) -> bool:
        """Whether this very training, or prediction, has its line. The label holder names runs: not one name twice."""
        run, again = coming.kind == "training", [one for one in before if one.kind == coming.kind]
        if run and not goes_on and any(one.run == self.run for one in again):
            raise PolicyRefused(
                f"{self.policy.holder} refuses to begin run {self.run} anew: something of it has been opened",
                expected="a run that goes on where it was interrupted, or a new one",
                where="this ledger of openings",
                hint="start all parties with --fresh to begin a new run",
            )
        return goes_on and any(one.run == self.run if run else one.start == self.start for one in again)

    def _refuse_beyond(self, limit: str, most: int | None, reached: int) -> None:
        if most is not None and reached > most:
            raise PolicyRefused(
                f"{self.policy.holder} refuses to open more: {limit} = {most} would be exceeded",
                expected=f"at most {most} over all runs with {self.label_holder}",
                got=f"{reached} with this one",
                where="this ledger of openings",
                hint="all parties must agree on a larger limit in [limits]; what was opened stays opened",
            )

    def charge(self) -> None:
        """Before a share of anything that is opened: mark it, and write down once what is opened in all."""
        if self._coming is None:
            raise PolicyRefused(f"{self.policy.holder} was not told what is to be opened")
        coming, rows = self._coming
        self.mark(rows)
        if not self._charged:
            self.ledger.charge(coming)
            self._charged = True
