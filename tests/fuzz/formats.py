"""A file changed by its kind: keys and values of TOML, JSON and JSON lines, tensors and their metadata, cells, columns.

A chain of lines is chained again most of the time: its hashes are no secret. Everything is also changed as bytes.
"""

import json
import tomllib
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet
import torch
from safetensors.torch import load, save

from tests.fuzz.ground import Ground, rechained
from tests.fuzz.mutate import NUMBERS, TEXTS, each_missing, mutate_bytes, mutate_tree
from vfgnn.files import to_toml

CHAINS = ("messages.jsonl", "privacy_ledger.jsonl")
ARROW_TYPES = (
    pa.float64(), pa.binary(), pa.timestamp("s"), pa.list_(pa.int64()), pa.bool_(), pa.large_string(), pa.null(),
)  # fmt: skip


def simple_faults(name: str, content: bytes) -> Iterator[bytes | None]:
    """Missing, empty, of another kind, a byte that is not UTF-8, and each key or tensor missing once."""
    middle = len(content) // 2
    yield from (None, b"", b"null\n", b"[]\n", b"{}\n", content[:middle], content[:middle] + b"\xff" + content[middle:])
    if name.endswith(".json"):
        yield from (json.dumps(less).encode() for less in each_missing(json.loads(content)))
    elif name.endswith(".safetensors"):
        tensors, described = _opened(content)
        yield from (save({key: tensors[key] for key in tensors if key != left_out}, described) for left_out in tensors)
        about = json.loads(described.get("vfgnn", "{}"))
        yield from (save(tensors, {"vfgnn": json.dumps(less)}) for less in each_missing(about))


def _opened(content: bytes) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The tensors and the metadata."""
    about = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return load(content), about.get("__metadata__", {})


def mutate_file(rng: Random, name: str, content: bytes, ground: Ground) -> bytes | None:
    """By its kind, or as bytes; now and then it is missing or empty."""
    draw, suffix = rng.random(), Path(name).suffix
    if draw < 0.03:
        return rng.choice((None, b"", b"\n", b"null", b"[]", b"\xff"))
    if draw < 0.35 or suffix not in STRUCTURED:
        return mutate_bytes(rng, content)
    try:
        return STRUCTURED[suffix](rng, name, content, ground)
    except Exception:  # noqa: BLE001 (a tree that its format cannot write)
        return mutate_bytes(rng, content)


def _toml(rng: Random, name: str, content: bytes, ground: Ground) -> bytes:
    return to_toml(mutate_tree(rng, tomllib.loads(content.decode()))).encode()


def _json(rng: Random, name: str, content: bytes, ground: Ground) -> bytes:
    return json.dumps(mutate_tree(rng, json.loads(content))).encode()


def _json_lines(rng: Random, name: str, content: bytes, ground: Ground) -> bytes:
    lines = mutate_tree(rng, [json.loads(line) for line in content.splitlines()])
    if Path(name).name in CHAINS and rng.random() < 0.7:
        return rechained(ground.folder / "chain", lines)
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _tensors(rng: Random, name: str, content: bytes, ground: Ground) -> bytes:
    tensors, described = _opened(content)
    if rng.random() < 0.5 and "vfgnn" in described:
        return save(tensors, {"vfgnn": json.dumps(mutate_tree(rng, json.loads(described["vfgnn"])))})
    key = rng.choice(list(tensors))
    tensor, odd = tensors.pop(key), rng.choice((-1, 2**31, 2**40, 0))
    changed = rng.choice((
        lambda: {}, lambda: {f"{key}x": tensor}, lambda: {key: tensor.reshape(-1)}, lambda: {key: tensor[:0]},
        lambda: {key: tensor.double()}, lambda: {key: tensor.to(torch.uint8)}, lambda: {key: tensor.bool()},
        lambda: {key: torch.full_like(tensor.double(), rng.choice(NUMBERS[-6:]))}, lambda: {key: tensor[None]},
        lambda: {key: torch.full_like(tensor, odd)}, lambda: {key: tensor.bfloat16()},
    ))()  # fmt: skip
    return save({**tensors, **{name: made.contiguous() for name, made in changed.items()}}, described)


def _csv(rng: Random, name: str, content: bytes, ground: Ground) -> bytes:
    rows = [line.split(",") for line in content.decode().splitlines()]
    for _ in range(rng.choice((1, 1, 3))):
        row = rng.choice(rows[: rng.choice((1, len(rows)))])
        at = rng.randrange(len(row))
        row[at : at + rng.choice((1, 9))] = rng.choice(([rng.choice(TEXTS)], [str(rng.choice(NUMBERS))], [""], row))
    if rng.random() < 0.2:
        rows.insert(rng.randrange(len(rows)), rng.choice(rows))
    newline, comma = rng.choice(("\n", "\n", "\r\n", "\r")), rng.choice((",", ",", ",", ";"))
    return newline.join(comma.join(row) for row in rows).encode()


def _parquet(rng: Random, name: str, content: bytes, ground: Ground) -> bytes:
    table = pyarrow.parquet.read_table(BytesIO(content))
    at, rows = rng.randrange(table.num_columns), len(table)
    name, column = table.column_names[at], table.column(at)
    made = rng.choice((
        lambda: table.remove_column(at), lambda: table.slice(0, rng.choice((0, 1))),
        lambda: table.append_column(name, column), lambda: pa.concat_tables([table, table]),
        lambda: table.set_column(at, rng.choice(TEXTS), column),
        lambda: table.set_column(at, name, pa.nulls(rows, rng.choice(ARROW_TYPES))),
        lambda: table.set_column(at, name, pa.array([rng.choice(TEXTS[:20]) for _ in range(rows)])),
        lambda: table.set_column(at, name, pa.array([float(rng.choice(NUMBERS[-7:])) for _ in range(rows)])),
    ))()  # fmt: skip
    out = BytesIO()
    pyarrow.parquet.write_table(made, out)
    return out.getvalue()


STRUCTURED: dict[str, Callable[[Random, str, bytes, Ground], bytes]] = {
    ".toml": _toml,
    ".json": _json,
    ".count": _json,
    ".jsonl": _json_lines,
    ".safetensors": _tensors,
    ".csv": _csv,
    ".parquet": _parquet,
}
