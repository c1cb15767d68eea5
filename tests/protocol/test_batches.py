"""Batches of training rows: the same model from one batch, a declared schedule, a public order, an exact resume."""

import pytest
import torch

from tests.conftest import random_graph
from tests.protocol.test_corner_cases import record
from vfgnn.agreement import SERVER, HolderShape, make_agreement
from vfgnn.data.holdings import FeatureMatrix
from vfgnn.data.partition import partition
from vfgnn.errors import ConfigError
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import build
from vfgnn.model.cg1_edges import LocalGnn, LocalGraph
from vfgnn.privacy.ledger import TRAIN, VAL
from vfgnn.program import Watch
from vfgnn.randomness import scattered
from vfgnn.rows import RowSet
from vfgnn.settings import Settings, make_settings
from vfgnn.split import program
from vfgnn.split.program import H0_SHARE, LOCAL_EMBEDDINGS
from vfgnn.split.steps import Moment, Rows, batches, steps

TRAINING_ROWS = 20  # of the graph below


def settings_for(**changes):
    chosen = {"dim": 8, "epochs": 6, "joint_layer": "insecure_clear", "accept_h0_leak": True, **changes}
    return make_settings(chosen, where="test")


def parties_for(holders=2, **changes):
    graph = random_graph()
    return build(
        partition(graph.x, graph.edge_index, holders=holders, seed=3),
        split_labels(graph),
        settings_for(**changes),
        seed=5,
    )


@pytest.mark.parametrize(
    "changes", [{}, {"joint_layer": "secure"}, {"gnn": "appnp", "layers": 4}, {"evaluate_every": 2}]
)
def test_one_batch_of_all_rows_is_full_batch_training(changes):
    whole, batched = parties_for(**changes), parties_for(batch_rows=TRAINING_ROWS, **changes)
    assert batched.train() == whole.train()
    assert torch.equal(batched.result.logits, whole.result.logits)


def test_one_batch_of_individual_embeddings():
    """X_i W_i is then computed by rows: the same sums of 12 terms, rounded in another order."""
    changes = {"initial_embedding": "individual", "precision": "float64"}
    whole, batched = parties_for(**changes), parties_for(batch_rows=TRAINING_ROWS, **changes)
    losses = [[metrics.loss for metrics in parties.train().history[:-1]] for parties in (whole, batched)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-12)


@pytest.mark.parametrize("changes", [{"fanout": (3, 2)}, {"gnn": "sage_lstm"}, {"initial_embedding": "individual"}, {}])
def test_batches_train(changes):
    parties = parties_for(holders=3, batch_rows=6, epochs=20, **changes)
    losses = [metrics.loss for metrics in parties.train().history if metrics.loss is not None]
    assert len(losses) == 20
    assert losses[-1] < losses[0]


def agreement(**settings):
    shapes = [
        HolderShape(name="A", features=3, edges=True),
        HolderShape(name="B", features=5, edges=True),
        HolderShape(name="C", features=2, edges=False),
    ]
    return make_agreement(
        nodes=30, classes=3, holders=shapes, label_holder="A", settings=Settings(dim=4, epochs=3, **settings)
    )


ROWS = Rows(RowSet(torch.arange(10, 20)), RowSet(torch.arange(20, 27)))


def cut(fed, rows=ROWS):
    return [[(part.step, part.rows) for part in batches(fed, Moment(rows, step))] for step in steps(fed)]


def test_an_epoch_has_every_training_row_once_in_an_order_of_its_own():
    fed = agreement(batch_rows=4)
    epochs = cut(fed)
    orders = [torch.cat([rows.train.numbers for _, rows in epoch]) for epoch in epochs[:-1]]
    assert [[len(rows.train) for _, rows in epoch] for epoch in epochs[:-1]] == [[4, 3, 3]] * 3
    assert all(torch.equal(order.sort().values, ROWS.train.numbers) for order in orders)
    assert len({tuple(order.tolist()) for order in orders}) == 3
    again = cut(agreement(batch_rows=4, learning_rate=0.5))  # nothing of it follows from other settings
    assert all(rows.train.same_as(same.train) for (_, rows), (_, same) in zip(epochs[1], again[1], strict=True))


