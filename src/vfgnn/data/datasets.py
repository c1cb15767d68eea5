"""The benchmark graphs, by name, as PyG `Data`.

Looked for in this order: `--data-dir` or VFGNN_DATA, the cache, the copy of CiteSeer inside the package, PyG's own
download. Nothing is ever written beside what was found. The Planetoid files are pickles, the only ones that are ever
read, and only after their SHA-256 is the one in `checksums.sha256`. `arxiv_text` is arXiv's graph with features made
from texts, in the folders of `arxiv` and beside it.
"""

import hashlib
import os
import tempfile
import zipfile
import zlib
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import torch
from torch_geometric.data import Data, download_url
from torch_geometric.datasets import Planetoid
from torch_geometric.io import read_planetoid_data

from vfgnn.errors import DataError
from vfgnn.writing import flush

PLANETOID = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
NAMES = (*PLANETOID, "arxiv", "arxiv_text")
ARXIV_NODES, ARXIV_FEATURES, ARXIV_CLASSES = 169_343, 128, 40


def cache_dir() -> Path:
    """Where downloads are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "vfgnn"


def load(name: str, data_dir: Path | None = None, *, generated_features: bool = False) -> Data:
    """The data set `name`; an unknown name, a missing, truncated or altered file raises DataError.

    `generated_features` (arXiv only): random ones in the place of the feature file, to measure costs.
    """
    if name not in NAMES:
        raise DataError("unknown dataset", expected=f"one of {', '.join(NAMES)}", got=name)
    if data_dir is None and os.environ.get("VFGNN_DATA"):
        data_dir = Path(os.environ["VFGNN_DATA"])
    if data_dir is not None and not data_dir.is_dir():
        raise DataError("no such data folder", expected="a folder with planetoid/ or ogbn_arxiv/", got=str(data_dir))
    roots = [root for root in (data_dir, cache_dir()) if root is not None]
    if name.startswith("arxiv"):
        return _load_arxiv(roots, text=name == "arxiv_text", generated=generated_features)
    return _load_planetoid(name, roots)


def _load_planetoid(name: str, roots: list[Path]) -> Data:
    folders = [root / "planetoid" / PLANETOID[name] / "raw" for root in roots]
    for raw in folders:
        if raw.is_dir():
            return read_planetoid(name, raw)
    if name == "citeseer":
        return _load_embedded_citeseer()
    try:
        _download_planetoid(name, folders[-1])
    except DataError:
        raise
    except Exception as error:  # whatever the network raises, the advice is the same
        raise DataError(
            f"{name} was not found and could not be downloaded",
            where=", ".join(map(str, folders)),
            hint="put the ind.* files there, or name the folder above planetoid/ with --data-dir or VFGNN_DATA",
        ) from error
    return read_planetoid(name, folders[-1])


def _download_planetoid(name: str, raw: Path) -> None:
    """PyG's own address and download; the folder appears only when all its files are right."""
    raw.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=raw.parent) as folder:
        complete = Path(folder) / "raw"
        for file, checksum in _checksums(f"ind.{name}.").items():
            download_url(f"{Planetoid.url}/{file}", str(complete), log=False)
            _check_sha256(complete / file, checksum)
            flush(complete / file)
        complete.rename(raw)
    flush(raw.parent)


def read_planetoid(name: str, raw: Path) -> Data:
    """Check every file, then let PyG read the folder."""
    for file, checksum in _checksums(f"ind.{name}.").items():
        _check_sha256(raw / file, checksum)
    return read_planetoid_data(str(raw), name)


def _checksums(prefix: str) -> dict[str, str]:
    lines = (resources.files("vfgnn.data") / "checksums.sha256").read_text().splitlines()
    pairs = (line.split() for line in lines)
    return {file: checksum for checksum, file in pairs if file.startswith(prefix)}


def _check_sha256(path: Path, checksum: str) -> None:
    if not path.is_file():
        raise DataError("a data file is missing", expected=path.name, where=str(path.parent))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != checksum:
        raise DataError(
            "a data file is truncated or altered, and was not opened",
            expected=f"SHA-256 {checksum}",
            got=found,
            where=str(path),
            hint="fetch the file again",
        )


