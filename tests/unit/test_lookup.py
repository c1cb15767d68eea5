import pytest
import torch

from tests.shares import random_words, run_dealt
from vfgnn.mpc.lookup import Lookup, look_up, look_up_operations
from vfgnn.mpc.sharing import reconstruct


def found(parties, d, table):
    operations = look_up_operations(tuple(d.shape), table)
    shares, seen = run_dealt(parties, lambda a, d: look_up(a, d, table), operations, d)
    assert seen.payloads == [payload for operation in operations for payload in operation.opened]
    assert seen.rounds == 1
    return reconstruct(shares)


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("bits", [1, 2, 5, 8])
def test_every_value_of_every_table(parties, bits):
    table = random_words(2**bits, of="table")
    d = torch.arange(2**bits).repeat(3).view(3, -1)
    assert torch.equal(found(parties, d, table), table[d])


@pytest.mark.parametrize("bits", [10, 12, 14])
def test_large_tables(bits):
    table, d = random_words(2**bits, of="table"), random_words(40) & (2**bits - 1)
    d[:2] = torch.tensor([0, 2**bits - 1])
    assert torch.equal(found(2, d, table), table[d])


def test_inverse_roots_of_degrees():
    table = torch.tensor([0, *(round(2**18 / d**0.5) for d in range(1, 256))])
    d = torch.arange(1, 256).view(-1, 1)
    assert torch.equal(found(3, d, table), table[d])


@pytest.mark.parametrize("value", [-1, 16, 17, 2**40 + 3])
def test_values_outside_wrap(value):
    table = random_words(16)
    assert torch.equal(found(3, torch.tensor([value]), table), table[[value % 16]])


def test_words():
    (operation,) = look_up_operations((20, 1), torch.zeros(1024, dtype=torch.int64))
    assert [(payload.shape, payload.dtype) for payload in operation.opened] == [((20, 1), torch.int16)]
    assert [(payload.shape, payload.dtype) for payload in operation.correction] == [((20, 1, 1024), torch.int64)]
    assert len(repr(operation)) < 100


@pytest.mark.parametrize("size", [0, 1, 3, 1000, 2**15])
def test_other_sizes_are_refused(size):
    with pytest.raises(ValueError, match="entries"):
        Lookup((3,), (0,) * size)
