"""Alignment against plaintext sets; what each party may see; and every way to spoil it that must be noticed."""

import hmac
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest
import torch

from vfgnn.agreement import DEALER, SERVER
from vfgnn.alignment import program
from vfgnn.alignment.align import align
from vfgnn.alignment.order import Aligned
from vfgnn.alignment.program import (
    COMMON_COUNT,
    COMMON_POSITIONS,
    COMMON_TOKENS,
    ID_COUNT,
    NODE_COUNT,
    ORDER_DIGEST,
    PSI_REQUEST,
    PSI_RESPONSE,
    PSI_SETUP,
    PSI_SIZE,
    TOKENS_SENT,
    AlignmentPlan,
)
from vfgnn.alignment.psi import _shuffled
from vfgnn.alignment.tokens import OwnTokens, from_tensor, intersection
from vfgnn.errors import ConfigError, DataError, ProtocolError
from vfgnn.program import links
from vfgnn.randomness import insecure_seed
from vfgnn.transport.memory import InMemoryNetwork

KEY = insecure_seed(7)
METHODS = ["tokens", "psi"]


class Recorded(InMemoryNetwork):
    """Keeps what was sent; `spoil` may put another payload in its place."""

    def __init__(self, spoil=None):
        super().__init__()
        self.transcript, self._spoil = [], spoil or (lambda message, payload: payload)

    def put(self, message, payload):
        payload = self._spoil(message, payload)
        self.transcript.append((message, payload.clone()))
        super().put(message, payload)

    def sent(self, *kinds):
        return [payload for message, payload in self.transcript if message.kind in kinds]


class Run:
    """All parties over one network; the label holder is A."""

    def __init__(self, method, ids, *, key=KEY, max_ids=10_000, spoil=None):
        self.ids = {name: pa.array(own, pa.string()) for name, own in ids.items()}
        self.network, self.key = Recorded(spoil), key
        holders = tuple(ids)
        others = (SERVER, DEALER, *(name for name in holders if name != "A"))
        self.plan, self.results = AlignmentPlan(method, holders, "A", others, max_ids), {}

    def go(self):
        self.network.run({name: self._follow(name) for name in (*self.ids, SERVER, DEALER)})
        return self

    def _follow(self, name):
        def work():
            key = self.key if name == "A" else None
            self.results[name] = align(self.network.channel(name), self.plan, self.ids.get(name), key=key)

        return work

    def ordered(self, name):
        return self.ids[name].take(pa.array(self.results[name].rows.numpy())).to_pylist()


def by_token(ids, key=KEY):
    return sorted(ids, key=lambda one: hmac.new(key, one.encode(), "sha256").digest()[:16])


def some_ids(holders, *, common=40, own=25):
    """`common` ids at all, some at all but one, some at one only, each list in an order of its own."""
    names = "ABCD"[:holders]
    shared = [f"shared-{i}" for i in range(common)]
    ids = {}
    for number, name in enumerate(names):
        partly = [f"partly-{i}" for i in range(30) if i % holders != number]
        listed = shared + partly + [f"{name}-{i}" for i in range(own + number)]
        order = torch.randperm(len(listed), generator=torch.Generator().manual_seed(number))
        ids[name] = [listed[i] for i in order]
    return ids


def declared(run):
    return {(m.kind, m.sender, m.receiver) for m in program.aligning(run.plan).messages()}


def check(run):
    wanted = by_token(set.intersection(*(set(own.to_pylist()) for own in run.ids.values())), run.key)
    assert all(run.ordered(name) == wanted for name in run.ids)
    assert len({run.results[name].digest for name in run.ids}) == 1
    assert run.results[SERVER].nodes == run.results[DEALER].nodes == len(wanted)
    allowed, bounds = declared(run), links(program.aligning(run.plan))
    for message, _ in run.network.transcript:
        assert (message.kind, message.sender, message.receiver) in allowed
        assert message.bytes <= bounds[message.sender, message.receiver].kinds[message.kind]
    return wanted


@pytest.mark.parametrize("holders", [2, 3, 4])
def test_tokens_give_the_intersection_in_one_order(holders):
    ids = some_ids(holders)

    run = Run("tokens", ids).go()

    common, listed = len(check(run)), sum(map(len, ids.values()))
    sent = sum(message.bytes for message, _ in run.network.transcript)
    assert common == 40
    assert sent == (32 + 32) * (holders - 1) + (8 + 8 + 8 * common) * holders + 16 * listed + 8 * (holders + 1)
    everything = {(message.kind, message.sender, message.receiver) for message, _ in run.network.transcript}
    assert everything == declared(run)


