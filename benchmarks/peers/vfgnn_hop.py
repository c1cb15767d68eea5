"""One hop of a sealed training, S^2 (A + I) U and its truncation: all of its work, and what is left when it is dealt.

Two holders and the dealer, each in a thread, messages in memory. `total_s`: hops back to back, nothing ahead.
`online_s`: from the moment when what is dealt is there. The code is that of a training.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch

from vfgnn.agreement import DEALER, Agreement, HolderShape, make_agreement
from vfgnn.contribution import Contribution
from vfgnn.data.holdings import Holding
from vfgnn.messages import Declared, total_bytes
from vfgnn.model.contribution import HolderContribution
from vfgnn.mpc.blinding import Blinding
from vfgnn.mpc.scaling import Scaling
from vfgnn.randomness import insecure_seed
from vfgnn.sealed import program
from vfgnn.sealed.dealer import SealedDealer
from vfgnn.sealed.exchange import OwnMatrices, exchange
from vfgnn.sealed.formats import FACTOR
from vfgnn.sealed.joint_computation import JointComputation
from vfgnn.sealed.own_edges import entries_of, proposed_bound
from vfgnn.sealed.program import SealedMoment
from vfgnn.sealed.rehearsal import Hop, Item, factor_label
from vfgnn.sealed.supply import HolderOffline
from vfgnn.settings import Settings
from vfgnn.transport.memory import InMemoryNetwork

NAMES, ROUNDS, WARM_UP = ("A", "B"), 6, 2
ROWS = SealedMoment(1, 1)  # how many train and validate: a hop has nothing to do with it


@dataclass(frozen=True)
class HopBenchmark:
    """Bytes of one hop on all links."""

    online_s: float
    total_s: float
    bytes_online: int
    bytes_offline: int


def bench_hop(nodes: int, edges: int, width: int) -> HopBenchmark:
    """Random edges, half of them at each holder."""
    agreement, held = _federation(nodes, edges, width)
    hop = _hop(agreement, width)
    return HopBenchmark(
        online_s=_Hops(agreement, held, width).median_seconds(ahead=True),
        total_s=_Hops(agreement, held, width).median_seconds(ahead=False),
        bytes_online=total_bytes(program.opened_messages(agreement, hop)),
        bytes_offline=total_bytes(program.dealt_messages(agreement, hop)),
    )


def _federation(nodes: int, edges: int, width: int) -> tuple[Agreement, dict[str, torch.Tensor]]:
    """Public sizes, and each holder's entries. One column each, because features there must be."""
    draw = torch.Generator().manual_seed(0)
    ends = {name: torch.randint(nodes, (2, edges // 2), generator=draw) for name in NAMES}
    held = {name: entries_of(own, nodes, quota=nodes) for name, own in ends.items()}
    shapes = [
        HolderShape(name=name, features=1, edges=True, integer=True, entry_bound=proposed_bound(own.shape[1]))
        for name, own in held.items()
    ]
    settings = Settings.model_validate({"protocol": "sealed"})
    made = make_agreement(nodes=nodes, classes=width + 1, holders=shapes, label_holder=NAMES[0], settings=settings)
    return made, held


def _hop(agreement: Agreement, width: int) -> list[Item]:
    return [Hop(width), Scaling((agreement.nodes, width), FACTOR, (factor_label(0),))]


class _Hops:
    """Holders and dealer, doing nothing but hops after one setup."""

    def __init__(self, agreement: Agreement, held: dict[str, torch.Tensor], width: int) -> None:
        self._agreement, self._held, self._width = agreement, held, width
        self._network = InMemoryNetwork()
        self._channels = {name: self._network.channel(name) for name in (*NAMES, DEALER)}
        self._together = threading.Barrier(len(NAMES) + 1)
        self._ticks: list[float] = []
        factor: list[Item] = [Blinding(factor_label(0), (agreement.nodes, 1))]
        self._rounds: list[Sequence[Item]] = [factor, *([_hop(agreement, width)] * (WARM_UP + ROUNDS))]

    def median_seconds(self, *, ahead: bool) -> float:
        """Of one hop; `ahead`: begin each when all that is dealt for it is there."""
        work: dict[str, Callable[[], object]] = {name: partial(self._holder, name, ahead) for name in NAMES}
        self._network.run({**work, DEALER: partial(self._dealer, ahead)})
        pairs = list(zip(self._ticks[::2], self._ticks[1::2], strict=True))[1 + WARM_UP :]
        return median(end - begin for begin, end in pairs)

    def _setup(self) -> list[Declared]:
        return [*program.row_messages(self._agreement), *program.setup_messages(self._agreement)]

    def _holder(self, name: str, ahead: bool) -> None:
        agreement, channel, first = self._agreement, self._channels[name], name == NAMES[0]
        channel.enter("setup", self._setup())
        if first:
            channel.send(NAMES[1], program.ROW_ROLES, torch.zeros(agreement.nodes, dtype=torch.uint8))
            channel.send(DEALER, program.ROW_COUNTS, torch.tensor([1, 1]))
        else:
            channel.receive(NAMES[0], program.ROW_ROLES)
        x = torch.zeros(agreement.nodes, 1, dtype=torch.int64)
        holding = Holding(x=x.float(), edge_index=self._held[name])
        own = HolderContribution(
            run="bench", seed=insecure_seed(NAMES.index(name)), device=torch.device("cpu"), holding=holding
        )
        means = exchange(agreement, channel, own, OwnMatrices(x, self._held[name]))
        links = channel.beside((DEALER,))
        offline = HolderOffline(agreement, links, ROWS, means.supply, graphs=means.graphs, products=means.products)
        computation = JointComputation(agreement, channel, means)
        share = torch.randint(2**40, (agreement.nodes, self._width))
        factor = None
        for items in self._rounds:
            self._tick(first and not ahead)
            links.enter("offline", program.dealt_messages(agreement, items))
            offline.deal(items)
            self._wait(ahead)
            self._tick(first and ahead)
            channel.enter("step", program.opened_messages(agreement, items))
            if factor is None:
                (factor,) = computation.blind(share[:, :1])
            else:
                computation.scale((computation.hop(share, self_loops=True), [factor]), bits=FACTOR)
            self._tick(first)
            self._wait(ahead)

    def _dealer(self, ahead: bool) -> None:
        own = Contribution(run="bench", seed=insecure_seed(99))
        role = SealedDealer(self._agreement, self._channels[DEALER], own)
        self._channels[DEALER].enter("setup", self._setup())
        role.set_up(ROWS)
        if role.offline is None:
            raise RuntimeError("nothing is dealt")
        for items in self._rounds:
            role.offline.channel.enter("offline", program.dealt_messages(self._agreement, items))
            role.offline.deal(items)
            self._wait(ahead)
            self._wait(ahead)

    def _tick(self, due: bool) -> None:
        if due:
            self._ticks.append(time.perf_counter())

    def _wait(self, due: bool) -> None:
        if due:
            self._together.wait()
