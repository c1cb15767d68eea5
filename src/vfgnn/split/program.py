"""The paper's protocol as a table: which messages there are, in which phase, from whom to whom, and how large.

    setup      row roles; lengths of noised edge lists; the joint layer's first product and reveal
    edges      noised edge lists among the holders (`publish_noised_edges`)
    refresh t  h0 computed anew, where the joint weights have moved
    forward t  published rows; z_L
    decide t   the label holder's word, after an evaluation
    backward t dL/dz_L; the gradient of each holder's own rows; forward and backward once per batch (`batch_rows`)
    choice     everyone goes back to the best epoch's weights; nothing is sent
    new nodes  h0 over nodes that were not there in training, before a prediction
    predict    published rows and z_L of all nodes

Every party computes this table by itself and its channel holds it to it. Nothing private goes in or comes out.
"""

from functools import partial

import torch

from vfgnn.agreement import DEALER, SERVER, Agreement
from vfgnn.errors import ProtocolError
from vfgnn.messages import BYTE, SEED, WORD, Declared, Kind
from vfgnn.program import Phase, Program, Repeated
from vfgnn.split.steps import Moment, Rows, Step, moments

ROW_ROLES = Kind("row_roles", "which rows train and which validate; never a label")
PAIR_COUNT = Kind("pair_count", "the length of the sender's noised edge list")
NOISED_EDGES = Kind("noised_edges", "the sender's edges after randomised response, one number per pair")
DEALER_SEED = Kind("dealer_seed", "its own masks, which only it and the dealer can expand")
PAIR_SEED = Kind("pair_seed", "its part of the sharings of zero (three or more holders)")
MASKED_FEATURES = Kind("masked_features", "nothing: E_k = X_k - U_k is uniform to it")
CORRECTION_FORWARD = Kind("correction_forward", "nothing: the sum over k of U_k V - Z is uniform to it")
CORRECTION_BACKWARD = Kind("correction_backward", "nothing: U_k^T V - Z of all k is uniform to it")
JOINT_WEIGHTS = Kind("joint_weights", "nothing: a share of W_k minus its mask (in `insecure_clear` the share itself)")
JOINT_UPDATE = Kind("joint_update", "nothing: Q_i minus its mask (in `insecure_clear` Q_i itself)")
JOINT_PRODUCT = Kind("joint_product", "nothing: a share of P_k = X_k^T Q minus its mask (not in `insecure_clear`)")
H0_SHARE = Kind("h0_share", "h0, from the sum of all holders' shares, and nothing else")
LOCAL_EMBEDDINGS = Kind("local_embeddings", "the sender's unit rows h_local (noised with `row_epsilon`)")
HIDDEN = Kind("hidden", "z_L of the training rows, with dropout")
HIDDEN_EVALUATED = Kind("hidden_evaluated", "z_L of validation or predicted rows, without dropout")
CONTROL = Kind("control", "whether this epoch is the best so far, and whether to stop")
HIDDEN_GRADIENT = Kind("hidden_gradient", "dL/dz_L of the training rows, from which labels can be inferred")
LOCAL_GRADIENT = Kind("local_gradient", "the gradient of its own published rows")


def training(agreement: Agreement) -> Program[Moment]:
    """From setup to the predictions with the best epoch's weights."""
    edges = (Phase("edges", "exchange_edges", partial(edge_messages, agreement)),)
    forward, backward = partial(forward_messages, agreement), partial(backward_messages, agreement)
    steps = Repeated(
        partial(moments, agreement),
        (
            Phase("refresh", "refresh", lambda _: joint_refresh(agreement), when=lambda moment: moment.step.refresh),
            Phase("forward", "forward", forward),
            Phase("decide", "decide", lambda _: control(agreement), when=lambda moment: moment.step.evaluates),
            Phase("backward", "backward", backward, when=lambda moment: not moment.step.last),
        ),
    )
    table = (
        Phase("setup", "set_up", lambda _: setup_messages(agreement)),
        *(edges if agreement.edge_links else ()),
        steps,
        Phase("choice", "restore_best", lambda _: []),
        Phase("predict", "predict", lambda _: predict_messages(agreement)),
    )
    return Program("training", agreement.parties, agreement.label_holder, table, largest(agreement))


def prediction(agreement: Agreement, *, new_nodes: bool) -> Program[Moment]:
    """All nodes, with the weights that training left; `new_nodes`: some of them were not there in training."""
    table: tuple[Phase[Moment], ...] = (Phase("predict", "predict", lambda _: predict_messages(agreement)),)
    if new_nodes and agreement.collaborative:
        table = (Phase("new nodes", "embed_anew", lambda _: new_node_messages(agreement)), *table)
    return Program("prediction", agreement.parties, agreement.label_holder, table, largest(agreement))


def largest(agreement: Agreement) -> Moment:
    """Row roles are not known yet, so each message counts with all rows: an upper bound."""
    step = Step(1, refresh=agreement.collaborative, trains_joint=True, evaluates=True, last=False)
    longest = dict.fromkeys(agreement.holder_names, agreement.settings.privacy.noised_edge_bound)
    return Moment(Rows.all(agreement.nodes), step, longest)


def setup_messages(agreement: Agreement) -> list[Declared]:
    """Before step 0."""
    roles: list[Declared] = []
    if agreement.settings.publish == "needed":
        roles = [
            Declared(ROW_ROLES, agreement.label_holder, reader, torch.uint8, (agreement.nodes,))
            for reader in agreement.row_readers
        ]
    counts = [Declared(PAIR_COUNT, owner, reader, WORD, (1,)) for owner, reader in agreement.edge_links]
    return roles + counts + (joint_setup(agreement) if agreement.collaborative else [])


