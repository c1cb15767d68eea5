"""Why the coefficients are secret: with public ones, whoever knows everything but the labels finds the labels.

20 training rows, 2 classes: 2^20 labellings. Steps and coefficients follow from the inner products of the labels'
Krylov space, and these from the labels. Five such scalars leave one labelling (and its mirror image, which has the same
inner products). In the protocol no party but the label holder receives them, except under masks of the dealer's.
"""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tests.sealed_twin import adjacency, labels_of, small, train
from vfgnn.common_programs import DONE, END
from vfgnn.model.krylov import coefficients
from vfgnn.model.propagated_kernels import make_kernel
from vfgnn.mpc.blinding import Blinding
from vfgnn.sealed import program
from vfgnn.sealed.formats import COEFFICIENT, FACTOR
from vfgnn.sealed.rehearsal import script
from vfgnn.sealed.ridge_path import MARGIN
from vfgnn.sealed.sizes import SealedSizes
from vfgnn.transport.memory import InMemoryNetwork

ROWS, RIDGE, STEPS = 20, 0.3, 4
SETTINGS = {"hops": 3, "order": "labels", "ridges": [RIDGE]}


def case():
    held, labels = small(2, nodes=40, classes=2, columns=[7, 6], edges=40, seed=51)
    return held, labels_of(labels.y, 2, ROWS, 8)


def spectrum(held):
    """Of the centred kernel of the training rows: what the attacker knows."""
    graph = sum(adjacency(one) for one in held).astype(float)
    x = sp.csr_array(np.concatenate([one.x.numpy() for one in held], axis=1))
    columns = make_kernel(x, graph, name="smooth", hops=3, teleport=0.1).columns()[:ROWS]
    columns = columns - columns.mean(axis=0)
    return np.linalg.eigh(columns @ columns.T)


def every_labelling():
    """[2^20, 20]"""
    return ((np.arange(2**ROWS)[:, None] >> np.arange(ROWS)) & 1).astype(np.float32)


def labellings_left(held, scalars):
    """Numbers of those whose own scalars are these: 2 / B, and the coefficients; `off`: what rounding explains."""
    values, vectors = spectrum(held)
    centred = vectors.T - vectors.T.mean(axis=1, keepdims=True)
    weights = (every_labelling() @ centred.T.astype(np.float32)).astype(np.float64) ** 2
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        second = (weights @ values**2) / (weights @ values)
        left = np.flatnonzero(np.abs(2 / (MARGIN["smooth"] * second) - scalars[0]) < 1e-4 * scalars[0])
    return [n for n in left if fits(weights[n], values, scalars)], len(left)


def fits(weights, values, scalars):
    """The four coefficients of this labelling are the observed ones, to a thousandth of the largest."""
    bound = 2 / scalars[0]
    x = values / bound
    p = [np.ones_like(x), 2 * x - 1]
    while len(p) < STEPS:
        p.append((4 * x - 2) * p[-1] - p[-2])
    vectors = np.stack([*p, values * p[-1]])
    own = coefficients((vectors * weights) @ vectors.T, bound, RIDGE * (weights @ values), minimum="weights")
    return np.abs(own - scalars[1:]).max() < 1e-3 * np.abs(scalars[1:]).max()


def number_of(y):
    return int((y[:ROWS] << torch.arange(ROWS)).sum())


@pytest.fixture(scope="module")
def trained():
    """With every message."""
    network, messages = InMemoryNetwork(), []
    put = network.put

    def spy(message, payload):
        messages.append((message, payload.clone()))
        put(message, payload)

    network.put = spy
    held, labels = case()
    made = train(held, labels, network=network, **SETTINGS)
    return held, labels, made, messages


def scalars_of(leader):
    """What a variant with public coefficients would send to everybody."""
    return np.array([leader._steps.first * 2.0**-FACTOR, *(leader._path[0].double() * 2.0**-COEFFICIENT).tolist()])


def test_five_public_scalars_give_all_labels_away(trained):
    held, labels, made, _ = trained
    left, after_one = labellings_left(held, scalars_of(made.leader))
    truth = number_of(labels.y)
    assert set(left) == {truth, 2**ROWS - 1 - truth}
    assert after_one < 2**ROWS / 100  # and the first of them alone leaves less than 1 % of all


def test_in_the_protocol_they_are_masked(trained):
    """What the others see of them: each opened under a mask of its own; taken as scalars, no labelling fits."""
    held, labels, made, messages = trained
    sizes = SealedSizes(made.agreement, len(labels.train), len(labels.val))
    found = script(sizes)
    items = [item for part in (found.prepare, *found.steps, found.finish) for item in part]
    opened = [item for item in items if hasattr(item, "opened") for _ in item.opened]
    shares = [
        [words for message, words in messages if message.kind == program.OPENED and message.sender == sender]
        for sender in made.agreement.holder_names
    ]
    masked = [
        sum(each)
        for item, *each in zip(opened, *shares, strict=True)
        if isinstance(item, Blinding) and item.shape == (1, 1)
    ]
    assert len(masked) == 2 + STEPS + STEPS  # two steps, the path's coefficients, the chosen ones
    seen = np.array([float(words) for words in (masked[0], *masked[2 : 2 + STEPS])]) * 2.0**-FACTOR
    assert labellings_left(held, np.abs(seen))[0] == []
    secret = scalars_of(made.leader)
    assert not np.isclose(seen, secret, rtol=0.01).any()


def test_nobody_else_receives_a_scalar(trained):
    _, _, made, messages = trained
    leader = made.agreement.label_holder
    others = (program.OPENED, program.CORRECTION, program.KEPT, program.ROW_COUNTS, DONE, END)
    for message, _ in messages:
        if message.receiver != leader and message.kind not in others:
            assert torch.Size(message.shape).numel() > 1, (message.kind, message.shape)
