"""The server splits the training rows into classes by one gradient of z_L, without knowing a single label.

dL/dz_L of a row is (p - e_y) times the output layer's weights: at step 0 the predictions p are nearly the same for all
rows, so rows of one class have nearly one gradient. How many classes there are is public. A cluster has no name yet;
one known label, or a guess by its size, gives it one. Any holder that publishes can do the same with its own gradient.
With two classes the length of a gradient tells the rarer one: the model has learnt to expect the other.
"""

import torch
import torch.nn.functional as F
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score
from torch import Generator, Tensor, bincount, from_numpy

from vfgnn.agreement import SERVER
from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.statistics import compare_rankings, compare_shares
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.split.program import HIDDEN_GRADIENT, LOCAL_EMBEDDINGS, LOCAL_GRADIENT, ROW_ROLES
from vfgnn.split.steps import TRAIN

DRAWS = 25  # of the known labels: one lucky choice says little

CLUSTERS = Attack(
    name="label clusters from a gradient",
    who="server, publisher",
    needs="nothing",
    target=Target.LABELS,
    gets="which training rows have the same label",
    metric="purity: share of training rows whose label is the most frequent one of their cluster",
    baseline="clusters of the published rows of the same nodes",
    helps="label_epsilon, gradient_epsilon",
    literature="gradients of split models: Li et al. 2022, Fu et al. 2022",
)

ONE_KNOWN = Attack(
    name="labels from a gradient",
    who="server, publisher",
    needs="one known label per class",
    target=Target.LABELS,
    gets="the labels of the other training rows",
    metric=f"share of rows that are right for most of {DRAWS} choices of the known ones",
    baseline="the same with published rows in place of gradients",
    helps="label_epsilon, gradient_epsilon; protocol = sealed",
    literature="cosine attack: Li et al. 2022",
)
NORMS = Attack(
    name="labels from the length of gradients",
    who="server, publisher",
    needs="which of two classes is the rarer one",
    target=Target.LABELS,
    gets="which training rows are of the rarer class",
    metric="AUC",
    baseline="the length of published rows",
    helps="label_epsilon, gradient_epsilon, class_weights = balanced; protocol = sealed",
    literature="norm attack: Li et al. 2022",
)


def labels_from_gradient(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """From the first gradient: clusters without a known label, and the labels that one known row per class gives."""
    gradient, rows = training_gradient(view)
    y = truth.known_labels.y[rows]
    return [clusters_found(view, y)[0], _named(view, gradient, y, rng)]


def rare_class_from_gradient(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """From the last gradient that was kept: at the beginning all of them are equally long."""
    if view.agreement.classes != 2:
        raise NotInView("two classes")
    gradient, rows = training_gradient(view, -1)
    y = truth.known_labels.y[rows]
    rare = y == bincount(y, minlength=2).argmin()
    if rare.all() or not rare.any():
        raise NotInView("training rows of both classes")
    lengths = [torch.linalg.vector_norm(one.double(), dim=1) for one in (gradient, _published(view, rows))]
    compared = compare_rankings(lengths[0], {"published rows": lengths[1]}, rare, rng)
    return [AttackFinding(NORMS, view.party, view.agreement.label_holder, compared)]


def clusters(rows: Tensor, count: int) -> Tensor:
    """The number of each row's cluster [rows], by cosine (Ward 1963)."""
    unit = F.normalize(rows.double(), dim=1)
    tree = linkage(unit.numpy(), method="ward")  # squared distances of unit rows are 2 - 2 cosine
    return from_numpy(fcluster(tree, count, criterion="maxclust")).long()


def in_majority(found: Tensor, y: Tensor) -> Tensor:
    """Whether each row has the most frequent label of its cluster [rows]; their share is the purity."""
    right = y.new_zeros(len(y)).bool()
    for cluster in range(1, int(found.max()) + 1):
        inside = found == cluster
        right[inside] = y[inside] == bincount(y[inside]).argmax()
    return right


def gradient_of(view: View, which: int = 0) -> Tensor:
    """The first one that this party received: of z_L at the server, of its own rows at a holder."""
    server = view.party == SERVER
    sender, kind = (view.agreement.label_holder, HIDDEN_GRADIENT) if server else (SERVER, LOCAL_GRADIENT)
    return view.received(kind, sender)[which]


def training_gradient(view: View, which: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of a gradient that are not 0, and their numbers: with `publish = "all"` that tells which ones train."""
    gradient, agreement = gradient_of(view, which), view.agreement
    if view.party == agreement.label_holder:
        raise NotInView("labels that it does not have")
    if agreement.settings.publish == "all":
        rows = gradient.any(dim=1).nonzero()[:, 0]
        return gradient[rows], rows
    rows = (view.received(ROW_ROLES, agreement.label_holder)[0] == TRAIN).nonzero()[:, 0]
    if len(rows) != len(gradient):
        raise NotInView("one gradient of all training rows: batch_rows cuts it")
    return gradient, rows


def rows_of(view: View, about: str) -> Tensor:
    """The published rows of step 0 that this party knows without the gradient: a holder's at the server, or its own."""
    server = view.party == SERVER
    return view.received(LOCAL_EMBEDDINGS, about)[0] if server else view.sent(LOCAL_EMBEDDINGS, SERVER)[0]


def _published(view: View, rows: Tensor) -> Tensor:
    """Of these training rows, by the first publisher that this party knows rows of."""
    for publisher in view.agreement.publishers:
        try:
            known = rows_of(view, publisher)
        except NotInView:
            continue
        return known[rows] if len(known) == view.agreement.nodes else known[: len(rows)]  # training rows come first
    raise NotInView("rows that somebody published")


def clusters_found(view: View, y: Tensor) -> tuple[AttackFinding, float]:
    """Held against the labels of the training rows, in their order; also the adjusted Rand index of the attack."""
    about, classes = view.agreement.label_holder, view.agreement.classes
    gradient, rows = training_gradient(view)
    found, base = clusters(gradient, classes), clusters(_published(view, rows), classes)
    measured = compare_shares(in_majority(found, y), {"published rows": in_majority(base, y)})
    return AttackFinding(CLUSTERS, view.party, about, measured), float(adjusted_rand_score(y, found))


def _named(view: View, gradient: Tensor, y: Tensor, rng: Generator) -> AttackFinding:
    """Every other row gets the class of the known row whose gradient has the largest cosine with its own."""
    published = _published(view, training_gradient(view)[1])
    kinds = {"": F.normalize(gradient.double(), dim=1), "published rows": F.normalize(published.double(), dim=1)}
    right, asked = {name: torch.zeros(len(y)) for name in kinds}, torch.zeros(len(y))
    for _ in range(DRAWS):
        order = torch.randperm(len(y), generator=rng)
        present, place = torch.unique(y[order], return_inverse=True)
        known = order[[int((place == one).nonzero()[0]) for one in range(len(present))]]
        others = torch.ones(len(y), dtype=torch.bool).index_fill(0, known, value=False)
        asked += others
        for name, unit in kinds.items():
            guess = present[(unit @ unit[known].t()).argmax(dim=1)]
            right[name] += others & (guess == y)
    hits = {name: count[asked > 0] > asked[asked > 0] / 2 for name, count in right.items()}
    return AttackFinding(ONE_KNOWN, view.party, view.agreement.label_holder, compare_shares(hits.pop(""), hits))
