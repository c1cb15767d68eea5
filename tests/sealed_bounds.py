"""The sealed model in real numbers, and how far the protocol's words may be from it.

Written apart from the protocol, from its description: what is cut, where, and by how many bits.
  1. One product with the kernel, by intervals (`Near`): a cut is off by less than one unit, a word of a real number by
     half a unit; a sum by the sum; a product a b by |a| e_b + |b| e_a + e_a e_b; matrices alike, with absolute values.
  2. A whole training, to first order (`Scores.bound`): intervals would grow by the kernel's norm with each step, though
     the solution forgets most of it. So every number that is off is a variable, and its limit meets the derivative of
     the scores.
"""

from dataclasses import dataclass

import numpy as np
import torch

from vfgnn.model.krylov import products_by_vectors

SHORT, FACTOR, LONG = 2.0**-18, 2.0**-20, 2.0**-38


@dataclass
class Near:
    """A value, and how far what stands for it may be."""

    value: np.ndarray
    error: np.ndarray

    @staticmethod
    def exact(value):
        return Near(np.asarray(value, dtype=float), np.zeros_like(np.asarray(value, dtype=float)))

    def __add__(self, other):
        return Near(self.value + other.value, self.error + other.error)

    def __sub__(self, other):
        return Near(self.value - other.value, self.error + other.error)

    def __mul__(self, other):
        error = np.abs(self.value) * other.error + np.abs(other.value) * self.error + self.error * other.error
        return Near(self.value * other.value, error)

    def __getitem__(self, rows):
        return Near(self.value[rows], self.error[rows])

    def cut(self, unit):
        return Near(self.value, self.error + unit)

    def over(self, number):
        return Near(self.value / number, self.error / number)

    def placed(self, rows, nodes):
        value, error = np.zeros((2, nodes, self.value.shape[1]))
        value[rows], error[rows] = self.value, self.error
        return Near(value, error)

    def sum(self):
        return Near(self.value.sum(0, keepdims=True), self.error.sum(0, keepdims=True))

    def holds(self, found):
        return bool((np.abs(found - self.value) <= self.error).all())


def times(m, x):
    """M x, both near."""
    error = np.abs(m.value) @ x.error + m.error @ (np.abs(x.value) + x.error)
    return Near(m.value @ x.value, error)


class Model:
    """K of the training rows, by the steps that the protocol takes.

    `guard`: the bits that are cut on the way back; `lift`: by which a vector is longer on the way out (smooth).
    """

    def __init__(self, graph, features, bits, rows, *, kernel, hops, teleport, guard, lift):
        """`features`, `bits`: of each holder with columns."""
        self.nodes, self.rows, self.kernel, self.hops = graph.shape[0], rows, kernel, hops
        self.guard, self.lift = 2.0**guard, 2.0**lift
        self.graph = Near.exact(np.asarray(graph + (np.eye(self.nodes) if kernel == "smooth" else 0)))
        self.features = [
            Near(x, np.full(x.shape, 0.5 * 2.0**-b * (b > 0))) for x, b in zip(features, bits, strict=True)
        ]
        self.feature_cut = [2.0 ** (b - 38) * (b > 0) for b in bits]
        degrees = self.graph.value.sum(1, keepdims=True)
        half = np.full(degrees.shape, FACTOR / 2)
        with np.errstate(divide="ignore"):
            if kernel == "smooth":
                self.root = Near(np.sqrt((1 - teleport) / degrees), half)
                self.inverse = (self.root * self.root).cut(FACTOR)
                self.teleport = Near(np.full((1, 1), teleport), half[:1])
                self.stay = (self.root * self.teleport).cut(FACTOR)
            else:
                self.inverse = Near(np.where(degrees > 0, np.maximum(degrees, 1) ** -0.5, 0.0), half * (degrees > 0))

    def smooth(self, z, rows):
        plain = z.cut(SHORT)
        y = (plain * self.root[rows]).placed(rows, self.nodes)
        stay = (plain * self.stay[rows]).placed(rows, self.nodes)
        for _ in range(self.hops - 1):
            y = times(self.graph, y).cut(SHORT) * self.inverse + stay
        return times(self.graph, y).cut(SHORT) * self.root + plain.placed(rows, self.nodes) * self.teleport

    def columns_and_back(self, spread):
        total = Near.exact(np.zeros_like(spread.value))
        for x, unit in zip(self.features, self.feature_cut, strict=True):
            turned = Near(x.value.T, x.error.T)
            total = total + times(x, times(turned, spread.cut(unit)).cut(unit))
        return total

    def image(self, p):
        """K p / 2^guard of all nodes, less its mean over the training rows."""
        everywhere = np.arange(self.nodes)
        if self.kernel == "smooth":
            there = self.columns_and_back(self.smooth(p.over(1 / self.lift), self.rows))
            q = self.smooth(there.over(self.guard * self.lift), everywhere)
        else:
            q = self._hops(p)
        unit = 2.0 ** -(18 + max(3, np.ceil(np.log2(len(self.rows)))))  # of 1 / L; the sum is cut by as many bits
        count = Near(np.full((1, 1), 1 / len(self.rows)), np.full((1, 1), unit / 2))
        return q - q[self.rows].sum().cut(LONG / unit) * count

    def _hops(self, p):
        parts = [p.placed(self.rows, self.nodes)]
        for _ in range(self.hops):
            parts.append(times(self.graph, parts[-1].cut(SHORT) * self.inverse))
        parts = [self.columns_and_back(part).over(self.guard).cut(LONG * (self.guard > 1)) for part in parts]
        q = parts.pop()
        for part in reversed(parts):
            q = part + times(self.graph, q).cut(SHORT) * self.inverse
        return q


