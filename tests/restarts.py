"""Sealed trainings that are interrupted: each start with masks of its own, over memory, from what is on the disks."""

from copy import copy
from dataclasses import dataclass, field

import torch

from tests.sealed_twin import settings_of
from vfgnn.checkpoint import copied
from vfgnn.contribution import Contribution
from vfgnn.data.feature_maps import mapped
from vfgnn.lab.scenario import agreement_of
from vfgnn.model.contribution import HolderContribution
from vfgnn.party.programs import checkpoint_steps, end_step, keepers
from vfgnn.party.roles import known_seed, make_role
from vfgnn.privacy.openings import Account, OpeningLedger, Policy
from vfgnn.program import Watch, carry_out
from vfgnn.sealed.program import training
from vfgnn.sealed.sizes import SealedSizes
from vfgnn.transport.memory import InMemoryNetwork


class Killed(Exception):
    """All parties at once: whoever is killed, the others go back with it."""


class Fragile(InMemoryNetwork):
    """Keeps a copy of everything that crosses a link, and breaks before a message, or after the first of a kind."""

    def __init__(self, lasts=None, after=None):
        super().__init__()
        self.seen, self._lasts, self._after = [], lasts, after

    def put(self, message, payload):
        if self._lasts is not None and len(self.seen) >= self._lasts:
            raise Killed
        self.seen.append((message, payload.clone()))
        super().put(message, payload)
        if message.kind == self._after:
            raise Killed


@dataclass
class Interrupted:
    """A federation whose parties are started again and again, with ledgers and disks that stay."""

    held: list
    labels: object
    sealed: dict
    seed: int = 0
    every: int = 1
    max_trainings: int = 1
    names: tuple = None
    disks: dict = field(default_factory=dict)
    starts: list = field(default_factory=list)
    seen: list = field(default_factory=list)  # of each start

    def __post_init__(self):
        settings = settings_of(**self.sealed)
        self.held = [mapped(one, settings.sealed) for one in self.held]
        self.agreement = agreement_of(self.held, self.labels, settings, self.names)
        self.disks = {name: {} for name in self.agreement.holder_names}
        others = self.agreement.row_readers
        self.ledgers = {name: OpeningLedger() for name in others}
        self.policies = {name: Policy(name, max_trainings=self.max_trainings) for name in others}
        self.scheduled = {
            name: checkpoint_steps(self.agreement, self.every, name) for name in self.agreement.holder_names
        }
        self.telling = SealedSizes(self.agreement, 1, 0).telling
        self.end = end_step(self.agreement)

    def copy(self):
        """The same, whose parties go another way from here."""
        made = copy(self)
        made.disks = {name: dict(disk) for name, disk in self.disks.items()}
        made.ledgers = {name: copy(ledger) for name, ledger in self.ledgers.items()}
        for ledger in made.ledgers.values():
            ledger.openings = list(ledger.openings)
        made.starts, made.seen = list(self.starts), list(self.seen)
        return made

    @property
    def common(self):
        """The step that all holders have."""
        return max(set.intersection(*(set(disk) for disk in self.disks.values())), default=0)

    def start(self, name, *, begin=None, lasts=None, after=None, forgets=True, run="run"):
        """One start; `lasts`: so many messages, `after`: one of this kind, then everybody is killed. Its parties."""
        begin = self.common if begin is None else begin
        network, agreement = Fragile(lasts, after), self.agreement
        self.starts.append((name, begin))
        self.seen.append(network.seen)
        roles = {party: self._role(party, name, network, begin, forgets, run) for party in agreement.parties}

        def follow(party):
            watch = Watch(begins=lambda number: self._keep(party, roles[party], number))
            try:
                carry_out(training(agreement), roles[party], begin=begin, watch=watch)
            finally:
                roles[party].close()
            self._keep(party, roles[party], self.end)

        network.run({party: lambda party=party: follow(party) for party in roles})
        return roles

    def _role(self, party, name, network, begin, forgets, run):
        own = {"run": name, "seed": known_seed(self.seed, party)}
        if party not in keepers(self.agreement):
            return make_role(self.agreement, network.channel(party), Contribution(**own))
        leads = party == self.agreement.label_holder
        disk, account = self.disks[party], None
        for step in [step for step in disk if step > begin]:
            del disk[step]
        if not leads:
            mark = (lambda _: self._forget(disk)) if forgets else lambda _: None
            account = Account(self.ledgers[party], self.policies[party], run, name, self.agreement.label_holder, mark)
        place = self.agreement.holder_names.index(party)
        made = make_role(
            self.agreement,
            network.channel(party),
            HolderContribution(**own, holding=self.held[place], labels=self.labels if leads else None, account=account),
        )
        if begin:
            shuffled = dict(sorted(disk[begin].items(), reverse=True))  # a file has an order of its own
            made.load(made.state_type.from_tensors(shuffled))
        return made

    def _keep(self, party, role, number):
        if party in self.disks and number in self.scheduled[party]:
            disk, state = self.disks[party], copied(role.state().to_tensors())
            if number in disk:  # what a start goes on from is that of the others too: it stays as it is
                assert state.keys() == disk[number].keys()
                assert all(torch.equal(state[key], disk[number][key]) for key in state)
            disk[number] = state

    @staticmethod
    def _forget(disk):
        for step in sorted(disk)[:-1]:
            del disk[step]

    def weights(self):
        """The sum of all holders' shares of the model, by owner; and what is added to all scores."""
        states = [disk[self.end] for disk in self.disks.values()]
        names = [key for key in states[0] if key.startswith("weights/") or key == "offset"]
        return {key: sum(state[key] for state in states) for key in names}

    @property
    def opened(self):
        """What the label holder knows in the end."""
        return self.disks[self.agreement.label_holder][self.end]["opened/values"]


def lineage(starts):
    """Those that the result comes from: what a start does again, those before it did for nothing."""
    left = []
    for name, begin in starts:
        left = [*((one, at) for one, at in left if at < begin), (name, begin)]
    return left
