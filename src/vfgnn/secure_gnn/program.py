"""SecureGNN as a table: the paper's protocol with no server in it.

    setup      row roles and counts; seeds; the joint layer's first product and reveal
    refresh t  as in the paper's protocol
    forward t  masked openings of the hidden layers; logits to the label holder
    decide t   its decision
    backward t masked openings; to each holder the gradient of its own rows
    predict    as forward, all nodes

Which values are opened follows from the operations that the layers consist of (network.py): each masked one is sent by
every holder to every other. Rows and gradients are shared without a message, from seeds that two holders have.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Self

from pydantic import ValidationError, model_validator

from vfgnn.agreement import DEALER, Agreement
from vfgnn.explained import explain
from vfgnn.messages import SEED, WORD, Declared, Kind
from vfgnn.mpc.shared import Names, Operation
from vfgnn.mpc.shared import messages as operation_messages
from vfgnn.program import Phase, Program
from vfgnn.secure_gnn.network import Momentum, backward_operations, forward_operations
from vfgnn.settings import Positive
from vfgnn.split import program as split
from vfgnn.split.steps import Moment, Rows, Step

ROW_COUNTS = Kind("row_counts", "how many rows train and how many validate")
DROPOUT_SEED = Kind("dropout_seed", "what dropout keeps, which is public among the holders")
MATERIAL_SEED = Kind("material_seed", "its shares of all masks and products, which only it and the dealer can expand")
MATERIAL_CORRECTION = Kind("material_correction", "nothing: its share of what follows from the masks is uniform to it")
SHARING_SEED = Kind("sharing_seed", "its shares of what the sender will share, which are uniform")
MASKED_SHARE = Kind("masked_share", "a masked value, from the sum of all shares: uniform to all of them")
LOGITS_SHARE = Kind("logits_share", "the logits, from the sum of all shares")
GRADIENT_SHARE = Kind("gradient_share", "the gradient of its own rows, from the sum of all shares")


class ServerlessAgreement(Agreement):
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
    def parties(self) -> tuple[str, ...]:
        """Everyone who takes part; there is always a dealer, and never a server."""
        return (DEALER, *self.holder_names)

    @property
    def exposed_publishers(self) -> tuple[str, ...]:
        """Nobody: rows and z_L stay shared, and the label holder sees logits."""
        return ()

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
    def scales(self) -> tuple[float, ...]:
        """How many times as wide as usual each layer's weights begin."""
        scales = [1.0] * (len(self.widths) - 1)
        if self.settings.hidden_layers:
            scales[0] = self.settings.head_scale
        scales[-1] *= self.settings.output_scale
        return tuple(scales)

    @property
    def step(self) -> Momentum:
        """How the layers' weights move."""
        return Momentum(self.layer_rate, self.settings.joint_momentum, self.settings.weight_decay)

    @property
    def corrected(self) -> str:
        """The holder that receives the dealer's corrections."""
        return self.holder_names[-1]


def serverless(agreement: Agreement, **more: object) -> ServerlessAgreement:
    """The same federation without its server; `more` is what only SecureGNN has."""
    try:
        return ServerlessAgreement.model_validate({**agreement.model_dump(), **more})
    except ValidationError as error:
        raise explain(error, "SecureGNN", ServerlessAgreement) from None


def training(agreement: ServerlessAgreement) -> Program[Moment]:
    """From setup to the predictions with the best epoch's weights."""
    known = split.training(agreement)
    messages: dict[str, Callable[[Moment], list[Declared]]] = {
        "setup": lambda _: setup_messages(agreement),
        "forward": partial(forward_messages, agreement),
        "backward": partial(backward_messages, agreement),
        "predict": lambda _: _layers(agreement, agreement.nodes),
    }

    def changed(phase: Phase[Moment]) -> Phase[Moment]:
        return replace(phase, messages=messages.get(phase.name, phase.messages))

    table = [
        changed(row) if isinstance(row, Phase) else replace(row, phases=tuple(map(changed, row.phases)))
        for row in known.rows
    ]
    return replace(known, name="SecureGNN", table=tuple(table))


def batch_size(step: Step, rows: Rows) -> int:
    """Rows that go through the layers together: those that train, with dropout, then those that are evaluated."""
    return rows.train_count * (not step.last) + rows.val_count * step.evaluates


def setup_messages(agreement: ServerlessAgreement) -> list[Declared]:
    """Before step 0."""
    label_holder, holders = agreement.label_holder, agreement.holder_names
    messages: list[Declared] = []
    if agreement.settings.publish == "needed":
        messages.append(Declared(ROW_COUNTS, label_holder, DEALER, WORD, (2,)))
    messages += [Declared(DROPOUT_SEED, label_holder, reader, *SEED) for reader in agreement.row_readers]
    messages += [Declared(MATERIAL_SEED, DEALER, holder, *SEED) for holder in holders]
    pairs = [(one, other) for one in holders for other in holders if one != other]
    messages += [Declared(SHARING_SEED, one, other, *SEED) for one, other in pairs]
    return messages + split.setup_messages(agreement)


def forward_messages(agreement: ServerlessAgreement, moment: Moment) -> list[Declared]:
    """From the holders' rows, as shares, to the logits."""
    return _layers(agreement, batch_size(moment.step, moment.rows))


def backward_messages(agreement: ServerlessAgreement, moment: Moment) -> list[Declared]:
    """From the loss back to each holder."""
    count = moment.rows.train_count
    holders, shape = agreement.holder_names, (count, agreement.settings.dim)
    messages = _operations(agreement, backward_operations(agreement.widths, count))
    pairs = [(one, other) for one in holders for other in holders if one != other]
    return messages + [Declared(GRADIENT_SHARE, one, other, WORD, shape) for one, other in pairs]


def _layers(agreement: ServerlessAgreement, rows: int) -> list[Declared]:
    logits, label_holder = (rows, agreement.classes), agreement.label_holder
    messages = _operations(agreement, forward_operations(agreement.widths, rows))
    return messages + [Declared(LOGITS_SHARE, name, label_holder, WORD, logits) for name in agreement.row_readers]


def names_of(agreement: ServerlessAgreement) -> Names:
    """Who computes on shares, and what their messages are called."""
    return Names(agreement.holder_names, MATERIAL_CORRECTION, MASKED_SHARE)


def _operations(agreement: ServerlessAgreement, operations: Iterable[Operation]) -> list[Declared]:
    return operation_messages(operations, names_of(agreement))