def test_only_the_first_batch_refreshes_evaluates_and_is_charged():
    steps = [step for step, _ in cut(agreement(batch_rows=4))[1]]
    assert [step.refresh for step in steps] == [True, False, False]
    assert [step.evaluates for step in steps] == [True, False, False]
    assert [step.closes for step in steps] == [False, False, True]
    assert all(step.trains_joint for step in steps)
    assert [ROWS.classes(step) for step in steps] == [(TRAIN, VAL), (), ()]
    assert sum(step.share for step in steps) == pytest.approx(1.0)


def test_the_last_step_and_those_who_know_no_rows_have_one_batch():
    fed = agreement(batch_rows=4)
    assert [len(epoch) for epoch in cut(fed)] == [3, 3, 3, 1]
    assert [len(epoch) for epoch in cut(fed, Rows.all(30))] == [1, 1, 1, 1]


def test_what_is_declared_for_a_batch():
    """Batches of 4, 3 and 3 rows, with the 7 validation rows in the first; h0 shares once, over all 30 nodes."""
    fed = agreement(batch_rows=4)
    phases = {phase.name: phase for phase in program.training(fed).phases}
    moments = [Moment(rows, step) for step, rows in cut(fed)[1]]
    messages = [
        [m for name in ("refresh", "forward") if phases[name].when(moment) for m in phases[name].messages(moment)]
        for moment in moments
    ]
    published = [[m.shape[0] for m in batch if m.kind == LOCAL_EMBEDDINGS] for batch in messages]
    assert published == [[11, 11], [3, 3], [3, 3]]
    shares = [[m.shape for m in batch if m.kind == H0_SHARE] for batch in messages]
    assert shares == [[(30, 4)] * 4, [], []]
    gradients = [phases["backward"].messages(moment)[0].shape[0] for moment in moments]
    assert gradients == [4, 3, 3]


def test_rows_are_sent_as_declared_and_once_per_epoch():
    parties = parties_for(batch_rows=8, epochs=2, evaluate_every=9)
    links = record(parties)
    parties.train()
    sizes = [message.shape[0] for message, _ in links["B", SERVER] if message.kind == LOCAL_EMBEDDINGS]
    assert sizes == [7, 7, 6, 7, 7, 6, 10, 40]  # two epochs, then the validation rows, then all nodes


def test_a_training_row_is_charged_once_per_epoch():
    privacy = {"row_epsilon": 5.0, "gradient_epsilon": 5.0, "delta": 1e-4}
    spent = []
    for batch_rows in (None, 6):
        parties = parties_for(batch_rows=batch_rows, epochs=4, privacy=privacy)
        parties.train()
        releases = parties.label_holder.publisher.ledger.releases
        spent.append([(release.what, release.step, release.classes) for release in releases])
    assert [line for line in spent[1] if line[1] is not None] == [line for line in spent[0] if line[1] is not None]
    # The best epoch's weights released one batch of training rows only: the others are noised at the prediction.
    assert spent[1][-1] == ("rows", None, ("train", "other"))


def test_a_kill_in_the_middle_of_an_epoch_goes_back_to_its_beginning_exactly():
    changes = {"batch_rows": 6, "epochs": 5, "fanout": (3, 2), "joint_layer": "secure"}
    undisturbed = parties_for(**changes).train()
    states, killed = {}, parties_for(**changes)

    def keep(name, party):
        return Watch(begins=lambda number: states.__setitem__((name, number), party.state()))

    watches = {name: keep(name, party) for name, party in killed.parties.items()}
    killed.carry_out(killed.program, watches=watches)
    resumed = parties_for(**changes)
    for name, party in resumed.parties.items():
        party.load(states[name, 3])
    resumed.carry_out(resumed.program, begin=3)
    assert resumed.result.outcome == undisturbed


