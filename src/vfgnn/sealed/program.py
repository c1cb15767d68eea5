"""The sealed protocol as a table.

    setup      row roles among the holders, their counts to the dealer; seeds; masked features; permutations of graphs
    offline    beside all that follows: what the dealer deals, corrections and the chain of permutations (mpc/sparse.py)
    prepare    masked openings: degrees
    step t     masked openings: one vector of the Krylov space, or one step of the primal iteration
    finish     masked openings; inner products and predictions to the label holder
There is no server. Which values are opened, and what is dealt for them, follows from the algorithm itself: it is gone
through once with sizes alone (rehearsal.py). Every party computes this table by itself.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import torch

from vfgnn.agreement import DEALER, Agreement
from vfgnn.messages import SEED, WORD, Declared, Kind
from vfgnn.mpc.graph_shape import GraphKinds, GraphShape, offline_messages, online_messages
from vfgnn.mpc.graph_shape import setup_messages as sparse_setup
from vfgnn.mpc.shared import Names, Operation
from vfgnn.mpc.shared import messages as operation_messages
from vfgnn.program import Beside, Phase, Program, Repeated, Row
from vfgnn.sealed.rehearsal import Hop, Item, Script, ToColumns, Told, ToNodes, script
from vfgnn.sealed.sizes import SealedSizes

ROW_ROLES = Kind("sealed_rows", "which rows train and which validate; never a label")
ROW_COUNTS = Kind("sealed_row_counts", "how many rows train and how many validate")
MATERIAL_SEED = Kind("sealed_seed", "its shares of all masks, which only it and the dealer can expand")
PAIR_SEED = Kind("sealed_pair_seed", "its part of the sharings of zero (three or more holders)")
MASKED_FEATURES = Kind("sealed_features", "nothing: E_k = X_k - U_k is uniform to it")
CORRECTION = Kind("sealed_correction", "nothing: its share of what follows from the masks is uniform to it")
OPENED = Kind("sealed_opened", "nothing: a masked value, uniform to all of them")
COLUMNS_MASKED = Kind("columns_masked", "nothing: a share of what meets X_k^T minus its mask")
COLUMNS_CORRECTION = Kind("columns_correction", "nothing: U_k^T V - Z of all k is uniform to it")
NODES_MASKED = Kind("nodes_masked", "nothing: a share of W_k minus its mask")
NODES_CORRECTION = Kind("nodes_correction", "nothing: the sum over k of U_k V - Z is uniform to it")
ORDER_SEED = Kind("order_seed", "P'_2, a uniform permutation of the sender's slots")
PAD_SEED = Kind("pad_seed", "the pads r2 between it and the sender")
GATHER_1 = Kind("gather_1", "nothing: Sigma_1 is uniform without P'_1")
GATHER_2 = Kind("gather_2", "nothing: Sigma_2 is uniform without P'_2")
GATHER_3 = Kind("gather_3", "nothing: n rows of Sigma_3 are uniform without P'_3")
BOUNCE_1 = Kind("bounce_1", "nothing: its own mask, permuted, under the pad r1")
BOUNCE_2 = Kind("bounce_2", "nothing: running sums, permuted, under the pad r2")
BOUNCE_3 = Kind("bounce_3", "nothing: running sums, permuted, under the pad r3")
GRAPH_MASKED = Kind("graph_masked", "nothing: a share of what meets the graphs minus its mask")
GRAPH_KINDS = GraphKinds(ORDER_SEED, PAD_SEED, GATHER_1, GATHER_2, GATHER_3, BOUNCE_1, BOUNCE_2, BOUNCE_3, GRAPH_MASKED)
COLUMNS_KINDS, NODES_KINDS = (COLUMNS_MASKED, COLUMNS_CORRECTION), (NODES_MASKED, NODES_CORRECTION)
OFFLINE = "offline"


@dataclass(frozen=True)
class SealedMoment:
    """What a party knows of sizes: how many rows train and validate. `number`: of the step."""

    train: int
    val: int
    number: int | None = None
    opens: bool = True
    closes: bool = True


def training(agreement: Agreement) -> Program[SealedMoment]:
    """From setup to predictions and shares of the weights."""

    def dealt(stage: str, items: ItemsOf) -> Phase[SealedMoment]:
        return Phase(OFFLINE, f"deal_{stage}", lambda moment: dealt_messages(agreement, items(moment)))

    def opened(stage: str, items: ItemsOf) -> Phase[SealedMoment]:
        return Phase(stage, stage, lambda moment: opened_messages(agreement, items(moment)))

    every = partial(moments, agreement)
    of_step = partial(step_items, agreement)
    prepare: ItemsOf = lambda moment: script_of(agreement, moment).prepare  # noqa: E731
    finish: ItemsOf = lambda moment: script_of(agreement, moment).finish  # noqa: E731
    ahead = (dealt("prepare", prepare), Repeated(every, (dealt("step", of_step),)), dealt("finish", finish))
    table: tuple[Row[SealedMoment], ...] = (
        Phase("setup", "set_up", lambda _: setup_messages(agreement)),
        Beside("offline", ahead),
        opened("prepare", prepare),
        Repeated(every, (opened("step", of_step),)),
        opened("finish", finish),
    )
    first, *others = bounds(agreement)
    return Program("sealed training", agreement.parties, agreement.label_holder, table, first, tuple(others))


Items = Iterable[Item]
ItemsOf = Callable[[SealedMoment], Items]


def script_of(agreement: Agreement, moment: SealedMoment) -> Script:
    """What the training consists of, for so many rows."""
    return script(SealedSizes(agreement, moment.train, moment.val))


def step_items(agreement: Agreement, moment: SealedMoment) -> Items:
    """Of one step; outside of steps the first."""
    return script_of(agreement, moment).steps[moment.number or 0]


def moments(agreement: Agreement, known: SealedMoment, begin: int) -> Iterator[SealedMoment]:
    """One for each step."""
    for number in range(begin, SealedSizes(agreement, known.train, known.val).units):
        yield SealedMoment(known.train, known.val, number)


def largest(agreement: Agreement) -> SealedMoment:
    """Row counts are not known yet: an upper bound."""
    return SealedMoment(agreement.nodes, agreement.nodes, 0)


def bounds(agreement: Agreement) -> list[SealedMoment]:
    """The largest moment of each kind of step: a block of columns, the last of them, the first vector, a later one."""
    known = largest(agreement)
    seen: dict[tuple[Item, ...], SealedMoment] = {}
    for moment in moments(agreement, known, 0):
        seen.setdefault(tuple(step_items(agreement, moment)), moment)
    return list(seen.values())


def graph_shape(agreement: Agreement) -> GraphShape:
    """Nodes and declared bounds."""
    return GraphShape(agreement.nodes, {holder.name: holder.entry_bound for holder in agreement.holders})


def names_of(agreement: Agreement) -> Names:
    """Of what is opened, and of what the dealer sends."""
    return Names(agreement.holder_names, CORRECTION, OPENED)


def setup_messages(agreement: Agreement) -> list[Declared]:
    """Before anything is computed."""
    holders, leader = agreement.holder_names, agreement.label_holder
    messages = [
        Declared(ROW_ROLES, leader, reader, torch.uint8, (agreement.nodes,)) for reader in agreement.row_readers
    ]
    messages += [Declared(ROW_COUNTS, leader, DEALER, WORD, (2,))]
    messages += [Declared(MATERIAL_SEED, DEALER, holder, *SEED) for holder in holders]
    if len(holders) > 2:
        messages += [
            Declared(PAIR_SEED, one, other, *SEED) for i, one in enumerate(holders) for other in holders[i + 1 :]
        ]
    messages += [
        Declared(MASKED_FEATURES, owner.name, other, WORD, (agreement.nodes, owner.features))
        for owner in agreement.feature_holders
        for other in holders
        if other != owner.name
    ]
    return messages + sparse_setup(graph_shape(agreement), GRAPH_KINDS)


def dealt_messages(agreement: Agreement, items: Items) -> list[Declared]:
    """To and from the dealer, ahead of the items."""
    messages: list[Declared] = []
    columns = {owner.name: owner.features for owner in agreement.feature_holders}
    for item in items:
        if isinstance(item, Hop):
            messages += offline_messages(graph_shape(agreement), GRAPH_KINDS, item.width)
        elif isinstance(item, (ToColumns, ToNodes)):
            for receiver in agreement.holder_names:
                others = sum(count for owner, count in columns.items() if owner != receiver)
                rows, kind = (
                    (others, COLUMNS_CORRECTION) if isinstance(item, ToColumns) else (agreement.nodes, NODES_CORRECTION)
                )
                if others:
                    messages.append(Declared(kind, DEALER, receiver, WORD, (rows, item.width)))
        elif isinstance(item, Operation):
            messages += [one for one in operation_messages([item], names_of(agreement)) if one.sender == DEALER]
    return messages


def opened_messages(agreement: Agreement, items: Items) -> list[Declared]:
    """Among the holders."""
    messages: list[Declared] = []
    for item in items:
        if isinstance(item, Hop):
            messages += online_messages(graph_shape(agreement), GRAPH_KINDS, item.width)
        elif isinstance(item, (ToColumns, ToNodes)):
            back = isinstance(item, ToColumns)
            messages += [
                Declared(
                    COLUMNS_MASKED if back else NODES_MASKED,
                    sender,
                    owner.name,
                    WORD,
                    (agreement.nodes if back else owner.features, item.width),
                )
                for owner in agreement.feature_holders
                for sender in agreement.holder_names
                if sender != owner.name
            ]
        elif isinstance(item, Told):
            leader, payload = agreement.label_holder, item.payload
            messages += [
                Declared(item.kind, holder, leader, payload.dtype, payload.shape) for holder in agreement.row_readers
            ]
        else:
            messages += [one for one in operation_messages([item], names_of(agreement)) if one.sender != DEALER]
    return messages
