import pytest
import torch

from tests.shares import SEEDS, dealt, looks_uniform, random_words, run_dealt
from vfgnn.errors import ProtocolError
from vfgnn.mpc.beaver import GramProduct, MatrixProduct, Product, gram, matrix_products, products
from vfgnn.mpc.material import Corrections, DealtMaterial
from vfgnn.mpc.shared import Arithmetic, matmul
from vfgnn.mpc.sharing import reconstruct
from vfgnn.mpc.truncation import Truncation


def words_of(operation):
    return sum(torch.Size(payload.shape).numel() for payload in operation.correction)


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (7, 5, 3), (2, 9, 4), (20, 1, 6)])
def test_a_product_of_shared_matrices_is_exact_in_the_ring(parties, m, k, n):
    x, y = random_words(m, k, of="x"), random_words(k, n, of="y")
    shares, table = run_dealt(parties, lambda a, *xy: matrix_products(a, xy)[0], [MatrixProduct(m, k, n)], x, y)
    assert torch.equal(reconstruct(shares), x @ y)
    assert (table.rounds, table.words) == (1, m * k + k * n)
    assert words_of(MatrixProduct(m, k, n)) == m * n


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("shape", [(1,), (6, 5), (2, 3, 4)])
def test_a_product_element_by_element_is_exact_in_the_ring(parties, shape):
    x, y = random_words(*shape, of="x"), random_words(*shape, of="y")
    shares, table = run_dealt(parties, lambda a, *xy: products(a, xy)[0], [Product(shape)], x, y)
    assert torch.equal(reconstruct(shares), x * y)
    assert (table.rounds, table.words) == (1, 2 * x.numel())
    assert words_of(Product(shape)) == x.numel()


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize(("m", "k"), [(1, 1), (4, 9), (7, 3)])
def test_a_matrix_times_its_own_transpose_is_exact_in_the_ring(parties, m, k):
    x = random_words(m, k)
    shares, table = run_dealt(parties, gram, [GramProduct(m, k)], x)
    assert torch.equal(reconstruct(shares), x @ x.t())
    assert (table.rounds, table.words) == (1, m * k)
    assert words_of(GramProduct(m, k)) == m * m


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
    assert table.payloads == [payload for operation in operations for payload in operation.opened]


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
    operations = [MatrixProduct(3, 4, 2), Product((5,)), Truncation((4, 4), 20)]
    taken = [[material.take(operation) for operation in operations] for material in dealt(parties, operations)]
    matrices, elements, pairs = zip(*taken, strict=True)
    a, b, c = whole(matrices)
    assert torch.equal(c, a @ b)
    a, b, c = whole(elements)
    assert torch.equal(c, a * b)
    r, (shifted, highest) = whole(pairs)
    unsigned = [word % 2**64 for word in r.flatten().tolist()]
    assert shifted.flatten().tolist() == [word >> 20 for word in unsigned]
    assert highest.flatten().tolist() == [word >> 63 for word in unsigned]


def whole(shares):
    """Masks, then parts."""
    return [reconstruct(each) for each in zip(*((*own.masks, *own.parts) for own in shares), strict=True)]


def test_corrections_have_the_declared_shapes():
    operations = [MatrixProduct(3, 4, 2), Product((5,)), Truncation((4, 6), 20), GramProduct(3, 7)]
    corrections = Corrections(SEEDS, run="run").compute(operations)
    assert [tuple(correction.shape) for correction in corrections] == [(3, 2), (5,), (2, 4, 6), (3, 3)]
    assert [payload.shape for operation in operations for payload in operation.correction] == [
        tuple(correction.shape) for correction in corrections
    ]


def test_no_material_comes_twice():
    material, dealer = DealtMaterial(SEEDS["h0"], run="run", holder="h0"), Corrections(SEEDS, run="run")
    taken = [material.take(Product((100,))) for _ in range(3)]
    corrections = dealer.compute([Product((100,))]) + dealer.compute([Product((100,))])
    drawn = torch.stack([part for dealt in taken for part in (*dealt.masks, *dealt.parts)] + corrections)
    assert len(drawn.unique()) == drawn.numel()


def test_a_correction_of_another_operation_is_refused():
    (correction,) = Corrections(SEEDS, run="run").compute([Product((4,))])
    last = DealtMaterial(SEEDS["h4"], run="run", holder="h4", next_correction=lambda: correction)
    with pytest.raises(ProtocolError, match="another operation") as caught:
        last.take(Truncation((4,), 20))
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
    taken = DealtMaterial(SEEDS["h0"], run="run", holder="h0").take(Product((2,)))
    assert "tensor" not in repr(taken)
    assert str(int(taken.masks[0][0])) not in repr(taken)
