"""The class with the highest score, on shares: exact, and only the one-hot row is ever opened, to one party.

Scores are words, compared after a division by 2^g. Any two of a row then differ by less than 2^(B-1); B = 24, or
another multiple of 6 up to 30. With g > 0 each is less than one unit off, as in `truncation.py`, but in one opening.
  1. all holders open c_a = s_a - s_0 + r_a modulo 2^32 for each class a > 0 (modulo 2^64 if g + B > 32). Shifted by g,
     and with r_0 = c_0 = 0, x = s_a - s_b is c - r modulo 2^B with c = c_a - c_b and r = r_a - r_b: one mask for a
     class serves all its pairs, and one rounding, so that no three classes go in a circle
  2. dealer, for each pair a < b and each 6 bits of r: shares of 64 bits, of which the one at that place is set. Locally
     [c = r] is one of these bits and [c < r] the XOR of those above c, for each 6 bits; and so is the sign of the top
  3. a table of bits (`bits.py`) joins the 6 bits below: sign x = top XOR eq (lt XOR eq (lt XOR eq lt))
  4. tables of at most 6 bits: a is the class if its bit is right against all others; a tie goes to the lower class
Rounds: 1, 1 for step 3 (none for B = 6), and 1 for each level of step 4 (none for 2 classes, 1 up to 7, 2 up to 37).
Bytes for a row, B = 24: opened 4 (C - 1), or 8 (C - 1) for a long g, and 6 bits and then 1 bit for each of
C (C - 1) / 2 pairs; corrections 40 for each pair, and a table for each class. PubMed (19,717 rows, C = 3, g = 30):
.37 MB on each link, 2.4 MB of corrections.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import torch

from vfgnn.mpc.bits import BitTable, BitTables, evaluate
from vfgnn.mpc.shared import Arithmetic, Operation, Payload
from vfgnn.mpc.sharing import BITS

CHUNK = 6  # bits: a one-hot of 64 is one word
WIDTHS = (6, 12, 18, 24, 30)
MOST_CLASSES = 64


@dataclass(frozen=True)
class Differences(Operation):
    """Scores of C classes against class 0's, and for each pair the one-hot words of what masks their difference.

    `cut`: the bits that they are divided by.
    """

    name: ClassVar[str] = "differences"
    rows: int
    classes: int
    bits: int
    cut: int

    def __post_init__(self) -> None:
        if self.bits not in WIDTHS or not 2 <= self.classes <= MOST_CLASSES:
            raise ValueError(
                f"2 to {MOST_CLASSES} classes are compared at one of {WIDTHS} bits, not {self.classes} at {self.bits}"
            )
        if not 0 <= self.cut <= 64 - self.bits:
            raise ValueError(f"a word has no {self.bits} bits left when {self.cut} are cut")

    @property
    def opened(self) -> tuple[Payload, ...]:
        """C of each class but the first."""
        return (Payload((self.classes - 1, self.rows), torch.int32 if self.cut + self.bits <= 32 else torch.int64),)

    @property
    def correction(self) -> tuple[Payload, ...]:
        """Words as bytes, for they are joined by XOR."""
        return (Payload((self.bits // CHUNK, len(pairs_of(self.classes)), self.rows, 8), BITS),)

    def dealt(self, masks: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The lowest 6 bits first."""
        digits = self.digits(masks[0])
        return [(torch.ones_like(digits) << digits).unsqueeze(-1).view(BITS)]

    def digits(self, against_first: torch.Tensor) -> torch.Tensor:
        """Of a - b for each pair, from what all other classes are against the first: [digits, pairs, rows]."""
        first = torch.zeros(1, self.rows, dtype=torch.int64)
        each = torch.cat([first, against_first.long() >> self.cut])
        one, other = torch.tensor(pairs_of(self.classes)).t()
        difference = each[one] - each[other]
        return torch.stack([(difference >> begin) & (2**CHUNK - 1) for begin in range(0, self.bits, CHUNK)])


def argmax(arithmetic: Arithmetic, scores: torch.Tensor, *, bits: int = 24, cut: int = 0) -> torch.Tensor:
    """XOR shares of one bit for each row and class [rows, C] from shares of scores [rows, C]: 1 at the highest.

    Reveals: nothing; what is opened is uniform to all holders.
    """
    classes = scores.shape[1]
    wins = _signs(arithmetic, scores, Differences(scores.shape[0], classes, bits, cut))
    if arithmetic.leads:
        wins = wins ^ 1  # a >= b is right if a - b is not negative
    if classes == 2:
        return torch.stack([wins[0], wins[0] ^ 1 if arithmetic.leads else wins[0]], dim=1)
    for tables in conjunctions(classes):
        wins = evaluate(arithmetic, wins, tables)
    return wins.t().contiguous()


