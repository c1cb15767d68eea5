"""The same split computation in ONE autograd graph: what the parties, who only exchange messages, must equal."""

import torch
import torch.nn.functional as F

from vfgnn import randomness
from vfgnn.lab.simulate import build
from vfgnn.model.cg1_edges import LocalGraph, confidence_weight
from vfgnn.split.joint_layer import draw_weight_share
from vfgnn.split.steps import Rows


def party_seed(seed, party):
    return randomness.derive_key(randomness.insecure_seed(seed), "party", party)


class Twin:
    """Modules as fresh parties have them, the shared weights as one parameter, one loss, one backward."""

    def __init__(self, holdings, labels, settings, seed):
        parties = build(holdings, labels, settings, seed=seed)
        self.agreement, self.settings, self.labels = parties.agreement, settings, labels
        publishers = self.agreement.publishers
        self.holders = {holder.channel.party: holder for holder in parties.holders}
        self.graphs = {
            name: LocalGraph(holding.edge_index, holding.nodes, settings, torch.device("cpu"))
            for name, holding in zip(self.agreement.holder_names, holdings, strict=True)
        }
        self.sampling = {
            name: randomness.generator(party_seed(seed, name), "sampled neighbours") for name in publishers
        }
        self.dropout = randomness.generator(party_seed(seed, "server"), "dropout")
        self.modules = {name: self.holders[name].modules for name in publishers}
        self.network = parties.parties["server"].network
        self.output = parties.label_holder.output
        self.x = torch.cat([holding.x.double() for holding in holdings], dim=1)
        local = [*self.network.parameters(), *self.output.parameters()]
        local += [weight for modules in self.modules.values() for weight in modules.parameters()]
        self.optimisers = [torch.optim.Adam(local, lr=settings.learning_rate, weight_decay=settings.weight_decay)]
        self.w = None
        if self.agreement.collaborative:
            shares = [draw_weight_share(self.agreement, party_seed(seed, name)) for name in self.holders]
            blocks = [sum(share[k.name] for share in shares) for k in self.agreement.feature_holders]
            self.w = torch.nn.Parameter(torch.cat(blocks))
            self.optimisers.append(
                torch.optim.SGD(
                    [self.w],
                    lr=settings.joint_learning_rate,
                    momentum=settings.joint_momentum,
                    weight_decay=settings.joint_weight_decay,
                    nesterov=settings.joint_nesterov,
                )
            )
        roles = torch.zeros(self.agreement.nodes, dtype=torch.uint8)
        roles[labels.train], roles[labels.val] = 1, 2
        self.rows = Rows.from_roles(roles)

    def hidden(self):
        """z_L of the training rows, with the same neighbours sampled and the same dropout drawn."""
        published = []
        for name in self.agreement.publishers:
            modules, graph = self.modules[name], self.graphs[name]
            h0 = modules[0].embed() if self.w is None else (self.x @ self.w)
            around = graph.around(self.rows.train.numbers, self.sampling[name] if graph.sampled else None)
            rows = modules[-1](h0.to(self.settings.dtype), around)
            if self.settings.combine == "confidence":
                weight = confidence_weight(graph.degree[self.rows.train.numbers], self.settings.confidence_degree)
                rows = rows * weight.to(rows.dtype)[:, None]
            published.append(rows)
        kept = self.network.draw_dropout(len(self.rows.train.numbers), self.dropout)
        return self.network(torch.stack(published), kept)

    def step(self):
        """One training step; returns z_L before it."""
        z = self.hidden()
        loss = F.cross_entropy(self.output(z), self.labels.y[self.rows.train.numbers])
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        loss.backward()
        for optimiser in self.optimisers:
            optimiser.step()
        return z.detach()
