"""What all parties agree on before a run: who holds what, in sizes only, and the settings.

Everything here is public and identical at all parties. Private things (data, seeds, keys, a holder's own module) are
never part of it.
"""

import hashlib
import math
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from vfgnn.explained import explain
from vfgnn.h0_bound import largest_feature_bound
from vfgnn.settings import MOST, Count, Public, Settings, Whole

SERVER = "server"
DEALER = "dealer"


class HolderShape(Public):
    """The public part of a holder: its name, how many columns it has, and whether it has edges."""

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]
    features: Count
    edges: bool
    integer: bool = False  # whether all its features are whole numbers: they then need no fraction bits
    entry_bound: Count = 0  # sealed: directed entries of its adjacency matrix, at most; DECLARED, not computed


class Agreement(Public):
    """Who takes part, in sizes only, and the settings they agreed on."""

    nodes: Whole
    classes: Annotated[int, Field(ge=2, le=MOST)]
    holders: Annotated[tuple[HolderShape, ...], Field(min_length=1)]
    label_holder: str
    tokens: bool = False  # sealed: a server aligns ids by their tokens, and does nothing else
    settings: Settings

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [holder.name for holder in self.holders]
        if len(set(names)) != len(names) or {SERVER, DEALER} & set(names):
            raise ValueError(f"holders need names of their own, none of them '{SERVER}' or '{DEALER}'; got {names}")
        if self.label_holder not in names:
            raise ValueError(f"label_holder must be one of the holders {names}, not '{self.label_holder}'")
        if self.sealed:
            self._refuse_unsealable()
        elif not self.publishers:
            raise ValueError("nobody would publish anything: at least one holder needs edges (or features of its own)")
        if self.collaborative and not any(holder.features for holder in self.holders):
            raise ValueError("collaborative initial embeddings need features at one holder at least")
        if self.collaborative and self.settings.feature_bound > self.largest_feature_bound:
            raise ValueError(
                f"feature_bound = {self.settings.feature_bound:g} lets h0 leave the ring unnoticed: scale features, "
                f"and set feature_bound = {math.floor(self.largest_feature_bound)} or less (for {self.columns} "
                f"column(s), dim = {self.settings.dim}, {len(self.holders)} holder(s), {self.nodes} node(s))"
            )
        if self.settings.privacy.noises_rows and self.settings.privacy.delta >= 1 / self.nodes:
            raise ValueError(
                f"delta must be less than 1/n = {1 / self.nodes:.3g}: with more, a mechanism may give a row away whole"
            )
        return self

    def _refuse_unsealable(self) -> None:
        if len(self.holders) < 2:
            raise ValueError("the sealed protocol needs two holders or more: one alone has nobody to hide from")
        if not self.columns:
            raise ValueError("the sealed protocol needs features at one holder at least")
        if self.degree_quota < 1:
            bits = self.settings.sealed.degree_bits
            raise ValueError(f"degree_bits = {bits} leaves {len(self.holders)} holders less than one edge per node")

    @property
    def digest(self) -> str:
        """One word for all that shapes the model; not for how parties are reached."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def sealed(self) -> bool:
        """Whether nothing but predictions is opened (sealed/); otherwise it is the paper's protocol (split/)."""
        return self.settings.protocol == "sealed"

    @property
    def degree_quota(self) -> int:
        """Sealed: edges of a node that each holder may count, so that no sum of degrees leaves the one-time table."""
        return ((1 << self.settings.sealed.degree_bits) - 2) // len(self.holders)

    @property
    def collaborative(self) -> bool:
        """Whether h0 is computed jointly."""
        return not self.sealed and self.settings.initial_embedding == "collaborative"

    @property
    def dealt(self) -> bool:
        """Whether a dealer takes part: sealed, or a secure joint layer with somebody to hide from."""
        masked = self.collaborative and self.settings.joint_layer == "secure" and len(self.holders) > 1
        return self.sealed or masked

    @property
    def parties(self) -> tuple[str, ...]:
        """Everyone who takes part, in the order that decides who dials whom."""
        servers = (SERVER,) if self.tokens or not self.sealed else ()
        return (*servers, *((DEALER,) if self.dealt else ()), *self.holder_names)

    @property
    def others(self) -> tuple[str, ...]:
        """Everyone but the label holder."""
        return tuple(name for name in self.parties if name != self.label_holder)

    @property
    def holder_names(self) -> tuple[str, ...]:
        """All holders, in the order of the federation file."""
        return tuple(holder.name for holder in self.holders)

    @property
    def feature_holders(self) -> tuple[HolderShape, ...]:
        """Those with columns: each has a block of the joint weights."""
        return tuple(holder for holder in self.holders if holder.features)

    @property
    def columns(self) -> int:
        """Of all holders together."""
        return sum(holder.features for holder in self.holders)

    @property
    def largest_feature_bound(self) -> float:
        """The largest `feature_bound` with which no start of the joint layer can be wrong unnoticed."""
        return largest_feature_bound(
            columns=self.columns, dim=self.settings.dim, holders=len(self.holders), nodes=self.nodes
        )

    @property
    def publishers(self) -> tuple[str, ...]:
        """Those that send rows to the server.

        Without edges a holder has nothing of its own to add to a joint h0, so it publishes nothing and h0 is not
        revealed to it. In individual mode its features reach the model through its own rows or not at all.
        """
        if self.sealed:
            return ()
        alone = not self.collaborative
        return tuple(holder.name for holder in self.holders if holder.edges or (alone and holder.features))

    @property
    def exposed_publishers(self) -> tuple[str, ...]:
        """Whose published rows the label holder can rebuild from z_L and its own rows (audit/rows_from_hidden.py).

        Without a hidden layer z_L is the combined row. `concat` shows every row, and what an `own` combine shows is
        not known; the others show a single unknown row, or of several the sum. With noise on rows, what is rebuilt is
        the noised row, which the ledger has charged already: post-processing.
        """
        settings = self.settings
        others = tuple(name for name in self.publishers if name != self.label_holder)
        hidden = settings.hidden_layers > 0 or settings.privacy.row_epsilon is not None
        summed = settings.combine not in ("concat", "own") and len(others) > 1
        return () if hidden or summed else others

    @property
    def row_readers(self) -> tuple[str, ...]:
        """Who hears from the label holder which rows train and which validate (`publish = "needed"`, and sealed)."""
        readers = self.holder_names if self.sealed else (SERVER, *self.publishers)
        return tuple(name for name in readers if name != self.label_holder)

    @property
    def edge_links(self) -> tuple[tuple[str, str], ...]:
        """Who shows whom its noised edges: each holder with edges, every other one that aggregates."""
        if not self.settings.privacy.publish_noised_edges:
            return ()
        owners = [holder.name for holder in self.holders if holder.edges]
        return tuple((owner, reader) for owner in owners for reader in self.publishers if reader != owner)

    @property
    def hidden_dim(self) -> int:
        """Width of z_L."""
        settings = self.settings
        wide = settings.combine == "concat" and settings.hidden_layers == 0
        return settings.dim * (len(self.publishers) if wide else 1)

    def revealed_dimensions(self, steps: int | None = None) -> int:
        """(R + 1) d: linear combinations of X that the holders with edges have seen after `steps` (None: all)."""
        settings = self.settings
        trained = settings.trained_joint_epochs if steps is None else min(steps, settings.trained_joint_epochs)
        return (trained + 1) * settings.dim if self.collaborative else 0


def make_agreement(where: str = "the agreement", **fields: object) -> Agreement:
    """A checked agreement, or a ConfigError that names the field."""
    try:
        return Agreement.model_validate(fields)
    except ValidationError as error:
        raise explain(error, where, Agreement) from None
