"""The kernels against a loop over whole numbers; their versions in torch on any machine, and on a GPU where one is."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgnn.mpc import scan
from vfgnn.mpc.permutation import draw_permutation
from vfgnn.randomness import Stream, insecure_seed

GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")]
KERNELS = (scan.place_differences, scan.place_sums, scan.gather_differences)
IN_TORCH = (scan.place_differences_torch, scan.place_sums_torch, scan.gather_differences_torch)


class Case:
    """Fewer rows than slots, as in the chain."""

    def __init__(self, rows, slots, width, seed=0, device="cpu"):
        stream = Stream(insecure_seed(seed), "scan", rows, slots, width)
        self.rows, self.x, self.pad = (stream.words(n, width).to(device) for n in (rows, slots, slots))
        self.gather, self.places = (draw_permutation(stream, slots).to(device) for _ in range(2))

    def apply(self, functions):
        place_differences, place_sums, gather_differences = functions
        few = len(self.rows)
        return [
            place_differences(self.rows, self.places[:few].clone(), self.pad.clone()),
            place_sums(self.x, self.gather, self.places, self.pad.clone()),
            gather_differences(self.x, self.gather[:few].clone()),
        ]


def by_hand(case):
    """The same in whole numbers without bounds, reduced at the end."""
    rows, x, pad = case.rows.tolist(), case.x.tolist(), case.pad.tolist()
    gather, places, width = case.gather.tolist(), case.places.tolist(), case.pad.shape[1]
    placed, sums, taken = [list(row) for row in pad], [list(row) for row in pad], []
    for j in range(width):
        for k in range(len(rows)):
            placed[places[k]][j] += rows[k][j] - (rows[k - 1][j] if k else 0)
        total = 0
        for origin, place in zip(gather, places, strict=True):
            total += x[origin][j]
            sums[place][j] += total
    for k in range(len(rows)):
        taken.append([x[gather[k]][j] - (x[gather[k - 1]][j] if k else 0) for j in range(width)])
    return [torch.tensor([[signed(word) for word in row] for row in each]) for each in (placed, sums, taken)]


def signed(word):
    return (word + 2**63) % 2**64 - 2**63


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(0, 9), st.integers(1, 4), st.integers(0, 99))
def test_exact_modulo_2_64(rows, more, width, seed):
    case = Case(rows, rows + more, width, seed)
    expected = by_hand(case)
    for functions in (KERNELS, IN_TORCH):
        for found, by_loop in zip(case.apply(functions), expected, strict=True):
            assert torch.equal(found, by_loop)


def test_rows_that_are_not_contiguous():
    case = Case(50, 80, 4)
    expected = case.apply(KERNELS)
    case.rows, case.x = (words.t().contiguous().t() for words in (case.rows, case.x))
    for found, before in zip(case.apply(KERNELS), expected, strict=True):
        assert torch.equal(found, before)


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_equal_in_torch_bit_by_bit(device, width):
    case = Case(3000, 70000, width)
    expected = case.apply(KERNELS)
    elsewhere = Case(3000, 70000, width, device=device)
    functions = IN_TORCH if device == "cpu" else KERNELS  # on a GPU the public functions choose torch by themselves
    for found, by_kernel in zip(elsewhere.apply(functions), expected, strict=True):
        assert torch.equal(found.cpu(), by_kernel)


def test_the_pad_is_the_result():
    case = Case(5, 9, 2)
    for function, arguments in (
        (scan.place_differences, (case.rows, case.places[:5].clone())),
        (scan.place_sums, (case.x, case.gather, case.places)),
    ):
        pad = case.pad.clone()
        assert function(*arguments, pad) is pad