@pytest.mark.parametrize(("own", "other"), [(60, 200), (200, 60), (100, 100), (1, 1)])
def test_psi_gives_the_intersection_whoever_asks(own, other):
    ids = {"A": [f"n{i}" for i in range(own)], "B": [f"n{i}" for i in range(own // 2, own // 2 + other)]}

    run = Run("psi", ids).go()

    common = len(check(run))
    (asker,) = {message.sender for message, _ in run.network.transcript if message.kind == PSI_REQUEST}
    sizes = sum(len(payload) for payload in run.network.sent(PSI_REQUEST, PSI_SETUP, PSI_RESPONSE))
    assert common == min(other, own - own // 2)
    assert asker == ("A" if own <= other else "B")
    assert 0 <= sizes - 35 * (2 * min(own, other) + max(own, other)) <= 3 * program.FRAME_BYTES


def test_psi_in_several_pieces():
    ids = {"A": [f"n{i}" for i in range(2_100)], "B": [f"n{i}" for i in range(600, 1_700)]}

    run = Run("psi", ids).go()

    assert len(check(run)) == 1_100
    assert len(run.network.sent(PSI_REQUEST)) == len(run.network.sent(PSI_RESPONSE)) == 2


@pytest.mark.slow
def test_psi_with_many_ids():
    ids = {"A": [f"n{i}" for i in range(20_000)], "B": [f"n{i}" for i in range(10_000, 30_000)]}

    run = Run("psi", ids, max_ids=20_000).go()

    assert len(check(run)) == 10_000


def test_psi_may_send_in_both_directions_but_no_more():
    small, large = [f"n{i}" for i in range(5)], [f"n{i}" for i in range(9)]

    runs = [Run("psi", {"A": small, "B": large}).go(), Run("psi", {"A": large, "B": small}).go()]

    seen = {(message.kind, message.sender, message.receiver) for run in runs for message, _ in run.network.transcript}
    assert seen == declared(runs[0])


@pytest.mark.parametrize("method", METHODS)
def test_ids_may_be_any_text(method):
    ids = {"A": ["ä", "a", "节点", "🜁", "x" * 5000, "", "0", "-0"], "B": ["🜁", "", "x" * 5000, "0", "Ä", "节点", "b"]}

    run = Run(method, ids).go()

    assert set(check(run)) == {"节点", "🜁", "x" * 5000, "", "0"}


@pytest.mark.parametrize("method", METHODS)
def test_a_key_is_drawn_where_none_is_given(method):
    runs = [Run(method, some_ids(2), key=None).go() for _ in range(2)]

    assert runs[0].ordered("A") == runs[0].ordered("B") != runs[1].ordered("A")
    assert runs[0].results["A"].digest != runs[1].results["A"].digest


def test_tokens_under_two_keys_share_nothing():
    runs = [Run("tokens", some_ids(2), key=insecure_seed(number)).go() for number in range(2)]

    views = [{bytes(row) for tokens in run.network.sent(TOKENS_SENT) for row in tokens.numpy()} for run in runs]

    assert len(views[0]) == len(views[1]) > 100
    assert not views[0] & views[1]


@pytest.mark.parametrize("method", METHODS)
def test_the_server_sees_neither_an_id_nor_the_key(method):
    run = Run(method, some_ids(2)).go()

    seen = [(message, payload) for message, payload in run.network.transcript if message.receiver in (SERVER, DEALER)]

    text = b"".join(payload.numpy().tobytes() for _, payload in seen)
    assert not any(one.encode() in text for own in run.ids.values() for one in own.to_pylist())
    assert KEY not in text
    allowed = {ID_COUNT, TOKENS_SENT, NODE_COUNT} if method == "tokens" else {NODE_COUNT}
    assert {message.kind for message, _ in seen} == allowed


def test_psi_messages_hold_no_id_and_another_order_each_time():
    run = Run("psi", some_ids(2)).go()

    text = b"".join(payload.numpy().tobytes() for payload in run.network.sent(PSI_REQUEST, PSI_SETUP))

    assert not any(one.encode() in text for own in run.ids.values() for one in own.to_pylist())
    one, other = (np.concatenate(_shuffled(3_000)) for _ in range(2))
    assert sorted(one) == sorted(other) == list(range(3_000))
    assert not np.array_equal(one, other)


UNUSABLE = {
    "repeated": (["a-secret", "b", "a-secret", "a-secret"], DataError, "2 repeated row"),
    "none": ([], DataError, "no ids"),
    "missing": (["a-secret", None], DataError, "1 empty"),
    "too many": ([f"a-secret-{i}" for i in range(6)], ConfigError, "at most 5"),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", UNUSABLE)
def test_unusable_ids_are_refused_at_home(method, case):
    own, error, words = UNUSABLE[case]
    run = Run(method, {"A": ["a", "b"], "B": own}, max_ids=5)

    with pytest.raises(error, match=words) as refused:
        run.go()

    assert "B" in str(refused.value)
    assert "secret" not in str(refused.value)
    assert not [message for message, _ in run.network.transcript if message.sender == "B"]


def test_numbers_are_not_ids():
    run = Run("tokens", {"A": ["1"], "B": ["1"]})
    run.ids["B"] = pa.array([1])

    with pytest.raises(DataError, match="must be text"):
        run.go()


@pytest.mark.parametrize("method", METHODS)
def test_nothing_in_common_is_refused(method):
    run = Run(method, {"A": ["1", "2"], "B": ["01", "02", "03"]})

    with pytest.raises(DataError, match="no node in common") as refused:
        run.go()

    assert "key column" in str(refused.value)
    assert not run.network.sent(NODE_COUNT)


def dropped(rows):
    return rows[:-1]


def swapped(rows):
    return torch.cat([rows[1:2], rows[:1], rows[2:]])


@pytest.mark.parametrize("spoilt", [dropped, swapped])
@pytest.mark.parametrize(("method", "holders"), [("tokens", 2), ("tokens", 4), ("psi", 2)])
def test_another_order_at_one_holder_ends_the_run_by_name(monkeypatch, method, holders, spoilt):
    true = OwnTokens.rows_at

    def rows_at(self, positions, sender):
        rows = true(self, positions, sender)
        return spoilt(rows) if threading.current_thread().name == "B" else rows

    monkeypatch.setattr(OwnTokens, "rows_at", rows_at)
    run = Run(method, some_ids(holders))

    with pytest.raises(ProtocolError, match="not in the same order") as refused:
        run.go()

    assert "row at B, or at A itself" in str(refused.value)
    assert not run.network.sent(NODE_COUNT)


def at(kind, *, sender=None, receiver=None):
    """Spoil messages of a kind on a link with a function of the payload."""

    def decorate(change):
        def spoil(message, payload):
            meant = message.kind == kind and sender in (None, message.sender) and receiver in (None, message.receiver)
            return change(payload.clone()) if meant else payload

        return spoil

    return decorate


def test_a_server_that_gives_other_positions_is_noticed():
    @at(COMMON_POSITIONS, receiver="B")
    def spoil(positions):
        free = [at for at in range(int(positions[-1])) if at not in positions]
        positions[(positions < free[0]).sum()] = free[0]
        return positions

    run = Run("tokens", some_ids(3), spoil=spoil)

    with pytest.raises(ProtocolError, match="row at B"):
        run.go()

    assert not run.network.sent(NODE_COUNT)


SPOILT_LISTS = {
    "positions swapped": (COMMON_POSITIONS, SERVER, "B", lambda p: p.flip(0), "from server"),
    "position below": (COMMON_POSITIONS, SERVER, "B", lambda p: p - 1000, "from server"),
    "position above": (COMMON_POSITIONS, SERVER, "B", lambda p: p + 1000, "from server"),
    "position twice": (COMMON_POSITIONS, SERVER, "B", lambda p: p[[0, *range(len(p) - 1)]], "from server"),
    "tokens unsorted": (TOKENS_SENT, "B", SERVER, lambda t: t.flip(0), "from B"),
    "token twice": (TOKENS_SENT, "B", SERVER, lambda t: t[[0, *range(len(t) - 1)]], "from B"),
    "no ids": (ID_COUNT, "B", SERVER, lambda c: c * 0, "B"),
    "too many ids": (ID_COUNT, "B", SERVER, lambda c: c + 10_000, "B"),
    "more common than own": (COMMON_COUNT, SERVER, "B", lambda c: c + 1000, "server"),
    "fewer than none": (COMMON_COUNT, SERVER, "B", lambda c: c - 1000, "server"),
    "other digest": (ORDER_DIGEST, "B", "A", lambda d: d + 1, "at B"),
    "nodes for the server": (NODE_COUNT, "A", SERVER, lambda c: c + 1, "A"),
    "nodes for a holder": (NODE_COUNT, "A", "B", lambda c: c + 1, "A"),
    "nodes for the dealer": (NODE_COUNT, "A", DEALER, lambda c: c * 0, "A"),
}


@pytest.mark.parametrize("case", SPOILT_LISTS)
def test_spoilt_messages_are_refused(case):
    kind, sender, receiver, change, where = SPOILT_LISTS[case]
    run = Run("tokens", some_ids(3), spoil=at(kind, sender=sender, receiver=receiver)(change))

    with pytest.raises(ProtocolError, match=where):
        run.go()


def halves_exchanged(message):
    half = len(message) // 2
    return torch.cat([message[half:], message[:half]])


SPOILT_PSI = {
    "request": (PSI_REQUEST, torch.zeros_like, "from A"),
    "setup": (PSI_SETUP, halves_exchanged, "from B"),
    "response": (PSI_RESPONSE, torch.zeros_like, "from B"),
    "answers to other ids": (PSI_RESPONSE, halves_exchanged, "not this holder's"),
    "no point": (PSI_RESPONSE, lambda m: m.index_fill(0, torch.tensor([2]), 7), "from B"),
    "size": (PSI_SIZE, lambda size: size + 10_000, "PSI message of no possible size"),
    "count": (ID_COUNT, lambda count: count * 0, "count that cannot be"),
    "common count": (COMMON_COUNT, lambda count: count + 1000, "count that cannot be"),
    "foreign token": (COMMON_TOKENS, lambda tokens: tokens ^ 1, "not this holder's"),
    "token twice": (COMMON_TOKENS, lambda t: t[[0, *range(len(t) - 1)]], "positions that cannot be"),
}


@pytest.mark.parametrize("case", SPOILT_PSI)
def test_spoilt_psi_messages_are_refused(case):
    kind, change, words = SPOILT_PSI[case]
    run = Run("psi", some_ids(2), spoil=at(kind)(change))

    with pytest.raises(ProtocolError, match=words):
        run.go()

    assert not run.network.sent(NODE_COUNT)


def rewritten(name, change):
    """A PSI message that the library can read, with other elements in it."""

    def spoil(message):
        psi = pytest.importorskip("private_set_intersection.python")
        read = getattr(psi, name).FromString(message.numpy().tobytes())
        elements = (read.raw if name == "ServerSetup" else read).encrypted_elements
        changed = change(list(elements))
        del elements[:]
        elements.extend(changed)
        return torch.frombuffer(bytearray(read.SerializeToString()), dtype=torch.uint8)

    return spoil


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        (PSI_SETUP, "ServerSetup", lambda elements: elements[::-1]),
        (PSI_SETUP, "ServerSetup", lambda elements: sorted([*elements[1:], elements[1]])),
    ],
)
def test_a_setup_that_hides_something_is_refused(kind, name, change):
    run = Run("psi", some_ids(2), spoil=at(kind)(rewritten(name, change)))

    with pytest.raises(ProtocolError, match="from B"):
        run.go()


def test_psi_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "private_set_intersection.python", None)

    with pytest.raises(ConfigError, match=r"vfgnn\[psi\]"):
        Run("psi", some_ids(2)).go()


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "hashes"},
        {"holders": ("A",)},
        {"method": "psi", "holders": ("A", "B", "C"), "others": ("server", "B", "C")},
        {"label_holder": "C"},
        {"others": ("server",)},
        {"others": ("B",)},
        {"others": ("server", "A", "B")},
        {"max_ids": 0},
    ],
)
def test_impossible_plans_are_refused(changes):
    possible = {"method": "tokens", "holders": ("A", "B"), "label_holder": "A", "others": ("server", "B"), "max_ids": 9}
    AlignmentPlan(**possible)

    with pytest.raises(ConfigError):
        AlignmentPlan(**{**possible, **changes})


