"""Which messages there are, in which phase, from whom to whom, and how large: a pure function of the federation.

    setup      row roles; lengths of noised edge lists; the joint layer's first product and reveal
    edges      noised edge lists among the holders (`publish_noised_edges`)
    forward t  joint refresh; published rows; z_L; the label holder's decision
    backward t dL/dz_L; the gradient of each holder's own rows; with `batch_rows` both once per batch
    new nodes  h0 over nodes that were not there in training, before a prediction
    predict    published rows and z_L of all nodes, from the best epoch's weights
    pass       under `vfgnn serve`, between predictions: the label holder's word that it wants one
    end        all say that they have what they need, then all may go

Every party computes this table by itself and its channel holds it to it. Nothing private goes in or comes out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch

from vfgnn import randomness
from vfgnn.config import DEALER, SERVER, Federation
from vfgnn.errors import ConfigError, ProtocolError
from vfgnn.messages import SEED, WORD, Declared, Kind
from vfgnn.privacy.ledger import ALL, OTHER
from vfgnn.privacy.ledger import TRAIN as TRAINING
from vfgnn.privacy.ledger import VAL as VALIDATION
from vfgnn.privacy.publishing import affordable_epochs

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


NEW_NODES = Step(number=0, refresh=True, trains_joint=False, evaluates=False, last=True)
"""In the place of a step where h0 is computed for a prediction alone."""


@dataclass(frozen=True)
class Rows:
    """The rows a step needs; None stands for all nodes (`publish = "all"`)."""

    train: torch.Tensor | None
    val: torch.Tensor | None
    nodes: int

    @staticmethod
    def everything(nodes: int) -> "Rows":
        """What `publish = "all"` needs, whoever asks."""
        return Rows(None, None, nodes)

    @staticmethod
    def from_roles(roles: torch.Tensor) -> "Rows":
        """Read the label holder's announcement."""
        return Rows((roles == TRAIN).nonzero()[:, 0], (roles == VAL).nonzero()[:, 0], len(roles))

    def published(self, step: Step) -> torch.Tensor | None:
        """Training rows first, then the validation rows if the step evaluates."""
        if self.train is None or self.val is None:
            return None
        wanted = [self.train] * (not step.last) + [self.val] * step.evaluates
        return torch.cat(wanted)

    def classes(self, step: Step) -> tuple[str, ...]:
        """What `published` holds, as the privacy ledger counts it.

        A training row is in one batch of an epoch, so its class is charged with the first one and not again.
        """
        if self.train is None:
            return (ALL,)
        return (*(TRAINING,) * (step.opens and not step.last), *(VALIDATION,) * step.evaluates)

    def classes_of(self, chosen: torch.Tensor) -> tuple[str, ...]:
        """The classes that some rows, by a mask over all nodes, belong to."""
        if self.train is None or self.val is None:
            return (ALL,)
        others = chosen.clone()
        others[self.train] = others[self.val] = False
        held = ((TRAINING, chosen[self.train]), (VALIDATION, chosen[self.val]), (OTHER, others))
        return tuple(name for name, part in held if bool(part.any()))

    @property
    def train_count(self) -> int:
        """Rows of z_L and of the gradients."""
        return self.nodes if self.train is None else len(self.train)

    @property
    def val_count(self) -> int:
        """Rows of z_L that are evaluated."""
        return self.nodes if self.val is None else len(self.val)

    def published_count(self, step: Step) -> int:
        """Rows that each holder publishes in `step`."""
        rows = self.published(step)
        return self.nodes if rows is None else len(rows)


def trained_epochs(federation: Federation) -> int:
    """As many as the settings ask for and the privacy budget allows."""
    settings = federation.settings
    epochs = affordable_epochs(settings.privacy, settings.epochs)
    if epochs < 1:
        raise ConfigError(
            "the privacy budget does not allow a single epoch",
            expected=f"a budget for two releases of a row at least, at delta {settings.privacy.delta:g}",
            got=f"budget_epsilon = {settings.privacy.budget_epsilon}",
            hint="`vfgnn privacy plan` tells what a budget allows",
        )
    return epochs


def steps(federation: Federation) -> Iterator[Step]:
    """Steps 0 .. epochs. Step t works with the weights after t updates, and evaluates them before it moves them."""
    settings, epochs = federation.settings, trained_epochs(federation)
    joint = min(settings.trained_joint_epochs, epochs) if federation.collaborative else 0
    for t in range(epochs + 1):
        last = t == epochs
        yield Step(
            number=t,
            refresh=0 < t <= joint,
            trains_joint=t < joint,
            evaluates=last or (t > 0 and t % settings.evaluate_every == 0),
            last=last,
        )


