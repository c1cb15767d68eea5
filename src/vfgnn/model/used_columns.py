"""What a holder takes of its own columns into the sealed model. Runs at each holder, on its own; nothing leaves.

`binary`: for counts and weights of words, where it says more that a word is there than how often or how rare it is. It
depends on no other column, so the model stays that of pooled data however columns are dealt.
"""

import torch

from vfgnn.settings import SealedColumns


def used_columns(x: torch.Tensor, columns: SealedColumns) -> torch.Tensor:
    """As given, or 1 where a value is not 0. What is no number stays, to be refused as everywhere."""
    return x if columns == "given" else torch.where(x.isfinite(), (x != 0).to(x.dtype), x)
