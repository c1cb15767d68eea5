"""The only door to secret randomness: shares, masks, keys and noise come from here and from nowhere else.

Seeds come from the operating system. A seed is never used as it is: HKDF-SHA256 derives one ChaCha20 key for each
purpose, so that two streams of the same seed are independent and none is ever continued by another. The derivation's
info is length-prefixed, so that ("ab", "c") and ("a", "bc") are different streams.

Runs at every party that draws anything; nothing leaves.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import numpy as np
import torch
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SEED_BYTES = 32
ZEROS = memoryview(bytes(2**20))


def new_seed() -> bytes:
    """32 bytes from the operating system."""
    return secrets.token_bytes(SEED_BYTES)


def insecure_seed(number: int) -> bytes:
    """A seed that everybody can compute: for tests, simulations and reproductions only."""
    if not 0 <= number < 2**63:
        raise ValueError(f"an insecure seed is a whole number from 0 to 2^63 - 1, not {number}")
    return b"insecure".ljust(SEED_BYTES - 8, b".") + number.to_bytes(8, "little")


def derive_key(seed: bytes, *names: str | int) -> bytes:
    """The 32-byte key of the stream that `names` describe (HKDF, RFC 5869)."""
    parts = [str(name).encode() for name in names]
    info = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    return HKDF(algorithm=hashes.SHA256(), length=SEED_BYTES, salt=b"vfgnn/1", info=info).derive(seed)


class Stream:
    """Words of one ChaCha20 key stream (RFC 8439), in order; each is handed out once."""

    def __init__(self, seed: bytes, *names: str | int) -> None:
        cipher = Cipher(algorithms.ChaCha20(derive_key(seed, *names), nonce=bytes(16)), mode=None)
        self._encryptor = cipher.encryptor()

    def words(self, *shape: int) -> torch.Tensor:
        """int64 words, uniform over Z_2^64."""
        words = torch.empty(shape, dtype=torch.int64)
        room = words.numpy().reshape(-1).view(np.uint8).data
        for at in range(0, len(room), len(ZEROS)):  # the key stream is the encryption of zeros, written in place
            part = room[at : at + len(ZEROS)]
            self._encryptor.update_into(ZEROS[: len(part)], part)
        return words

    def integers(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """Uniform over all values of an integer type; of a narrow one several come out of each word."""
        count, in_a_word = prod(shape), 8 // dtype.itemsize
        return self.words(-(-count // in_a_word)).view(dtype)[:count].reshape(shape)

    def uniform(self, *shape: int, bound: float) -> torch.Tensor:
        """float64 values, uniform on the 2^53 points of [-bound, bound)."""
        unit = (self.words(*shape) >> 11).double() / 2.0**52  # arithmetic shift: [-1, 1) in steps of 2^-52
        return unit * bound

    def below(self, *shape: int, bound: int) -> torch.Tensor:
        """int64 values, uniform over 0 .. bound - 1: a word beyond the last multiple of `bound` is drawn again."""
        drawn = self.words(*shape) & (2**63 - 1)
        most = 2**63 - 2**63 % bound - 1
        while bool((beyond := drawn > most).any()):
            drawn[beyond] = self.words(int(beyond.sum())) & (2**63 - 1)
        return drawn % bound

    def integer(self) -> int:
        """63 bits, to seed a generator whose numbers are not secret from this party (dropout, initialisation)."""
        return int(self.words(1).item()) & (2**63 - 1)


@contextmanager
def initialising(seed: bytes) -> Iterator[None]:
    """Inside, torch initialises modules from a seed of this party's own and leaves the process's generator alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(Stream(seed, "initialisation").integer())
        yield


def generator(seed: bytes, purpose: str) -> torch.Generator:
    """A torch generator for what is not secret from this party: dropout masks, sampled neighbours."""
    return torch.Generator().manual_seed(Stream(seed, purpose).integer())


def scattered(numbers: torch.Tensor, salt: int) -> torch.Tensor:
    """For each whole number one in [0, 1) that looks random, without drawing for all others (splitmix64's finaliser).

    Not secret from anybody who has a few of them: for sampled neighbours, which never leave the party.
    """
    word = numbers * -0x61C8864680B583EB + salt
    word = (word ^ (word >> 30 & 2**34 - 1)) * -0x40A7B892E31B1A47
    word = (word ^ (word >> 27 & 2**37 - 1)) * -0x6B2FB644ECCEEE15
    word = word ^ (word >> 31 & 2**33 - 1)
    return (word >> 11 & 2**53 - 1).double() / 2.0**53
