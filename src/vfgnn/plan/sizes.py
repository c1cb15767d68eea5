"""Bytes and memory of a run, from the program's table and the declared sizes. Nothing is computed or sent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from vfgnn.agreement import DEALER, SERVER, Agreement
from vfgnn.messages import total_bytes
from vfgnn.program import Phase, Program, Repeated
from vfgnn.rows import RowSet
from vfgnn.split.steps import Moment, Rows


@dataclass(frozen=True)
class Sizes:
    """Payload bytes on all links."""

    setup: int
    epoch: int
    frozen_epoch: int  # with the joint layer frozen
    predict: int


def sizes(program: Program[Moment], agreement: Agreement, train_rows: int, val_rows: int) -> Sizes:
    """Payload bytes on all links, from the program's table."""
    rows = Rows.all(agreement.nodes)
    if agreement.settings.publish == "needed":
        rows = Rows(RowSet(torch.arange(train_rows)), RowSet(torch.arange(val_rows)))
    moment = replace(program.largest, rows=rows)
    frozen = replace(moment, step=replace(moment.step, refresh=False, trains_joint=False))
    table = list(program.rows)
    steps = [row for row in table if isinstance(row, Repeated)]
    at = table.index(steps[0])
    return Sizes(
        setup=_bytes(table[:at], moment),
        epoch=_bytes(steps, moment),
        frozen_epoch=_bytes(steps, frozen),
        predict=_bytes(table[at + 1 :], moment),
    )


def _bytes(rows: Sequence[Phase[Moment] | Repeated[Moment]], moment: Moment) -> int:
    phases = [phase for row in rows for phase in ((row,) if isinstance(row, Phase) else row.phases)]
    return sum(total_bytes(phase.messages(moment)) for phase in phases if phase.when(moment))


def memory(agreement: Agreement) -> dict[str, int]:
    """Bytes that each party's matrices need at their largest, beside the program's own few hundred megabytes."""
    n, d, word = agreement.nodes, agreement.settings.dim, 8
    publishers = len(agreement.publishers)
    needs = {SERVER: 4 * n * d * (3 * publishers + 3)}
    columns = {holder.name: holder.features for holder in agreement.holders}
    everyone = sum(columns.values())
    if agreement.dealt:
        needs[DEALER] = word * (n * everyone + 2 * publishers * (n + everyone) * d)
    for name, own in columns.items():
        masked = everyone - own if agreement.dealt else 0  # E of every other holder, dense
        joint = 12 * n * d if agreement.collaborative else 3 * n * d  # Q, N, their copies, h0, shares, what is ahead
        needs[name] = word * (n * (masked + 2 * own) + joint) + 4 * n * d * 6
    return needs
