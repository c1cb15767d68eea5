"""The private sparse product alone: holders and dealer on the in-memory channel, shares chosen by the test."""

from collections import defaultdict
from dataclasses import fields

import torch

from vfgnn.agreement import DEALER
from vfgnn.messages import Kind
from vfgnn.mpc.graph_dealer import GraphDealer
from vfgnn.mpc.graph_shape import GraphKinds, GraphShape, offline_messages, online_messages, setup_messages
from vfgnn.mpc.sharing import reconstruct, split
from vfgnn.mpc.sparse import PrivateGraphs
from vfgnn.randomness import Stream, insecure_seed
from vfgnn.transport.memory import InMemoryNetwork

KINDS = GraphKinds(**{field.name: Kind(field.name, "nothing: it is uniform to it") for field in fields(GraphKinds)})


def undirected(pairs):
    """Both directions of each pair, in an order that nothing depends on."""
    ends = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()
    return torch.cat([ends.flip(0), ends], dim=1)


def random_edges(nodes, count, generator):
    """At most `count` different undirected edges."""
    ends = torch.randint(nodes, (2, count), generator=generator)
    ends = torch.sort(ends[:, ends[0] != ends[1]], dim=0).values
    return undirected(torch.unique(ends, dim=1).t().tolist())


def adjacency(edge_index, nodes):
    a = torch.zeros(nodes, nodes, dtype=torch.int64)
    a[edge_index[0], edge_index[1]] = 1
    return a


def dealer_seeds(shape, seed=0):
    return {holder: insecure_seed(1000 * seed + 500 + i) for i, holder in enumerate(shape.holders)}


class Run:
    """One run; `transcript` has every message of every link."""

    def __init__(self, nodes, edges, declared, *, seed=0, run="run"):
        """`edges`: edge lists or None, in the order of the holders h0, h1, ...; `declared`: their bounds."""
        self.shape = GraphShape(nodes, {f"h{i}": bound for i, bound in enumerate(declared)})
        self.network, self.transcript = InMemoryNetwork(), []
        put = self.network.put

        def spy(message, payload):
            self.transcript.append((message, payload.clone()))
            put(message, payload)

        self.network.put = spy
        seeds = dealer_seeds(self.shape, seed)
        self.channels = {name: self.network.channel(name) for name in (*self.shape.holders, DEALER)}
        self.dealer = GraphDealer(self.channels[DEALER], self.shape, seeds, run=run, kinds=KINDS)
        self.graphs = {
            name: PrivateGraphs(
                self.channels[name],
                self.shape,
                edges[i],
                seed=insecure_seed(1000 * seed + i),
                dealer_seed=seeds[name],
                run=run,
                kinds=KINDS,
            )
            for i, name in enumerate(self.shape.holders)
        }
        self.results = defaultdict(list)
        self.prepared = defaultdict(list)

    def go(self, secrets, *, self_loops=True, ahead=False, shares=None):
        """One hop for each secret [n, w]; `ahead`: all are prepared before the first is used."""
        count = len(self.shape.holders)
        if shares is None:
            shares = [split(u, count, Stream(insecure_seed(7), "share", k)) for k, u in enumerate(secrets)]
        widths = [u.shape[1] for u in secrets]
        work = {
            name: lambda i=i, name=name: self._holder(name, [each[i] for each in shares], self_loops, ahead)
            for i, name in enumerate(self.shape.holders)
        }
        self.network.run({**work, DEALER: lambda: self._dealer(widths)})
        return [reconstruct([self.results[name][k] for name in self.shape.holders]) for k in range(len(secrets))]

    def _holder(self, name, shares, self_loops, ahead):
        graphs, channel = self.graphs[name], self.channels[name]
        channel.enter("setup", setup_messages(self.shape, KINDS))
        graphs.exchange()
        for k, share in enumerate(shares):
            self._prepare(name, k, share)
            if not ahead:
                self._use(name, k, share, self_loops)
        for k, share in enumerate(shares if ahead else []):
            self._use(name, k, share, self_loops)
        channel.finish()

    def _prepare(self, name, k, share):
        width = share.shape[1]
        self.channels[name].enter("offline", offline_messages(self.shape, KINDS, width))
        self.graphs[name].begin(self.channels[name], k, width)
        self.prepared[name].append(self.graphs[name].complete(self.channels[name], k))

    def _use(self, name, k, share, self_loops):
        self.channels[name].enter("online", online_messages(self.shape, KINDS, share.shape[1]))
        prepared = self.prepared[name][k]
        self.results[name].append(self.graphs[name].times(share, prepared, self_loops=self_loops))

    def _dealer(self, widths):
        channel = self.channels[DEALER]
        channel.enter("setup", setup_messages(self.shape, KINDS))
        self.dealer.exchange()
        for k, width in enumerate(widths):
            channel.enter("offline", offline_messages(self.shape, KINDS, width))
            self.dealer.begin(channel, k, width)
            self.dealer.complete(channel, k)
        channel.finish()

    def sent(self, kind, hop=None):
        """Payloads by sender and receiver; `hop`: only that one's."""
        links = defaultdict(list)
        for message, payload in self.transcript:
            if message.kind == kind:
                links[message.sender, message.receiver].append(payload)
        if hop is None:
            return links
        each = {link: len(payloads) // 2 for link, payloads in links.items()}
        return {link: payloads[hop * each[link] : (hop + 1) * each[link]] for link, payloads in links.items()}
