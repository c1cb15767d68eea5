"""What one holder has: feature columns, edges, and (label holder only) labels.

Lives at that holder and nowhere else. Nothing here prints values.
"""

import warnings
from dataclasses import dataclass

import torch

from vfgnn.errors import DataError

# torch says once per process that CSR is "in beta"; what we use of it is tested here.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)

SPARSE_BELOW = 0.25  # a CSR product beats a dense one on 2 cores below about this density


def entries_of(pointer: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Numbers of the entries in certain rows of a CSR matrix, row after row; the cost is that of what is found."""
    begins = pointer[rows]
    counts = pointer[rows + 1] - begins
    shift = begins - (counts.cumsum(0) - counts)
    return torch.arange(int(counts.sum()), device=rows.device) + torch.repeat_interleave(shift, counts)


class FeatureMatrix:
    """X [nodes, columns], kept sparse where it is sparse, with its transpose at hand for the backward pass."""

    def __init__(self, x: torch.Tensor, *, sparse: bool | None = None) -> None:
        filled = int(torch.count_nonzero(x)) if x.layout == torch.strided else x.values().numel()
        if sparse is None:
            sparse = filled < SPARSE_BELOW * max(x.shape[0] * x.shape[1], 1)
        self.shape = (int(x.shape[0]), int(x.shape[1]))
        self.sparse = sparse
        dense = x if x.layout == torch.strided else x.to_dense()
        self._x = dense.to_sparse_csr() if sparse else dense.contiguous()
        self._x_transposed = dense.t().contiguous().to_sparse_csr() if sparse else dense.t()

    @property
    def columns(self) -> int:
        """p, the number of features."""
        return self.shape[1]

    def to(self, dtype: torch.dtype, device: torch.device) -> "FeatureMatrix":
        """The same matrix for computing in `dtype` on `device`."""
        return self._made(self._x.to(device=device, dtype=dtype), self._x_transposed.to(device=device, dtype=dtype))

    def rows(self, numbers: torch.Tensor) -> "FeatureMatrix":
        """Some rows of the matrix, at a cost that does not depend on how many it has."""
        if not self.sparse:
            x = self._x[numbers]
            return self._made(x, x.t())
        pointer, columns = self._x.crow_indices(), self._x.col_indices()
        entries = entries_of(pointer, numbers)
        counts = pointer[numbers + 1] - pointer[numbers]
        row = torch.repeat_interleave(torch.arange(len(numbers), device=numbers.device), counts)
        places, shape = torch.stack([row, columns[entries]]), (len(numbers), self.columns)
        x = torch.sparse_coo_tensor(places, self._x.values()[entries], shape, check_invariants=False)
        return self._made(x.to_sparse_csr(), x.t().to_sparse_csr())

    def _made(self, x: torch.Tensor, x_transposed: torch.Tensor) -> "FeatureMatrix":
        other = object.__new__(FeatureMatrix)
        other.shape, other.sparse = (int(x.shape[0]), int(x.shape[1])), self.sparse
        other._x, other._x_transposed = x, x_transposed
        return other

    def times(self, w: torch.Tensor) -> torch.Tensor:
        """X w, differentiable in w."""
        product: torch.Tensor = _Product.apply(w, self._x, self._x_transposed)  # type: ignore[no-untyped-call]
        return product

    def transpose_times(self, g: torch.Tensor) -> torch.Tensor:
        """X^T g."""
        return self._x_transposed @ g

    def __repr__(self) -> str:
        return f"FeatureMatrix(shape={self.shape}, sparse={self.sparse})"


class _Product(torch.autograd.Function):
    """X w with the transpose kept: torch would transpose the CSR matrix anew in every backward pass."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, w: torch.Tensor, x: torch.Tensor, x_transposed: torch.Tensor
    ) -> torch.Tensor:
        ctx.x_transposed = x_transposed  # type: ignore[attr-defined]
        return x @ w

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return ctx.x_transposed @ g, None, None  # type: ignore[attr-defined]