def _load_embedded_citeseer() -> Data:
    """CiteSeer as it comes with the package: arrays only, no pickles (made by tools/embed_citeseer.py)."""
    with resources.as_file(resources.files("vfgnn.data") / "citeseer.npz") as path:
        _check_sha256(path, _checksums("citeseer.npz")["citeseer.npz"])
        with np.load(path, allow_pickle=False) as arrays:
            indptr, indices = arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int64)
            shape = tuple(int(length) for length in arrays["shape"])
            x = np.zeros(shape, dtype=np.float32)
            x[np.repeat(np.arange(shape[0]), np.diff(indptr)), indices] = 1.0
            half = arrays["edges"].astype(np.int64)  # each undirected edge once
            y, split = arrays["y"].astype(np.int64), arrays["split"]
    both = np.concatenate([half, half[::-1][:, half[0] != half[1]]], axis=1)
    both = both[:, np.lexsort((both[0], both[1]))]
    masks = {f"{part}_mask": torch.from_numpy(split == i) for i, part in enumerate(("train", "val", "test"), start=1)}
    return Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(both), y=torch.from_numpy(y), **masks)


def _load_arxiv(roots: list[Path], *, text: bool, generated: bool) -> Data:
    folders = [root / "ogbn_arxiv" for root in roots if (root / "ogbn_arxiv" / "raw").is_dir()]
    if not folders:
        raise DataError(
            "arxiv was not found",
            expected="the raw layout of OGB: ogbn_arxiv/raw and ogbn_arxiv/split/time",
            where=", ".join(map(str, roots)),
            hint="unpack OGB's arxiv.zip there, or name the folder with --data-dir or VFGNN_DATA",
        )
    folder = folders[0]
    if generated:
        x = np.random.default_rng(0).standard_normal((ARXIV_NODES, ARXIV_FEATURES), dtype=np.float32)
    elif text:
        x = _read_text_features(folder.parent / "ogbn_arxiv_text" / "node_feat_int8.npz")
    else:
        x = _read_ogb_features(folder / "raw" / "node-feat.csv.gz")
    y = _read_csv(folder / "raw" / "node-label.csv.gz", columns=1).astype(np.int64)[:, 0]
    edges = _read_csv(folder / "raw" / "edge.csv.gz", columns=2).astype(np.int64).T
    if len(x) != ARXIV_NODES or len(y) != ARXIV_NODES:
        raise DataError("arxiv has the wrong number of nodes", expected=str(ARXIV_NODES), got=f"{len(x)} and {len(y)}")
    both = np.unique(np.concatenate([edges, edges[::-1]], axis=1), axis=1)
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(both), y=torch.from_numpy(y))
    for part, file in (("train", "train"), ("val", "valid"), ("test", "test")):
        mask = torch.zeros(ARXIV_NODES, dtype=torch.bool)
        mask[torch.from_numpy(_read_csv(folder / "split" / "time" / f"{file}.csv.gz", columns=1)[:, 0]).long()] = True
        data[f"{part}_mask"] = mask
    return data


def _read_ogb_features(path: Path) -> np.ndarray:
    if not path.is_file():
        raise DataError(
            "arxiv's feature file is missing",
            expected=f"{ARXIV_NODES} rows of {ARXIV_FEATURES} numbers",
            where=str(path),
            hint="copy node-feat.csv.gz from OGB's arxiv.zip into that folder",
        )
    return _read_csv(path, columns=ARXIV_FEATURES).astype(np.float32)


def _read_text_features(path: Path) -> np.ndarray:
    """Of texts: one byte each, all divided by their common deviation, so that directions keep their weights.

    No pickle is read. An int8 is finite: type and shape are all there is to check.
    """
    expected = f"key x, int8 [{ARXIV_NODES}, {ARXIV_FEATURES}]"
    if not path.is_file():
        raise DataError("arxiv's text features are missing", expected=expected, where=str(path))
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            x = arrays["x"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError("arxiv's text features cannot be read", expected=expected, where=str(path)) from error
    if x.dtype != np.int8 or x.shape != (ARXIV_NODES, ARXIV_FEATURES):
        got = f"{x.dtype} {list(x.shape)}"
        raise DataError("arxiv's text features have another form", expected=expected, got=got, where=str(path))
    scaled: np.ndarray = x.astype(np.float32) / max(float(x.std()), 1.0)
    return scaled


def _read_csv(path: Path, *, columns: int) -> np.ndarray:
    if not path.is_file():
        raise DataError("a data file is missing", expected=path.name, where=str(path.parent))
    try:
        table = pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(autogenerate_column_names=True))
    except (pa.ArrowException, OSError) as error:
        raise DataError("a data file cannot be read", expected="a whole gzip file of CSV", where=str(path)) from error
    if table.num_columns != columns:
        raise DataError("wrong number of columns", expected=str(columns), got=str(table.num_columns), where=str(path))
    return np.column_stack([column.to_numpy() for column in table.columns])