def test_nothing_prints_what_it_holds():
    aligned = Aligned(2, torch.tensor([31337, 4]), bytes(32))
    own = OwnTokens.of(pa.array([b"secret", b"other"], pa.large_binary()), KEY)

    assert repr(aligned) == "Aligned(nodes=2)"
    assert repr(own) == "OwnTokens(count=2)"


def test_any_bytes_are_compared_as_bytes():
    draw = torch.Generator().manual_seed(0)
    values = torch.tensor([0, 1, 127, 128, 255], dtype=torch.uint8)
    picks = torch.randint(5, (2, 4_000, 16), generator=draw)
    picks[:, :, :-3] = 0  # so that many are equal
    lists = [sorted({bytes(row) for row in values[pick].numpy()}) for pick in picks]

    arrays = {
        name: from_tensor(torch.frombuffer(bytearray(b"".join(own)), dtype=torch.uint8).reshape(-1, 16))
        for name, own in zip("AB", lists, strict=True)
    }
    common = intersection(arrays)

    assert all(bool((own[1:] > own[:-1]).all()) for own in arrays.values())
    assert common.tobytes() == b"".join(sorted(set(lists[0]) & set(lists[1])))


@pytest.mark.parametrize("ids", [1, 1_023, 1_024, 1_025, 16_384, 16_385, 1_000_003])
def test_pieces_cover_all_ids(ids):
    pieces = program.piece_counts(ids)

    assert sum(pieces) == ids
    assert len(pieces) <= program.PIECES
    assert max(pieces) - min(pieces) <= 1
