"""Parties run in threads and meet at a barrier to open values; the other tests on shares use the same helper."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from scipy.stats import chi2

from vfgnn.errors import ProtocolError
from vfgnn.mpc.beaver import matrix_products, products
from vfgnn.mpc.shared import Arithmetic, Corrections, DealtMaterial, MatrixProduct, Product, Truncation, matmul
from vfgnn.mpc.sharing import reconstruct, split
from vfgnn.randomness import Stream, insecure_seed

SEEDS = {f"h{i}": insecure_seed(100 + i) for i in range(5)}


class Table:
    """Where the parties lay their shares; counts rounds and the words that each party sends to one other."""

    def __init__(self, parties):
        self._barrier = threading.Barrier(parties, timeout=60)
        self._shares = [[] for _ in range(parties)]
        self.opened = []

    def open(self, party, shares):
        self._shares[party] = [share.clone() for share in shares]
        if self._barrier.wait() == 0:
            self.opened.append([tuple(share.shape) for share in shares])
        sums = [reconstruct(each) for each in zip(*self._shares, strict=True)]
        self._barrier.wait()
        return sums

    def leave(self):
        self._barrier.abort()

    @property
    def rounds(self):
        return len(self.opened)

    @property
    def words(self):
        return sum(torch.Size(shape).numel() for shapes in self.opened for shape in shapes)


class Seat:
    def __init__(self, table, party):
        self._table, self._party = table, party

    def open(self, *shares):
        return self._table.open(self._party, shares)


def run_parties(parties, work, materials, *inputs):
    """`work(arithmetic, *shares)` at every party on shares of the inputs; what each returned, and the table."""
    table = Table(parties)
    shares = [split(secret, parties, Stream(insecure_seed(7), "input", i)) for i, secret in enumerate(inputs)]

    def one(party):
        torch.set_num_threads(1)
        arithmetic = Arithmetic(Seat(table, party), materials[party], leads=party == 0)
        try:
            return work(arithmetic, *(each[party] for each in shares))
        except BaseException:
            table.leave()
            raise

    with ThreadPoolExecutor(parties) as pool:
        futures = [pool.submit(one, party) for party in range(parties)]
    return [future.result() for future in futures], table


def dealt(parties, operations, *, run="run"):
    """Every party's material; the last one is fed with the dealer's corrections."""
    seeds = dict(list(SEEDS.items())[:parties])
    corrections = Corrections(seeds, run=run).compute(operations)
    feed = iter(corrections).__next__
    last = list(seeds)[-1]
    return [
        DealtMaterial(seed, run=run, holder=name, next_correction=feed if name == last else None)
        for name, seed in seeds.items()
    ]


def run_dealt(parties, work, operations, *inputs):
    return run_parties(parties, work, dealt(parties, operations), *inputs)


def random_words(*shape, of="secret"):
    return Stream(insecure_seed(3), of).words(*shape)


def looks_uniform(words):
    """Chi-square of the top byte. Seeds are fixed: uniform words fail it for one choice of them in ten thousand."""
    counts = torch.bincount(((words >> 56) & 255).flatten(), minlength=256).double()
    expected = words.numel() / 256
    return float(((counts - expected) ** 2 / expected).sum()) < chi2.isf(1e-4, 255)


def words_of(shape):
    return torch.Size(shape).numel()


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (7, 5, 3), (2, 9, 4), (20, 1, 6)])
def test_a_product_of_shared_matrices_is_exact_in_the_ring(parties, m, k, n):
    x, y = random_words(m, k, of="x"), random_words(k, n, of="y")
    shares, table = run_dealt(parties, lambda a, *xy: matrix_products(a, xy)[0], [MatrixProduct(m, k, n)], x, y)
    assert torch.equal(reconstruct(shares), x @ y)
    assert (table.rounds, table.words) == (1, m * k + k * n)
    assert words_of(MatrixProduct(m, k, n).correction) == m * n


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("shape", [(1,), (6, 5), (2, 3, 4)])
def test_a_product_element_by_element_is_exact_in_the_ring(parties, shape):
    x, y = random_words(*shape, of="x"), random_words(*shape, of="y")
    shares, table = run_dealt(parties, lambda a, *xy: products(a, xy)[0], [Product(shape)], x, y)
    assert torch.equal(reconstruct(shares), x * y)
    assert (table.rounds, table.words) == (1, 2 * x.numel())
    assert words_of(Product(shape).correction) == x.numel()


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_several_products_take_one_round(parties):
    x, g, w = random_words(8, 5, of="x"), random_words(8, 3, of="g"), random_words(5, 3, of="w")
    operations = [MatrixProduct(5, 8, 3), MatrixProduct(8, 3, 5)]
    shares, table = run_dealt(
        parties, lambda a, x, g, w: matrix_products(a, (x.t(), g), (g, w.t())), operations, x, g, w
    )
    weight_gradient, input_gradient = (reconstruct(each) for each in zip(*shares, strict=True))
    assert torch.equal(weight_gradient, x.t() @ g)
    assert torch.equal(input_gradient, g @ w.t())
    assert table.rounds == 1
    assert table.opened[0] == [shape for operation in operations for shape in operation.opened]


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_products_with_a_public_matrix_need_nobody(parties):
    x, left, right = random_words(6, 5, of="x"), random_words(4, 6, of="left"), random_words(5, 3, of="right")
    shares, table = run_dealt(parties, lambda _, x: matmul(matmul(left, x), right), [], x)
    assert torch.equal(reconstruct(shares), left @ x @ right)
    assert table.rounds == 0


def test_public_terms_count_once():
    x = random_words(6, 5)
    shares, _ = run_dealt(3, lambda a, x: a.plus_public(x, 12), [], x)
    assert torch.equal(reconstruct(shares), x + 12)


@pytest.mark.parametrize("party", [0, 1, 2])
def test_a_share_of_a_product_looks_uniform(party):
    zeros = torch.zeros(256, 256, dtype=torch.int64)
    shares, _ = run_dealt(3, lambda a, *xy: products(a, xy)[0], [Product((256, 256))], zeros, zeros)
    assert looks_uniform(shares[party])


def test_opened_values_look_uniform_and_differ_each_time():
    seen = []
    x = torch.ones(64, 64, dtype=torch.int64)

    def work(arithmetic, x):
        opening = arithmetic.opening

        class Watching:
            def open(self, *shares):
                seen.extend(sums := opening.open(*shares))
                return sums

        watched = Arithmetic(Watching(), arithmetic.material, arithmetic.leads)
        return products(watched, (x, x)) + products(watched, (x, x))

    run_dealt(2, work, [Product((64, 64))] * 2, x)
    distinct = torch.stack(seen).unique(dim=0)
    assert len(seen) == 8  # E and F, twice, at each of the two
    assert len(distinct) == 4
    assert looks_uniform(distinct)


@pytest.mark.parametrize("parties", [2, 3, 5])
def test_corrections_complete_the_dealers_relations(parties):
    materials = dealt(parties, [MatrixProduct(3, 4, 2), Product((5,)), Truncation((4, 4), 20)])
    matrices = [material.matrix_triple(3, 4, 2) for material in materials]
    elements = [material.product_triple((5,)) for material in materials]
    pairs = [material.truncation_pair((4, 4), 20) for material in materials]
    a, b, c = (reconstruct([getattr(triple, name) for triple in matrices]) for name in "abc")
    assert torch.equal(c, a @ b)
    a, b, c = (reconstruct([getattr(triple, name) for triple in elements]) for name in "abc")
    assert torch.equal(c, a * b)
    r, shifted, highest = (reconstruct([getattr(pair, n) for pair in pairs]) for n in ("r", "shifted", "highest"))
    unsigned = [word % 2**64 for word in r.flatten().tolist()]
    assert shifted.flatten().tolist() == [word >> 20 for word in unsigned]
    assert highest.flatten().tolist() == [word >> 63 for word in unsigned]


def test_corrections_have_the_declared_shapes():
    operations = [MatrixProduct(3, 4, 2), Product((5,)), Truncation((4, 6), 20)]
    corrections = Corrections(SEEDS, run="run").compute(operations)
    assert [tuple(correction.shape) for correction in corrections] == [(3, 2), (5,), (2, 4, 6)]
    assert [operation.correction for operation in operations] == [(3, 2), (5,), (2, 4, 6)]


def test_no_material_comes_twice():
    material, dealer = DealtMaterial(SEEDS["h0"], run="run", holder="h0"), Corrections(SEEDS, run="run")
    triples = [material.product_triple((100,)) for _ in range(3)]
    corrections = dealer.compute([Product((100,))]) + dealer.compute([Product((100,))])
    drawn = torch.stack([part for triple in triples for part in (triple.a, triple.b, triple.c)] + corrections)
    assert len(drawn.unique()) == drawn.numel()


def test_a_correction_of_another_operation_is_refused():
    (correction,) = Corrections(SEEDS, run="run").compute([Product((4,))])
    last = DealtMaterial(SEEDS["h4"], run="run", holder="h4", next_correction=lambda: correction)
    with pytest.raises(ProtocolError, match="another operation") as caught:
        last.truncation_pair((4,), 20)
    assert "[2, 4]" in str(caught.value)


@pytest.mark.parametrize(("x", "y"), [((1, 3), (4, 3)), ((4, 3), (1, 3)), ((4, 3), (3,))])
def test_a_mask_is_not_stretched_over_several_values(x, y):
    with pytest.raises(ValueError, match="do not fit"):
        run_dealt(2, lambda a, *xy: products(a, xy), [Product(x)], random_words(*x), random_words(*y))


def test_matrices_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        run_dealt(
            2, lambda a, *xy: matrix_products(a, xy), [MatrixProduct(2, 3, 4)], random_words(2, 3), random_words(1, 4)
        )
    with pytest.raises(ValueError, match="no product"):
        matmul(random_words(2, 3), random_words(4, 2))


def test_shares_are_not_printed():
    triple = DealtMaterial(SEEDS["h0"], run="run", holder="h0").product_triple((2,))
    assert "tensor" not in repr(triple)
    assert str(int(triple.a[0])) not in repr(triple)
