"""Tensors with a description in one safetensors file: whole or not there, for its owner alone.

safetensors reads these files, and does not write them: it writes to a temporary file of its own, whose name nobody
knows after a kill, or it makes two copies of everything in memory. The format is a header in JSON, then the tensors.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from vfgnn.errors import VfgnnError
from vfgnn.writing import write_whole

DESCRIPTION = "vfgnn"  # the key in the file's metadata
CHUNK = 1 << 24  # bytes of a tensor that are written at once
DTYPES = {
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""In the order in which they lie in a file: the widest first, so that each is aligned."""


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor], about: Mapping[str, object]) -> None:
    """Write dense CPU tensors, and `about` as JSON."""
    ordered = sorted(tensors.items(), key=lambda one: ([*DTYPES].index(one[1].dtype), one[0]))
    header = _header(ordered, json.dumps(about))

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            for _, tensor in ordered:
                words = _words(tensor)
                for at in range(0, len(words), CHUNK):
                    file.write(words[at : at + CHUNK])

    write_whole(path, write)


def _header(ordered: list[tuple[str, torch.Tensor]], about: str) -> bytes:
    content: dict[str, object] = {"__metadata__": {DESCRIPTION: about}}
    end = 0
    for name, tensor in ordered:
        begin, end = end, end + tensor.numel() * tensor.element_size()
        content[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 8)


def _words(tensor: torch.Tensor) -> memoryview:
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else memoryview(b"")


def read_tensors(
    path: Path, what: str, refused: type[VfgnnError], *, names: Collection[str] = (), hint: str | None = None
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The description and the tensors, `names` among them; `what` it is, for the error of a file that cannot be read.

    Copies: what lies in the file is not aligned, and a product of unaligned floats may round differently.
    """
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get(DESCRIPTION, "{}"))
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        got = str(error).splitlines()[0]
        raise refused(f"{what} cannot be read", got=got, where=str(path), hint=hint) from None
    if not isinstance(about, dict):
        raise refused(f"{what} cannot be read", expected="a description with names", where=str(path), hint=hint)
    if missing := set(names) - set(tensors):
        raise refused(f"{what} is not complete", expected=", ".join(sorted(missing)), where=str(path), hint=hint)
    return about, tensors
