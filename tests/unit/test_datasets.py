import gzip
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from vfgnn.data import datasets
from vfgnn.errors import DataError


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No data but what a test puts there, and no network."""
    monkeypatch.delenv("VFGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def refuse(*args, **kwargs):
        raise OSError("no network in tests")

    monkeypatch.setattr(datasets, "download_url", refuse)


def test_embedded_citeseer_is_the_planetoid_graph():
    """Counts as published; the edges are unique undirected ones."""
    data = datasets.load("citeseer")
    assert data.x.shape == (3327, 3703)
    assert data.edge_index.shape == (2, 2 * 4552)
    assert [int(data[f"{part}_mask"].sum()) for part in ("train", "val", "test")] == [120, 500, 1000]
    assert int(data.y.max()) == 5
    ends = data.edge_index
    both = {(int(a), int(b)) for a, b in ends.t()}
    assert all((b, a) in both for a, b in both)


def test_unknown_names_and_folders(tmp_path):
    with pytest.raises(DataError, match="cora, citeseer, pubmed, arxiv, arxiv_text"):
        datasets.load("corra")
    with pytest.raises(DataError, match="no such data folder"):
        datasets.load("cora", tmp_path / "missing")


def test_what_is_not_there_and_cannot_be_downloaded_says_where_to_put_it(tmp_path):
    with pytest.raises(DataError, match="VFGNN_DATA"):
        datasets.load("cora", tmp_path)
    assert not list((tmp_path / "cache" / "vfgnn" / "planetoid" / "Cora").iterdir())


def test_a_download_is_kept_only_when_all_of_it_is_right(tmp_path, monkeypatch):
    """Whatever the network sends, no file of it stays unless all checksums match."""
    monkeypatch.setattr(datasets, "download_url", lambda url, folder, log: put(folder, url.rsplit("/", 1)[1]))

    def put(folder, name):
        Path(folder).mkdir(exist_ok=True)
        (Path(folder) / name).write_bytes(b"something else")

    with pytest.raises(DataError, match="truncated or altered"):
        datasets.load("cora")
    assert not list((tmp_path / "cache" / "vfgnn" / "planetoid" / "Cora").iterdir())


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened before its checksum was known",))


def test_an_altered_pickle_is_never_opened(tmp_path):
    raw = tmp_path / "planetoid" / "CiteSeer" / "raw"
    raw.mkdir(parents=True)
    for name in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"):
        (raw / f"ind.citeseer.{name}").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match="truncated or altered"):
        datasets.load("citeseer", tmp_path)


def test_a_missing_file_is_named(tmp_path):
    (tmp_path / "planetoid" / "Cora" / "raw").mkdir(parents=True)
    with pytest.raises(DataError, match=r"ind\.cora\."):
        datasets.load("cora", tmp_path)


def test_a_truncated_embedded_file_is_refused(tmp_path, monkeypatch):
    broken = tmp_path / "package"
    source = datasets.resources.files("vfgnn.data")
    broken.mkdir()
    shutil.copy(str(source / "checksums.sha256"), broken)
    (broken / "citeseer.npz").write_bytes((source / "citeseer.npz").read_bytes()[:-100])
    monkeypatch.setattr(datasets.resources, "files", lambda _: broken)
    with pytest.raises(DataError, match="truncated or altered"):
        datasets.load("citeseer")


@pytest.fixture
def arxiv(tmp_path, monkeypatch):
    """OGB's raw layout with 6 nodes."""
    monkeypatch.setattr(datasets, "ARXIV_NODES", 6)
    monkeypatch.setattr(datasets, "ARXIV_FEATURES", 2)
    raw, split = tmp_path / "ogbn_arxiv" / "raw", tmp_path / "ogbn_arxiv" / "split" / "time"
    raw.mkdir(parents=True)
    split.mkdir(parents=True)
    write(raw / "edge.csv.gz", [[0, 1], [1, 0], [2, 3], [4, 5]])
    write(raw / "node-label.csv.gz", [[0], [1], [2], [0], [1], [2]])
    write(raw / "node-feat.csv.gz", np.arange(12).reshape(6, 2) / 2)
    for name, rows in (("train", [0, 1]), ("valid", [2, 3]), ("test", [4, 5])):
        write(split / f"{name}.csv.gz", [[row] for row in rows])
    return tmp_path


