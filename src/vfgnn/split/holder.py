"""A data holder (CG1): private features and edges in, published rows out.

Sees: h0 (collaborative mode, if it has edges), which rows train and validate (`publish = "needed"`), the gradient of
its own rows, the label holder's decisions. What leaves: its part of the joint layer to the other holders, h_local to
the server, and its noised edges to the other holders (`publish_noised_edges`). What is noised, and what it cost, is
the `Publisher`'s (privacy/publishing.py).
"""

from dataclasses import replace

import torch
from torch import nn

from vfgnn import randomness
from vfgnn.agreement import SERVER, Agreement
from vfgnn.channel import Channel
from vfgnn.checkpoint import copied
from vfgnn.data.holdings import Holding
from vfgnn.errors import ConfigError, ProtocolError
from vfgnn.model.cg1_edges import LocalGnn, LocalGraph, Neighbourhood, confidence_weight
from vfgnn.model.cg1_features import CollaborativeEmbedding, IndividualEmbedding, InitialEmbedding, scaled_rows
from vfgnn.model.contribution import HolderContribution
from vfgnn.model.leak_meter import refuse_leak, refuse_row_leak
from vfgnn.model.optimisers import LocalOptimiser, rows_with_gradient
from vfgnn.privacy import input_perturbation
from vfgnn.privacy.ledger import Ledger
from vfgnn.privacy.publishing import Publisher, own_row_mechanism
from vfgnn.records import Result
from vfgnn.rows import RowSet
from vfgnn.split.decision import Listener
from vfgnn.split.holder_state import HolderSnapshot, HolderState
from vfgnn.split.joint_layer import JointLayer
from vfgnn.split.program import LOCAL_EMBEDDINGS, LOCAL_GRADIENT, NOISED_EDGES, PAIR_COUNT, ROW_ROLES
from vfgnn.split.state import ReleasedRows
from vfgnn.split.steps import Moment, Rows, Step

KEPT_NEIGHBOURHOODS = 4  # of training rows, with validation rows, these alone, and all nodes


