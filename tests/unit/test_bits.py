import pytest
import torch

from tests.shares import random_words, run_dealt, run_parties
from vfgnn.mpc.bits import BitTable, BitTables, evaluate, pack, packed_bytes, unpack
from vfgnn.mpc.sharing import BITS, ZeroSharing, reconstruct
from vfgnn.randomness import insecure_seed


def random_bits(*shape, of="bits"):
    return (random_words(*shape, of=of) & 1).to(BITS)


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("inputs", [(0,), (1, 0), (2, 0, 3), (0, 1, 2, 3), (4, 3, 2, 1, 0), (0, 1, 2, 3, 4, 5)])
def test_every_index_of_a_random_table(parties, inputs):
    bits, count = 6, 64 * 3 + 1  # neither a whole number of bytes
    truth = tuple(random_bits(2 ** len(inputs), of="truth").tolist())
    values = torch.stack([(torch.arange(count) >> place) & 1 for place in range(bits)]).to(BITS)
    tables = [BitTable(inputs, truth), BitTable((0, 5), (0, 0, 0, 1))]
    operation = BitTables(bits, count, tuple(tables))
    shares, table = run_dealt(parties, lambda a, b: evaluate(a, b, tables), [operation], values)
    index = sum(values[of].long() << place for place, of in enumerate(inputs))
    result = reconstruct(shares)
    assert torch.equal(result[0], torch.tensor(truth, dtype=BITS)[index])
    assert torch.equal(result[1], values[0] & values[5])
    assert (table.rounds, tuple(table.payloads)) == (1, operation.opened)
    assert operation.correction[0].shape == (max(1, len(truth) // 8) + 1, count)


def test_bits_are_packed_eight_in_a_byte():
    bits = random_bits(5, 13)
    packed = pack(bits)
    assert packed.shape == (packed_bytes(65),) == (9,)
    assert torch.equal(unpack(packed, (5, 13)), bits)


@pytest.mark.parametrize(("inputs", "truth"), [((), (0,)), ((0, 1), (0, 1)), (tuple(range(9)), (0,) * 512)])
def test_tables_that_do_not_fit_are_refused(inputs, truth):
    with pytest.raises(ValueError, match="entries"):
        BitTable(inputs, truth)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, BITS])
@pytest.mark.parametrize("parties", [3, 4])
def test_sharings_of_zero_of_words_and_bits_sum_to_zero(parties, dtype):
    names = [f"h{i}" for i in range(parties)]
    seeds = {(a, b): insecure_seed(10 * i + j) for i, a in enumerate(names) for j, b in enumerate(names) if i < j}
    zero = torch.zeros(50, dtype=dtype)
    parts = [
        ZeroSharing(me, names, {o: seeds[min(me, o), max(me, o)] for o in names if o != me}).hide(zero, 4)
        for me in names
    ]
    assert all(len(part.unique()) > 30 for part in parts)
    assert torch.equal(reconstruct(parts), zero)
    assert not zero.any()


def test_helpers_split_bits_by_xor():
    bits = random_bits(4, 9)
    shares, _ = run_parties(3, lambda _, b: b, [None] * 3, bits)
    assert torch.equal(reconstruct(shares), bits)
