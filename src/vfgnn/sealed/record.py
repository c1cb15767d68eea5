"""What a sealed training has opened, and to whom: what stands in records where the paper's protocol has its leak meter.

Everything follows from public sizes; nothing private goes in.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from vfgnn.agreement import DEALER
from vfgnn.privacy.openings import Account, Opening
from vfgnn.records import Traffic
from vfgnn.sealed.rehearsal import script
from vfgnn.sealed.sizes import SealedSizes

Part = Literal["setup", "offline", "online"]
PARTS: tuple[Part, ...] = get_args(Part)
PHASES = ("setup", "offline", "prepare", "step", "finish")  # of the program; a record may have others around it


@dataclass(frozen=True)
class Opened:
    """To the label holder, and to nobody else."""

    to: str
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
            f"{self.to} (label holder): {self.what} of {self.rows - self.validation_rows:,} rows, "
            f"{self.validation_rows:,} validation classes and {self.scalars} inner products; everybody else: nothing"
        )

    def to_json(self) -> dict[str, object]:
        """For records."""
        return {**asdict(self), "allows": list(self.allows)}

    @property
    def allows(self) -> tuple[str, ...]:
        """What can be made of it, in sentences (docs/sealed.md, section 5)."""
        classes = (
            "Classes depend on everybody's columns and edges; that is their purpose. So they tell something about "
            "both, and nothing is done against it."
        )
        scores = f"Scores tell {self.to} more than classes do, edges above all. Every holder agreed to open them."
        return (
            classes,
            *((scores,) if self.what == "scores" else ()),
            "Inner products are sums over all pairs of training rows. With many training rows they single out no "
            f"column, edge or row; with very few they tell {self.to} how much these rows are alike.",
            f"Each further training tells {self.to} as much again. With invented labels it could ask on purpose.",
        )


@dataclass(frozen=True)
class SealedRecord:
    """Of one training."""

    opened: Opened
    bytes: Mapping[Part, int]  # setup, offline (to and from the dealer), online (among the holders)
    rounds: int

    def to_json(self) -> dict[str, object]:
        """For records."""
        return {"opened": self.opened.to_json(), "bytes": dict(self.bytes), "rounds": self.rounds}


def part_of(phase: str, sender: str, receiver: str) -> Part | None:
    """Of a message, by where it stands in a record; None: of no training, but of what is around it."""
    if phase == "setup":
        return "setup"
    if phase not in PHASES:
        return None
    return "offline" if DEALER in (sender, receiver) else "online"


def sent_by_part(traffic: Traffic) -> dict[Part, int]:
    """Payload bytes of these links."""
    sent: dict[Part, int] = dict.fromkeys(PARTS, 0)
    for (phase, sender, receiver), link in traffic.links.items():
        if (part := part_of(phase, sender, receiver)) is not None:
            sent[part] += link.bytes
    return sent


def record_of(sizes: SealedSizes, traffic: Traffic) -> SealedRecord:
    """From what has crossed all links, or those of one party."""
    return SealedRecord(opened_by(sizes), sent_by_part(traffic), script(sizes).rounds)


def asked_of(sizes: SealedSizes, rows: int) -> Opened:
    """A prediction of so many rows with a trained model."""
    what = sizes.agreement.settings.sealed.opens
    columns = 1 if what == "classes" else sizes.agreement.classes
    to = sizes.agreement.label_holder
    return Opened(to=to, what=what, rows=rows, validation_rows=0, columns=columns, scalars=0, trainings=0)


def opened_by(sizes: SealedSizes) -> Opened:
    """A training of these sizes."""
    what = sizes.agreement.settings.sealed.opens
    return Opened(
        to=sizes.agreement.label_holder,
        what=what,
        rows=sizes.nodes + sizes.val * len(sizes.ridges),
        validation_rows=sizes.val * len(sizes.ridges),
        columns=1 if what == "classes" else sizes.agreement.classes,
        scalars=sizes.scalars,
        trainings=1,
    )
