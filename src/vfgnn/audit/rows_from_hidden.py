"""The label holder rebuilds another holder's published rows from z_L, and from them its degrees and edges.

Without a hidden layer z_L is the combined row. It is an invertible function of the one row that the label holder does
not know (`Agreement.exposed_publishers` says where):
concat      z_L is the rows side by side, for any number of publishers
mean        r = I z - own
confidence  s z = own + r with s = |own| + |r|; |s z - own| = s - |own| gives s = 2 (|own| - z own) / (1 - |z|^2),
            and |r| is one of D + 1 values, which tells the degree
regression  r = (z - w own) / v; |r| = 1 at every node is linear in 1/v^2, w/v^2 and w^2/v^2 of each column
With two other publishers or more it learns the sum of their rows. Behind one hidden layer it sees an affine image of
the combined row: no row can be rebuilt, but pairs are ranked by that image, whitened.
"""

import torch
from torch import Tensor

from vfgnn.agreement import SERVER
from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.edges import cosines, drawn_pairs, same_label
from vfgnn.audit.others import of_each
from vfgnn.audit.published_rows import sent_rows
from vfgnn.audit.statistics import compare_rankings, compare_shares
from vfgnn.audit.views import Truth, View
from vfgnn.data.holdings import Holding
from vfgnn.settings import Settings
from vfgnn.split.program import HIDDEN_EVALUATED, LOCAL_EMBEDDINGS

CLOSE = 1e-3  # of the length of the row
TINY = 1e-12
RELATIVE = 1e-5  # a direction this much shorter than the longest is rounding of float32
LITERATURE = "algebra; feature inference from a split model: Luo et al. 2021"

ROWS = Attack(
    name="rows from z_L",
    who="label holder",
    needs="nothing",
    target=Target.ROWS,
    gets="the published row of each node",
    metric=f"share of nodes with an error of at most {CLOSE:g} of the row's length",
    baseline="its own row of the same node",
    helps="a hidden layer, row_epsilon",
    literature=LITERATURE,
)
DEGREES = Attack(
    name="degrees from z_L",
    who="label holder",
    needs="nothing",
    target=Target.DEGREES,
    gets="the degree of each node, up to confidence_degree",
    metric="share of nodes",
    baseline="its own degree of the node, or its own most frequent one",
    helps="combine = mean, concat or regression",
    literature=LITERATURE,
)
EDGES = Attack(
    name="edges from z_L",
    who="label holder",
    needs="nothing",
    target=Target.EDGES,
    gets="the edges of another holder",
    metric="AUC",
    baseline="pairs of one label, similar own features, similar own rows",
    helps="edge_epsilon, row_epsilon",
    literature="cosine of posteriors: He et al. 2021",
)


def from_hidden(view: View, truth: Truth, rng: torch.Generator) -> list[AttackFinding]:
    """Rows, degrees where their lengths tell them, and edges of each other publisher."""
    agreement = view.agreement

    def measure(about: str, holding: Holding) -> list[AttackFinding]:
        found = [rows_found(view, about, sent_rows(truth, about)), edges_found(view, about, holding, rng)]
        if agreement.settings.tells_degrees and about in agreement.exposed_publishers:
            degree = torch.bincount(holding.edge_index[1], minlength=holding.nodes)[: agreement.nodes]
            found.append(degrees_found(view, about, degree))
        return found

    return of_each(view, truth, measure)


def rebuilt_rows(view: View) -> dict[str, Tensor]:
    """Of each other publisher, all nodes [nodes, d], from the last z_L and the rows that the label holder sent."""
    agreement, settings = view.agreement, view.agreement.settings
    publishers = agreement.publishers
    others = [name for name in publishers if name != view.party]
    z = view.received(HIDDEN_EVALUATED, SERVER)[-1].double()
    own = torch.zeros(len(z), settings.dim, dtype=torch.float64)
    if view.party in publishers:
        own = view.sent(LOCAL_EMBEDDINGS, SERVER)[-1].double()
    if settings.hidden_layers:
        return dict.fromkeys(others, _whitened(z.logit(eps=TINY)))
    if settings.combine == "concat":
        blocks = dict(zip(publishers, torch.split(z, settings.dim, dim=1), strict=True))
        return {name: blocks[name] for name in others}
    if settings.combine == "regression":
        together = _from_regression(z, own, len(publishers))
    elif settings.combine == "confidence":
        together = _from_confidence(z, own, settings)
    else:
        together = len(publishers) * z - own
    return dict.fromkeys(others, together / len(others))


