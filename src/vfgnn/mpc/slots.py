"""A holder's edges as slots: what turns a product with its adjacency into permutations and running sums.

With padding first (N = n + M slots, M - m of them padding) and a slot for each node's own row, A + I is
  place the differences of rows at the starts of the source blocks; running sum; entries from source order into
  destination order; running sum; take the ends of the destination blocks; differences.
Every block has its node's own slot first, so none is empty. Padding holds zeros, so its running sum is 0.
Runs at the holder that has the edges. Nothing leaves.
"""

import hashlib
from dataclasses import dataclass

import torch

from vfgnn.errors import DataError
from vfgnn.mpc.kernels import CsrMatrix
from vfgnn.mpc.permutation import INDEX


@dataclass(frozen=True, repr=False)
class OwnEdges:
    """Directed entries in order of source and destination, checked: binary, symmetric, no self-loop."""

    nodes: int
    keys: torch.Tensor  # source * n + destination, ascending

    @property
    def digest(self) -> bytes:
        """Of the edges and the number of nodes: kept at home, because guessed edges could be tried on it."""
        return hashlib.sha256(self.nodes.to_bytes(8, "little") + self.keys.numpy().tobytes()).digest()

    @property
    def degrees(self) -> torch.Tensor:
        """Entries in each node's block [n]; never opened."""
        return torch.bincount(self.keys // self.nodes, minlength=self.nodes)

    def matrix(self, declared: int) -> CsrMatrix:
        """A [n, n], with zeros up to the declared entries: how long a product takes must not tell how many it has."""
        padding = torch.arange(declared - len(self.keys))
        pointers = torch.cat([torch.zeros(1, dtype=torch.int64), self.degrees.cumsum(0)])
        pointers[-1] = declared
        columns = torch.cat([self.keys % self.nodes, padding % self.nodes])
        values = torch.cat([torch.ones_like(self.keys), torch.zeros_like(padding)])
        size = (self.nodes, self.nodes)
        return CsrMatrix(torch.sparse_csr_tensor(pointers, columns, values, size, check_invariants=False))


def check_edges(edge_index: torch.Tensor | None, *, nodes: int, declared: int, holder: str) -> OwnEdges:
    """The edges [2, m] of a holder, or a DataError that names what is wrong with them."""
    if edge_index is None:
        edge_index = torch.zeros(2, 0, dtype=torch.int64)
    where = f"edges of {holder}"
    if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.dtype not in (torch.int32, torch.int64):
        got = f"{edge_index.dtype} {list(edge_index.shape)}"
        raise DataError("edges that are no list of entries", expected="int64 [2, entries]", got=got, where=where)
    if edge_index.shape[1] > declared:
        raise DataError(
            "more directed entries than the holder has declared",
            expected=f"at most {declared}",
            got=str(edge_index.shape[1]),
            where=where,
            hint="declare a larger bound, or leave out edges",
        )
    keys = _checked_keys(edge_index.long(), nodes, where)
    return OwnEdges(nodes, keys)


def _checked_keys(edge_index: torch.Tensor, nodes: int, where: str) -> torch.Tensor:
    source, destination = edge_index
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= nodes):
        raise DataError("an edge to a node that is not there", expected=f"nodes 0 to {nodes - 1}", where=where)
    if bool((source == destination).any()):
        raise DataError("an edge from a node to itself", expected="no self-loops", where=where, hint="drop them")
    keys = torch.sort(source * nodes + destination).values
    if bool((keys[1:] == keys[:-1]).any()):
        raise DataError("an edge that is listed twice", expected="each entry once", where=where, hint="drop repeats")
    if not torch.equal(torch.sort(destination * nodes + source).values, keys):
        raise DataError("an edge in one direction only", expected="both directions of each edge", where=where)
    return keys


@dataclass(frozen=True, repr=False)
class Slots:
    """The three permutations as placements."""

    starts: torch.Tensor  # [N]: rows to slots in source order
    reorder: torch.Tensor  # [N]: slots in source order to slots in destination order
    ends: torch.Tensor  # [n]: the slot of destination order where each node's block ends


def slots_of(edges: OwnEdges, declared: int) -> Slots:
    """The slots of edges under the declared bound."""
    nodes, keys, degrees = edges.nodes, edges.keys, edges.degrees
    padding = declared - len(keys)
    ends = padding + torch.arange(nodes) + degrees.cumsum(0)
    starts = ends - degrees  # of source and destination blocks alike: the edges are symmetric
    source, destination = keys // nodes, keys % nodes
    rank = torch.empty_like(keys)  # in destination order
    rank[torch.argsort(destination * nodes + source)] = torch.arange(len(keys))
    reorder = torch.arange(nodes + declared)  # padding and the nodes' own slots stay where they are
    reorder[padding + torch.arange(len(keys)) + source + 1] = padding + rank + destination + 1
    empty = torch.ones(nodes + declared, dtype=torch.bool)
    empty[starts] = False
    placed = torch.cat([starts, empty.nonzero()[:, 0]])  # rows beyond n are zero: any slot will do
    return Slots(placed.to(INDEX), reorder.to(INDEX), ends.to(INDEX))