def inner_products(p, last):
    """Of two vectors, over the columns of all classes; what is told is cut once more."""
    flat = [_all_classes(vector.cut(SHORT)) for vector in (p, last)]
    stacked = Near(np.stack([f.value for f in flat]), np.stack([f.error for f in flat]))
    return times(stacked, Near(stacked.value.T, stacked.error.T)).cut(FACTOR)


def _all_classes(v):
    last = Near(-v.value.sum(1, keepdims=True), v.error.sum(1, keepdims=True))
    return Near(np.hstack([v.value, last.value]).reshape(-1), np.hstack([v.error, last.error]).reshape(-1))


@dataclass
class Off:
    """What one training may be off by: a limit for every number that is not exact (the letters of `scores`)."""

    r: np.ndarray  # [steps, nodes, columns]: q_s beside K p_s
    t: np.ndarray  # [steps - 1, rows, columns]: p_(s+1) beside the recurrence
    v: np.ndarray  # [rows, columns]: the last q_s, cut before it is multiplied
    g: np.ndarray  # [steps + 1, steps + 1]: inner products
    c: np.ndarray  # [steps]: coefficients
    quotient: np.ndarray  # []: what the ridge is a multiple of


class Scores:
    """Scores of all nodes but for the last class, as a function of everything that is off, in float64."""

    def __init__(self, image, labels, rows, *, factor, quotient, ridge, steps):
        """`image`: K / 2^guard less the mean, a matrix [nodes, rows]; `factor`: 2 / B."""
        self.k, self.b, self.rows, self.steps = torch.from_numpy(image), torch.from_numpy(labels), rows, steps
        self.factor, self.quotient, self.ridge = factor, quotient, ridge

    def __call__(self, r, t, v, g, c, quotient):
        p, q = [self.b], []
        for s in range(self.steps):
            q.append(self.k @ p[s] + r[s])
            if s + 1 < self.steps:
                step = self.factor * (2 if s else 1) * q[s][self.rows]
                p.append((step - p[s] if s == 0 else step - 2 * p[s] - p[s - 1]) + t[s])
        flat = [torch.cat([one, -one.sum(1, keepdim=True)], 1).reshape(-1) for one in [*p, q[-1][self.rows] + v]]
        gram = torch.stack(flat) @ torch.stack(flat).T + (g + g.T) / 2
        e = torch.from_numpy(products_by_vectors(self.steps, 2 / self.factor))
        kernel = gram[: self.steps] @ e
        system = e.T @ gram @ e + self.ridge * (self.quotient + quotient) * kernel
        solved = torch.linalg.solve((system + system.T) / 2, kernel[0]) + c
        return sum(one * image for one, image in zip(solved, q, strict=True))

    def bound(self, off):
        """Sum over all that is off of limit times derivative, and as much again for what is of second order."""
        limits = [torch.from_numpy(np.asarray(one, dtype=float)) for one in vars(off).values()]
        zeros = tuple(torch.zeros_like(one) for one in limits)
        found = torch.autograd.functional.jacobian(self, zeros, vectorize=True)
        sums = [
            (each.abs().reshape(*each.shape[:2], -1) * limit.abs().reshape(-1)).sum(2)
            for each, limit in zip(found, limits, strict=True)
        ]
        return 2 * sum(sums).numpy()
