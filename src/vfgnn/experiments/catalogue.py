"""The experiments of the paper as data: which models a table compares, and what the paper printed.

Figures are the paper's own (Table 2, accuracy on test nodes).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from vfgnn.data.partition import EdgeSplit
from vfgnn.settings import Preset, Settings

BEST = "VFGNN_best"
"""The federation with preset `best`: ours, beside the paper's three."""
Where = Literal["federated", "isolated", "pooled", "secure_gnn", "transductive", "inductive"]
READINGS: tuple[EdgeSplit, ...] = ("undirected", "directed")
"""Of "the proportion of edges": each edge at exactly one holder, or each direction of it dealt by itself."""
ARXIV, ARXIV_TEXT = "arxiv", "arxiv_text"


@dataclass(frozen=True)
class Model:
    """One row of a table."""

    name: str
    preset: str
    where: Where
    combine: str | None = None  # federated rows
    holder: int | None = None  # isolated rows: whose data

    @property
    def tuned_as(self) -> str:
        """The name under which a search chose settings for it."""
        return self.combine if self.where == "federated" and self.combine is not None else self.where


def settings_for(
    preset: str, *, dataset: str, model: str, edge_split: EdgeSplit, overrides: Mapping[str, object] | None = None
) -> Settings:
    """A preset's values for one row under one reading."""
    return Preset(preset).settings(dataset=dataset, model=model, overrides=overrides, edge_split=edge_split)


COMPARE = (
    Model("GraphSAGE_A", "paper", "isolated", holder=0),
    Model("GraphSAGE_B", "paper", "isolated", holder=1),
    Model("VFGNN_C", "paper", "federated", combine="concat"),
    Model("VFGNN_M", "paper", "federated", combine="mean"),
    Model("VFGNN_R", "paper", "federated", combine="regression"),
    Model(BEST, "best", "federated", combine="confidence"),
    Model("GraphSAGE_A+B", "paper", "pooled"),
    # The same model as VFGNN_best, with values chosen for it: what one holder, or one table, reaches at its best.
    Model("APPNP_A", "best", "isolated", holder=0),
    Model("APPNP_B", "best", "isolated", holder=1),
    Model("APPNP_A+B", "best", "pooled"),
)

PAPER_TABLE_2 = {
    "cora": {
        "GraphSAGE_A": 0.611,
        "GraphSAGE_B": 0.606,
        "VFGNN_C": 0.790,
        "VFGNN_M": 0.809,
        "VFGNN_R": 0.802,
        BEST: 0.809,
        "GraphSAGE_A+B": 0.815,
    },
    "pubmed": {
        "GraphSAGE_A": 0.672,
        "GraphSAGE_B": 0.703,
        "VFGNN_C": 0.774,
        "VFGNN_M": 0.781,
        "VFGNN_R": 0.782,
        BEST: 0.782,
        "GraphSAGE_A+B": 0.791,
    },
    "citeseer": {
        "GraphSAGE_A": 0.541,
        "GraphSAGE_B": 0.457,
        "VFGNN_C": 0.685,
        "VFGNN_M": 0.695,
        "VFGNN_R": 0.693,
        BEST: 0.695,
        "GraphSAGE_A+B": 0.700,
    },
    "arxiv": {
        "GraphSAGE_A": 0.471,
        "GraphSAGE_B": 0.482,
        "VFGNN_C": 0.513,
        "VFGNN_M": 0.522,
        "VFGNN_R": 0.518,
        BEST: 0.522,
        "GraphSAGE_A+B": 0.529,
    },
}


def printed_for(dataset: str) -> Mapping[str, float]:
    """The paper's figures for a data set; arXiv's also stand beside rows that were trained on other features."""
    return PAPER_TABLE_2[ARXIV if dataset == ARXIV_TEXT else dataset]
