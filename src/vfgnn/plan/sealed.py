"""What a sealed run will cost, before anything is sent: bytes, rounds, seconds and memory per party.

Bytes, rounds and memory follow from the program. Seconds are those of a timetable (timetable.py) of what all threads
send each other (sealed_threads.py), and of the work that a rehearsal has measured (sealed_work.py).
"""

from dataclasses import dataclass

from vfgnn.agreement import DEALER, Agreement
from vfgnn.messages import total_bytes
from vfgnn.plan.expected import Expected
from vfgnn.plan.sealed_threads import SealedThreads
from vfgnn.plan.sealed_work import Rates, measure
from vfgnn.plan.timetable import PIECE, PIECES, Lines, Timetable
from vfgnn.program import Program
from vfgnn.sealed.program import (
    MASKED_FEATURES,
    SealedMoment,
    dealt_messages,
    prediction,
    script_of,
    setup_messages,
    training,
)
from vfgnn.sealed.record import Part
from vfgnn.sealed.sizes import SealedSizes
from vfgnn.sealed.supply import MOST_BYTES

IN_MEMORY = 3  # of the largest message that is dealt: what it is made of, and what is under way


@dataclass(frozen=True)
class SealedPlan:
    """What `vfgnn plan` prints and writes. Bytes are those of all links together."""

    bandwidth_mbit_s: float
    latency_ms: float
    shared_cores: int | None  # None: every party has a machine of its own
    nodes: int
    assumed: tuple[str, ...]
    steps: int
    bytes_setup: int
    bytes_offline: int
    bytes_online: int
    rounds: int
    seconds: float  # of a whole training with predictions of all nodes, from the moment when all parties have met
    setup_s: float  # of these, until the last party is set up
    waited_s: float  # and how long the holder that waits longest stands still for the dealer
    bytes_predict: int  # of all nodes with the trained model: those that came after training ask for it
    rounds_predict: int
    seconds_predict: float
    memory: dict[str, int]


def make_sealed_plan(
    expected: Expected, *, bandwidth_mbit_s: float, latency_ms: float, shared_cores: int | None = None
) -> SealedPlan:
    """Predict the cost of a run. `shared_cores`: of the one machine that all parties run on."""
    agreement, train, val = expected.agreement, expected.train_rows, expected.val_rows
    lines = Lines(bandwidth_mbit_s * 1e6, latency_ms / 1e3, shared_cores)
    trains, asks = SealedMoment(train, val), SealedMoment(train, 0, asked=agreement.nodes)
    whole = training(agreement)
    rates = measure(agreement, train_rows=train, val_rows=val, bytes_in_all=_bytes(whole, trains))
    trained = lay_out(whole, agreement, trains, lines, rates)
    asked = lay_out(prediction(agreement, new_nodes=True), agreement, asks, lines, rates)
    script = script_of(agreement, trains)
    return SealedPlan(
        bandwidth_mbit_s=bandwidth_mbit_s,
        latency_ms=latency_ms,
        shared_cores=shared_cores,
        nodes=agreement.nodes,
        assumed=expected.assumed,
        steps=len(script.steps),
        bytes_setup=trained.bytes["setup"],
        bytes_offline=trained.bytes["offline"],
        bytes_online=trained.bytes["online"],
        rounds=script.rounds,
        seconds=trained.seconds,
        setup_s=trained.setup_s,
        waited_s=trained.waited_s,
        bytes_predict=sum(asked.bytes.values()),
        rounds_predict=script_of(agreement, asks).rounds,
        seconds_predict=asked.seconds,
        memory=memory(agreement, trains),
    )


@dataclass(frozen=True)
class LaidOut:
    """What a program takes until all parties have said goodbye, and what they have sent by then."""

    seconds: float
    setup_s: float
    waited_s: float
    bytes: dict[Part, int]


def lay_out(
    program: Program[SealedMoment], agreement: Agreement, moment: SealedMoment, lines: Lines, rates: Rates
) -> LaidOut:
    """`moment`: how many rows there are."""
    made = SealedThreads(agreement, program, moment, rates)
    clock = Timetable(lines, piece=max(PIECE, _bytes(program, moment) / PIECES))
    seconds = clock.run({party: made.of(party, clock) for party in agreement.parties})
    goodbye = 2 * lines.latency_s  # is answered
    return LaidOut(seconds + goodbye, max(made.set_up_at.values()), made.waited_s, dict(made.sent))


def _bytes(program: Program[SealedMoment], known: SealedMoment) -> int:
    """Payload bytes on all links, as the program declares them."""
    return sum(total_bytes(phase.messages(moment)) for phase, moment in program.walk(known))


def memory(agreement: Agreement, moment: SealedMoment) -> dict[str, int]:
    """Bytes that each party's matrices need, beside the program's own few hundred megabytes."""
    setup = setup_messages(agreement)
    dealt = [message for part in script_of(agreement, moment).parts for message in dealt_messages(agreement, part)]
    features = {message.sender: message.bytes for message in setup if message.kind == MASKED_FEATURES}
    needs: dict[str, int] = {}
    for me in (DEALER, *agreement.holder_names):
        tables = total_bytes(message for message in setup if message.receiver == me and message.kind != MASKED_FEATURES)
        own = [message.bytes for message in dealt if me in (message.sender, message.receiver)]
        needs[me] = sum(features.values()) + 2 * tables + IN_MEMORY * max(own, default=0)
        if me != DEALER:
            lies_there = total_bytes(message for message in dealt if message.receiver == me)
            needs[me] += min(MOST_BYTES, lies_there) + _kept(agreement, moment)
    return needs


def _kept(agreement: Agreement, moment: SealedMoment) -> int:
    """Bytes that a holder keeps from step to step: the images of all vectors, or features that have travelled."""
    sizes = SealedSizes(agreement, moment.train, moment.val)
    if sizes.order == "labels":
        return 8 * sizes.steps * sizes.width * (agreement.nodes + agreement.columns)
    wanted = 2 * moment.train + moment.val  # rows of Psi and columns of its transpose, each with a mask and in the open
    return 8 * agreement.columns * (agreement.nodes + 3 * wanted * sizes.blocks)