def write(path, rows):
    path.write_bytes(gzip.compress("".join(",".join(map(str, row)) + "\n" for row in rows).encode()))


def test_arxiv_in_ogbs_layout(arxiv):
    data = datasets.load("arxiv", arxiv)
    assert torch.equal(data.x, torch.arange(12.0).reshape(6, 2) / 2)
    assert {tuple(edge) for edge in data.edge_index.t().tolist()} == {(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)}
    assert data.val_mask.nonzero()[:, 0].tolist() == [2, 3]


def test_arxiv_without_its_feature_file_says_so(arxiv):
    (arxiv / "ogbn_arxiv" / "raw" / "node-feat.csv.gz").unlink()
    with pytest.raises(DataError, match=r"node-feat\.csv\.gz"):
        datasets.load("arxiv", arxiv)


def test_arxiv_truncated(arxiv):
    path = arxiv / "ogbn_arxiv" / "raw" / "edge.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="whole gzip file"):
        datasets.load("arxiv", arxiv)


def test_arxiv_with_missing_nodes_or_columns(arxiv):
    write(arxiv / "ogbn_arxiv" / "raw" / "node-label.csv.gz", [[0], [1]])
    with pytest.raises(DataError, match="number of nodes"):
        datasets.load("arxiv", arxiv)
    write(arxiv / "ogbn_arxiv" / "raw" / "node-feat.csv.gz", [[1, 2, 3]])
    with pytest.raises(DataError, match="columns"):
        datasets.load("arxiv", arxiv)


@pytest.fixture
def texts(arxiv):
    """Beside it features of texts, and none of OGB's."""
    (arxiv / "ogbn_arxiv" / "raw" / "node-feat.csv.gz").unlink()
    folder = arxiv / "ogbn_arxiv_text"
    folder.mkdir()
    np.savez_compressed(folder / "node_feat_int8.npz", x=np.arange(-6, 6, dtype=np.int8).reshape(6, 2))
    return folder / "node_feat_int8.npz"


def test_arxiv_with_features_of_texts(arxiv, texts):
    data = datasets.load("arxiv_text", arxiv)
    whole = torch.arange(-6.0, 6.0).reshape(6, 2)
    assert data.x.dtype == torch.float32 and torch.allclose(data.x, whole / whole.std(correction=0))
    assert data.y.tolist() == [0, 1, 2, 0, 1, 2] and data.edge_index.shape == (2, 6)
    with pytest.raises(DataError, match=r"node-feat\.csv\.gz"):
        datasets.load("arxiv", arxiv)  # they do not stand for OGB's


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((5, 2), dtype=np.int8),
        np.zeros((6, 3), dtype=np.int8),
        np.zeros((6, 2), dtype=np.float32),
        np.zeros((6, 2), dtype=np.uint8),
        np.full((6, 2), None, dtype=object),
    ],
)
def test_other_text_features_are_refused(arxiv, texts, x):
    np.savez_compressed(texts, x=x)
    with pytest.raises(DataError, match="text features"):
        datasets.load("arxiv_text", arxiv)


def test_broken_or_missing_text_features_are_refused(arxiv, texts):
    whole = texts.read_bytes()
    for broken in (whole[:-30], whole[:40], b"", pickle.dumps(Bomb())):
        texts.write_bytes(broken)
        with pytest.raises(DataError, match="cannot be read"):
            datasets.load("arxiv_text", arxiv)
    np.savez_compressed(texts, y=np.zeros((6, 2), dtype=np.int8))
    with pytest.raises(DataError, match="cannot be read"):
        datasets.load("arxiv_text", arxiv)
    texts.unlink()
    with pytest.raises(DataError, match="missing"):
        datasets.load("arxiv_text", arxiv)
