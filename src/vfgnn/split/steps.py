"""Steps, batches and rows: when something happens in a run, and which rows it concerns.

A pure function of the agreement and of the row roles that the label holder announces. Nothing private goes in.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

import torch

from vfgnn import randomness
from vfgnn.agreement import Agreement
from vfgnn.errors import ConfigError
from vfgnn.privacy.ledger import ALL, OTHER
from vfgnn.privacy.ledger import TRAIN as TRAINING
from vfgnn.privacy.ledger import VAL as VALIDATION
from vfgnn.privacy.publishing import affordable_epochs
from vfgnn.rows import RowSet

TRAIN, VAL = 1, 2  # codes in ROW_ROLES; 0 is every other row
PUBLIC_SEED = bytes(32)  # of the order of batches, which all parties compute and which hides nothing


@dataclass(frozen=True)
class Step:
    """One epoch of training, or one batch of it; the last step only evaluates the final weights."""

    number: int
    refresh: bool  # the joint weights have moved: compute h0 anew
    trains_joint: bool  # they will move in this step
    evaluates: bool
    last: bool
    opens: bool = True  # the first batch of its epoch
    closes: bool = True  # the last one: the joint weights take their step
    share: float = 1.0  # of the epoch's training rows


NO_STEP = Step(number=0, refresh=False, trains_joint=False, evaluates=False, last=True)
"""Outside of steps."""


@dataclass(frozen=True)
class Rows:
    """The rows a step needs; with `publish = "all"` these are all nodes."""

    train: RowSet
    val: RowSet

    @staticmethod
    def all(nodes: int) -> "Rows":
        """What `publish = "all"` needs, whoever asks."""
        return Rows(RowSet.all(nodes), RowSet.all(nodes))

    @staticmethod
    def from_roles(roles: torch.Tensor) -> "Rows":
        """Read the label holder's announcement."""
        train, val = ((roles == code).nonzero()[:, 0] for code in (TRAIN, VAL))
        return Rows(RowSet(train), RowSet(val))

    @property
    def everything(self) -> bool:
        """Whether all nodes are published in every step."""
        return self.train.everything

    def published(self, step: Step) -> RowSet:
        """Training rows first, then the validation rows if the step evaluates."""
        if self.everything:
            return self.train
        wanted = [self.train] * (not step.last) + [self.val] * step.evaluates
        return reduce(RowSet.then, wanted)

    def classes(self, step: Step) -> tuple[str, ...]:
        """What `published` holds, as the privacy ledger counts it.

        A training row is in one batch of an epoch, so its class is charged with the first one and not again.
        """
        if self.everything:
            return (ALL,)
        return (*(TRAINING,) * (step.opens and not step.last), *(VALIDATION,) * step.evaluates)

    def classes_of(self, chosen: torch.Tensor) -> tuple[str, ...]:
        """The classes that some rows, by a mask over all nodes, belong to."""
        if self.everything:
            return (ALL,)
        train, val, others = self.train.numbers, self.val.numbers, chosen.clone()
        others[train] = others[val] = False
        held = ((TRAINING, chosen[train]), (VALIDATION, chosen[val]), (OTHER, others))
        return tuple(name for name, part in held if bool(part.any()))

    @property
    def train_count(self) -> int:
        """Rows of z_L and of the gradients."""
        return len(self.train)

    @property
    def val_count(self) -> int:
        """Rows of z_L that are evaluated."""
        return len(self.val)

    def published_count(self, step: Step) -> int:
        """Rows that each holder publishes in `step`."""
        return len(self.published(step))


@dataclass(frozen=True)
class Moment:
    """What a party knows of sizes at one point of a run."""

    rows: Rows
    step: Step = NO_STEP
    pair_counts: Mapping[str, int] = field(default_factory=dict)  # lengths of the noised edge lists it sends or gets

    @property
    def number(self) -> int:
        """Of the step, for records."""
        return self.step.number

    @property
    def opens(self) -> bool:
        """Whether this is the first batch of its step."""
        return self.step.opens

    @property
    def closes(self) -> bool:
        """Whether this is the last one."""
        return self.step.closes


def trained_epochs(agreement: Agreement) -> int:
    """As many as the settings ask for and the privacy budget allows."""
    settings = agreement.settings
    epochs = affordable_epochs(settings.privacy, settings.epochs)
    if epochs < 1:
        raise ConfigError(
            "the privacy budget does not allow a single epoch",
            expected=f"a budget for two releases of a row at least, at delta {settings.privacy.delta:g}",
            got=f"budget_epsilon = {settings.privacy.budget_epsilon}",
            hint="`vfgnn privacy plan` tells what a budget allows",
        )
    return epochs


def steps(agreement: Agreement) -> Iterator[Step]:
    """Steps 0 .. epochs. Step t works with the weights after t updates, and evaluates them before it moves them."""
    settings, epochs = agreement.settings, trained_epochs(agreement)
    joint = min(settings.trained_joint_epochs, epochs) if agreement.collaborative else 0
    for t in range(epochs + 1):
        last = t == epochs
        yield Step(
            number=t,
            refresh=0 < t <= joint,
            trains_joint=t < joint,
            evaluates=last or (t > 0 and t % settings.evaluate_every == 0),
            last=last,
        )


def moments(agreement: Agreement, known: Moment, begin: int) -> Iterator[Moment]:
    """Every batch of every step from `begin` on."""
    for step in steps(agreement):
        if step.number >= begin:
            yield from batches(agreement, replace(known, step=step))


def batches(agreement: Agreement, whole: Moment) -> Iterator[Moment]:
    """A step cut into batches of training rows, with the rows that each needs; one, if `batch_rows` says nothing else.

    The order is drawn from public values, anew in each epoch and the same after a restart, so nobody sends it. h0 is
    refreshed and the weights are evaluated in the first batch. Who does not know the rows (the dealer, a holder that
    publishes nothing) takes part in the refresh alone, and never hears how many batches there are.
    """
    size, step, train = agreement.settings.batch_rows, whole.step, whole.rows.train
    if size is None or train.everything or step.last or len(train) <= size:
        yield whole
        return
    public = randomness.generator(PUBLIC_SEED, f"batches of epoch {step.number}")
    order = train.numbers[torch.randperm(len(train), generator=public)]
    parts = torch.tensor_split(order, -(-len(train) // size))  # of equal size: a small last one would weigh too much
    for number, part in enumerate(parts):
        opens = number == 0
        batch = replace(
            step,
            refresh=step.refresh and opens,
            evaluates=step.evaluates and opens,
            opens=opens,
            closes=number == len(parts) - 1,
            share=len(part) / len(train),
        )
        yield replace(whole, step=batch, rows=replace(whole.rows, train=RowSet(part)))


def end_step(agreement: Agreement) -> int:
    """The number after the last step: the state that a party ends with."""
    return trained_epochs(agreement) + 1


def checkpoint_steps(agreement: Agreement, every: int) -> list[int]:
    """The steps at whose beginning every party writes its state, about `every` steps apart.

    Only right after an evaluation: all have then heard the label holder, so nobody is ahead by more than one of them.
    """
    chosen, evaluated = [0], False
    for step in steps(agreement):
        if evaluated and step.number - chosen[-1] >= every:
            chosen.append(step.number)
        evaluated = step.evaluates
    return [*chosen, end_step(agreement)]
