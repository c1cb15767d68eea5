"""A holder finds another holder's 0/1 columns in one reveal of h0, without knowing a single row of it.

h0 = X_A W_A + X_B W_B. Where d >= p_B, the columns of h0 and of X_A span every column of X_B. A random vector of that
span has no zeros; a 0/1 column that is mostly 0 has many. Sparse vectors of a subspace are found by alternating
directions, started at its rows (Qu, Sun & Wright 2014). Where one is nearly 0 fixes the vector exactly. A false 0/1
vector would have to lie in a subspace of few dimensions among all nodes, so what is found proves itself.
"""

import torch
from torch import Generator, Tensor

from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.statistics import compare_shares
from vfgnn.audit.views import View
from vfgnn.split.joint_layer import H0
from vfgnn.split.program import H0_SHARE

STARTS = 400
ROUNDS = 100
EXACT = 1e-6  # relative: shares of h0 have 50 fraction bits, so what is in the span is so to about 1e-12

COLUMNS = Attack(
    name="columns from h0",
    who="holder with edges",
    needs="nothing",
    target=Target.FEATURES,
    gets="the 0/1 columns of another holder",
    metric="share of the columns that are found, each exact in all nodes",
    baseline="own columns that are equal to one of them",
    helps="initial_embedding = individual, or a width below every holder's number of columns",
    literature="Qu, Sun & Wright 2014; the same as a lattice problem: Nguyen & Stern 1999",
)


def first_h0(view: View) -> Tensor:
    """H_0 as two holders see it: the sum of their shares, decoded."""
    other = next(name for name in view.agreement.holder_names if name != view.party)
    return H0.decode(view.received(H0_SHARE, other)[0] + view.sent(H0_SHARE, other)[0])


def binary_columns(h0: Tensor, own: Tensor, rng: Generator) -> Tensor:
    """The 0/1 vectors [nodes, found] that were found in the span of h0 and the own columns, less the own ones."""
    span = torch.cat([h0, own.double()], dim=1)
    directions, lengths, _ = torch.linalg.svd(span, full_matrices=False)
    basis = directions[:, lengths > EXACT * lengths[0]]  # [nodes, m]
    found = [one for start in _sparse_directions(basis, rng).t() if (one := _exact(basis, start)) is not None]
    if not found:
        return torch.zeros(len(h0), 0, dtype=torch.int64)
    columns: Tensor = torch.unique(torch.stack(found), dim=0)
    return columns[~_among(columns, own.long().t())].t()


def _among(rows: Tensor, others: Tensor) -> Tensor:
    """Which of the rows are equal to one of the others."""
    found: Tensor = (rows[:, None] == others[None]).all(dim=2).any(dim=1)
    return found


def _sparse_directions(basis: Tensor, rng: Generator) -> Tensor:
    """Coordinates [m, starts] of vectors of the span that are nearly sparse."""
    nodes = len(basis)
    chosen = basis[torch.randperm(nodes, generator=rng)[:STARTS]].t()
    for _ in range(ROUNDS):
        chosen = chosen / torch.linalg.vector_norm(chosen, dim=0).clamp_min(EXACT)
        vectors = basis @ chosen
        chosen = basis.t() @ (vectors.sign() * (vectors.abs() - nodes**-0.5).clamp_min(0))
    return chosen


def _exact(basis: Tensor, start: Tensor) -> Tensor | None:
    """The vector of the span that is 0 where the start is nearly so, if there is one and it is 0 or 1 everywhere."""
    lengths = (basis @ start).abs()
    half = lengths.argsort()[: len(basis) // 2]
    small = (lengths <= lengths.max() / 2).nonzero()[:, 0]  # half of the zeros can leave a second vector open
    return next((column for near in (half, small) if (column := _fixed_by(basis, near)) is not None), None)


def _fixed_by(basis: Tensor, near: Tensor) -> Tensor | None:
    """The 0/1 vector of the span that is 0 at these nodes."""
    lengths, coordinates = torch.linalg.eigh(basis[near].t() @ basis[near])  # ascending, squared
    vector = basis @ coordinates[:, 0]
    largest = vector[vector.abs().argmax()]
    if lengths[0] > EXACT**2 * lengths[-1] or not largest:
        return None
    column = vector / largest
    return column.round().long() if bool((column * (column - 1)).abs().max() <= 1e3 * EXACT) else None


def columns_found(view: View, about: str, x: Tensor, rng: Generator) -> AttackFinding:
    """Held against the columns [nodes, p] of `about`."""
    if view.holding is None:
        raise TypeError("the attack needs a holder's view")
    own = view.holding.x
    columns, truth = binary_columns(first_h0(view), own, rng), x.long().t()
    hits, trivial = (_among(truth, some.long().t()) for some in (columns, own))
    return AttackFinding(COLUMNS, view.party, about, compare_shares(hits, {"own columns": trivial}))