def edge_messages(agreement: Agreement, moment: Moment) -> list[Declared]:
    """Noised edge lists, as long as their owners said; a party knows the counts that concern it."""
    bound, counts = agreement.settings.privacy.noised_edge_bound, moment.pair_counts
    for name, count in counts.items():
        if not 0 <= count <= bound:
            raise ProtocolError("a noised edge list of no possible length", expected=f"0 to {bound}", where=name)
    return [
        Declared(NOISED_EDGES, owner, reader, WORD, (counts[owner],))
        for owner, reader in agreement.edge_links
        if owner in counts
    ]


def forward_messages(agreement: Agreement, moment: Moment) -> list[Declared]:
    """From the holders' rows to z_L."""
    label_holder, dtype, width = agreement.label_holder, agreement.settings.dtype, agreement.hidden_dim
    step, rows = moment.step, moment.rows
    messages = _published(agreement, rows.published_count(step))
    if not step.last:
        messages.append(Declared(HIDDEN, SERVER, label_holder, dtype, (rows.train_count, width)))
    if step.evaluates:
        messages.append(Declared(HIDDEN_EVALUATED, SERVER, label_holder, dtype, (rows.val_count, width)))
    return messages


def control(agreement: Agreement) -> list[Declared]:
    """The label holder's decision."""
    return [Declared(CONTROL, agreement.label_holder, party, *BYTE) for party in agreement.others]


def backward_messages(agreement: Agreement, moment: Moment) -> list[Declared]:
    """From the loss back to each holder."""
    label_holder, dtype, count = agreement.label_holder, agreement.settings.dtype, moment.rows.train_count
    local = (count, agreement.settings.dim)
    return [
        Declared(HIDDEN_GRADIENT, label_holder, SERVER, dtype, (count, agreement.hidden_dim)),
        *(Declared(LOCAL_GRADIENT, SERVER, holder, dtype, local) for holder in agreement.publishers),
    ]


def predict_messages(agreement: Agreement) -> list[Declared]:
    """All nodes, once."""
    shape = (agreement.nodes, agreement.hidden_dim)
    hidden = Declared(HIDDEN_EVALUATED, SERVER, agreement.label_holder, agreement.settings.dtype, shape)
    return [*_published(agreement, agreement.nodes), hidden]


def new_node_messages(agreement: Agreement) -> list[Declared]:
    """h0 of all nodes, some of them new, from the trained shared weights."""
    refresh = joint_refresh(agreement) if agreement.settings.trained_joint_epochs else []
    return joint_setup(agreement) + refresh


def _published(agreement: Agreement, rows: int) -> list[Declared]:
    shape, dtype = (rows, agreement.settings.dim), agreement.settings.dtype
    return [Declared(LOCAL_EMBEDDINGS, holder, SERVER, dtype, shape) for holder in agreement.publishers]


def joint_setup(agreement: Agreement) -> list[Declared]:
    """Seeds and masked features, then the first product and its reveal (joint_layer.py, Setup)."""
    holders = agreement.holder_names
    messages: list[Declared] = []
    if agreement.dealt:
        messages += [Declared(DEALER_SEED, DEALER, holder, *SEED) for holder in holders]
        if len(holders) > 2:
            pairs = [(one, other) for i, one in enumerate(holders) for other in holders[i + 1 :]]
            messages += [Declared(PAIR_SEED, one, other, *SEED) for one, other in pairs]
        messages += [
            Declared(MASKED_FEATURES, owner.name, other, WORD, (agreement.nodes, owner.features))
            for owner in agreement.feature_holders
            for other in holders
            if other != owner.name
        ]
    messages += _to_owners(agreement, JOINT_WEIGHTS, holders)
    return messages + _corrections(agreement, holders, backward=False) + _h0_reveal(agreement)


def joint_refresh(agreement: Agreement) -> list[Declared]:
    """h0 computed anew (joint_layer.py, Refresh); none in individual mode."""
    if not agreement.collaborative:
        return []
    senders, dim = agreement.publishers, agreement.settings.dim
    messages = [
        Declared(JOINT_UPDATE, sender, owner.name, WORD, (agreement.nodes, dim))
        for owner in agreement.feature_holders
        for sender in senders
        if sender != owner.name
    ]
    if agreement.dealt:
        messages += _to_owners(agreement, JOINT_PRODUCT, senders)
    return messages + _corrections(agreement, senders, backward=True) + _h0_reveal(agreement)


def _to_owners(agreement: Agreement, kind: Kind, senders: tuple[str, ...]) -> list[Declared]:
    """A matrix that meets X_k, from each sender to each k."""
    return [
        Declared(kind, sender, owner.name, WORD, (owner.features, agreement.settings.dim))
        for owner in agreement.feature_holders
        for sender in senders
        if sender != owner.name
    ]


def _corrections(agreement: Agreement, receivers: tuple[str, ...], *, backward: bool) -> list[Declared]:
    """From the dealer, to whoever multiplies with somebody else's features."""
    if not agreement.dealt:
        return []
    messages, dim = [], agreement.settings.dim
    for receiver in receivers:
        columns = sum(owner.features for owner in agreement.feature_holders if owner.name != receiver)
        if not columns:
            continue
        if backward:
            messages.append(Declared(CORRECTION_BACKWARD, DEALER, receiver, WORD, (columns, dim)))
        messages.append(Declared(CORRECTION_FORWARD, DEALER, receiver, WORD, (agreement.nodes, dim)))
    return messages


def _h0_reveal(agreement: Agreement) -> list[Declared]:
    shape = (agreement.nodes, agreement.settings.dim)
    return [
        Declared(H0_SHARE, sender, receiver, WORD, shape)
        for receiver in agreement.publishers
        for sender in agreement.holder_names
        if sender != receiver
    ]
