"""The server splits the training rows into classes by one gradient of z_L, without knowing a single label.

dL/dz_L of a row is (p - e_y) times the output layer's weights: at step 0 the predictions p are nearly the same for all
rows, so rows of one class have nearly one gradient. How many classes there are is public. A cluster has no name yet;
one known label, or a guess by its size, gives it one. Any holder that publishes can do the same with its own gradient.
"""

import torch.nn.functional as F
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score
from torch import Tensor, bincount, from_numpy

from vfgnn.agreement import SERVER
from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.statistics import compare_shares
from vfgnn.audit.views import View
from vfgnn.split.program import HIDDEN_GRADIENT, LOCAL_EMBEDDINGS, LOCAL_GRADIENT

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


def gradient_of(view: View) -> Tensor:
    """The first one that this party received: of z_L at the server, of its own rows at a holder."""
    server = view.party == SERVER
    sender, kind = (view.agreement.label_holder, HIDDEN_GRADIENT) if server else (SERVER, LOCAL_GRADIENT)
    return view.received(kind, sender)[0]


def rows_of(view: View, about: str) -> Tensor:
    """The published rows of step 0 that this party knows without the gradient: a holder's at the server, or its own."""
    server = view.party == SERVER
    return view.received(LOCAL_EMBEDDINGS, about)[0] if server else view.sent(LOCAL_EMBEDDINGS, SERVER)[0]


def clusters_found(view: View, y: Tensor) -> tuple[AttackFinding, float]:
    """Held against the labels of the training rows, in their order; also the adjusted Rand index of the attack."""
    about, classes = view.agreement.label_holder, view.agreement.classes
    found = clusters(gradient_of(view), classes)
    base = clusters(rows_of(view, view.agreement.publishers[0])[: len(y)], classes)  # training rows come first
    measured = compare_shares(in_majority(found, y), {"published rows": in_majority(base, y)})
    return AttackFinding(CLUSTERS, view.party, about, measured), float(adjusted_rand_score(y, found))