def batches(federation: Federation, step: Step, rows: Rows) -> Iterator[tuple[Step, Rows]]:
    """A step cut into batches of training rows, with the rows that each needs; one, if `batch_rows` says nothing else.

    The order is drawn from public values, anew in each epoch and the same after a restart, so nobody sends it. h0 is
    refreshed and the weights are evaluated in the first batch. Who does not know the rows (the dealer, a holder that
    publishes nothing) takes part in the refresh alone, and never hears how many batches there are.
    """
    size, train = federation.settings.batch_rows, rows.train
    if size is None or train is None or step.last or len(train) <= size:
        yield step, rows
        return
    public = randomness.generator(PUBLIC_SEED, f"batches of epoch {step.number}")
    order = train[torch.randperm(len(train), generator=public)]
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
        yield batch, replace(rows, train=part)


def setup_messages(federation: Federation) -> list[Declared]:
    """Before step 0."""
    roles: list[Declared] = []
    if federation.settings.publish == "needed":
        roles = [
            Declared(Kind.ROW_ROLES, federation.label_holder, reader, torch.uint8, (federation.nodes,))
            for reader in federation.row_readers
        ]
    counts = [Declared(Kind.PAIR_COUNT, owner, reader, WORD, (1,)) for owner, reader in federation.edge_links]
    return roles + counts + (joint_setup(federation) if federation.collaborative else [])


def edge_messages(federation: Federation, pair_counts: Mapping[str, int]) -> list[Declared]:
    """Noised edge lists, as long as their owners said; a party knows the counts that concern it."""
    bound = federation.settings.privacy.noised_edge_bound
    for name, count in pair_counts.items():
        if not 0 <= count <= bound:
            raise ProtocolError("a noised edge list of no possible length", expected=f"0 to {bound}", where=name)
    return [
        Declared(Kind.NOISED_EDGES, owner, reader, WORD, (pair_counts[owner],))
        for owner, reader in federation.edge_links
        if owner in pair_counts
    ]


def forward_messages(federation: Federation, step: Step, rows: Rows) -> list[Declared]:
    """Up to the label holder's decision."""
    label_holder, dtype, width = federation.label_holder, federation.settings.dtype, federation.hidden_dim
    messages = joint_refresh(federation) if step.refresh else []
    messages += _published(federation, rows.published_count(step))
    if not step.last:
        messages.append(Declared(Kind.HIDDEN, SERVER, label_holder, dtype, (rows.train_count, width)))
    if step.evaluates:
        messages.append(Declared(Kind.HIDDEN_EVALUATED, SERVER, label_holder, dtype, (rows.val_count, width)))
        messages += [Declared(Kind.CONTROL, label_holder, party, torch.uint8, (1,)) for party in federation.others]
    return messages


def backward_messages(federation: Federation, rows: Rows) -> list[Declared]:
    """From the loss back to each holder."""
    label_holder, dtype = federation.label_holder, federation.settings.dtype
    width = (rows.train_count, federation.hidden_dim)
    local = (rows.train_count, federation.settings.dim)
    return [
        Declared(Kind.HIDDEN_GRADIENT, label_holder, SERVER, dtype, width),
        *(Declared(Kind.LOCAL_GRADIENT, SERVER, holder, dtype, local) for holder in federation.publishers),
    ]


def predict_messages(federation: Federation) -> list[Declared]:
    """All nodes, once, at the end."""
    shape = (federation.nodes, federation.hidden_dim)
    hidden = Declared(Kind.HIDDEN_EVALUATED, SERVER, federation.label_holder, federation.settings.dtype, shape)
    return [*_published(federation, federation.nodes), hidden]


def new_node_messages(federation: Federation) -> list[Declared]:
    """h0 of all nodes, some of them new, from the trained shared weights."""
    refresh = joint_refresh(federation) if federation.settings.trained_joint_epochs else []
    return joint_setup(federation) + refresh


def pass_messages(federation: Federation) -> list[Declared]:
    """Of a federation that stays up, before each prediction."""
    leader = federation.label_holder
    return [Declared(Kind.PASS, leader, party, torch.uint8, (1,)) for party in federation.others]


def end_step(federation: Federation) -> int:
    """The number after the last step: the state that a party ends with."""
    return trained_epochs(federation) + 1


def checkpoint_steps(federation: Federation, every: int) -> list[int]:
    """The steps at whose beginning every party writes its state, about `every` steps apart.

    Only right after an evaluation: all have then heard the label holder, so nobody is ahead by more than one of them.
    """
    chosen, evaluated = [0], False
    for step in steps(federation):
        if evaluated and step.number - chosen[-1] >= every:
            chosen.append(step.number)
        evaluated = step.evaluates
    return [*chosen, end_step(federation)]


