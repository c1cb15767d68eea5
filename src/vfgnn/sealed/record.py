"""What a sealed training has opened, and to whom: what stands in records where the paper's protocol has its leak meter.

Everything follows from public sizes; nothing private goes in.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from vfgnn.agreement import DEALER
from vfgnn.privacy.openings import Account, Opening
from vfgnn.records import Traffic
from vfgnn.sealed.rehearsal import script
from vfgnn.sealed.sizes import SealedSizes


@dataclass(frozen=True)
class Opened:
    """To the label holder, and to nobody else."""

    what: Literal["classes", "scores"]
    rows: int  # all that follow
    validation_rows: int  # their classes, once for each ridge; the others are the nodes, each once for the model
    columns: int  # of each row: 1 for a class
    scalars: int  # inner products of the basis over the training rows
    trainings: int  # 0: a prediction with a trained model

    def opening(self, account: Account) -> Opening:
        """As a holder writes it down."""
        return Opening(
            run=account.run,
            start=account.start,
            label_holder=account.label_holder,
            kind="training" if self.trainings else "prediction",
            what=self.what,
            rows=self.rows,
            validation_rows=self.validation_rows,
            columns=self.columns,
            scalars=self.scalars,
        )

    def explain(self) -> str:
        """One sentence for people."""
        return (
            f"{self.what} of {self.rows - self.validation_rows:,} rows, {self.validation_rows:,} validation classes "
            f"and {self.scalars} inner products, to the label holder alone; to everybody else nothing"
        )


@dataclass(frozen=True)
class SealedRecord:
    """Of one training."""

    opened: Opened
    bytes: Mapping[str, int]  # setup, offline (to and from the dealer), online (among the holders)
    rounds: int

    def to_json(self) -> dict[str, object]:
        """For records."""
        return {"opened": asdict(self.opened), "bytes": dict(self.bytes), "rounds": self.rounds}


def record_of(sizes: SealedSizes, traffic: Traffic) -> SealedRecord:
    """From what has crossed all links."""
    sent = {"setup": 0, "offline": 0, "online": 0}
    for (phase, sender, receiver), link in traffic.links.items():
        dealt = DEALER in (sender, receiver)
        sent["setup" if phase == "setup" else "offline" if dealt else "online"] += link.bytes
    return SealedRecord(opened_by(sizes), sent, script(sizes).rounds)


def asked_of(sizes: SealedSizes, rows: int) -> Opened:
    """A prediction of so many rows with a trained model."""
    what = sizes.agreement.settings.sealed.opens
    columns = 1 if what == "classes" else sizes.agreement.classes
    return Opened(what=what, rows=rows, validation_rows=0, columns=columns, scalars=0, trainings=0)


def opened_by(sizes: SealedSizes) -> Opened:
    """A training of these sizes."""
    what = sizes.agreement.settings.sealed.opens
    return Opened(
        what=what,
        rows=sizes.nodes + sizes.val * len(sizes.ridges),
        validation_rows=sizes.val * len(sizes.ridges),
        columns=1 if what == "classes" else sizes.agreement.classes,
        scalars=sizes.scalars,
        trainings=1,
    )
