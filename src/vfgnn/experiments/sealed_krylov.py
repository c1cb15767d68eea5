"""All splits of a data set trained side by side in one Krylov space each, for a search on validation nodes.

One run gives every number of steps, every ridge strength and both minima (model/krylov.py): they differ in a few
coefficients. In the clear, everything in one place; only searches run it. Nothing of test nodes is computed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vfgnn.experiments.splits import Split
from vfgnn.model.krylov import Minimum, coefficients, gram_of, next_vector, products_by_vectors, rayleigh
from vfgnn.model.propagated_kernels import SPREAD
from vfgnn.model.propagated_ridge import Targets, make_targets, with_last
from vfgnn.model.propagation import Floats, Integers

Times = Callable[[Floats], Floats]
MINIMA: tuple[Minimum, ...] = ("weights", "kernel")
Counts = list[list[int]]  # of each ridge strength, right classes in either half of the validation nodes


@dataclass(frozen=True, repr=False)
class Space:
    """One split's Krylov space, and what its vectors' products are in the validation rows."""

    targets: Targets
    gram: Floats  # [t + 1, t + 1]
    bound: float
    at_val: list[Floats]  # K p_s, centred on the training rows [validation rows, C]

    def scores(self, steps: int, ridge: float, minimum: Minimum) -> Floats:
        """Of the validation rows, from the first `steps` vectors."""
        unit = self.bound / SPREAD["smooth"]
        found = coefficients(first_steps(self.gram, self.bound, steps), self.bound, ridge * unit, minimum=minimum)
        combined = sum(c * q for c, q in zip(found, self.at_val, strict=False))
        return np.asarray(self.targets.mean + combined)


def first_steps(gram: Floats, bound: float, steps: int) -> Floats:
    """The inner products of a space with fewer vectors: its last product is a sum of vectors of the larger one."""
    whole = len(gram) - 1
    if steps == whole:
        return gram
    select = np.zeros((whole + 1, steps + 1))
    select[:steps, :steps] = np.eye(steps)
    select[:, steps] = products_by_vectors(whole, bound)[:, steps - 1]
    return np.asarray(select.T @ gram @ select)


def grow_spaces(times: Times, y: Integers, splits: Sequence[Split], *, steps: int) -> list[Space]:
    """`times`: the kernel, on any number of columns at once."""
    classes, nodes = int(y.max()) + 1, len(y)
    targets = [make_targets(y, split.train, classes) for split in splits]
    vectors, bounds = [[one.b] for one in targets], [1.0] * len(splits)
    at_val: list[list[Floats]] = [[] for _ in splits]
    for step in range(steps):
        entered = [one.spread_out(own[-1][:, :-1], nodes) for one, own in zip(targets, vectors, strict=True)]
        images = np.split(times(np.concatenate(entered, axis=1)), len(splits), axis=1)
        for i, (one, image) in enumerate(zip(targets, images, strict=True)):
            centred = one.centred(with_last(image))
            at_val[i].append(centred[splits[i].val])
            product = one.taken(centred)
            if step == 0:
                bounds[i] = SPREAD["smooth"] * rayleigh(one.b, product)
            last = step == steps - 1
            vectors[i].append(product if last else next_vector(vectors[i], product / bounds[i]))
    return [
        Space(one, gram_of(own), bound, seen)
        for one, own, bound, seen in zip(targets, vectors, bounds, at_val, strict=True)
    ]


def count(space: Space, y: Integers, split: Split, *, steps: int, ridges: Sequence[float], minimum: Minimum) -> Counts:
    """Right classes of validation nodes, the even ones and the odd ones."""
    right = [space.scores(steps, ridge, minimum).argmax(axis=1) == y[split.val] for ridge in ridges]
    return [[int(row[::2].sum()), int(row[1::2].sum())] for row in right]