def _from_confidence(z: Tensor, own: Tensor, settings: Settings) -> Tensor:
    if not own.any():
        return z  # the direction is all that is left of a single row
    length = torch.linalg.vector_norm(own, dim=1, keepdim=True)
    squared = (z * z).sum(dim=1, keepdim=True)
    total = 2 * (length - (z * own).sum(dim=1, keepdim=True)) / (1 - squared).clamp_min(TINY)
    most = settings.confidence_degree
    degree = ((total - length) * (most + 0.5) - 0.5).round().clamp(0, most)  # the inverse of cg1_edges
    row: Tensor = (length + (degree + 0.5) / (most + 0.5)) * z - own
    return row


def _from_regression(z: Tensor, own: Tensor, publishers: int) -> Tensor:
    """The weights w and v of each column begin as 1/I; |own| = 1 too, so the fit leaves one factor open."""
    known = torch.cat([z * z, -2 * z * own, own * own], dim=1)
    begin = torch.tensor([publishers**2, publishers, 1], dtype=torch.float64).repeat_interleave(z.shape[1])
    solved = _fitting_ones(known, begin)
    missed = (known @ solved - 1).abs()
    kept = missed <= 3 * missed.quantile(0.9)  # a row that is 0 has no length 1
    inverse_squared, mixed, last = _fitting_ones(known[kept], begin).view(3, -1)
    factor = 1 - (last - mixed * mixed / inverse_squared).median() if own.any() else torch.ones(())
    row: Tensor = (z - mixed / inverse_squared * own) * (inverse_squared / factor).clamp_min(TINY).sqrt()
    return row


def _fitting_ones(known: Tensor, begin: Tensor) -> Tensor:
    """The solution of known x = 1 that is nearest to `begin`."""
    missing = (1 - known @ begin)[:, None]
    change: Tensor = torch.linalg.lstsq(known, missing, driver="gelsd").solution  # gelsd: it may lack full rank
    return begin + change[:, 0]


def _whitened(seen: Tensor) -> Tensor:
    """Centred, with all directions of one length: an affine map of the rows no longer matters."""
    directions, lengths, _ = torch.linalg.svd(seen - seen.mean(dim=0), full_matrices=False)
    kept: Tensor = directions * (lengths > RELATIVE * lengths[0])
    return kept


def rows_found(view: View, about: str, rows: Tensor) -> AttackFinding:
    """Held against the rows [nodes, d] that `about` published."""
    rows = rows.double()
    length = torch.linalg.vector_norm(rows, dim=1)
    guesses = {"": rebuilt_rows(view)[about], "own row": _own_rows(view, rows)}
    right = {name: torch.linalg.vector_norm(guess - rows, dim=1) <= CLOSE * length for name, guess in guesses.items()}
    return AttackFinding(ROWS, view.party, about, compare_shares(right.pop(""), right))


def _own_rows(view: View, like: Tensor) -> Tensor:
    published = view.party in view.agreement.publishers
    return view.sent(LOCAL_EMBEDDINGS, SERVER)[-1].double() if published else torch.zeros_like(like)


def degrees_found(view: View, about: str, degree: Tensor) -> AttackFinding:
    """With `combine = "confidence"`: held against the degrees [nodes] of `about`."""
    most = view.agreement.settings.confidence_degree
    truth, own = degree.clamp_max(most), _degrees(view).clamp_max(most)
    length = torch.linalg.vector_norm(rebuilt_rows(view)[about], dim=1)
    guess = (length * (most + 0.5) - 0.5).round()
    usual = torch.full_like(own, int(own.bincount().argmax()))
    others = {"own degree": own == truth, "most frequent own degree": usual == truth}
    return AttackFinding(DEGREES, view.party, about, compare_shares(guess == truth, others))


def _degrees(view: View) -> Tensor:
    return torch.bincount(view.own_holding.edge_index[1], minlength=view.agreement.nodes)


def edges_found(view: View, about: str, holding: Holding, rng: torch.Generator) -> AttackFinding:
    """Held against the edges of `about`. All labels count for the baseline, also those of no training row."""
    pairs, truth = drawn_pairs(holding, rng)
    baselines = {
        "same label": same_label(view.own_labels.y, pairs),
        "own features": cosines(view.own_holding.x, pairs),
        "own rows": cosines(_own_rows(view, rebuilt_rows(view)[about]), pairs),
    }
    scores = cosines(rebuilt_rows(view)[about], pairs)
    return AttackFinding(EDGES, view.party, about, compare_rankings(scores, baselines, truth, rng))
