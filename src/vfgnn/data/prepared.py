"""A holder's own data on its own disk, aligned and ready: one safetensors file each for holding and labels.

`holding` has `x` [nodes, columns] (or its CSR parts) and `edge_index` [2, edges]; `labels` has `y` [nodes] and the row
numbers `train`, `val`, `test`. Read and written by the holder alone; nothing leaves.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

from vfgnn.agreement import Agreement
from vfgnn.data.holdings import SPARSE_BELOW, Holding, Labels
from vfgnn.errors import DataError
from vfgnn.tensor_file import read_tensors, write_tensors
from vfgnn.writing import remove_unfinished

Checked = TypeVar("Checked")
MAX_CLASSES = 2**31


def save_holding(path: Path, holding: Holding) -> None:
    """Write features and edges, sparse where they are sparse."""
    x = holding.x
    tensors = {"edge_index": holding.edge_index.contiguous()}
    if x.numel() and int(torch.count_nonzero(x)) < SPARSE_BELOW * x.numel():
        csr = x.to_sparse_csr()
        tensors |= {"x_offsets": csr.crow_indices(), "x_columns": csr.col_indices(), "x_values": csr.values()}
    else:
        tensors["x"] = x.contiguous()
    _save(path, tensors, {"kind": "holding", "shape": list(x.shape)})


def load_holding(path: Path) -> Holding:
    """Read features and edges; checked as every holding is."""
    tensors, about = _load(path, "holding", {"edge_index"})
    if "x" in tensors:
        x = tensors["x"]
    else:
        _demand(path, tensors, {"x_offsets", "x_columns", "x_values"})
        x = _from_csr(path, tensors, about)
    return _named(path, lambda: Holding(x=x, edge_index=tensors["edge_index"]))


def save_labels(path: Path, labels: Labels) -> None:
    """Write classes and splits."""
    rows = {"train": labels.train, "val": labels.val, "test": labels.test}
    tensors = {name: tensor.contiguous() for name, tensor in (("y", labels.y), *rows.items())}
    _save(path, tensors, {"kind": "labels", "classes": labels.classes})


def load_labels(path: Path) -> Labels:
    """Read classes and splits; checked as all labels are."""
    tensors, about = _load(path, "labels", {"y", "train", "val", "test"})
    y, train, val, test = (tensors[name] for name in ("y", "train", "val", "test"))
    for name, numbers in (("y", y), ("train", train), ("val", val), ("test", test)):
        if numbers.dtype != torch.int64 or numbers.dim() != 1:
            got = f"{str(numbers.dtype).removeprefix('torch.')} {list(numbers.shape)}"
            raise DataError(f"{name} cannot be used", expected="int64, one dimension", got=got, where=str(path))
    classes = about.get("classes")
    if not isinstance(classes, int) or not 0 < classes <= MAX_CLASSES:
        raise DataError("the labels file does not say how many classes there are", where=str(path))
    return _named(path, lambda: Labels(y=y, train=train, val=val, test=test, classes=classes))


def check_declared(agreement: Agreement, name: str, holding: Holding) -> None:
    """Refuse data that is not what the federation file says of this holder; sizes are public, values are not shown."""
    shape = next(holder for holder in agreement.holders if holder.name == name)
    integer = not holding.x.is_floating_point() or bool((holding.x == holding.x.round()).all())
    found = (
        ("nodes", agreement.nodes, holding.nodes),
        ("features", shape.features, int(holding.x.shape[1])),
        ("edges", shape.edges, holding.edge_index.shape[1] > 0),
    )
    for key, declared, here in found:
        if declared != here:
            raise DataError(
                f"the data of {name} is not what the federation file declares",
                expected=f"{key} = {declared}",
                got=f"{key} = {here}",
                hint="correct the file that is wrong; the federation file must stay the same at all parties",
            )
    if shape.integer and not integer:
        raise DataError(
            f"the data of {name} is not what the federation file declares",
            expected="whole numbers (integer = true)",
            got="other numbers too",
            hint="set integer = false in the federation file, at all parties",
        )


def check_declared_labels(agreement: Agreement, labels: Labels) -> None:
    """The same for the labels."""
    for key, declared, here in (
        ("nodes", agreement.nodes, len(labels.y)),
        ("classes", agreement.classes, labels.classes),
    ):
        if declared != here:
            raise DataError(
                "the labels are not what the federation file declares",
                expected=f"{key} = {declared}",
                got=f"{key} = {here}",
            )


def _from_csr(path: Path, tensors: dict[str, torch.Tensor], about: dict[str, Any]) -> torch.Tensor:
    offsets, columns, values = (tensors[name] for name in ("x_offsets", "x_columns", "x_values"))
    try:
        return torch.sparse_csr_tensor(
            offsets, columns, values, tuple(about["shape"]), check_invariants=True
        ).to_dense()
    except (RuntimeError, TypeError, ValueError, KeyError) as error:
        raise DataError(
            "features that cannot be read", expected="a CSR matrix", got=str(error).splitlines()[0], where=str(path)
        ) from None


def _save(path: Path, tensors: dict[str, torch.Tensor], about: dict[str, object]) -> None:
    remove_unfinished(path.parent, path.name)
    write_tensors(path, tensors, about)


def _load(path: Path, kind: str, names: set[str]) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    if not path.is_file():
        raise DataError(
            f"no {kind} file", expected="a safetensors file", where=str(path), hint="see [data] in party.toml"
        )
    about, tensors = read_tensors(path, f"the {kind} file", DataError, hint="copy or prepare it again")
    if about.get("kind") != kind:
        raise DataError(f"not a {kind} file", expected=kind, got=str(about.get("kind")), where=str(path))
    _demand(path, tensors, names)
    return tensors, about


def _demand(path: Path, tensors: dict[str, torch.Tensor], names: set[str]) -> None:
    if missing := names - set(tensors):
        raise DataError("a data file without all its parts", expected=", ".join(sorted(missing)), where=str(path))


def _named(path: Path, make: Callable[[], Checked]) -> Checked:
    try:
        return make()
    except DataError as error:
        where = str(path) if error.where is None else f"{path}, {error.where}"
        raise DataError(error.what, expected=error.expected, got=error.got, where=where, hint=error.hint) from None
