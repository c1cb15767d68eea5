"""What cannot be trained on is refused by name before anything is sent; what can be is trained on."""

import logging

import pytest
import torch

from tests.sealed_twin import labels_of, settings_of, small, train
from vfgnn.data.holdings import Holding, Labels
from vfgnn.errors import ChannelClosed, ConfigError, DataError, Overflow, VfgnnError
from vfgnn.lab.simulate import build
from vfgnn.mpc.sparse import PrivateGraphs
from vfgnn.party.own_code import OwnCode
from vfgnn.sealed import program
from vfgnn.sealed.holder import SealedHolder
from vfgnn.settings import make_settings
from vfgnn.transport.memory import InMemoryNetwork

SETTINGS = {"hops": 2, "order": "labels"}


class Silent(InMemoryNetwork):
    """A network over which nothing may be sent."""

    def put(self, message, payload):
        raise AssertionError(f"{message} was sent")


def refused(held, labels, **settings):
    """What building and training says, over a network that carries nothing."""
    with pytest.raises(VfgnnError) as error:
        train(held, labels, network=Silent(), record=False, **{**SETTINGS, **settings})
    return error.value


def changed(held, which, **fields):
    one = held[which]
    made = {"x": one.x, "edge_index": one.edge_index, **fields}
    return [*held[:which], Holding(**made), *held[which + 1 :]]


def star(nodes):
    return torch.stack([torch.zeros(nodes - 1, dtype=torch.int64), torch.arange(1, nodes)])


def test_nan_is_refused():
    held, _ = small(2)
    x = held[1].x.clone()
    x[2, 1] = torch.nan
    with pytest.raises(DataError, match="finite"):
        changed(held, 1, x=x)


def test_features_beyond_the_bound():
    held, labels = small(2)
    error = refused(changed(held, 1, x=held[1].x * 2000), labels)
    assert isinstance(error, DataError)
    assert "features of B" in str(error)
    assert "1024" in str(error)


@pytest.mark.parametrize(
    ("fields", "said"), [({"edge_weight": torch.ones(2)}, "weights"), ({"local": 1}, "local neighbours")]
)
def test_edge_weights_and_local_neighbours(fields, said):
    held, labels = small(2)
    one = changed(held, 1, edge_index=torch.tensor([[0, 1], [1, 2]]), **fields)
    if "local" in fields:
        one[1] = Holding(x=torch.cat([held[1].x, held[1].x[:1]]), edge_index=one[1].edge_index, local=1)
    error = refused(one, labels)
    assert isinstance(error, ConfigError)
    assert said in str(error)


def test_one_holder_alone():
    held, labels = small(2)
    assert "two holders or more" in str(refused(held[:1], labels))


def test_no_columns_at_all():
    held, labels = small(2, columns=[0, 0])
    assert "features at one holder at least" in str(refused(held, labels))


def test_a_bound_below_the_number_of_edges(monkeypatch):
    monkeypatch.setattr("vfgnn.lab.scenario._declared", lambda holding: 4)
    held, labels = small(2)
    error = refused(held, labels)
    assert "more directed entries than the holder has declared" in str(error)
    assert "at most 4" in str(error)
    assert "4" not in error.what  # peers hear this part only


def test_training_rows_of_one_class():
    held, _ = small(2)
    y = torch.cat([torch.zeros(12), torch.ones(12)]).long()
    error = refused(held, labels_of(y, 2, 10, 6))
    assert "single class" in str(error)


def test_a_class_that_nobody_has():
    held, labels = small(2, nodes=60)
    error = refused(held, Labels(labels.y, labels.train, labels.val, labels.test, 5))
    assert isinstance(error, DataError)
    assert "a class that no row has" in str(error)
    assert "no row of class 3, 4" in str(error)
    assert not any(character.isdigit() for character in error.what)  # peers hear this part only


def test_a_class_without_a_training_row_is_never_predicted():
    held, labels = small(2, nodes=60)
    y = labels.y.clone()
    y[labels.test[:2]] = torch.tensor([3, 4])  # nobody trains on them
    five = Labels(y, labels.train, labels.val, labels.test, 5)
    scores = train(held, five, opens="scores", **SETTINGS).leader.result.logits
    assert float(scores[:, 3:].abs().max()) < 1e-4  # its labels are 0; each step is off by units of 2^-18
    assert not bool((scores.argmax(dim=1) >= 3).any())


def test_labels_outside_of_the_classes():
    with pytest.raises(DataError, match="labels missing"):
        labels_of(torch.tensor([0, 1, 2, 1, 0, 1]), 2, 3, 1)


def test_columns_that_say_nothing():
    """All zeros: the first quotient is 0, and the label holder says so."""
    held, labels = small(2)
    held = [Holding(x=torch.zeros_like(one.x), edge_index=one.edge_index) for one in held]
    with pytest.raises(Overflow, match="Rayleigh quotient"):
        train(held, labels, **SETTINGS)


