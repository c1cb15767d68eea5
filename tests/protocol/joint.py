"""The joint layer alone: holders and dealer on the in-memory channel, updates chosen by the test."""

from collections import defaultdict

import torch

from vfgnn.agreement import DEALER, HolderShape, make_agreement
from vfgnn.contribution import Contribution
from vfgnn.randomness import insecure_seed
from vfgnn.settings import Settings
from vfgnn.split import program
from vfgnn.split.dealer import Dealer
from vfgnn.split.joint_layer import JointLayer
from vfgnn.transport.memory import SIMULATION, InMemoryNetwork

CPU = torch.device("cpu")


def names(count):
    return [f"h{i}" for i in range(count)]


def agreement_of(features, edges, *, dim=4, epochs=50, **settings):
    """Holders h0, h1, ... with these matrices; `edges` says who learns h0."""
    shapes = [
        HolderShape(name=name, features=x.shape[1], edges=has, integer=bool((x == x.round()).all()))
        for name, x, has in zip(names(len(features)), features, edges, strict=True)
    ]
    chosen = Settings(dim=dim, epochs=epochs, publish="all", evaluate_every=epochs, **settings)
    return make_agreement(nodes=features[0].shape[0], classes=2, holders=shapes, label_holder="h0", settings=chosen)


class Run:
    """One run of the joint layer; `transcript` has every message of every link, `h0` what each holder learnt."""

    def __init__(self, agreement, features, *, seed=0, sabotage=None):
        self.agreement, self.network = agreement, InMemoryNetwork()
        self.transcript, self.h0 = [], defaultdict(list)
        put = self.network.put

        def spy(message, payload):
            self.transcript.append((message, payload.clone()))
            put(message, payload)

        self.network.put = spy
        self.layers = {
            name: JointLayer(
                agreement, self.network.channel(name), x, run=SIMULATION, seed=insecure_seed(100 * seed + i), device=CPU
            )
            for i, (name, x) in enumerate(zip(agreement.holder_names, features, strict=True))
        }
        self.dealer = None
        if agreement.dealt:
            own = Contribution(run=SIMULATION, seed=insecure_seed(100 * seed + 99))
            self.dealer = Dealer(agreement, self.network.channel(DEALER), own)
        if sabotage is not None:
            sabotage(self)

    def go(self, steps, update):
        """Initialise, then `steps` refreshes; `update(name, layer, h0)` moves a holder's Q before each."""
        work = {name: lambda name=name: self._holder(name, steps, update) for name in self.layers}
        if self.dealer is not None:
            work[DEALER] = lambda: self._dealer(steps)
        self.network.run(work)
        return self

    def _holder(self, name, steps, update):
        layer, channel = self.layers[name], self.layers[name]._channel
        channel.enter("setup", program.setup_messages(self.agreement))
        self.h0[name].append(layer.initialise())
        for _ in range(steps):
            channel.enter("refresh", program.joint_refresh(self.agreement))
            if layer.reveals:
                update(name, layer, self.h0[name][-1])
            self.h0[name].append(layer.refresh())
        channel.finish()
        layer.close()

    def _dealer(self, steps):
        channel = self.dealer.channel
        channel.enter("setup", program.setup_messages(self.agreement))
        self.dealer.set_up(self.dealer.known)
        for _ in range(steps):
            channel.enter("refresh", program.joint_refresh(self.agreement))
            self.dealer.refresh(self.dealer.known)
        channel.finish()
        self.dealer.close()
