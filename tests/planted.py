"""Views with a leak in them, and views of noise: what each attack is tried on. No federation is trained for them."""

import torch
import torch.nn.functional as F

from vfgnn.audit.views import Truth, View
from vfgnn.data.holdings import Holding, Labels
from vfgnn.lab.scenario import agreement_of
from vfgnn.settings import make_settings
from vfgnn.split.joint_layer import H0
from vfgnn.split.program import H0_SHARE, LOCAL_EMBEDDINGS

NODES, DIM = 300, 32


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=draw(seed), dtype=torch.float64)


def holdings(holders=2, *, columns=6, edges=400, seed=0, nodes=NODES, density=0.15):
    """Rare 0/1 columns and random edges, each holder's own."""
    made = []
    for number in range(holders):
        rng = draw(seed + number)
        ends = torch.randint(nodes, (2, edges), generator=rng)
        x = (torch.rand(nodes, columns, generator=rng) < density).double()
        made.append(Holding(x, torch.cat([ends, ends.flip(0)], dim=1)))
    return made


def labels(classes=3, *, nodes=NODES, train=None, seed=9):
    y = torch.randint(classes, (nodes,), generator=draw(seed))
    y[:classes] = torch.arange(classes)
    rows = torch.arange(nodes)
    part = train or nodes // 2
    return Labels(y, rows[:part], rows[part : part + 20], rows[part + 20 :], classes)


def agreed(held, known, **settings):
    values = {"dim": DIM, "accept_h0_leak": True, "accept_row_leak": True, "publish": "all", **settings}
    return agreement_of(held, known, make_settings(values, where="test"))


def smoothed(holding, rows):
    """Each row is the mean of its own and its neighbours'."""
    source, target = holding.edge_index
    total = rows.clone().index_add(0, target, rows[source])
    return total / (1 + torch.bincount(target, minlength=len(rows)))[:, None]


def rows_over(holding, seed=5):
    """What a GNN over these edges makes of noise."""
    return F.normalize(smoothed(holding, noise(holding.nodes, DIM, seed=seed)), dim=1)


def view_of(party, held, known, messages, *, opened=None, **settings):
    """Its view: `messages` by kind, sender and receiver; and the whole truth."""
    agreement = agreed(held, known, **settings)
    names = dict(zip(agreement.holder_names, held, strict=True))
    mine = known if party == agreement.label_holder else None
    view = View(party, agreement, {link: [m] for link, m in messages.items()}, names.get(party), mine, opened)
    sent = {link: [m] for link, m in messages.items() if link[1] in names}
    return view, Truth(names, known, sent)


def reveal(h0, *, to, sender):
    """One reveal of h0: all of it in the share of the sender, and nothing in the receiver's own."""
    share = H0.encode(h0, "h0")
    return {(H0_SHARE, sender, to): share, (H0_SHARE, to, sender): torch.zeros_like(share)}


def published(rows, holder):
    return {(LOCAL_EMBEDDINGS, holder, "server"): rows}


def verdicts(carry_out, view_and_truth, *, seed=3):
    """By the name of each attack: what it found."""
    found = carry_out(*view_and_truth, draw(seed))
    return {one.attack.name: one.measured.verdict for one in found}
