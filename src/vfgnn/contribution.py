"""What a party brings of its own to its role. Nothing of it is ever sent.

Whoever makes roles fills one: a process from a party's own files, a simulation from what it has in memory. What only
holders have (data, labels, ledger) is in model/contribution.py, which a server's and a dealer's process never load.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Own = Callable[..., Any]
"""A user's own class: a GNN, a combine, a mechanism."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Contribution:
    """Any party's."""

    run: str  # names this start of a run, or this pass: every derived key has it, so masks are never drawn twice
    seed: bytes
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    combine: Own | None = None  # the server's own, for `combine = "own"`
