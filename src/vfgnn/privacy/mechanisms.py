"""The paper's information publishing (Algorithm 1): clip each row, add Gaussian noise, then perhaps shrink it.

Runs at a holder, on what it is about to send; what comes out may leave. Line 4 of the algorithm is read as
x-bar + n, the noise is added to the clipped row.

Noise is drawn on the grid of multiples of 2^-24, and a row is brought to that grid before it is added: the sum is
exact, so no bit of it depends on how a float is rounded. A Gaussian rounded to the grid and then added is a Gaussian
added and then rounded: post-processing, so the exact guarantee of the Gaussian mechanism stands as it is. The rounded
Gaussian is drawn exactly (exact.py).

Shrinking is post-processing too: it costs no privacy.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch

from vfgnn.errors import ConfigError
from vfgnn.privacy import exact
from vfgnn.privacy.calibration import Adjacency, sensitivity
from vfgnn.randomness import Stream

Shrink = Literal["none", "james_stein", "james_stein_positive", "known_norm"]
GRID = 2.0**24
LARGEST = 1e100


def clip(rows: torch.Tensor, clip_norm: float) -> torch.Tensor:
    """Rows scaled down to norm `clip_norm` where they are longer (float64).

    A row that is not finite has no norm to bound: it becomes zero, and nothing tells that it was not.
    """
    rows = rows.double()
    rows = torch.where(torch.isfinite(rows).all(dim=1, keepdim=True), rows, 0.0)
    rows = rows.clamp(-LARGEST, LARGEST)  # so that the norm itself is finite
    norm = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    clipped: torch.Tensor = rows * (clip_norm / norm.clamp_min(clip_norm))
    return clipped


def gaussian(stream: Stream, shape: tuple[int, ...], std: float) -> torch.Tensor:
    """Whole multiples of the grid, as int64: a Gaussian of deviation `std`, rounded to the nearest."""
    return exact.gaussian(stream, shape, std * GRID)


def shrink(noised: torch.Tensor, how: Shrink, *, std: float, clip_norm: float) -> torch.Tensor:
    """Noised rows moved towards zero.

    james_stein: x (1 - (d - 2) s^2 / |x|^2), as printed (Algorithm 1, line 7); james_stein_positive: never beyond zero;
    known_norm: x / (1 + d s^2 / C^2), the best linear estimate of a row whose norm is known to be C.
    """
    dim = noised.shape[1]
    if how == "none":
        return noised
    if how == "known_norm":
        return noised / (1 + dim * (std / clip_norm) ** 2)
    if dim < 3:
        raise ConfigError("James-Stein needs three dimensions", expected="dim >= 3", got=str(dim))
    squared = noised.square().sum(dim=1, keepdim=True)
    factor = 1 - (dim - 2) * std**2 / squared.clamp_min(1e-300)
    return noised * (factor.clamp_min(0.0) if how == "james_stein_positive" else factor)


@dataclass(frozen=True)
class Cost:
    """What one release of a row costs: the noise multiplier of a Gaussian, or an epsilon of pure differential privacy.

    Exactly these two add up over any number of releases (ledger.py).
    """

    noise_multiplier: float | None = None
    epsilon: float | None = None

    @property
    def known(self) -> bool:
        """Whether it is one of the two, and a finite number above 0."""
        given = [value for value in (self.noise_multiplier, self.epsilon) if value is not None]
        return len(given) == 1 and math.isfinite(given[0]) and given[0] > 0


@dataclass(frozen=True)
class GaussianMechanism:
    """Algorithm 1 with its parameters; `noise_multiplier` is relative to the sensitivity."""

    clip_norm: float
    noise_multiplier: float
    adjacency: Adjacency
    shrink: Shrink = "none"

    def __post_init__(self) -> None:
        """Refuse a sum of row and noise that a float64 does not hold to the last step of the grid."""
        largest = self.clip_norm + exact.DEVIATIONS * self.std
        if not largest * GRID <= 2.0**53:
            raise ConfigError(
                "the noise leaves the grid that it is drawn on",
                expected=f"clip norm + {exact.DEVIATIONS} deviations of at most {2.0**53 / GRID:.3g}",
                got=f"clip norm {self.clip_norm:g}, deviation {self.std:g}",
                hint="a smaller clip norm, or a larger epsilon",
            )

    @property
    def cost(self) -> Cost:
        """Of one release of a row."""
        return Cost(noise_multiplier=self.noise_multiplier)

    @property
    def described(self) -> str:
        """For people."""
        then = f", then {self.shrink.replace('_', ' ')}" if self.shrink != "none" else ""
        return f"Gaussian on rows clipped to {self.clip_norm:g}{then}"

    @property
    def std(self) -> float:
        """Of the noise on each value. With `zero_out` it is the paper's sigma C."""
        return self.noise_multiplier * sensitivity(self.clip_norm, self.adjacency)

    def signal_to_noise(self, dim: int) -> float:
        """The norm of a full row over the expected norm of its noise."""
        return self.clip_norm / (self.std * math.sqrt(dim))

    def release(self, rows: torch.Tensor, stream: Stream) -> torch.Tensor:
        """Rows that may leave, in the dtype and on the device of `rows`."""
        clipped = clip(rows.detach().cpu(), self.clip_norm)
        # Towards zero: a rounded row must not be longer than the clipped one.
        on_grid = (clipped * GRID).trunc().to(torch.int64)
        noised = (on_grid + gaussian(stream, tuple(rows.shape), self.std)).double() / GRID
        return shrink(noised, self.shrink, std=self.std, clip_norm=self.clip_norm).to(rows)
