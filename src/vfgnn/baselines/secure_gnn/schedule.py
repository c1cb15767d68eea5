"""SecureGNN's messages: as `parties/schedule.py` has VFGNN's, with no server in them.

    setup      row roles and counts; seeds; the joint layer's first product and reveal
    forward t  joint refresh; masked openings of the hidden layers; logits to the label holder; its decision
    backward t masked openings; to each holder the gradient of its own rows
    predict    as forward, all nodes

Which values are opened follows from the operations that the layers consist of (network.py): each masked one is sent by
every holder to every other. Rows and gradients are shared without a message, from seeds that two holders have.
"""

from collections.abc import Iterable
from functools import partial
from typing import Self

import torch
from pydantic import model_validator

from vfgnn.baselines.secure_gnn.network import Momentum, backward_operations, forward_operations
from vfgnn.config import DEALER, Federation, Positive
from vfgnn.messages import SEED, WORD, Declared, Kind
from vfgnn.mpc.shared import Operation
from vfgnn.parties import schedule
from vfgnn.parties.loop import Messages
from vfgnn.parties.schedule import Rows, Step


class ServerlessFederation(Federation):
    """A federation whose holders do the server's part themselves, on shares."""

    layer_rate: Positive = 0.3  # of the layers' SGD; momentum is the joint layer's, and decay everybody's

    @model_validator(mode="after")
    def _can_be_shared(self) -> Self:
        settings = self.settings
        if len(self.holders) < 2 or len(self.publishers) < len(self.holders):
            raise ValueError("SecureGNN needs two holders or more, and rows of each of them")
        if settings.combine not in ("mean", "concat"):
            raise ValueError(f"SecureGNN combines by mean or concat, not by {settings.combine}")
        if not self.dropout_factor.is_integer():
            raise ValueError(f"SecureGNN needs a whole 1 / (1 - dropout), which {settings.dropout} does not give")
        if settings.batch_rows is not None:
            raise ValueError("SecureGNN trains on all training rows at once: leave batch_rows out")
        if not settings.privacy.off:
            raise ValueError("SecureGNN publishes nothing that could be noised: leave [settings.privacy] out")
        return self

    @property
    def others(self) -> tuple[str, ...]:
        """Everyone but the label holder; there is always a dealer, and never a server."""
        return (DEALER, *(name for name in self.holder_names if name != self.label_holder))

    @property
    def row_readers(self) -> tuple[str, ...]:
        """The other holders."""
        return tuple(name for name in self.holder_names if name != self.label_holder)

    @property
    def dropout_factor(self) -> float:
        """1 / (1 - p): what is kept is multiplied by it."""
        return 1 / (1 - self.settings.dropout)

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the combined rows, of each hidden layer, and the classes."""
        dim, combined = self.settings.dim, len(self.holders) if self.settings.combine == "concat" else 1
        return (dim * combined, *[dim] * self.settings.hidden_layers, self.classes)

    @property
    def step(self) -> Momentum:
        """How the layers' weights move."""
        return Momentum(self.layer_rate, self.settings.joint_momentum, self.settings.weight_decay)

    @property
    def corrected(self) -> str:
        """The holder that receives the dealer's corrections."""
        return self.holder_names[-1]


def messages_of(federation: ServerlessFederation) -> Messages:
    """What each phase of a run declares."""
    return Messages(
        setup=partial(setup_messages, federation),
        forward=partial(forward_messages, federation),
        backward=partial(backward_messages, federation),
        predict=partial(predict_messages, federation),
    )


def batch_size(step: Step, rows: Rows) -> int:
    """Rows that go through the layers together: those that train, with dropout, then those that are evaluated."""
    return rows.train_count * (not step.last) + rows.val_count * step.evaluates


def setup_messages(federation: ServerlessFederation) -> list[Declared]:
    """Before step 0."""
    label_holder, holders = federation.label_holder, federation.holder_names
    messages: list[Declared] = []
    if federation.settings.publish == "needed":
        messages.append(Declared(Kind.ROW_COUNTS, label_holder, DEALER, WORD, (2,)))
    messages += [Declared(Kind.DROPOUT_SEED, label_holder, reader, *SEED) for reader in federation.row_readers]
    messages += [Declared(Kind.MATERIAL_SEED, DEALER, holder, *SEED) for holder in holders]
    pairs = [(one, other) for one in holders for other in holders if one != other]
    messages += [Declared(Kind.SHARING_SEED, one, other, *SEED) for one, other in pairs]
    return messages + schedule.setup_messages(federation)


def forward_messages(federation: ServerlessFederation, step: Step, rows: Rows) -> list[Declared]:
    """Up to the label holder's decision."""
    messages = schedule.joint_refresh(federation) if step.refresh else []
    messages += _layers(federation, batch_size(step, rows))
    if step.evaluates:
        messages += [
            Declared(Kind.CONTROL, federation.label_holder, name, torch.uint8, (1,)) for name in federation.others
        ]
    return messages


def backward_messages(federation: ServerlessFederation, rows: Rows) -> list[Declared]:
    """From the loss back to each holder."""
    holders, shape = federation.holder_names, (rows.train_count, federation.settings.dim)
    messages = _operations(federation, backward_operations(federation.widths, rows.train_count))
    pairs = [(one, other) for one in holders for other in holders if one != other]
    return messages + [Declared(Kind.GRADIENT_SHARE, one, other, WORD, shape) for one, other in pairs]


def predict_messages(federation: ServerlessFederation) -> list[Declared]:
    """All nodes, once, at the end."""
    return _layers(federation, federation.nodes)


def largest(federation: ServerlessFederation) -> dict[tuple[str, str], tuple[int, int]]:
    """Every directed link of a run: the most messages on it in one phase, and the bytes of its largest message."""
    rows = Rows.everything(federation.nodes)
    middle = Step(1, refresh=federation.collaborative, trains_joint=True, evaluates=True, last=False)
    phases = (
        setup_messages(federation),
        forward_messages(federation, middle, rows) + backward_messages(federation, rows),
        schedule.end_messages(federation),
    )
    return schedule.largest_on_links(phases)


def _layers(federation: ServerlessFederation, rows: int) -> list[Declared]:
    logits, label_holder = (rows, federation.classes), federation.label_holder
    messages = _operations(federation, forward_operations(federation.widths, rows))
    return messages + [Declared(Kind.LOGITS_SHARE, name, label_holder, WORD, logits) for name in federation.row_readers]


def _operations(federation: ServerlessFederation, operations: Iterable[Operation]) -> list[Declared]:
    """The dealer's correction of each operation, and what is opened in it among all holders."""
    holders, messages = federation.holder_names, []
    for operation in operations:
        messages.append(Declared(Kind.MATERIAL_CORRECTION, DEALER, federation.corrected, WORD, operation.correction))
        for shape in operation.opened:
            pairs = [(one, other) for one in holders for other in holders if one != other]
            messages += [Declared(Kind.MASKED_SHARE, one, other, WORD, shape) for one, other in pairs]
    return messages