@pytest.mark.parametrize(
    ("changes", "says"), [({"batch_rows": 0}, "batch_rows"), ({"batch_rows": 5, "publish": "all"}, "publish = needed")]
)
def test_settings_that_cannot_be_used_are_refused(changes, says):
    with pytest.raises(ConfigError, match=says):
        settings_for(**changes)


@pytest.mark.parametrize("gnn", ["sage_mean", "sage_lstm", "sage_pool", "gcn", "gat"])
def test_sampled_neighbours_do_not_depend_on_the_batch(gnn):
    """Drawn for the whole graph without looking at it: each row by itself, or all at once."""
    settings = settings_for(gnn=gnn, batch_rows=5, fanout=(2, 2), layers=2, precision="float64")
    graph = LocalGraph(random_graph().edge_index, 40, settings, torch.device("cpu"))
    torch.manual_seed(0)
    gnn_module, h0 = LocalGnn(settings), torch.randn(40, 8, dtype=torch.float64)
    everywhere = gnn_module(h0, graph.around(None, torch.Generator().manual_seed(7)))
    for row in (3, 17, 31):
        alone = gnn_module(h0, graph.around(torch.tensor([row]), torch.Generator().manual_seed(7)))
        assert float((alone - everywhere[row]).detach().abs().max()) < 1e-12  # the same sums, in another order


@pytest.mark.parametrize("gnn", ["sage_mean", "sage_lstm", "sage_pool", "gcn", "gat"])
def test_a_layer_computes_what_the_next_one_hears_and_learns_the_same(gnn):
    settings = settings_for(gnn=gnn, batch_rows=5, fanout=(2, 2, 1), layers=3, precision="float64")
    graph = LocalGraph(random_graph().edge_index, 40, settings, torch.device("cpu"))
    torch.manual_seed(0)
    gnn_module, rows = LocalGnn(settings), torch.tensor([31, 3, 17, 3])  # in any order, and one twice
    target, gradients = torch.randn(4, 8, dtype=torch.float64), []
    for wanted in (None, rows):
        h0 = torch.arange(320, dtype=torch.float64).reshape(40, 8).sin().requires_grad_()
        around = graph.around(wanted, torch.Generator().manual_seed(7))
        out = gnn_module(h0, around)
        gnn_module.zero_grad()
        ((out[rows] if wanted is None else out) * target).sum().backward()
        gradients.append([h0.grad, *(weight.grad for weight in gnn_module.parameters())])
    assert [len(one.nodes) for one in around] == sorted((len(one.nodes) for one in around), reverse=True)
    assert [len(one.computed) for one in around] == [*(len(one.nodes) for one in around[1:]), 3]
    for everywhere, alone in zip(*gradients, strict=True):
        assert float((everywhere - alone).abs().max()) < 1e-12  # the same sums, in another order


def test_scattered_numbers_are_uniform_and_salted():
    """A mean of 10^5 uniform numbers: deviation 0.29 / 316 = 9.1e-4; five of them. Unlike salts: no correlation."""
    one, other = (scattered(torch.arange(100_000), salt) for salt in (1, 2))
    assert abs(float(one.mean()) - 0.5) < 5 * 9.1e-4
    assert 0 <= float(one.min()) <= float(one.max()) < 1
    assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 5 / 316


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_a_feature_matrix(sparse):
    x = torch.rand(9, 5, dtype=torch.float64) * (torch.rand(9, 5) < 0.5)
    w, numbers = torch.rand(5, 3, dtype=torch.float64, requires_grad=True), torch.tensor([7, 0, 7, 4])
    some = FeatureMatrix(x, sparse=sparse).rows(numbers)
    some.times(w).square().sum().backward()
    expected = 2 * x[numbers].t() @ (x[numbers] @ w.detach())
    assert torch.allclose(w.grad, expected)