def end_messages(federation: Federation) -> list[Declared]:
    """Nobody leaves before everybody's final state is on disk."""
    leader, others = federation.label_holder, federation.others
    done = [Declared(Kind.DONE, party, leader, torch.uint8, (1,)) for party in others]
    return done + [Declared(Kind.END, leader, party, torch.uint8, (1,)) for party in others]


def links(federation: Federation) -> dict[tuple[str, str], tuple[int, int]]:
    """Every directed link of a run: the most messages on it in one step, and the bytes of its largest message.

    Row roles are not known yet, so each message counts with all rows: an upper bound.
    """
    rows = Rows.everything(federation.nodes)
    middle = Step(1, refresh=federation.collaborative, trains_joint=True, evaluates=True, last=False)
    step = forward_messages(federation, middle, rows) + backward_messages(federation, rows)
    longest = dict.fromkeys(federation.holder_names, federation.settings.privacy.noised_edge_bound)
    phases = (
        setup_messages(federation),
        edge_messages(federation, longest),
        step,
        predict_messages(federation),
        end_messages(federation),
    )
    return largest_on_links(phases)


def largest_on_links(phases: Iterable[list[Declared]]) -> dict[tuple[str, str], tuple[int, int]]:
    """For each directed link the most messages in one phase, and the bytes of the largest one."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for phase in phases:
        counts = Counter((message.sender, message.receiver) for message in phase)
        for message in phase:
            link = message.sender, message.receiver
            most, largest = found.get(link, (0, 0))
            found[link] = max(most, counts[link]), max(largest, message.bytes)
    return found


def _published(federation: Federation, rows: int) -> list[Declared]:
    shape, dtype = (rows, federation.settings.dim), federation.settings.dtype
    return [Declared(Kind.LOCAL_EMBEDDINGS, holder, SERVER, dtype, shape) for holder in federation.publishers]


def joint_setup(federation: Federation) -> list[Declared]:
    """Seeds and masked features, then the first product and its reveal (model/joint_layer.py, Setup)."""
    holders = federation.holder_names
    messages: list[Declared] = []
    if federation.dealt:
        messages += [Declared(Kind.DEALER_SEED, DEALER, holder, *SEED) for holder in holders]
        if len(holders) > 2:
            pairs = [(one, other) for i, one in enumerate(holders) for other in holders[i + 1 :]]
            messages += [Declared(Kind.PAIR_SEED, one, other, *SEED) for one, other in pairs]
        messages += [
            Declared(Kind.MASKED_FEATURES, owner.name, other, WORD, (federation.nodes, owner.features))
            for owner in federation.feature_holders
            for other in holders
            if other != owner.name
        ]
    messages += _to_owners(federation, Kind.JOINT_WEIGHTS, holders)
    return messages + _corrections(federation, holders, backward=False) + _h0_reveal(federation)


def joint_refresh(federation: Federation) -> list[Declared]:
    """h0 computed anew (model/joint_layer.py, Refresh)."""
    senders, dim = federation.publishers, federation.settings.dim
    messages = [
        Declared(Kind.JOINT_UPDATE, sender, owner.name, WORD, (federation.nodes, dim))
        for owner in federation.feature_holders
        for sender in senders
        if sender != owner.name
    ]
    if federation.dealt:
        messages += _to_owners(federation, Kind.JOINT_PRODUCT, senders)
    return messages + _corrections(federation, senders, backward=True) + _h0_reveal(federation)


def _to_owners(federation: Federation, kind: Kind, senders: tuple[str, ...]) -> list[Declared]:
    """A matrix that meets X_k, from each sender to each k."""
    return [
        Declared(kind, sender, owner.name, WORD, (owner.features, federation.settings.dim))
        for owner in federation.feature_holders
        for sender in senders
        if sender != owner.name
    ]


def _corrections(federation: Federation, receivers: tuple[str, ...], *, backward: bool) -> list[Declared]:
    """From the dealer, to whoever multiplies with somebody else's features."""
    if not federation.dealt:
        return []
    messages, dim = [], federation.settings.dim
    for receiver in receivers:
        columns = sum(owner.features for owner in federation.feature_holders if owner.name != receiver)
        if not columns:
            continue
        if backward:
            messages.append(Declared(Kind.CORRECTION_BACKWARD, DEALER, receiver, WORD, (columns, dim)))
        messages.append(Declared(Kind.CORRECTION_FORWARD, DEALER, receiver, WORD, (federation.nodes, dim)))
    return messages


def _h0_reveal(federation: Federation) -> list[Declared]:
    shape = (federation.nodes, federation.settings.dim)
    return [
        Declared(Kind.H0_SHARE, sender, receiver, WORD, shape)
        for receiver in federation.publishers
        for sender in federation.holder_names
        if sender != receiver
    ]