@dataclass(frozen=True, repr=False)
class Holding:
    """One holder's private features and edges over the common nodes."""

    x: torch.Tensor  # [nodes + local, p_i], p_i may be 0
    edge_index: torch.Tensor  # [2, edges], as in PyG: row 0 source, row 1 target; may be empty
    edge_weight: torch.Tensor | None = None  # [edges]
    local: int = 0  # rows after the common nodes that only this holder knows: its own neighbours of them
    rank: torch.Tensor | None = None  # [nodes]: their places in an order that is the same in every run (by id)

    def __post_init__(self) -> None:
        check_features(self.x)
        check_edges(self.edge_index, self.size)
        weight = self.edge_weight
        if weight is not None and (weight.shape != (self.edge_index.shape[1],) or not bool((weight >= 0).all())):
            raise DataError("edge weights cannot be used", expected="one number from 0 on for each edge")

    @property
    def nodes(self) -> int:
        """n, the same at all holders."""
        return self.size - self.local

    @property
    def size(self) -> int:
        """Common nodes and this holder's own neighbours of them."""
        return int(self.x.shape[0])

    def __repr__(self) -> str:
        own = f", local={self.local}" if self.local else ""
        return f"Holding(nodes={self.nodes}, features={self.x.shape[1]}, edges={self.edge_index.shape[1]}{own})"


@dataclass(frozen=True, repr=False)
class Labels:
    """The label holder's own: classes and which rows are for what. Rows with y = -1 have no label."""

    y: torch.Tensor  # [nodes]
    train: torch.Tensor  # row numbers
    val: torch.Tensor
    test: torch.Tensor
    classes: int
    trained: bool = False  # read for a prediction with a trained model, which may leave a part without rows

    def __post_init__(self) -> None:
        check_labels(self)

    def __repr__(self) -> str:
        return f"Labels(classes={self.classes}, train={len(self.train)}, val={len(self.val)}, test={len(self.test)})"


def check_features(x: torch.Tensor) -> None:
    """Refuse what is not a matrix of finite numbers; the message names positions, never values."""
    if x.dim() != 2:
        raise DataError("features must be a matrix", expected="[nodes, columns]", got=f"{x.dim()} dimensions")
    if not x.is_floating_point() and x.dtype not in (torch.int64, torch.int32, torch.uint8, torch.bool):
        raise DataError("features must be real numbers", expected="a float or integer dtype", got=str(x.dtype))
    if x.numel() and not bool(torch.isfinite(x.sum())):
        bad = torch.nonzero(~torch.isfinite(x))
        if len(bad):
            raise DataError(
                "features must be finite",
                expected="no NaN and no infinity",
                got=f"{len(bad)} such value(s)",
                where=f"first at row {int(bad[0, 0])}, column {int(bad[0, 1])}",
                hint="fill in or drop missing values first",
            )


def check_edges(edge_index: torch.Tensor, nodes: int) -> None:
    """Refuse edges that do not connect two of the nodes."""
    if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.dtype != torch.int64:
        raise DataError(
            "edges must be PyG's edge_index",
            expected="int64 [2, edges]",
            got=f"{str(edge_index.dtype).removeprefix('torch.')} {list(edge_index.shape)}",
        )
    outside = (edge_index < 0) | (edge_index >= nodes)
    if bool(outside.any()):
        first = int(torch.nonzero(outside.any(dim=0))[0])
        raise DataError(
            "an edge outside the node range",
            expected=f"node numbers from 0 to {nodes - 1}",
            got=f"{int(outside.any(dim=0).sum())} such edge(s)",
            where=f"first at edge {first}",
            hint="number the nodes from 0 and give every node a row of features",
        )


def check_labels(labels: Labels) -> None:
    """Refuse splits without rows and rows without labels."""
    nodes = len(labels.y)
    for name, rows in (("train", labels.train), ("val", labels.val), ("test", labels.test)):
        if len(rows) == 0 and labels.trained:
            continue
        if len(rows) == 0:
            raise DataError(f"no {name} rows", expected=f"at least one row in {name}_mask", got="none")
        if int(rows.min()) < 0 or int(rows.max()) >= nodes:
            raise DataError(f"{name} rows outside the node range", expected=f"0 to {nodes - 1}")
        y = labels.y[rows]
        missing = int(((y < 0) | (y >= labels.classes)).sum())
        if missing:
            raise DataError(
                f"labels missing in the {name} rows",
                expected=f"a class from 0 to {labels.classes - 1} in each row",
                got=f"{missing} row(s) without one",
                hint="leave these rows out of the mask",
            )
    if len(torch.unique(torch.cat([labels.train, labels.val]))) < len(labels.train) + len(labels.val):
        raise DataError("a row is both for training and for validation", expected="disjoint masks")
