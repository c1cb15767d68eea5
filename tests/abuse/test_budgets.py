"""A peer with a valid certificate fills no memory: a link holds what the programs of now can have under way."""

import time
from pathlib import Path

import pytest
import torch

from tests.abuse.test_abuse import attack, header
from tests.network import Party, declare, run_pair, small, words
from tests.tables import federation_of_tables
from vfgnn.agreement import DEALER
from vfgnn.bench.serve import Served
from vfgnn.errors import ProtocolError
from vfgnn.files import FederationFile, Patience, load_party
from vfgnn.lab.processes import LocalProcesses
from vfgnn.messages import Declared
from vfgnn.party import programs
from vfgnn.party.session import NetworkSession, capacities
from vfgnn.party.trained import TrainedParty
from vfgnn.split.program import CONTROL, H0_SHARE
from vfgnn.transport import wire
from vfgnn.transport.capacity import NOTHING, Capacity, LinkBudget

MB = 2**20
SMALL = Capacity(LinkBudget(8, 2 * MB, {H0_SHARE: MB}), LinkBudget(8, 2 * MB, {H0_SHARE: MB}))


@pytest.fixture
def local(tmp_path):
    return small(tmp_path / "federation", patience=Patience(start_s=10, message_s=3, away_s=2))


@pytest.fixture
def taken(monkeypatch):
    """The bytes of every message that memory was taken for, in order."""
    sizes = []

    class Counted(wire.Assembly):
        def __init__(self, message):
            sizes.append(message.bytes)
            super().__init__(message)

    monkeypatch.setattr(wire, "Assembly", Counted)
    return sizes


def six(start):
    return [part for n in range(1, 7) for part in (header(start, n, shape=(MB,)), bytes(MB))]


def slow(taken, before):
    """A party that is busy for a while, and then uses all six."""

    def work(network, peer):
        time.sleep(0.4)
        before.append(sum(taken))
        for _ in range(6):
            network.get("B")

    return work


def test_messages_beyond_the_budget_stay_on_the_line(local, taken):
    """Six messages, each of a kind and size that the program has: two have room, the others come when it is free."""
    before = []
    error, _ = attack(local, lambda start: [*six(start), 0.5], slow(taken, before), room=SMALL)
    assert before == [2 * MB]
    assert len(taken) == 6
    assert "B ended" in str(error) or "away" in str(error) or error is None


def test_without_the_budget_all_of_them_take_memory(local, taken, monkeypatch):
    monkeypatch.setattr(LinkBudget, "has_room", lambda *_: True)
    before = []
    attack(local, lambda start: [*six(start), 0.5], slow(taken, before), room=SMALL)
    assert before == [6 * MB]


def test_a_message_of_a_later_program_waits_until_the_party_is_there(local, taken):
    before = []

    def work(network, peer):
        time.sleep(0.4)
        before.append(sum(taken))
        network.resize({"B": SMALL})
        assert len(network.get("B")[1]) == MB

    attack(local, lambda start: [*six(start)[:2], 0.5], work, room=NOTHING)
    assert before == [0]
    assert taken == [MB]


@pytest.mark.parametrize("undeclared", [{"kind": CONTROL}, {"shape": (MB + 1,)}], ids=["kind", "size"])
def test_who_waits_for_a_message_hears_at_once_that_another_came(local, taken, undeclared):
    began = time.monotonic()
    error, reason = attack(local, lambda start: [header(start, **undeclared)], room=SMALL)
    assert isinstance(error, ProtocolError)
    for said in (str(error), reason):
        assert "a message that the program has no room for now" in said
    assert taken == []
    assert time.monotonic() - began < 3


def test_a_size_that_no_program_has_is_refused(local, taken):
    error, _ = attack(local, lambda start: [header(start, shape=(2**26 + 1,))], room=SMALL)
    assert "larger than any of the schedule" in str(error)
    assert taken == []


def test_a_sender_keeps_to_the_same_budget(local):
    """So a peer that follows the program is never held back, and never refused."""
    queued = []

    def send(network, peer):
        for number in range(5):
            payload = words(MB // 8, number)
            network.put(declare("A", "B", payload), payload)
            queued.append(number)

    def receive(network, peer):
        time.sleep(0.4)
        assert len(queued) == 2
        for number in range(5):
            assert int(network.get("A")[1][0]) == number

    one, other = Party(local, "A", send), Party(local, "B", receive)
    for party in (one, other):
        party.network.resize({party.peer: SMALL})
    run_pair(one, other)
    assert (one.error, other.error) == (None, None)


@pytest.fixture
def of_tables(local):
    """Any number of nodes up to a million; 40 are found."""
    aligned = {"nodes": None, "alignment": {"method": "tokens", "max_ids": 1_000_000}}
    return FederationFile.model_validate(local.file.document | aligned)


def waiting(name, made):
    """The bytes that all peers of a party can make it hold."""
    return sum(capacity.receives.bytes for capacity in capacities(name, made).values())


@pytest.mark.parametrize("name", ["A", "B", "server", DEALER])
def test_the_budgets_follow_the_number_of_nodes(of_tables, name):
    """The sizes of 40 nodes, not of a million; before they are known, ids alone have room."""
    whole = max(waiting(name, programs.of_run(of_tables)), waiting(name, programs.of_model(of_tables)))
    rest = 4096  # messages whose size has nothing to do with nodes: blocks of weights, 12 columns by 8
    for known in (programs.of_training(of_tables, 40), programs.of_pass(of_tables, 40, new_nodes=True)):
        assert waiting(name, known) <= whole * 40 / 1_000_000 + rest
    # Two steps of one list of a million ids, 16 bytes each, from each holder.
    assert waiting(name, programs.of_alignment(of_tables)) <= 2 * 2 * 16 * 1_000_000 + rest
    if name in "AB":
        assert whole > 300_000_000  # as it was for the whole run


def test_every_message_of_a_program_fits_its_budget(of_tables):
    for program in programs.of_run(of_tables):
        for message in program.messages():
            budget = capacities(message.receiver, [program])[message.sender].receives
            assert budget.has_room(0, 0, message)


def resident(process):
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


@pytest.mark.slow
def test_a_serving_party_keeps_its_memory_whatever_a_peer_sends(tmp_path):
    """The shop's key in another program: it meets the others, and sends the largest messages that it ever could."""
    settings = ["accept_h0_leak=true", "dim=64"]
    local = federation_of_tables(tmp_path / "federation", mode="collaborative", dealer=True, settings=settings)
    with LocalProcesses(local) as running:
        running.wait()
    with Served(local) as served:
        served.wait(200)
        served.processes.kill("shop")
        bank = served.processes.children["bank"]
        before = resident(bank)
        model = TrainedParty(local.file, load_party(local.party_toml("shop")))
        link = capacities("shop", programs.of_model(local.file))["bank"].sends
        kind = max(link.kinds, key=link.kinds.__getitem__)
        payload = torch.zeros(link.kinds[kind] // 8, dtype=torch.int64)
        count = link.bytes // link.kinds[kind]  # what an honest sender would let out, for a million nodes
        assert count * link.kinds[kind] > 1000 * MB
        session = NetworkSession(model.endpoint("serve", standing=True), programs.of_model(local.file))
        with pytest.raises(ProtocolError, match="over"), session.met(wait_s=60):
            for _ in range(count):
                session.network.put(Declared(kind, "shop", "bank", torch.int64, tuple(payload.shape)), payload)
            time.sleep(5)
            assert resident(bank) - before < 150 * MB
            raise ProtocolError("over")
        model.close()
