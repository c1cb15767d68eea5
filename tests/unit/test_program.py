"""A program is a table: what is written in it once is known to everything that reads it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from tools.message_tables import filled, table_of

from vfgnn.agreement import DEALER, SERVER, HolderShape, make_agreement
from vfgnn.common_programs import Follower, calling, leaving
from vfgnn.errors import ProtocolError
from vfgnn.message_log import MessageLog
from vfgnn.messages import Declared, Kind
from vfgnn.party.roles import ROLES
from vfgnn.party.session import capacities
from vfgnn.plan.sizes import sizes
from vfgnn.program import Phase, Program, Watch, carry_out, links
from vfgnn.report.run.audit import audit
from vfgnn.settings import Settings
from vfgnn.split import program as split
from vfgnn.transport.memory import InMemoryNetwork

GREETING = Kind("greeting", "that the sender is polite")
WORDS = 5


def federation(**settings):
    shapes = [HolderShape(name="A", features=3, edges=True), HolderShape(name="B", features=5, edges=True)]
    return make_agreement(nodes=10, classes=3, holders=shapes, label_holder="A", settings=Settings(dim=4, **settings))


def greeted(fed):
    """The paper's program with a toy message, which is written here and nowhere else."""
    known = split.training(fed)
    toy = Phase("greeting", "greet", lambda _: [Declared(GREETING, "A", "B", torch.uint8, (WORDS,))])
    return replace(known, table=(toy, *known.table))


class Polite:
    """A role with one method."""

    known = None

    def __init__(self, channel):
        self.channel = channel

    def greet(self, moment):
        if self.channel.party == "A":
            self.channel.send("B", GREETING, torch.zeros(WORDS, dtype=torch.uint8))
        else:
            self.channel.receive("A", GREETING)


def test_a_toy_message_is_known_everywhere(tmp_path):
    fed = federation()
    before, after = split.training(fed), greeted(fed)
    # links and their capacities, and with them what the wire accepts
    assert GREETING in links(after)["A", "B"].kinds
    assert GREETING not in links(before)["A", "B"].kinds
    assert GREETING in capacities("B", [after])["A"].receives.kinds
    assert GREETING not in capacities("A", [after])["B"].receives.kinds  # B sends none
    # the plan of costs
    assert sizes(after, fed, 3, 4).setup == sizes(before, fed, 3, 4).setup + WORDS
    # the check of message logs
    log = MessageLog(tmp_path / "messages.jsonl")
    greeting = Declared(GREETING, "A", "B", torch.uint8, (WORDS,))
    log.add("run", greeting, torch.zeros(WORDS), bytes(32), phase="greeting", step=None)
    log.close()
    assert audit(tmp_path, "A", [after], None).outside == 0
    assert audit(tmp_path, "A", [before], None).outside == 1
    # the table in docs/protocol.md
    assert "| greeting | `greeting` | label holder -> holder |" in table_of(after, fed)
    assert "that the sender is polite" in table_of(after, fed)


@pytest.mark.parametrize(("name", "count"), [("protocol.md", 7), ("sealed.md", 1)])
def test_the_page_has_the_programs_tables(name, count):
    page = Path(__file__).parents[2] / "docs" / name
    text = page.read_text()
    assert filled(text) == text, f"run: python tools/message_tables.py docs/{name}"
    assert text.count("| phase | message |") == count


def test_a_toy_message_is_carried_out():
    network = InMemoryNetwork()
    toy = replace(greeted(federation()), table=greeted(federation()).table[:1])
    network.run({name: lambda name=name: carry_out(toy, Polite(network.channel(name))) for name in "AB"})


def test_a_role_without_the_method_may_have_no_message():
    class Silent(Polite):
        greet = None

    toy = replace(greeted(federation()), table=greeted(federation()).table[:1])
    carry_out(toy, Silent(InMemoryNetwork().channel("server")))
    with pytest.raises(ProtocolError, match="no method for it"):
        carry_out(toy, Silent(InMemoryNetwork().channel("B")))


@pytest.mark.parametrize("privacy", [{}, {"edge_epsilon": 8.0, "publish_noised_edges": True}], ids=str)
def test_every_role_has_a_method_for_its_messages(privacy):
    """Found before anything runs: who has messages in a phase, and whether that role can carry them out."""
    from importlib import import_module

    fed = federation(privacy=privacy)
    names = {SERVER: "server", DEALER: "dealer", "A": "label holder", "B": "holder"}
    for program in (split.training(fed), split.prediction(fed, new_nodes=True)):
        assert set(program.parties) == names.keys()
        for phase in program.phases:
            for message in phase.messages(program.largest):
                for party in (message.sender, message.receiver):
                    module, _, kind = ROLES["split"][names[party]].partition(":")
                    assert hasattr(getattr(import_module(module), kind), phase.method), (party, phase.method)


def test_steps_are_watched_and_a_method_may_end_them():
    fed = federation(epochs=5, batch_rows=None)
    heard, known = [], split.training(fed)
    steps = known.table[1]

    class Tired(Polite):
        known = split.largest(fed)

        def rest(self, moment):
            heard.append(moment.number)
            return moment.number == 3

    short = replace(known, table=(replace(steps, phases=(Phase("rest", "rest", lambda _: []),)),))
    watch = Watch(begins=lambda n: heard.append(f"begins {n}"), done=lambda n: heard.append(f"done {n}"))
    carry_out(short, Tired(InMemoryNetwork().channel("A")), begin=2, watch=watch)
    assert heard == ["begins 2", 2, "done 2", "begins 3", 3, "done 3"]


def test_all_leave_together_and_hear_of_a_pass():
    for make in (leaving, calling):
        network, program = InMemoryNetwork(), make((SERVER, "A", "B"), "A")
        assert isinstance(program, Program)
        roles = {n: Follower(network.channel(n), program, new_nodes=n == "A") for n in program.parties}
        network.run({name: partial(carry_out, program, role) for name, role in roles.items()})
        assert make is leaving or all(role.new_nodes for role in roles.values())
