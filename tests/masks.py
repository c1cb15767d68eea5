"""Whether a mask, a pad, a seed or a split permutation was used twice, seen in what messages carried.

Masked messages that carry the same are found whole. Two openings under one mask differ by as much as their values do,
and these have far fewer bits than the ring: so the sums of all shares of an opening are held against each other too.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

TOLD = ("quotient", "inner_products", "validation_classes", "predicted_classes", "predicted_scores")
PLAIN = {"sealed_rows", "sealed_row_counts", "sealed_kept", "done", "end", *TOLD}
OPENED = "sealed_opened"
LEAST_BYTES = 8  # a shorter payload is the same by chance
NEAR = 2**40  # of 2^64: by chance one word in 2^23 is so near another


@dataclass(frozen=True)
class Sent:
    """One message."""

    start: str
    sender: str
    receiver: str
    kind: str
    bytes: int
    content: object
    words: tuple = ()  # the first ones, of a message of words


def sent(line):
    """As recording.py writes it."""
    return Sent(**{**line, "words": tuple(line["words"])})


def repeated(messages):
    """The kinds of masked messages that were sent before on the same link, or opened before under the same mask."""
    messages = [one for one in messages if one.kind not in PLAIN]
    links = Counter((m.sender, m.receiver, m.kind, m.content) for m in messages if m.bytes >= LEAST_BYTES)
    found = {kind for (_, _, kind, _), count in links.items() if count > 1}
    return found | ({f"{OPENED}, in sum"} if _near_each_other(messages) else set())


def _near_each_other(messages):
    """Whether two openings of one size are too near for two masks: in half of their first words."""
    for sums in _sums(messages).values():
        words = np.array(sums, dtype=np.int64)
        for place in range(1, len(words)):
            with np.errstate(over="ignore"):
                far = words[:place] - words[place]  # modulo 2^64
            near = (far < NEAR) & (far > -NEAR)
            if (near.mean(axis=1) > 0.5).any():
                return True
    return False


def _sums(messages):
    """Of all openings whose shares were all seen: the sums of their first words, by size."""
    shares = defaultdict(lambda: defaultdict(list))
    for one in messages:
        if one.kind == OPENED:
            shares[one.start][one.sender, one.receiver].append(one)
    found = defaultdict(list)
    for links in shares.values():
        by_sender = {sender: own for (sender, _), own in links.items()}  # the same share goes to all others
        for each in zip(*by_sender.values(), strict=False):
            if each[0].words and len({one.bytes for one in each}) == 1:
                with np.errstate(over="ignore"):
                    found[each[0].bytes].append(sum(np.array(one.words, dtype=np.int64) for one in each))
    return found
