"""A holder finds another holder's 0/1 columns in the reveals of h0, without knowing a single row of it.

h0 = X_A W_A + X_B W_B. With as many revealed dimensions as B has columns, h0 and X_A span every column of X_B: that is
what the leak meter counts. A random vector of that span has no zeros; a 0/1 column that is mostly 0 has many. Sparse
vectors of a subspace are found by alternating directions, started at its rows (Qu, Sun & Wright 2014). What is found
is rounded to 0 and 1 and has to lie in the span; in a small span, where it is nearly 0 fixes it exactly. A false 0/1
vector would have to lie in a subspace of few dimensions among all nodes, so what is found proves itself.
"""

import torch
from torch import Generator, Tensor

from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.h0 import revealed
from vfgnn.audit.others import of_each
from vfgnn.audit.statistics import compare_shares
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.data.holdings import Holding

STARTS, ROUNDS = 400, 100
SMALL = 200  # dimensions; a larger span is searched in fewer rounds, by rounding alone
LARGE_ROUNDS = 15
WORK = 2e10  # multiplications in the search of a large span: bounds the starts
EXACT = 1e-6  # relative: shares of h0 have 50 fraction bits, so what is in the span is so to about 1e-12
DEPENDENT = 1e-9  # of the largest: shorter directions are rounding
INSIDE = 1e-4  # of a column's length: after several hundred directions

SPAN = Attack(
    name="column space from h0",
    who="holder with edges",
    needs="nothing",
    target=Target.FEATURES,
    gets="the space of another holder's columns, which the leak meter is about",
    metric="share of the columns that lie in the span of h0 and the own columns",
    baseline="columns that lie in the span of the own ones",
    helps="initial_embedding = individual, few joint_layer_epochs; protocol = sealed",
    literature="linear algebra (docs/protocol.md, section 5)",
)
COLUMNS = Attack(
    name="columns from h0",
    who="holder with edges",
    needs="nothing",
    target=Target.FEATURES,
    gets="the 0/1 columns of another holder",
    metric="share of the columns that are found, each exact in all nodes",
    baseline="own columns that are equal to one of them",
    helps="initial_embedding = individual, or fewer revealed dimensions than any holder has columns",
    literature="Qu, Sun & Wright 2014; the same as a lattice problem: Nguyen & Stern 1999",
)


def columns_from_h0(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """By all reveals that were kept: which columns lie in their span, and which 0/1 columns can be found there."""
    own, h0 = view.own_holding.x.double(), torch.cat(revealed(view), dim=1)
    alone = _span(own)
    basis = _with(alone, h0)
    if basis.shape[1] >= len(own):
        raise NotInView("fewer revealed dimensions and own columns than nodes: everything lies in their span")
    hidden = view.agreement.columns - own.shape[1]
    none = torch.zeros(0, len(own), dtype=torch.int64)
    found = _binary_in(basis, rng) if h0.shape[1] >= hidden else none  # with fewer no column is in the span

    def measure(about: str, holding: Holding) -> list[AttackFinding]:
        if not holding.x.shape[1]:
            raise NotInView(f"columns of {about}")
        x, whole = holding.x.double(), holding.x.long().t()
        inside = compare_shares(_inside(basis, x), {"own span": _inside(alone, x)})
        findings = [AttackFinding(SPAN, view.party, about, inside)]
        if bool((x * (x - 1) == 0).all()):
            hits, trivial = _among(whole, found), _among(whole, own.long().t())
            findings.append(AttackFinding(COLUMNS, view.party, about, compare_shares(hits, {"own columns": trivial})))
        return findings

    return of_each(view, truth, measure)


def binary_columns(h0: Tensor, own: Tensor, rng: Generator) -> Tensor:
    """The 0/1 vectors [nodes, found] that were found in the span of h0 and the own columns, less the own ones."""
    columns = _binary_in(_with(_span(own), h0), rng)
    return columns[~_among(columns, own.long().t())].t()


def _span(columns: Tensor) -> Tensor:
    """An orthonormal basis [nodes, dimensions]; a column counts whatever its length."""
    lengths = torch.linalg.vector_norm(columns, dim=0)
    unit = columns[:, lengths > 0].double() / lengths[lengths > 0]
    directions, sizes, _ = torch.linalg.svd(unit, full_matrices=False)
    basis: Tensor = directions[:, sizes > DEPENDENT * sizes[:1]]
    return basis


def _with(basis: Tensor, columns: Tensor) -> Tensor:
    """A basis of these columns, too."""
    for _ in range(2):  # once more for what rounding has left
        columns = columns - basis @ (basis.t() @ columns)
    return torch.cat([basis, _span(columns)], dim=1)


def _inside(basis: Tensor, columns: Tensor) -> Tensor:
    """Which columns [nodes, p] lie in the span; a column of zeros does not count."""
    left = columns - basis @ (basis.t() @ columns)
    lengths = torch.linalg.vector_norm(columns, dim=0)
    inside: Tensor = (torch.linalg.vector_norm(left, dim=0) <= INSIDE * lengths) & (lengths > 0)
    return inside


def _among(rows: Tensor, others: Tensor) -> Tensor:
    """Which of the rows are equal to one of the others."""
    numbers: Tensor = torch.unique(torch.cat([rows, others]), dim=0, return_inverse=True)[1]
    found: Tensor = torch.isin(numbers[: len(rows)], numbers[len(rows) :])
    return found


def _binary_in(basis: Tensor, rng: Generator) -> Tensor:
    """The 0/1 vectors [found, nodes] that were found in a span."""
    nodes, dimensions = basis.shape
    if dimensions <= SMALL:
        starts = _sparse_directions(basis, STARTS, ROUNDS, rng)
        found = [one for start in starts.t() if (one := _exact(basis, start)) is not None]
        return torch.unique(torch.stack(found), dim=0) if found else torch.zeros(0, nodes, dtype=torch.int64)
    most = max(1, min(STARTS, int(WORK / (2 * nodes * dimensions * LARGE_ROUNDS))))
    vectors = basis @ _sparse_directions(basis, most, LARGE_ROUNDS, rng)
    largest = vectors.gather(0, vectors.abs().argmax(dim=0, keepdim=True))
    rounded = (vectors / largest > 0.5).double()
    columns: Tensor = torch.unique(rounded[:, _inside(basis, rounded)].t().long(), dim=0)
    return columns


def _sparse_directions(basis: Tensor, starts: int, rounds: int, rng: Generator) -> Tensor:
    """Coordinates [m, starts] of vectors of the span that are nearly sparse."""
    nodes = len(basis)
    chosen = basis[torch.randperm(nodes, generator=rng)[:starts]].t()
    for _ in range(rounds):
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
    """By the first reveal, held against the columns [nodes, p] of `about`."""
    own = view.own_holding.x
    columns, truth = binary_columns(revealed(view)[0], own, rng), x.long().t()
    hits, trivial = (_among(truth, some.long().t()) for some in (columns, own))
    return AttackFinding(COLUMNS, view.party, about, compare_shares(hits, {"own columns": trivial}))
