"""How a holder's ids are written: for its own profile in words, and for its card as a shape. Never an id.

Run by each holder over its own ids. Reveals: the shape, to whoever is given the card.
"""

import pyarrow as pa
import pyarrow.compute as pc

from vfgnn.id_shape import IdShape

WHOLE, ZERO_FIRST = "^-?[0-9]+$", "^0[0-9]+$"


def kind_of_ids(ids: pa.Array) -> str:
    """For people: whole numbers or text, and how long they are."""
    lengths = pc.min_max(pc.utf8_length(ids)).as_py()
    least, most = lengths["min"], lengths["max"]
    if most is None:
        return "none"
    kind, unit = ("whole numbers", "digits") if matching(ids, WHOLE) == len(ids) else ("text", "characters")
    return f"{kind} of {most if least == most else f'{least} to {most}'} {unit}"


def with_leading_zeros(ids: pa.Array) -> int:
    """How many have some."""
    return matching(ids, ZERO_FIRST)


def shape_of_ids(ids: pa.Array) -> IdShape:
    """What the others may know of them."""
    return IdShape(
        digits=matching(ids, WHOLE) == len(ids),
        leading_zeros=with_leading_zeros(ids) > 0,
        longest=pc.max(pc.utf8_length(ids)).as_py() or 0,
    )


def matching(text: pa.Array | pa.ChunkedArray, form: str) -> int:
    """How many are of a form."""
    return int(pc.sum(pc.match_substring_regex(text, form)).as_py() or 0)
