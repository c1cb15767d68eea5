"""Products on a GPU give the words that the CPU gives; so a training with them is the same, word by word.

The limbs of mpc/gpu.py are plain torch, so the same training runs with them on any machine; where there is a GPU, there
too.
"""

import pytest
import torch
from torch.utils._pytree import tree_leaves

from tests.sealed_twin import settings_of, small
from vfgnn.lab.simulate import build
from vfgnn.mpc.gpu import GpuMatrix
from vfgnn.transport.memory import InMemoryNetwork

ORDERS = [{"order": "labels", "hops": 2}, {"order": "features", "columns_at_once": 7, "hops": 2}]
GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")]


def everything(settings, device=None):
    """All words of a training: every message, and each holder's share of the model."""
    network, sent = InMemoryNetwork(), []
    put = network.put

    def spy(message, payload):
        sent.append((str(message), tuple(payload.flatten().tolist())))
        put(message, payload)

    network.put = spy
    held, labels = small(3, real=(1,), seed=81)
    federation = build(held, labels, settings_of(**settings), seed=0, device=device, network=network)
    federation.train()
    return sorted(sent), [holder.state().weights for holder in federation.holders]


def same(one, other):
    assert one[0] == other[0]
    for own, elsewhere in zip(one[1], other[1], strict=True):
        assert own.keys() == elsewhere.keys()
        assert all(torch.equal(own[owner], elsewhere[owner].cpu()) for owner in own)


@pytest.mark.parametrize("settings", ORDERS)
def test_limbs_give_the_same_words(settings, monkeypatch):
    kernels = everything(settings)
    monkeypatch.setattr("vfgnn.sealed.exchange.ring_matrix", lambda words, device: GpuMatrix(words, device))
    same(kernels, everything(settings))


@pytest.mark.parametrize("settings", [pytest.param(each, marks=GPU) for each in ORDERS])
def test_a_gpu_gives_the_same_words(settings):
    same(everything(settings), everything(settings, torch.device("cuda")))


class Elsewhere(torch.Tensor):
    """A tensor that is on another device, as far as one can tell without any: it meets its like alone."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        if function is torch.Tensor.cpu:
            return arguments[0].as_subclass(torch.Tensor)
        met = [one for one in tree_leaves((arguments, keywords)) if isinstance(one, torch.Tensor)]
        if function is torch.Tensor.numpy or not all(isinstance(one, cls) for one in met):
            raise TypeError(f"{function.__name__} of tensors on two devices")
        return super().__torch_function__(function, types, arguments, keywords)


class MatrixElsewhere:
    def __init__(self, words, device):
        self._matrix = GpuMatrix(words, torch.device("cpu"))

    def times(self, w):
        return self._matrix.times(w.cpu()).as_subclass(Elsewhere) if isinstance(w, Elsewhere) else None

    def transpose_times(self, g):
        return self._matrix.transpose_times(g.cpu()).as_subclass(Elsewhere) if isinstance(g, Elsewhere) else None


@pytest.mark.parametrize("settings", ORDERS)
def test_what_is_multiplied_goes_to_the_device_and_comes_back(settings, monkeypatch):
    before, device, to = everything(settings), torch.device("cpu:1"), torch.Tensor.to

    def moved(self, *arguments, **keywords):
        there = bool(arguments) and arguments[0] == device
        return self.as_subclass(Elsewhere) if there else to(self, *arguments, **keywords)

    monkeypatch.setattr(torch.Tensor, "to", moved)
    monkeypatch.setattr("vfgnn.sealed.exchange.ring_matrix", MatrixElsewhere)
    same(before, everything(settings, device))
