"""The sealed protocol as a table.

    setup      row roles among the holders, their counts to the dealer; seeds; masked features; permutations of graphs
    offline    beside all that follows: what the dealer deals, corrections and the chain of permutations (mpc/sparse.py)
    prepare    masked openings: degrees
    step t     masked openings: a block of columns, or one vector of the Krylov space
    finish     in parts: masked openings; inner products and predictions to the label holder
With a trained model, for nodes that came after training:
    ask        which nodes the label holder asks for
    setup      as in training; then offline, prepare (degrees) and finish (K hops), if it asks for any
    recall     everything that was opened before is the label holder's own; nothing is sent
Every start does setup and prepare anew, and goes on with the step, or part, that all holders have the state of. What is
opened is opened at the beginning of one, when all have told that their shares of it are on their disks.
There is no server. Which values are opened, and what is dealt for them, follows from the algorithm itself: it is gone
through once with sizes alone (rehearsal.py). Every party computes this table by itself.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch

from vfgnn.agreement import DEALER, Agreement
from vfgnn.messages import BYTE, SEED, WORD, Declared, Kind, total_bytes
from vfgnn.mpc.graph_shape import GraphKinds, GraphShape, begin_messages, complete_messages, online_messages
from vfgnn.mpc.graph_shape import setup_messages as sparse_setup
from vfgnn.mpc.shared import Names, Operation
from vfgnn.mpc.shared import messages as operation_messages
from vfgnn.program import Beside, Phase, Program, Repeated, Row
from vfgnn.sealed.rehearsal import Hop, Item, Part, Script, ToColumns, Told, ToNodes, prediction_script, script
from vfgnn.sealed.sizes import ASKING, FINISHING, SealedSizes

ROW_ROLES = Kind("sealed_rows", "which rows train and which validate; never a label")
ROW_COUNTS = Kind("sealed_row_counts", "how many rows train and validate, and with which step this start goes on")
ASKED_ROWS = Kind("sealed_asked", "which nodes the label holder asks for")
ASKED_COUNTS = Kind("sealed_asked_counts", "how many nodes it asks for, how many rows trained, and where this goes on")
MATERIAL_SEED = Kind("sealed_seed", "its shares of all masks, which only it and the dealer can expand")
PAIR_SEED = Kind("sealed_pair_seed", "its part of the sharings of zero (three or more holders)")
MASKED_FEATURES = Kind("sealed_features", "nothing: E_k = X_k - U_k is uniform to it")
CORRECTION = Kind("sealed_correction", "nothing: its share of what follows from the masks is uniform to it")
OPENED = Kind("sealed_opened", "nothing: a masked value, uniform to all of them")
KEPT = Kind("sealed_kept", "that the sender's share of what is opened next is on its disk")
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
MOST_AHEAD, MOST_BYTES_AHEAD = 2, 2**26  # hops whose bounces are under way before they are due, and all their bytes


Items = Iterable[Item]


@dataclass(frozen=True)
class SealedMoment:
    """What a party knows of sizes: how many rows train and validate. `number`: of the step, or the part after them."""

    train: int
    val: int
    number: int | None = None
    opens: bool = True
    closes: bool = True
    asked: int | None = None  # with a trained model: how many rows are asked for
    begin: int = 0  # the number with which this start, or this pass, goes on


ItemsOf = Callable[[SealedMoment], Items]


@dataclass(frozen=True)
class Stage:
    """Some items: what is dealt for them, ahead, and what the holders send each other."""

    dealt: Phase[SealedMoment]
    opened: Phase[SealedMoment]

    @staticmethod
    def of(agreement: Agreement, name: str, items: ItemsOf) -> "Stage":
        """Of the method with this name."""
        return Stage(
            Phase(OFFLINE, f"deal_{name}", lambda moment: dealt_messages(agreement, items(moment))),
            Phase(name, name, lambda moment: opened_messages(agreement, items(moment))),
        )


def around(agreement: Agreement) -> tuple[Stage, Stage]:
    """What comes before the steps, and after them; a prediction has no steps."""
    return (
        Stage.of(agreement, "prepare", lambda moment: script_of(agreement, moment).prepare),
        Stage.of(agreement, "finish", partial(finish_items, agreement)),
    )


def training(agreement: Agreement) -> Program[SealedMoment]:
    """From setup to predictions and shares of the weights."""
    every, last, (prepare, finish) = partial(moments, agreement), partial(parts, agreement), around(agreement)
    step = Stage.of(agreement, "step", partial(step_items, agreement))
    table: tuple[Row[SealedMoment], ...] = (
        Phase("setup", "set_up", lambda _: [*row_messages(agreement), *setup_messages(agreement)]),
        Beside("offline", (prepare.dealt, Repeated(every, (step.dealt,)), Repeated(last, (finish.dealt,)))),
        prepare.opened,
        Repeated(every, (step.opened,)),
        Repeated(last, (finish.opened,)),
    )
    first, *others = bounds(agreement)
    return Program("sealed training", agreement.parties, agreement.label_holder, table, first, tuple(others))


def prediction(agreement: Agreement, *, new_nodes: bool) -> Program[SealedMoment]:
    """With a trained model. What was opened once, the label holder has; without `new_nodes` nothing is sent."""
    last, (prepare, finish) = partial(parts, agreement), around(agreement)
    recall = Phase[SealedMoment]("recall", "recall", lambda _: [])
    table: tuple[Row[SealedMoment], ...] = (
        Phase("ask", "ask", lambda _: asking_messages(agreement)),
        Phase("setup", "set_up_anew", lambda moment: setup_messages(agreement) if moment.asked else []),
        Beside("offline", (prepare.dealt, Repeated(last, (finish.dealt,)))),
        prepare.opened,
        Repeated(last, (finish.opened,)),
        recall,
    )
    most = SealedMoment(agreement.nodes, 0, asked=agreement.nodes)
    rows = table if new_nodes else (recall,)
    return Program("sealed prediction", agreement.parties, agreement.label_holder, rows, most)


def script_of(agreement: Agreement, moment: SealedMoment) -> Script:
    """What the training consists of, for so many rows; or a prediction with what it left."""
    sizes = SealedSizes(agreement, moment.train, moment.val)
    return script(sizes, moment.begin) if moment.asked is None else prediction_script(sizes, moment.asked, moment.begin)


def step_items(agreement: Agreement, moment: SealedMoment) -> Items:
    """Of one step; outside of steps the first."""
    steps, number = script_of(agreement, moment).steps, moment.number or 0
    return steps[number] if number < len(steps) else Part()


def finish_items(agreement: Agreement, moment: SealedMoment) -> Items:
    """Of one part of what comes after the steps; outside of them all."""
    found, part = script_of(agreement, moment), finishing_part(agreement, moment)
    return found.finish if part is None else found.parts[part]


def finishing_part(agreement: Agreement, moment: SealedMoment) -> int | None:
    """Which part of what comes after the steps this is."""
    first = _first_part(agreement, moment)
    return None if moment.number is None or moment.number < first else moment.number - first


def _first_part(agreement: Agreement, moment: SealedMoment) -> int:
    return SealedSizes(agreement, moment.train, moment.val).units if moment.asked is None else 0


def moments(agreement: Agreement, known: SealedMoment, begin: int) -> Iterator[SealedMoment]:
    """One for each step."""
    for number in range(begin, _first_part(agreement, known)):
        yield replace(known, number=number)


def parts(agreement: Agreement, known: SealedMoment, begin: int) -> Iterator[SealedMoment]:
    """One for each part of what comes after the steps; none where nothing is asked for."""
    first, count = _first_part(agreement, known), FINISHING if known.asked is None else ASKING
    for number in range(max(first, begin), first + count) if known.asked != 0 else ():
        yield replace(known, number=number)


def largest(agreement: Agreement) -> SealedMoment:
    """Row counts are not known yet: an upper bound."""
    return SealedMoment(agreement.nodes, agreement.nodes, 0)


def bounds(agreement: Agreement) -> list[SealedMoment]:
    """The largest moment of each kind of step: a block of columns, the last of them, the first vector, a later one.

    And of starts that go on: with all columns, and with what the label holder makes of the first vector.
    """
    known = largest(agreement)
    seen: dict[tuple[Item, ...], SealedMoment] = {}
    for moment in moments(agreement, known, 0):
        seen.setdefault(tuple(step_items(agreement, moment)), moment)
    blocks = SealedSizes(agreement, known.train, known.val).column_blocks
    goes_on = [replace(known, number=begin, begin=begin) for begin in (blocks, blocks + 2) if begin]
    return [*seen.values(), *goes_on]


def graph_shape(agreement: Agreement) -> GraphShape:
    """Nodes and declared bounds."""
    return GraphShape(agreement.nodes, {holder.name: holder.entry_bound for holder in agreement.holders})


def names_of(agreement: Agreement) -> Names:
    """Of what is opened, and of what the dealer sends."""
    return Names(agreement.holder_names, CORRECTION, OPENED)


def row_messages(agreement: Agreement) -> list[Declared]:
    """Which rows a training is over."""
    return _from_leader(agreement, ROW_ROLES, ROW_COUNTS)


def asking_messages(agreement: Agreement) -> list[Declared]:
    """Which rows a prediction is about."""
    return _from_leader(agreement, ASKED_ROWS, ASKED_COUNTS)


def _from_leader(agreement: Agreement, rows: Kind, counts: Kind) -> list[Declared]:
    """A byte for each row to the holders, three numbers to the dealer."""
    leader = agreement.label_holder
    messages = [Declared(rows, leader, reader, torch.uint8, (agreement.nodes,)) for reader in agreement.row_readers]
    return [*messages, Declared(counts, leader, DEALER, WORD, (3,))]


def setup_messages(agreement: Agreement) -> list[Declared]:
    """Before anything is computed: of every start and every pass anew."""
    holders = agreement.holder_names
    messages = [Declared(MATERIAL_SEED, DEALER, holder, *SEED) for holder in holders]
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


@dataclass(frozen=True)
class Begun:
    """The first two bounces of a coming hop."""

    width: int


def dealing_order(agreement: Agreement, items: Items) -> Iterator[Item | Begun]:
    """Items as the dealer goes through them. A hop begins some hops before it is due, so nobody waits for its bounces.

    Two are enough: a hop of the holders takes two rounds of their own. Fewer where their bounces would fill memory.
    """
    items = list(items)
    widths = [item.width for item in items if isinstance(item, Hop)]
    size = total_bytes(begin_messages(graph_shape(agreement), GRAPH_KINDS, max(widths, default=0)))
    ahead = min(MOST_AHEAD, MOST_BYTES_AHEAD // max(1, size))
    begun = due = 0
    for item in items:
        due += isinstance(item, Hop)
        while begun < min(len(widths), max(due, 1) + ahead):
            yield Begun(widths[begun])
            begun += 1
        yield item


def dealt_messages(agreement: Agreement, items: Items) -> list[Declared]:
    """To and from the dealer, ahead of the items."""
    messages: list[Declared] = []
    columns = {owner.name: owner.features for owner in agreement.feature_holders}
    for item in dealing_order(agreement, items):
        if isinstance(item, Begun):
            messages += begin_messages(graph_shape(agreement), GRAPH_KINDS, item.width)
        elif isinstance(item, Hop):
            messages += complete_messages(graph_shape(agreement), GRAPH_KINDS, item.width)
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
            messages += told_messages(agreement, item)
        else:
            messages += [one for one in operation_messages([item], names_of(agreement)) if one.sender != DEALER]
    return messages


def told_messages(agreement: Agreement, told: Told) -> list[Declared]:
    """Nobody tells before all holders have told that they could tell the same again."""
    leader, payload, others = agreement.label_holder, told.payload, agreement.row_readers
    kept = [Declared(KEPT, one, other, *BYTE) for one in agreement.holder_names for other in others if one != other]
    return [*kept, *(Declared(told.kind, holder, leader, payload.dtype, payload.shape) for holder in others)]