def argmax_operations(rows: int, classes: int, *, bits: int = 24, cut: int = 0) -> list[Operation]:
    """What `argmax` needs of the dealer, in order."""
    operations: list[Operation] = [Differences(rows, classes, bits, cut)]
    pairs = len(pairs_of(classes))
    if bits > CHUNK:
        operations.append(BitTables(2 * (bits // CHUNK - 1), rows * pairs, (borrow(bits // CHUNK),)))
    count = pairs
    for tables in conjunctions(classes) if classes > 2 else []:
        operations.append(BitTables(count, rows, tuple(tables)))
        count = len(tables)
    return operations


def pairs_of(classes: int) -> list[tuple[int, int]]:
    """All a < b, in the order in which their bits lie."""
    return list(combinations(range(classes), 2))


def _signs(arithmetic: Arithmetic, scores: torch.Tensor, operation: Differences) -> torch.Tensor:
    """Shares of [s_a < s_b] for each pair a < b: [pairs, rows]."""
    dealt = arithmetic.material.take(operation)
    against_first = (scores[:, 1:] - scores[:, :1]).t().to(dealt.masks[0].dtype)
    (c,) = arithmetic.opening.open(against_first + dealt.masks[0])
    digits, words = operation.digits(c), dealt.parts[0].view(torch.int64).squeeze(-1)
    inputs, top_equal, top_sign = _lower(digits, words), *_top(arithmetic, digits[-1], words[-1])
    if not inputs:
        return top_sign
    joined = torch.stack([*inputs, top_equal]).flatten(1)
    (borrowed,) = evaluate(arithmetic, joined, [borrow(len(digits))])
    return top_sign.bitwise_xor(borrowed.view_as(top_sign))


def _lower(digits: torch.Tensor, words: torch.Tensor) -> list[torch.Tensor]:
    """Shares of lt, then of eq and lt of each further digit below the top one."""
    bits: list[torch.Tensor] = []
    for c, word in zip(digits[:-1], words[:-1], strict=True):
        if bits:
            bits.append(((word >> c) & 1).to(BITS))
        bits.append(_parity(word & (-2 << c)))
    return bits


def _top(arithmetic: Arithmetic, c: torch.Tensor, word: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Shares of [c = r], and of the sign of c - r unless something is borrowed from below while c = r.

    The highest bit of a digit is the sign, and c and r stand for its other 5 bits. The sign of a difference is
    sign c XOR sign r XOR what is borrowed from the 5 bits: c < r, or c = r and the digits below borrow.
    """
    sign, place = (c >> 5).to(BITS), c & 31
    upper = (word >> 32) & (2**32 - 1)
    lower = (word & (2**32 - 1)) ^ upper  # one-hot of the 5 bits, whatever the sign
    borrowed_or_negative = _parity(upper) ^ _parity(lower & (-2 << place))
    return ((lower >> place) & 1).to(BITS), borrowed_or_negative ^ sign if arithmetic.leads else borrowed_or_negative


def _parity(words: torch.Tensor) -> torch.Tensor:
    """The XOR of all bits of each word: of shares of bits a share of their XOR."""
    for half in (32, 16, 8, 4, 2, 1):
        words = words.bitwise_xor(words >> half)
    return words.bitwise_and(1).to(BITS)


def borrow(digits: int) -> BitTable:
    """Whether the lower digits take one from the top: of lt, eq, lt, ..., eq from the lowest to the top digit's eq."""
    inputs = 2 * (digits - 1)
    truth = []
    for index in range(2**inputs):
        bit = [(index >> place) & 1 for place in range(inputs)]
        borrowed = bit[0]
        for equal, less in zip(bit[1::2], [*bit[2::2], 0], strict=True):
            borrowed = less ^ (equal & borrowed)
        truth.append(borrowed)
    return BitTable(tuple(range(inputs)), tuple(truth))


def conjunctions(classes: int) -> list[list[BitTable]]:
    """Levels of tables, at most 6 bits each, from the pairs' bits to one bit for each class: right against all."""
    pairs = pairs_of(classes)
    wanted = [[(i, int(pair[0] == a)) for i, pair in enumerate(pairs) if a in pair] for a in range(classes)]
    levels: list[list[BitTable]] = []
    while not levels or len(levels[-1]) > classes:
        tables: list[BitTable] = []
        after: list[list[tuple[int, int]]] = []
        for own in wanted:
            groups = [own[begin : begin + CHUNK] for begin in range(0, len(own), CHUNK)]
            after.append([(len(tables) + i, 1) for i in range(len(groups))])
            tables += [_all_right(group) for group in groups]
        levels.append(tables)
        wanted = after
    return levels


def _all_right(wanted: Sequence[tuple[int, int]]) -> BitTable:
    """1 where each input is as wanted."""
    right = sum(bit << place for place, (_, bit) in enumerate(wanted))
    return BitTable(tuple(of for of, _ in wanted), tuple(int(index == right) for index in range(2 ** len(wanted))))
