"""What holders could do to their own columns before a sealed training, each of them alone, as candidates of a search.

    none      as they are                          binary, root     1, or the root, of what is not 0
    idf       columns times log(n / their count)   scaled           columns over their deviation
    centred   columns minus their mean             rows             each holder's part of a row over its length
    idf_rows  idf, then rows                       root_rows        root, then rows

`rows` depends on how columns are dealt to holders; the others do not, so the model stays that of pooled data.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from vfgnn.model.propagation import Floats, Integers, Smoothing

Columns = Literal["none", "binary", "root", "idf", "scaled", "centred", "rows", "idf_rows", "root_rows"]


def prepared(x: sp.csr_array, columns: Columns, owner: Integers) -> sp.csr_array:
    """`owner`: the holder of each column. Centring is left to the kernel, which keeps the matrix sparse."""
    nodes, found = x.shape[0], x.copy()
    if columns.startswith("idf"):
        counts = np.maximum(np.bincount(found.indices, minlength=x.shape[1]), 1)
        found = found @ sp.diags_array(np.log(nodes / counts))
    elif columns == "scaled":
        mean = found.mean(axis=0)
        spread = np.sqrt(np.maximum(found.power(2).mean(axis=0) - mean**2, 1e-12))
        found = found @ sp.diags_array(1 / spread)
    elif columns == "binary":
        found.data[:] = 1.0
    elif columns.startswith("root"):
        found.data = np.sqrt(np.abs(found.data))
    return _by_length(sp.csr_array(found), owner) if columns.endswith("rows") else sp.csr_array(found)


def _by_length(x: sp.csr_array, owner: Integers) -> sp.csr_array:
    blocks = []
    for holder in range(int(owner.max()) + 1):
        own = x[:, np.flatnonzero(owner == holder)]
        length = np.sqrt(own.power(2).sum(axis=1))
        blocks.append(sp.diags_array(1 / np.where(length > 0, length, 1.0)) @ own)
    return sp.csr_array(sp.hstack(blocks))


@dataclass(frozen=True, repr=False)
class CandidateKernel:
    """S (Phi Phi^T + own) S: `own` adds what neighbours' labels alone say, which costs no opening."""

    features: sp.csr_array
    smoothing: Smoothing
    own: float = 0.0  # in mean squared lengths of a row
    centred: bool = False

    def times(self, p: Floats) -> Floats:
        """On any number of columns."""
        entered = self.smoothing.apply(p)
        middle = self._gathered(entered)
        if self.own:
            middle = middle + self.own * float(self.features.power(2).sum()) / self.features.shape[0] * entered
        return self.smoothing.apply(middle)

    def _gathered(self, entered: Floats) -> Floats:
        weights = self.features.T @ entered
        if not self.centred:
            return np.asarray(self.features @ weights)
        mean = self.features.mean(axis=0)[:, None]
        weights = weights - mean * entered.sum(axis=0)
        return np.asarray(self.features @ weights - mean.T @ weights)
