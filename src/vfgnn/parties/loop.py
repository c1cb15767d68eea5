"""The one order of events that all parties follow; what each does in it is in its own file."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch

from vfgnn.channel import Channel
from vfgnn.checkpoint import State
from vfgnn.config import Federation
from vfgnn.messages import Declared, Kind
from vfgnn.parties import schedule
from vfgnn.parties.schedule import Rows, Step

IMPROVED, STOP = 1, 2  # bits of CONTROL


@dataclass(frozen=True)
class Decision:
    """The label holder's word after an evaluation."""

    improved: bool  # keep these weights: the best so far
    stop: bool

    def encode(self) -> torch.Tensor:
        """As the payload of CONTROL."""
        return torch.tensor([IMPROVED * self.improved | STOP * self.stop], dtype=torch.uint8)

    @staticmethod
    def decode(payload: torch.Tensor) -> "Decision":
        """From the payload of CONTROL."""
        bits = int(payload[0])
        return Decision(improved=bool(bits & IMPROVED), stop=bool(bits & STOP))


def rows_with_gradient(gradient: torch.Tensor) -> torch.Tensor:
    """The rows of a gradient that are not all zero; only these have to be followed backwards."""
    return gradient.abs().sum(dim=1).nonzero()[:, 0]


class Party(Protocol):
    """What a role does at each point of the loop."""

    channel: Channel
    rows: Rows  # of the whole run; during a batch, of that batch
    pair_counts: dict[str, int]  # lengths of the noised edge lists that this party sends or gets

    @property
    def federation(self) -> Federation:
        """What all agreed on."""

    def set_up(self) -> None:
        """Messages before step 0."""

    def exchange_edges(self) -> None:
        """Noised edge lists among the holders (`publish_noised_edges`)."""

    def forward(self, step: Step) -> None:
        """This role's part of the forward pass."""

    def decide(self, step: Step) -> Decision:
        """After an evaluation: say, or hear, what follows."""

    def backward(self, step: Step) -> None:
        """This role's part of the backward pass, and its own step."""

    def keep_best(self) -> None:
        """Remember the weights of now."""

    def restore_best(self) -> None:
        """Go back to the remembered weights."""

    def embed_anew(self) -> None:
        """This role's part of h0 over nodes that were not there in training (collaborative mode)."""

    def predict(self) -> None:
        """This role's part of a forward pass over all nodes."""

    def state(self) -> State:
        """A copy of all that this party needs in order to stand at the beginning of the coming step again."""

    def load(self, state: State) -> None:
        """Stand there; comes before `set_up`."""

    def close(self) -> None:
        """End what runs in the background, however the run ended."""


@dataclass(frozen=True)
class Watch:
    """What whoever runs a party hears of it; nothing if not told otherwise."""

    begins: Callable[[int], None] = lambda number: None  # the party stands at the beginning of this step
    done: Callable[[Step], None] = lambda step: None


@dataclass(frozen=True)
class Messages:
    """What each phase of a run declares."""

    setup: Callable[[], list[Declared]]
    forward: Callable[[Step, Rows], list[Declared]]
    backward: Callable[[Rows], list[Declared]]
    predict: Callable[[], list[Declared]]

    @staticmethod
    def of(federation: Federation) -> "Messages":
        """VFGNN's own."""
        return Messages(
            setup=partial(schedule.setup_messages, federation),
            forward=partial(schedule.forward_messages, federation),
            backward=partial(schedule.backward_messages, federation),
            predict=partial(schedule.predict_messages, federation),
        )


def train(party: Party, *, begin: int = 0, watch: Watch | None = None, messages: Messages | None = None) -> None:
    """From setup to the predictions with the best epoch's weights.

    `begin`: the step at whose beginning the party's state was loaded. Setup comes first all the same, with fresh masks.
    """
    watch = watch or Watch()
    try:
        if begin < schedule.end_step(party.federation):
            _train(party, begin, watch, messages or Messages.of(party.federation))
        watch.begins(schedule.end_step(party.federation))
        _end(party)
    finally:
        party.close()


def predict(party: Party, *, new_nodes: bool = False) -> None:
    """All nodes, with the weights that were loaded; `new_nodes`: some of them were not there in training."""
    federation, channel = party.federation, party.channel
    if new_nodes and federation.collaborative:
        channel.enter("new nodes", schedule.new_node_messages(federation))
        party.embed_anew()
    channel.enter("predict", schedule.predict_messages(federation))
    party.predict()
    channel.finish()


def call_pass(channel: Channel, federation: Federation, *, new_nodes: bool) -> None:
    """Label holder of a federation that stays up: ask everyone for a prediction.

    Reveals: to everyone, when something is asked that it does not know yet; never what.
    """
    channel.enter("pass", schedule.pass_messages(federation))
    for other in federation.others:
        channel.send(other, Kind.PASS, torch.tensor([new_nodes], dtype=torch.uint8))
    channel.finish()


def await_pass(channel: Channel, federation: Federation) -> bool:
    """Everyone else: wait for that, for as long as the label holder is there; whether nodes are aligned anew."""
    channel.enter("pass", schedule.pass_messages(federation))
    new_nodes = bool(channel.receive(federation.label_holder, Kind.PASS, patient=True)[0])
    channel.finish()
    return new_nodes


def _end(party: Party) -> None:
    """Leave together: before this is through, whoever is killed finds the others; after it, nobody needs anybody."""
    federation, channel = party.federation, party.channel
    channel.enter("end", schedule.end_messages(federation))
    nothing = torch.zeros(1, dtype=torch.uint8)
    if channel.party == federation.label_holder:
        for other in federation.others:
            channel.receive(other, Kind.DONE)
        for other in federation.others:
            channel.send(other, Kind.END, nothing)
    else:
        channel.send(federation.label_holder, Kind.DONE, nothing)
        channel.receive(federation.label_holder, Kind.END)
    channel.finish()


def _train(party: Party, begin: int, watch: Watch, messages: Messages) -> None:
    federation, channel = party.federation, party.channel
    channel.enter("setup", messages.setup())
    party.set_up()
    if federation.edge_links:
        channel.enter("edges", schedule.edge_messages(federation, party.pair_counts))
        party.exchange_edges()
    for step in schedule.steps(federation):
        if step.number < begin:
            continue
        watch.begins(step.number)
        everything = party.rows
        stop = _run_batches(party, step, messages)
        party.rows = everything
        watch.done(step)
        if stop:
            break
    party.restore_best()
    channel.enter("predict", messages.predict())
    party.predict()
    channel.finish()


def _run_batches(party: Party, step: Step, messages: Messages) -> bool:
    """All batches of a step; whether the label holder said that it was the last step."""
    for batch, rows in schedule.batches(party.federation, step, party.rows):
        party.rows = rows
        party.channel.enter("forward", messages.forward(batch, rows), step=step.number)
        party.forward(batch)
        if batch.evaluates:
            decision = party.decide(batch)
            if decision.improved:
                party.keep_best()
            if decision.stop:
                return True
        if not batch.last:
            party.channel.enter("backward", messages.backward(rows), step=step.number)
            party.backward(batch)
    return False
