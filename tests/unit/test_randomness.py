import pytest
import torch

from vfgnn import randomness
from vfgnn.randomness import Stream, derive_key, generator, initialising, insecure_seed, new_seed


def test_seeds_come_from_the_operating_system():
    assert len(new_seed()) == 32
    assert new_seed() != new_seed()


def test_names_are_length_prefixed():
    seed = insecure_seed(1)
    assert derive_key(seed, "ab", "c") != derive_key(seed, "a", "bc")
    assert derive_key(seed, "ab") != derive_key(seed, "ab", "")
    assert derive_key(seed, "ab") == derive_key(seed, "ab")


def test_a_stream_never_repeats_itself():
    stream = Stream(insecure_seed(1), "test")
    first, second = stream.words(1000), stream.words(1000)
    assert not torch.equal(first, second)
    again = Stream(insecure_seed(1), "test").words(2000)
    assert torch.equal(again, torch.cat([first, second]))


def test_words_are_uniform_bytes():
    """Chi-square over 2^20 bytes, 255 degrees of freedom: mean 255, deviation 22.6; 6 deviations is 1e-9."""
    words = Stream(insecure_seed(2), "test").words(2**17)
    counts = torch.bincount(words.view(torch.uint8).long(), minlength=256).double()
    expected = 2**20 / 256
    assert abs(float(((counts - expected) ** 2 / expected).sum()) - 255) < 6 * 22.6


def test_uniform_keeps_its_bound_and_moments():
    values = Stream(insecure_seed(3), "test").uniform(100_000, bound=0.5)
    assert float(values.min()) >= -0.5
    assert float(values.max()) < 0.5
    assert abs(float(values.mean())) < 6 * 0.5 / 3**0.5 / 100_000**0.5  # six standard errors
    assert abs(float(values.var()) - 0.25 / 3) < 0.002  # standard error of the variance: 0.0745 * .25 / 316 = 6e-5


def test_empty_shapes_have_no_words():
    assert Stream(insecure_seed(1)).words(0, 4).shape == (0, 4)


def test_initialising_leaves_the_process_generator_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with initialising(insecure_seed(1)):
        first = torch.nn.Linear(3, 3).weight.detach().clone()
    assert torch.equal(before, torch.get_rng_state())
    with initialising(insecure_seed(1)):
        assert torch.equal(first, torch.nn.Linear(3, 3).weight)


def test_generators_of_different_purpose_differ():
    seed = insecure_seed(1)
    assert not torch.equal(torch.rand(8, generator=generator(seed, "a")), torch.rand(8, generator=generator(seed, "b")))


def test_insecure_seeds_are_refused_outside_their_range():
    for number in (-1, 2**63):
        try:
            randomness.insecure_seed(number)
        except ValueError:
            continue
        raise AssertionError(number)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8])
def test_integers_of_any_type_come_out_of_the_same_words(dtype):
    stream, words = Stream(insecure_seed(1), "x"), Stream(insecure_seed(1), "x")
    in_a_word = 8 // dtype.itemsize
    assert torch.equal(stream.integers(3, 7, dtype=dtype), words.words(-(-21 // in_a_word)).view(dtype)[:21].view(3, 7))
    many = stream.integers(2**16, dtype=dtype)
    assert len(many.unique()) > (250 if dtype == torch.uint8 else 40_000)  # of 65,536 at 16 bits 63 % are expected
    assert stream.integers(0, 3, dtype=dtype).shape == (0, 3)