def test_edges_beyond_the_quota_are_dropped_and_said(caplog):
    """A star of 40 at both holders, degrees in 4 bits: 7 edges of each holder, and 15 is the table's last entry."""
    held, labels = small(2, nodes=41)
    held = [Holding(x=one.x, edge_index=star(41)) for one in held]
    with caplog.at_level(logging.INFO, logger="vfgnn.run"):
        trained = train(held, labels, degree_bits=4, **SETTINGS)
    said = [record.fields for record in caplog.records if record.getMessage() == "edges dropped"]
    assert said == [{"directed_entries": 2 * 33, "quota_per_node": 7}] * 2
    looked_up = next(shares[0] for call, shares in trained.joined() if call == "look_up")
    table = ((1 - 0.1) / torch.arange(1, 16).double()).sqrt() * 2.0**20
    assert looked_up.tolist() == [round(float(table[d - 1])) for d in [15] + [3] * 7 + [1] * 33]


def test_without_a_quota_a_sum_leaves_the_table(monkeypatch):
    """Unseen: a degree of 41 has the factor of 41 mod 16."""
    monkeypatch.setattr("vfgnn.agreement.Agreement.degree_quota", 40)
    held, labels = small(2, nodes=41)
    held = [Holding(x=held[0].x, edge_index=star(41)), Holding(x=held[1].x, edge_index=held[1].edge_index[:, :0])]
    trained = train(held, labels, degree_bits=4, **SETTINGS)
    looked_up = next(shares[0] for call, shares in trained.joined() if call == "look_up")
    assert looked_up[0] == round((0.9 / (41 % 16)) ** 0.5 * 2**20)


@pytest.mark.parametrize("phase", ["set_up", "prepare", "step", "finish"])
def test_a_holder_that_leaves_is_named(phase, monkeypatch):
    """B fails in a phase; everybody else ends too, and says whose message did not come."""
    method, errors = getattr(SealedHolder, phase), {}

    def leave(self, moment):
        if self.channel.party == "B":
            raise ConfigError("out of memory", where="party B")
        method(self, moment)

    monkeypatch.setattr(SealedHolder, phase, leave)
    federation = build(*small(3), settings_of(**SETTINGS), seed=0)
    follow = federation._follow

    def noting(name, *arguments):
        try:
            follow(name, *arguments)
        except VfgnnError as error:
            errors[name] = error
            raise

    object.__setattr__(federation, "_follow", noting)
    with pytest.raises(ConfigError, match="out of memory"):
        federation.train()
    assert set(errors) == {"A", "B", "C", "dealer"}
    for name in ("A", "C", "dealer"):
        assert isinstance(errors[name], ChannelClosed)
        assert "ended before its message came" in str(errors[name])


def test_every_start_draws_fresh_permutations(monkeypatch):
    """Edges are fixed with a start; another start, of the same edges and seeds, has nothing in common with it."""
    tables = []
    for run in ("one", "two"):
        monkeypatch.setattr("vfgnn.lab.simulate.SIMULATION", run)
        network, sent = InMemoryNetwork(), []
        put = network.put

        def spy(message, payload, sent=sent, put=put):
            if message.kind in (program.GATHER_1, program.GATHER_2, program.GATHER_3, program.MASKED_FEATURES):
                sent.append((message.kind, message.sender, message.receiver, tuple(payload.flatten().tolist())))
            put(message, payload)

        network.put = spy
        train(*small(2, nodes=60), network=network, record=False, **SETTINGS)
        tables.append(sent)
    assert len(tables[0]) == len(tables[1]) == 8
    assert not set(tables[0]) & set(tables[1])


def test_edges_cannot_change_after_the_permutations_are_drawn():
    """A mutant: the list that a holder brought is changed while it trains. What was drawn for it goes on with it."""
    held, labels = small(2, nodes=60)
    before = train(held, labels, opens="scores", **SETTINGS)
    kept = PrivateGraphs.exchange

    def change(self):
        kept(self)
        held[1].edge_index.zero_()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivateGraphs, "exchange", change)
        after = train(held, labels, opens="scores", **SETTINGS)
    assert torch.equal(before.leader.result.logits, after.leader.result.logits)
    graphs = after.federation.holders[1]._means.graphs
    with pytest.raises(DataError, match="have changed"):
        graphs.require_unchanged(torch.zeros(2, 0, dtype=torch.int64), nodes=60)


def test_nothing_private_in_a_repr():
    trained = train(*small(2), **SETTINGS)
    for party in trained.federation.holders:
        for shown in (party, party.state(), party._means, party._work, party.rows):
            assert "tensor" not in repr(shown)
    assert "tensor" not in repr(trained.leader._steps)


def test_what_the_sealed_protocol_would_pass_over_is_refused():
    with pytest.raises(ConfigError) as refused:
        make_settings({"protocol": "sealed", "privacy": {"edge_epsilon": 1.0}}, where="a test")
    assert "noises nothing" in str(refused.value.expected)
    held, labels = small(2)
    with pytest.raises(ConfigError, match="code of your own"):
        build(held, labels, make_settings({"protocol": "sealed"}, where="a test"), seed=0, code=OwnCode(gnn=object))
