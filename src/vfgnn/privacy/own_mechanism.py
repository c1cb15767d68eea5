"""A holder's own mechanism for the rows that it publishes, in the place of the Gaussian one (party.toml, `mechanism`).

Runs at that holder alone. Rows are clipped to norm `clip_norm` before the mechanism sees them, so that their
sensitivity is known; what comes out may leave. It must say what a release costs in one of the two ways that the ledger
can add up, and that must not be more than the federation agreed on: anything else is refused before a run begins.
That the noise is worth what it claims is its author's to prove; what can be tried is tried.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch

from vfgnn.errors import ModuleError
from vfgnn.privacy.calibration import Adjacency, sensitivity
from vfgnn.privacy.ledger import ALL, Release, total_epsilon
from vfgnn.privacy.mechanisms import GRID, Cost, GaussianMechanism, clip
from vfgnn.randomness import Stream, insecure_seed
from vfgnn.settings import Privacy

ROWS = 4  # of the made-up input
SLACK = 1e-6  # relative, for a cost that was calculated to be exactly what was agreed


class RowMechanism(ABC):
    """Subclass this. It is made with the federation's privacy settings and the width d of a row."""

    def __init__(self, privacy: Privacy, dim: int) -> None:
        self.privacy, self.dim = privacy, dim

    @property
    def sensitivity(self) -> float:
        """How far apart (L2) two neighbouring rows can be: C, or 2C with `replace_one`."""
        return sensitivity(self.privacy.clip_norm, self.privacy.adjacency)

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Of one release of a row, for neighbours that are `sensitivity` apart."""

    @abstractmethod
    def noise(self, rows: torch.Tensor, stream: Stream) -> torch.Tensor:
        """Rows [rows, d] in float64, of norm `clip_norm` at most, as they may leave; chance is from `stream` only."""


OwnMechanism = Callable[[Privacy, int], RowMechanism]


@dataclass(frozen=True)
class OwnRows:
    """A user's mechanism that was found usable."""

    mechanism: RowMechanism
    cost: Cost

    @property
    def clip_norm(self) -> float:
        """C."""
        return self.mechanism.privacy.clip_norm

    @property
    def adjacency(self) -> Adjacency:
        """Which messages are neighbours."""
        return self.mechanism.privacy.adjacency

    @property
    def described(self) -> str:
        """For people."""
        return f"{type(self.mechanism).__name__}, the holder's own, on rows clipped to {self.clip_norm:g}"

    def signal_to_noise(self, dim: int) -> None:
        """Not known of a mechanism of one's own."""

    def release(self, rows: torch.Tensor, stream: Stream) -> torch.Tensor:
        """Rows that may leave, in the dtype and on the device of `rows`."""
        noised = self.mechanism.noise(clip(rows.detach().cpu(), self.clip_norm), stream)
        if not isinstance(noised, torch.Tensor) or noised.shape != rows.shape or not bool(noised.isfinite().all()):
            got = f"{list(noised.shape)}" if isinstance(noised, torch.Tensor) else type(noised).__name__
            raise ModuleError(
                "a mechanism must give one row of finite numbers for each row", expected=f"{list(rows.shape)}", got=got
            )
        return ((noised.double() * GRID).round() / GRID).to(rows)


def check_mechanism(own: OwnMechanism, privacy: Privacy, *, dim: int, releases: int) -> OwnRows:
    """Make a user's mechanism; refuse one whose guarantee cannot be computed, or is not what was agreed on.

    `releases`: those that `row_epsilon` is for, together.
    """
    if privacy.row_epsilon is None or privacy.shrink != "none":
        raise ModuleError(
            "a mechanism of one's own is not for these settings",
            expected="row_epsilon, and shrink = none: what follows the noise is the mechanism's own affair",
        )
    made = own(privacy, dim)
    if not isinstance(made, RowMechanism) or not isinstance(made.cost, Cost) or not made.cost.known:
        raise ModuleError(
            "a mechanism whose guarantee cannot be computed",
            expected="a RowMechanism with cost = Cost(noise_multiplier=...) or Cost(epsilon=...), finite and above 0",
            got=type(made).__name__,
        )
    used = OwnRows(made, made.cost)
    together = [release_of(used, run="", step=None, what="rows", classes=(ALL,))] * releases
    spent = total_epsilon(together, privacy.delta, privacy.adjacency)
    if spent > privacy.row_epsilon * (1 + SLACK):
        raise ModuleError(
            "a mechanism that costs more than the federation agreed on",
            expected=f"row_epsilon = {privacy.row_epsilon:g} at delta {privacy.delta:g} for {releases} release(s)",
            got=f"{spent:.4g}",
            hint="more noise, or another row_epsilon at all parties",
        )
    _try(used, dim)
    return used


def _try(used: OwnRows, dim: int) -> None:
    """On made-up rows: noise that is not drawn from the given stream, or is not there, protects nothing."""
    rows = torch.ones(ROWS, dim, dtype=torch.float64)
    first, again, other = (used.release(rows, Stream(insecure_seed(seed), "tried")) for seed in (0, 0, 1))
    if not torch.equal(first, again):
        raise ModuleError(
            "a mechanism must draw from the stream that it is given",
            got="other noise from the same stream",
            hint="the draws of vfgnn.privacy.exact, and stream.words, are secret randomness; torch.rand is not",
        )
    if bool((first == other).all(dim=1).any()):
        raise ModuleError("a mechanism that adds no noise", got="the same row from two streams")


def release_of(
    used: OwnRows | GaussianMechanism, *, run: str, step: int | None, what: str, classes: tuple[str, ...]
) -> Release:
    """A line for the ledger."""
    cost = used.cost
    # Two answers are the most that any mechanism of pure epsilon can tell apart: its totals are those of a coin.
    categories = None if cost.epsilon is None else 2
    return Release(
        run,
        step,
        what,
        "row",
        classes,
        adjacency=used.adjacency,
        noise_multiplier=cost.noise_multiplier,
        epsilon=cost.epsilon,
        categories=categories,
    )