class Holder(Listener):
    """One organisation with features, edges, both or neither."""

    result: Result | None = None  # the label holder's business
    state_type: type[HolderState] = HolderState

    def __init__(self, agreement: Agreement, channel: Channel, own: HolderContribution) -> None:
        holding, seed, mechanism = own.holding, own.seed, own.mechanism
        refuse_row_leak(agreement)
        self.agreement, self.channel = agreement, channel
        self.rows = Rows.all(agreement.nodes)
        self._device = own.device
        self._publishes = channel.party in agreement.publishers
        self._sampling = randomness.generator(seed, "sampled neighbours")
        settings = agreement.settings
        holding = replace(holding, x=scaled_rows(holding.x, settings.feature_scaling))
        self.publisher = Publisher(
            settings.privacy,
            epochs=settings.epochs,
            run=own.run,
            seed=seed,
            ledger=own.ledger or Ledger(),
            copies=own.copies,
            rows=mechanism and own_row_mechanism(mechanism, settings.privacy, settings.epochs, settings.dim),
        )
        # From here on the true edges are nowhere: all that is computed follows from the noised ones.
        # By what is declared, not by what is there: that a list is empty must not show either.
        declared = next(holder for holder in agreement.holders if holder.name == channel.party)
        if declared.edges and settings.privacy.edge_epsilon is not None:
            holding = _with_noised_edges(holding, self.publisher)
        self._edge_index, self._rank = holding.edge_index, holding.rank
        self._pair_counts: dict[str, int] = {}
        self._union: torch.Tensor | None = None
        with randomness.initialising(seed):
            self.joint, self.features = self._initial_embedding(holding, own.run, seed)
            modules: list[nn.Module] = [self.features] if isinstance(self.features, nn.Module) else []
            self.gnn = LocalGnn(settings, own.gnn)
            modules += [self.gnn] if self._publishes else []
        self.modules = nn.ModuleList(modules).to(self._device)
        self._local = holding.local  # rows of h0 beyond the common nodes; never published
        self._graph = LocalGraph(holding.edge_index, holding.size, settings, self._device, holding.edge_weight)
        self._optimiser = LocalOptimiser(self.modules.parameters(), settings)
        self._around: list[tuple[RowSet, list[Neighbourhood]]] = []
        self._published: torch.Tensor | None = None
        self._released: ReleasedRows | None = None  # under row noise: what was last sent, and of which rows
        self._best: HolderSnapshot | None = None

    @property
    def known(self) -> Moment:
        """All rows, until the label holder has announced which ones train and validate."""
        return Moment(self.rows, pair_counts=self._pair_counts)

    def _initial_embedding(self, holding: Holding, run: str, seed: bytes) -> tuple[JointLayer | None, InitialEmbedding]:
        settings = self.agreement.settings
        if not self.agreement.collaborative:
            by_rows = settings.batch_rows is not None
            return None, IndividualEmbedding(holding, settings.dim, settings.dtype, self._device, by_rows=by_rows)
        if holding.local:
            raise ConfigError(
                "local neighbours cannot be kept with collaborative initial embeddings",
                expected="initial_embedding = individual",
                hint="in the joint layer a row that only one holder knows would give the weights away",
            )
        refuse_leak(self.agreement, self.channel.party, holding.x)
        layer = JointLayer(self.agreement, self.channel, holding.x, run=run, seed=seed, device=self._device)
        return layer, CollaborativeEmbedding(layer.momentum, settings.dtype)

    def set_up(self, moment: Moment) -> None:
        """Hear which rows count, then compute H_0 with the other holders.

        Reveals: H_0 to the holders with edges.
        """
        self.publisher.refuse_spent()
        self._learn_rows()
        if not self.rows.everything:
            self.publisher.learn_rows(self.rows.train.numbers, self.rows.val.numbers)
        self._count_pairs()
        self._begin_jointly()

    def _begin_jointly(self) -> None:
        """Reveals: H_0 to the holders with edges (collaborative mode)."""
        if self.joint is not None and isinstance(self.features, CollaborativeEmbedding):
            self.features.begin(self.joint.initialise())

    def _count_pairs(self) -> None:
        """Reveals: the length of the noised edge list to the holders that will get it (`publish_noised_edges`)."""
        readers, owners = self._edge_peers()
        pairs = input_perturbation.pairs_of(self._edge_index)
        if readers:
            self._pair_counts[self.channel.party] = len(pairs)
        for reader in readers:
            self.channel.send(reader, PAIR_COUNT, torch.tensor([len(pairs)]))
        for owner in owners:
            self._pair_counts[owner] = int(self.channel.receive(owner, PAIR_COUNT))

    def _edge_peers(self) -> tuple[list[str], list[str]]:
        """Who gets this holder's noised edges, and whose it gets."""
        me, links = self.channel.party, self.agreement.edge_links
        return [reader for owner, reader in links if owner == me], [owner for owner, reader in links if reader == me]

    def exchange_edges(self, moment: Moment) -> None:
        """Reveals: the noised edge list to the other holders with edges; each then aggregates over all of them."""
        readers, owners = self._edge_peers()
        if not readers and not owners:
            return
        pairs = input_perturbation.pairs_of(self._edge_index)
        for reader in readers:
            self.channel.send(reader, NOISED_EDGES, pairs)
        known = [self._checked(self.channel.receive(owner, NOISED_EDGES), owner) for owner in owners]
        self._use_union(torch.unique(torch.cat([pairs, *known])))

    def _use_union(self, pairs: torch.Tensor) -> None:
        """Aggregate over everybody's noised edges from now on."""
        self._union, union = pairs, input_perturbation.edges_of(pairs)
        self._graph = LocalGraph(union, self.agreement.nodes, self.agreement.settings, self._device)
        self._around = []

    def _checked(self, pairs: torch.Tensor, owner: str) -> torch.Tensor:
        last = input_perturbation.pair_count(self.agreement.nodes) - 1
        if len(pairs) and (int(pairs.min()) < 0 or int(pairs.max()) > last):
            raise ProtocolError(
                "a pair of nodes that does not exist", expected=f"numbers from 0 to {last}", where=f"edges of {owner}"
            )
        return pairs

    def _learn_rows(self) -> None:
        if self._publishes and self.agreement.settings.publish == "needed":
            self.rows = Rows.from_roles(self.channel.receive(self.agreement.label_holder, ROW_ROLES))

    def refresh(self, moment: Moment) -> None:
        """h0 anew, with the other holders. Reveals: h0 to the holders with edges."""
        if self.joint is not None and isinstance(self.features, CollaborativeEmbedding):
            self.features.keep(self.joint.refresh())

    def forward(self, moment: Moment) -> None:
        """CG1: h0, this holder's GNN over its own edges, unit rows.

        Reveals: h_local of the step's rows to the server.
        """
        step = moment.step
        self.features.prepare(trained=step.trains_joint, share=step.share, closes=step.closes)
        if not self._publishes:
            return
        rows = moment.rows.published(step)
        with torch.set_grad_enabled(not step.last and not self._recomputes(moment)):
            self._published = self._local_embeddings(rows, self._neighbourhoods(rows, step))
        noised = self.publisher.rows(
            self._published.detach(), moment.rows.classes(step), step.number, nodes=rows.numbers
        )
        self._publish(noised, moment)
        if self.publisher.noises_rows:
            self._released = ReleasedRows(rows.numbers.cpu(), noised.cpu())

    def _publish(self, rows: torch.Tensor, moment: Moment | None) -> None:
        """Reveals: h_local of the moment's rows (None: of all nodes) to the server."""
        self.channel.send(SERVER, LOCAL_EMBEDDINGS, rows)

    def _gradient(self, moment: Moment) -> torch.Tensor:
        """Of this holder's own rows."""
        return self.channel.receive(SERVER, LOCAL_GRADIENT)

    def _recomputes(self, moment: Moment) -> bool:
        """Whether rows are published that get no gradient: the backward pass then computes the others once more."""
        return (moment.rows.everything or moment.step.evaluates) and not self._graph.sampled

    def _local_embeddings(self, rows: RowSet, around: list[Neighbourhood]) -> torch.Tensor:
        h_local = self.gnn.over(self.features.rows(around[0].nodes), around)
        if not self.agreement.settings.tells_degrees:
            return h_local
        weight = confidence_weight(rows.pick(self._graph.degree), self.agreement.settings.confidence_degree)
        return h_local * weight.to(h_local.dtype)[:, None]

    def _neighbourhoods(self, rows: RowSet, step: Step | None) -> list[Neighbourhood]:
        """Computed once for each set of rows, unless neighbours are sampled anew in each step."""
        # The graph may have more nodes than are common: then all common ones are not all that there are.
        index = rows.numbers if self._local else rows.index
        index = None if index is None else index.to(self._device)
        if step is not None and self._graph.sampled:
            return self._graph.around(index, self._sampling)
        for known, around in self._around:
            if known.same_as(rows):
                return around
        around = self._graph.around(index)
        self._around = [*self._around[1 - KEPT_NEIGHBOURHOODS :], (rows, around)]
        return around

    def backward(self, moment: Moment) -> None:
        """From the gradient of its own rows to its own weights and its part of the shared ones. Nothing leaves."""
        if self._published is None:
            return
        gradient = self._gradient(moment).to(self._device)
        published = self._published[: len(gradient)]
        if self._recomputes(moment):
            rows = moment.rows.train
            if rows.everything:  # few of them have a gradient
                rows = RowSet(rows_with_gradient(gradient).cpu())
                gradient = gradient[rows.numbers]
            published = self._local_embeddings(rows, self._neighbourhoods(rows, moment.step))
        self._optimiser.descend(published, gradient)
        self.features.learn()
        self._published = None

    def keep_best(self) -> None:
        """Remember its own weights and its part of the shared ones."""
        self._best = self._snapshot()

    def _snapshot(self) -> HolderSnapshot:
        return HolderSnapshot(copied(self.modules.state_dict()), self.features.snapshot(), self._released, output={})

    def restore_best(self, moment: Moment) -> None:
        """Go back to them."""
        if self._best is not None:
            self.features.restore(self._best.embedding)
            self.modules.load_state_dict(self._best.modules)

    def embed_anew(self, moment: Moment) -> None:
        """h0 of all nodes, some of them new: X' W with the trained W = a W_0 - X^T Q.

        Q is 0 at the new nodes, so X'^T Q' = X^T Q: the joint layer's own setup and one refresh, over more rows.
        Reveals: h0 of all nodes to the holders with edges, once more.
        """
        self._begin_jointly()
        if self.agreement.settings.trained_joint_epochs:
            self.refresh(moment)

    def predict(self, moment: Moment) -> None:
        """CG1 for all nodes.

        Reveals: h_local of all nodes to the server. Rows that were released noised with these weights before are sent
        again as they were: noise that is drawn twice protects less, and is paid for twice.
        """
        self.features.prepare(trained=False)
        if not self._publishes:
            return
        with torch.no_grad():
            everyone = RowSet.all(self.agreement.nodes)
            h_local = self._local_embeddings(everyone, self._neighbourhoods(everyone, None))
        if self.publisher.noises_rows:
            h_local = self._noised_once(h_local)
        self._publish(h_local, None)

    def _noised_once(self, h_local: torch.Tensor) -> torch.Tensor:
        if self._best is None or self._best.released is None:
            raise RuntimeError("nothing was released in training")
        known = self._best.released
        fresh = torch.ones(len(h_local), dtype=torch.bool)
        fresh[known.rows] = False
        noised = torch.empty_like(h_local)
        noised[known.rows] = known.noised.to(noised)
        classes = self.rows.classes_of(fresh)
        noised[fresh] = self.publisher.rows(h_local[fresh], classes, None, nodes=fresh.nonzero()[:, 0])
        all_rows = ReleasedRows(torch.arange(len(noised)), noised.cpu())  # for any later prediction
        self._best = replace(self._best, released=all_rows)
        return noised

    def state(self) -> HolderState:
        """Weights, optimiser, its part of the joint layer, the best epoch's of all these, and its random state."""
        h0 = self.features.h0
        return HolderState(
            modules=copied(self.modules.state_dict()),
            optimiser=self._optimiser.state(),
            h0=None if h0 is None else h0.cpu(),
            joint=None if self.joint is None else self.joint.state(),
            best=self._best,
            union=self._union,
            releases=self.publisher.ledger.count,
            sampling=self._sampling.get_state(),
        )

    def load(self, state: HolderState) -> None:
        """Go on from it."""
        self.modules.load_state_dict(state.modules)
        self._optimiser.load(state.optimiser)
        self.features.go_on(state.h0)
        if self.joint is not None and state.joint is not None:
            self.joint.load(state.joint)
        self._best = state.best
        if state.union is not None:
            self._use_union(state.union)
        self.publisher.resumed(state.releases)
        self._sampling.set_state(state.sampling)

    def close(self) -> None:
        """End what the joint layer computes ahead."""
        if self.joint is not None:
            self.joint.close()


def _with_noised_edges(holding: Holding, publisher: Publisher) -> Holding:
    if holding.local or holding.edge_weight is not None:
        raise ConfigError(
            "edges with weights, or to nodes that only this holder knows, cannot be noised",
            expected="edge_epsilon without weights and without keep_local_neighbours",
            hint="randomised response hides whether two common nodes are connected, and nothing else",
        )
    # In an order of the nodes that does not change from run to run: the same edges are then noised once for all runs.
    rank = torch.arange(holding.nodes) if holding.rank is None else holding.rank
    noised = publisher.edges(rank[holding.edge_index], holding.nodes)
    return Holding(x=holding.x, edge_index=torch.argsort(rank)[noised], rank=holding.rank)
