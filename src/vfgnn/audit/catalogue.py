"""Which attacks there are: which function, in which protocol, on whose view.

A function may give findings of several attacks. Where a view lacks what it needs, those of `attacks` are listed as not
measured.
"""

from dataclasses import dataclass

from vfgnn.audit import (
    claimed_epsilon,
    columns_from_h0,
    edges_from_gradient,
    edges_from_layers,
    features_from_h0,
    features_from_rows,
    labels_from_gradient,
    labels_from_rows,
    membership,
    opened_predictions,
    published_rows,
    rows_from_hidden,
    words,
)
from vfgnn.audit.attack import Attack, CarryOut
from vfgnn.audit.case import PartyRole
from vfgnn.party.roles import Protocol

SERVER, DEALER = PartyRole.SERVER, PartyRole.DEALER
HOLDER, LABEL_HOLDER = PartyRole.HOLDER, PartyRole.LABEL_HOLDER
HOLDERS, WITHOUT_LABELS, WITH_WORDS = (HOLDER, LABEL_HOLDER), (SERVER, HOLDER), (DEALER, HOLDER, LABEL_HOLDER)


@dataclass(frozen=True)
class Entry:
    """One function, and where it belongs."""

    carry_out: CarryOut
    attacks: tuple[Attack, ...]
    protocol: Protocol
    roles: tuple[PartyRole, ...]

    @property
    def name(self) -> str:
        """Its own, for what is kept."""
        return f"{self.carry_out.__module__.rpartition('.')[2]}.{self.carry_out.__name__}"


def split(carry_out: CarryOut, roles: tuple[PartyRole, ...], *attacks: Attack) -> Entry:
    """On views of the paper's protocol."""
    return Entry(carry_out, attacks, "split", roles)


def sealed(carry_out: CarryOut, roles: tuple[PartyRole, ...], *attacks: Attack) -> Entry:
    """On views of the sealed protocol."""
    return Entry(carry_out, attacks, "sealed", roles)


SPLIT = (
    split(published_rows.edges_from_rows, (SERVER,), published_rows.ROW_EDGES),
    split(published_rows.edges_from_hidden, (SERVER,), published_rows.HIDDEN_EDGES),
    split(edges_from_gradient.edges_from_gradient, WITHOUT_LABELS, edges_from_gradient.GRADIENT_EDGES),
    split(
        rows_from_hidden.from_hidden,
        (LABEL_HOLDER,),
        rows_from_hidden.ROWS,
        rows_from_hidden.EDGES,
        rows_from_hidden.DEGREES,
    ),
    split(edges_from_layers.edges_from_layers, (LABEL_HOLDER,), edges_from_layers.LAYER_EDGES),
    split(edges_from_layers.edges_from_h0, HOLDERS, edges_from_layers.H0_EDGES),
    split(
        labels_from_gradient.labels_from_gradient,
        WITHOUT_LABELS,
        labels_from_gradient.CLUSTERS,
        labels_from_gradient.ONE_KNOWN,
    ),
    split(labels_from_gradient.rare_class_from_gradient, WITHOUT_LABELS, labels_from_gradient.NORMS),
    split(labels_from_rows.labels_from_rows, WITHOUT_LABELS, labels_from_rows.COMPLETION),
    split(columns_from_h0.columns_from_h0, HOLDERS, columns_from_h0.SPAN, columns_from_h0.COLUMNS),
    split(
        features_from_h0.features_from_h0,
        HOLDERS,
        features_from_h0.GRAM,
        features_from_h0.KNOWN_ROWS,
        features_from_h0.KNOWN_ENTRIES,
    ),
    split(features_from_rows.features_from_rows, (SERVER, LABEL_HOLDER), features_from_rows.ROW_ENTRIES),
    split(published_rows.degrees_from_rows, (SERVER,), published_rows.ROW_DEGREES),
    split(membership.training_rows, WITHOUT_LABELS, membership.MEMBERS),
    split(words.uniform_words, HOLDERS, words.UNIFORM),
    split(words.words_and_data, HOLDERS, words.UNRELATED, words.WORD_EDGES),
    split(claimed_epsilon.epsilon_of_inputs, (SERVER,), claimed_epsilon.EDGE_EPSILON, claimed_epsilon.LABEL_EPSILON),
    split(claimed_epsilon.epsilon_of_rows, (SERVER,), claimed_epsilon.ROW_EPSILON),
)
SEALED = (
    sealed(
        opened_predictions.edges_from_predictions,
        (LABEL_HOLDER,),
        opened_predictions.CLASS_EDGES,
        opened_predictions.SCORE_EDGES,
    ),
    sealed(opened_predictions.edges_from_inner_products, (LABEL_HOLDER,), opened_predictions.PRODUCT_EDGES),
    sealed(opened_predictions.edges_from_invented_labels, (LABEL_HOLDER,), opened_predictions.INVENTED_EDGES),
    sealed(opened_predictions.features_from_predictions, (LABEL_HOLDER,), opened_predictions.OPENED_ENTRIES),
    sealed(opened_predictions.features_from_invented_labels, (LABEL_HOLDER,), opened_predictions.INVENTED_ENTRIES),
    sealed(membership.training_rows, (HOLDER,), membership.MEMBERS),
    sealed(words.uniform_words, WITH_WORDS, words.UNIFORM),
    sealed(words.words_and_data, WITH_WORDS, words.UNRELATED, words.WORD_EDGES),
)
CATALOGUE: tuple[Entry, ...] = (*SPLIT, *SEALED)


def entries_for(protocol: Protocol, role: PartyRole) -> list[Entry]:
    """What can be tried with a view of this role."""
    return [entry for entry in CATALOGUE if entry.protocol == protocol and role in entry.roles]
